from __future__ import annotations

import math

import numpy as np
import pytest

from fouriscope.optics import Directions, Geometry, Illumination, LEDArray, Optics, OpticsReport, report_geometry

OPTICS = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)


def report(illumination: Illumination, optics: Optics = OPTICS) -> OpticsReport:
    return report_geometry(Geometry.compile(optics, illumination, (64, 64)))


def test_the_paper_microscope_in_numbers() -> None:
    leds = LEDArray.disc(pitch=4e-3, height=70e-3, radius=9.5)
    found = report_geometry(Geometry.compile(OPTICS, leds, (100, 100), margin=8))
    assert (found.leds, found.bright_field, found.dark_field) == (293, 37, 256)
    assert found.synthetic_na == pytest.approx(0.677, abs=5e-4)
    assert found.half_pitch == pytest.approx(513e-9 / 2 / found.synthetic_na)
    assert found.phase_gap_na == pytest.approx(0.022, abs=5e-4)
    assert found.phase_gap_period == pytest.approx(23.1e-6, rel=0.01)
    assert found.coverage > 0.95
    assert found.warnings == ()
    assert len(found.notes) == 1
    assert "λ/(4NA)" in found.notes[0]
    lines = str(found).splitlines()
    assert 12 <= len(lines) <= 16
    assert len({len(line) - len(line[25:]) for line in lines[:-1]}) == 1
    assert "margin 8" in str(found)


def test_a_pixel_that_samples_the_intensity_leaves_no_note() -> None:
    fine = Optics(wavelength=513e-9, na=0.2, magnification=20, camera_pixel=6.5e-6)
    assert report(LEDArray.square(5, 4e-3, 70e-3), fine).notes == ()


def test_overlap_agrees_with_counting_points() -> None:
    found = report(Directions([(0.0, 0.0), (0.0, 0.15)]))
    axis = np.linspace(-0.2, 0.2, 1001)
    first = np.hypot(axis[:, None], axis[None, :]) <= 0.2
    second = np.hypot(axis[:, None], axis[None, :] - 0.15) <= 0.2
    assert found.overlap_min == pytest.approx((first & second).sum() / first.sum(), abs=2e-3)
    assert found.overlap_min == found.overlap_median


def test_coverage_of_one_and_of_two_discs() -> None:
    assert report(Directions([(0.0, 0.0)])).coverage == 1
    # Two discs of radius 0.2 that touch inside one of radius 0.4 cover half of it.
    assert report(Directions([(0.0, -0.2), (0.0, 0.2)])).coverage == pytest.approx(0.5, abs=5e-3)


@pytest.mark.parametrize(
    ("directions", "expected"),
    [
        ([(0.0, 0.0)], "a single LED"),
        ([(0.0, 0.3), (0.3, 0.0)], "no bright-field LED: the smallest |na| is 0.3000"),
        ([(0.0, 0.0), (0.0, 0.25)], "the only bright field is on the axis"),
        ([(0.0, -0.19), (0.0, 0.19)], "overlap by 1.3% (median), below 35%"),
        ([(0.0, -0.19), (0.0, 0.19)], "of what their outline encloses, below 90%"),
        ([(0.0, -0.19), (0.0, 0.0), (0.0, 0.19)], "in some directions only; in others it is that of NA 0.2000"),
    ],
)
def test_each_warning(directions: list[tuple[float, float]], expected: str) -> None:
    found = report(Directions(directions))
    assert any(expected in text for text in found.warnings), found.warnings
    assert expected in str(found)


def test_what_cannot_be_said_is_none() -> None:
    single, dark = report(Directions([(0.0, 0.0)])), report(Directions([(0.0, 0.3), (0.3, 0.0)]))
    assert single.overlap_min is None
    assert single.overlap_median is None
    assert "no neighbour" in str(single)
    assert dark.phase_gap_na is None
    assert dark.phase_gap_period is None
    assert "no bright field" in str(dark)


def test_matched_illumination_has_no_phase_gap_and_far_pupils_no_overlap() -> None:
    matched = report(Directions([(0.0, 0.2), (0.0, -0.25)]))
    assert matched.phase_gap_na == 0
    assert matched.phase_gap_period == math.inf
    assert matched.overlap_min == 0


@pytest.mark.parametrize("size", [5, 9, 21])
def test_a_square_array_has_no_gaps_though_its_corners_reach_farthest(size: int) -> None:
    found = report(LEDArray.square(size, 4e-3, 70e-3))
    assert found.warnings == ()
    assert found.coverage_of_outline > 0.97
    # In the middle of a side, closed form: the outermost LED of the axis.
    side = size // 2 * 4e-3
    assert found.least_na == pytest.approx(side / math.hypot(side, 70e-3) + 0.2, rel=0.02)


def test_a_square_array_with_a_hole_is_told_so() -> None:
    na = LEDArray.square(15, 4e-3, 70e-3).directions()
    kept = (np.abs(na) < 0.08).all(axis=1) | (np.abs(na).max(axis=1) > 0.35)
    coarse = Optics(wavelength=513e-9, na=0.05, magnification=8.1485, camera_pixel=6.5e-6)
    assert any("add LEDs in the gaps" in text for text in report(Directions(na[kept]), coarse).warnings)
    assert not any("gaps" in text for text in report(Directions(na), coarse).warnings)


def test_half_an_array_is_told_so() -> None:
    na = LEDArray.square(15, 4e-3, 70e-3).directions()
    assert any("some directions only" in text for text in report(Directions(na[na[:, 0] > -0.01])).warnings)
