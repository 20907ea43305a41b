from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriscope.errors import InvalidInputError
from fouriscope.optics import Directions, Geometry, LEDArray, Optics, Pupil, automatic_object_shape

OPTICS = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
LEDS = LEDArray.disc(pitch=4e-3, height=70e-3, radius=9.5)


def with_pixel(pixel: float) -> Optics:
    return Optics(wavelength=500e-9, na=0.25, magnification=1.0, camera_pixel=pixel)


@pytest.mark.parametrize(
    ("frame", "fine"),
    [((100, 100), (500, 500)), ((180, 180), (900, 900)), ((100, 180), (500, 900)), ((101, 64), (505, 320))],
)
def test_automatic_sizes(frame: tuple[int, int], fine: tuple[int, int]) -> None:
    geometry = Geometry.compile(OPTICS, LEDS, frame)
    assert geometry.object_shape == fine
    assert geometry.object_pixel == pytest.approx((OPTICS.pixel / 5, OPTICS.pixel / 5))
    assert automatic_object_shape(OPTICS, float(geometry.illumination_na.max()), frame) == fine


@settings(max_examples=200)
@given(
    rows=st.integers(4, 40),
    columns=st.integers(4, 40),
    pixel=st.floats(5e-9, 0.45e-6),
    na_y=st.floats(-0.7, 0.7),
    na_x=st.floats(-0.7, 0.7),
)
def test_the_automatic_object_always_holds_every_led(
    rows: int, columns: int, pixel: float, na_y: float, na_x: float
) -> None:
    Geometry.compile(with_pixel(pixel), Directions([(na_y, na_x), (0.0, 0.0), (0.01, -0.02)]), (rows, columns))


def test_paper_numbers() -> None:
    geometry = Geometry.compile(OPTICS, LEDS, (100, 100))
    assert geometry.synthetic_na == pytest.approx(0.677, abs=5e-4)
    assert int(geometry.bright_field.sum()) == 37
    assert OPTICS.cutoff / geometry.frequency_step[0] == pytest.approx(31.1, abs=0.05)
    assert np.hypot(*geometry.shifts.T).max() == pytest.approx(74.1, abs=0.05)


def test_shifts_split_into_whole_bins_and_fractions() -> None:
    geometry = Geometry.compile(OPTICS, LEDS, (100, 120), margin=8)
    assert geometry.grid_shape == (116, 136)
    du = np.array(geometry.frequency_step)
    np.testing.assert_allclose((geometry.whole_bins + geometry.fractions) * du * OPTICS.wavelength, geometry.na)
    assert np.abs(geometry.fractions).max() <= 0.5
    assert geometry.whole_bins.dtype == np.int64


def test_half_bins_round_to_even() -> None:
    optics = with_pixel(0.4e-6)
    bin_na = optics.wavelength / (64 * optics.pixel)
    geometry = Geometry.compile(optics, Directions([(0.5 * bin_na, 1.5 * bin_na)]), (64, 64))
    np.testing.assert_array_equal(geometry.whole_bins, [[0, 2]])
    np.testing.assert_allclose(geometry.fractions, [[0.5, -0.5]])


@pytest.mark.parametrize("frame", [(100, 100), (64, 101)])
def test_support_box_is_sufficient_and_tight(frame: tuple[int, int]) -> None:
    geometry = Geometry.compile(OPTICS, LEDS, frame)
    box, du = geometry.support_box, geometry.frequency_step
    rows, columns = np.arange(-60, 61), np.arange(-60, 61)
    lit = np.zeros((121, 121), dtype=bool)
    for fraction_y, fraction_x in geometry.fractions:
        fy, fx = (rows - fraction_y) * du[0], (columns - fraction_x) * du[1]
        lit |= Pupil().evaluate(fy[:, None], fx[None, :], OPTICS) != 0
    lit_rows, lit_columns = rows[lit.any(axis=1)], columns[lit.any(axis=0)]
    assert box.row0 <= lit_rows[0]
    assert lit_rows[-1] < box.row0 + box.height
    assert box.col0 <= lit_columns[0]
    assert lit_columns[-1] < box.col0 + box.width
    # The bound ignores that a disc is narrow where it ends, which may cost one bin on each side and no more.
    assert box.height - (lit_rows[-1] - lit_rows[0] + 1) <= 2
    assert box.width - (lit_columns[-1] - lit_columns[0] + 1) <= 2


def test_support_box_keeps_a_disc_that_ends_on_a_bin() -> None:
    """R = 20.0 bins up to rounding: the bins at ±20 must be inside whichever way the division rounds."""
    optics = with_pixel(0.5e-6)
    geometry = Geometry.compile(optics, Directions([(0.0, 0.0)]), (80, 80))
    assert geometry.support_box == (-20, -20, 41, 41)


def test_margin_window_and_patch() -> None:
    geometry = Geometry.compile(OPTICS, LEDS, (100, 90), margin=8, patch_center=(1e-4, 2e-4))
    factor = geometry.object_shape[0] // 116
    assert geometry.object_window == (slice(8 * factor, 108 * factor), slice(8 * factor, 98 * factor))
    np.testing.assert_array_equal(geometry.na, LEDS.directions((1e-4, 2e-4)))
    odd = Geometry.compile(OPTICS, LEDS, (100, 100), margin=4, object_shape=(301, 301))
    assert odd.object_window == (slice(11, 290), slice(11, 290))


def test_undersampling_is_explained_and_its_remedy_works() -> None:
    leds = Directions([(0.0, 0.0), (0.03, 0.041)])
    for pixel in (1.1e-6, 1.0e-6):
        with pytest.raises(InvalidInputError, match="undersamples the field") as caught:
            Geometry.compile(with_pixel(pixel), leds, (50, 50))
        found = re.search(r"at most ([\d.]+) µm here", str(caught.value))
        assert found is not None
        Geometry.compile(with_pixel(float(found[1]) * 1e-6), leds, (50, 50))


@pytest.mark.parametrize("parity", [0, 1])
def test_an_led_beyond_the_object_is_named_and_the_remedy_is_the_smallest(parity: int) -> None:
    frame = (100 + parity, 100)
    with pytest.raises(InvalidInputError, match=r"LED \d+ at .* reaches outside") as caught:
        Geometry.compile(OPTICS, LEDS, frame, object_shape=(150, 150))
    text = str(caught.value)
    led = int(re.findall(r"LED (\d+)", text)[0])
    assert np.hypot(*LEDS.directions()[led]) == pytest.approx(0.4766, abs=5e-5)
    needed = tuple(int(size) for size in re.findall(r"large enough is \((\d+), (\d+)\)", text)[0])
    Geometry.compile(OPTICS, LEDS, frame, object_shape=(needed[0], needed[1]))
    for smaller in ((needed[0] - 1, needed[1]), (needed[0], needed[1] - 1)):
        with pytest.raises(InvalidInputError, match="reaches outside"):
            Geometry.compile(OPTICS, LEDS, frame, object_shape=smaller)


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("frame_shape must be two integers", {"frame_shape": (100,)}),
        ("frame_shape must be two integers", {"frame_shape": (100.0, 100)}),
        ("frame_shape must be at least 4", {"frame_shape": (3, 100)}),
        ("margin must not be negative", {"margin": -1}),
        ("margin must be a whole number", {"margin": 1.5}),
        (r"at least the frame with its margins, \(104, 104\)", {"margin": 2, "object_shape": (100, 500)}),
        ("'auto' or", {"object_shape": "big"}),
        ("patch_center must be two", {"patch_center": (0.0,)}),
    ],
)
def test_errors_say_what_is_wrong(message: str, change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Geometry.compile(**{"optics": OPTICS, "illumination": LEDS, "frame_shape": (100, 100), **change})


def test_directions_are_read_only() -> None:
    geometry = Geometry.compile(OPTICS, LEDS, (100, 100))
    for array in (geometry.na, geometry.shifts, geometry.whole_bins, geometry.fractions):
        assert not array.flags.writeable
    with pytest.raises(InvalidInputError, match="na must be"):
        Geometry(OPTICS, np.zeros(3), (100, 100), 0, (500, 500))
