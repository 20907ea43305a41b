"""Patterns of several LEDs: what they are, what is wrong with them, and what a set of them sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.acquisition.pattern_table import pattern_text, read_patterns
from fouriscope.errors import InvalidInputError
from fouriscope.optics import Geometry, Multiplexed, annuli, half_circles, random_patterns, report_geometry
from fouriscope.optics.pattern_makers import named_patterns
from fouriscope.optics.patterns import direct_light, frame_levels

OPTICS = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
LEDS = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
EYE = np.eye(81)


@pytest.mark.parametrize(
    ("patterns", "sentence"),
    [
        (np.ones((2, 80)), "a column for each of 81 LEDs, got 80"),
        (np.ones(81), r"array \(frames, LEDs\)"),
        (np.ones((0, 81)), r"array \(frames, LEDs\)"),
        ("light", "an array of numbers"),
        (np.where(EYE[:3], -1.0, 0.5), "LED 0 in frame 0 is -1"),
        (np.where(EYE[:3], np.nan, 0.5), "finite"),
        (np.where(EYE[:3], np.inf, 0.5), "finite"),
        (np.stack([EYE[3], 0 * EYE[3]]), "the pattern of frame 1 is empty"),
        (np.stack([EYE[3], EYE[4], EYE[3]]), "frames 0 and 2 have the same pattern"),
    ],
)
def test_bad_patterns_end_in_one_line(patterns: Any, sentence: str) -> None:
    with pytest.raises(InvalidInputError, match=sentence) as error:
        Multiplexed(LEDS, patterns)
    assert "\n" not in str(error.value)


def test_patterns_of_patterns_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="already has patterns"):
        Multiplexed(Multiplexed(LEDS, EYE), EYE)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("frame,led,weight\n0,81,1\n", "line 2 names LED 81, but LEDs are 0 to 80"),
        ("frame,led\n0,-1\n", "line 2 names LED -1"),
        ("frame,led,weight\n0,3,1\n2,4,1\n", "the pattern of frame 1 is empty"),
        ("frame,led,weight\n0,3,-1\n", "at least 0"),
        ("frame,led,weight\n0,3,nan\n", "line 2 holds 'nan'"),
        ("frame,led,weight\n0,3\n", "line 2 holds ''"),
        ("frame,led,weight\n0,3.5,1\n", "whole numbers, got '3.5'"),
        ("frame,led\n0,3\n0,3\n", "LED 3 of frame 0 for the second time"),
        ("frame,led\n0,3\n1,3\n", "frames 0 and 1 have the same pattern"),
        ("frame,led\n-1,3\n", "counted from 0"),
        ("frame,led\n1e9,3\n", "frame 1000000000"),
        ("frame,led,weight\n", "no pattern below the header"),
        ("", "the file is empty"),
        ("1,0,1\n", "a number for each of 81 LEDs, got 3"),
        ("one,two\n", "'one'"),
    ],
)
def test_bad_files_name_their_line(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "patterns.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=sentence) as error:
        read_patterns(path, 81)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_files_bring_back_the_same_patterns(tmp_path: Path) -> None:
    patterns = random_patterns(LEDS, OPTICS, 4, seed=1) * np.random.default_rng(0).uniform(0.1, 2, 81)
    (tmp_path / "table.csv").write_text(pattern_text(patterns), encoding="utf-8")
    np.savetxt(tmp_path / "matrix.csv", patterns, delimiter=",", fmt="%.17g")
    np.save(tmp_path / "matrix.npy", patterns)
    for name in ("table.csv", "matrix.csv", "matrix.npy"):
        assert np.array_equal(read_patterns(tmp_path / name, 81), patterns)
    (tmp_path / "plain.csv").write_text("LED, Frame\n5,1\n3,0\n4,0\n", encoding="utf-8")
    assert np.array_equal(read_patterns(tmp_path / "plain.csv", 81), [EYE[3] + EYE[4], EYE[5]])
    np.save(tmp_path / "cube.npy", np.ones((2, 81, 1)))
    with pytest.raises(InvalidInputError, match="matrix"):
        read_patterns(tmp_path / "cube.npy", 81)


def test_each_led_shines_once_and_dark_field_together() -> None:
    patterns, bright = random_patterns(LEDS, OPTICS, 8, seed=3), OPTICS.passes(np.hypot(*LEDS.directions().T))
    assert np.array_equal(patterns.sum(axis=0), np.ones(81))
    assert patterns.sum(axis=1).tolist() == [1.0] * 37 + [8.0] * 2 + [7.0] * 4
    assert not (patterns[37:] * bright).any()
    assert not np.array_equal(patterns, random_patterns(LEDS, OPTICS, 8, seed=4))


def test_half_circles_are_opposite_and_annuli_share_out_the_leds() -> None:
    down, up, right, left = half_circles(LEDS, OPTICS)
    mirrored = np.arange(81).reshape(9, 9)
    assert np.array_equal(down[mirrored[::-1].ravel()], up)
    assert np.array_equal(right[mirrored[:, ::-1].ravel()], left)
    assert (LEDS.directions()[down > 0, 0] > 0).all()
    assert np.array_equal(annuli(LEDS, 5).sum(axis=0), np.ones(81))
    assert len(half_circles(LEDS, OPTICS, 8)) == 4 + 6
    with pytest.raises(InvalidInputError, match="inside the pupil"):
        half_circles(fs.Directions([(0.5, 0.5)]), OPTICS)


def test_patterns_by_name() -> None:
    for name, count in (("random-8", 43), ("half-circles", 4), ("half-circles-4", 15), ("annuli-3", 3)):
        assert len(named_patterns(name, LEDS, OPTICS, 0)) == count
    for name in ("random", "random-0", "circle", "", "-", "annuli"):
        with pytest.raises(InvalidInputError, match="unknown patterns"):
            named_patterns(name, LEDS, OPTICS, 0)


def test_a_frame_is_bright_field_if_one_of_its_leds_is() -> None:
    patterns = random_patterns(LEDS, OPTICS, 4)
    patterns[-1] += patterns[0]
    lights = Multiplexed(LEDS, patterns)
    geometry = Geometry.compile(OPTICS, lights, (24, 24))
    assert geometry.bright_field.tolist() == [True] * 37 + [False] * 10 + [True]
    assert np.array_equal(geometry.na[:37], LEDS.directions()[np.argmax(patterns[:37], axis=1)])
    sizes = np.hypot(*LEDS.directions().T)
    assert geometry.synthetic_na == pytest.approx(sizes.max() + 0.2)
    for frame in range(len(patterns)):
        assert geometry.outer_na[frame] == sizes[patterns[frame] > 0].max()
        assert geometry.illumination_na[frame] == pytest.approx(sizes[patterns[frame] > 0].min())
    assert direct_light(lights, OPTICS, (0.0, 0.0)).tolist() == [1.0] * 37 + [0.0] * 10 + [1.0]
    assert frame_levels(lights, OPTICS, (0.0, 0.0)).tolist() == [1.0] * 37 + [4.0] * 10 + [1.0]
    assert np.array_equal(frame_levels(LEDS, OPTICS, (0.0, 0.0)), np.ones(81))


def test_only_leds_that_shine_need_an_object() -> None:
    inner = np.hypot(*LEDS.directions().T) <= 0.13
    few = Multiplexed(LEDS, EYE[inner])
    alone = Geometry.compile(OPTICS, LEDS.subset(inner), (24, 24))
    geometry = Geometry.compile(OPTICS, few, (24, 24))
    assert geometry.object_shape == alone.object_shape
    assert geometry.synthetic_na == alone.synthetic_na
    assert str(report_geometry(geometry)) == str(report_geometry(alone))


def test_the_report_says_what_patterns_see() -> None:
    def report(patterns: np.ndarray) -> Any:
        return report_geometry(Geometry.compile(OPTICS, Multiplexed(LEDS, patterns), (24, 24)))

    told = str(report(random_patterns(LEDS, OPTICS, 8)))
    assert "81: 37 bright-field, 44 dark-field" in told
    assert "43 frames of 1 to 8 sources, 37 of them with bright field" in told
    assert "36 frames whose bright field lies to one side" in told
    assert any("balanced" in warning for warning in report(annuli(LEDS, 3)).warnings)
    assert not any("balanced" in warning for warning in report(half_circles(LEDS, OPTICS)).warnings)
    assert any("per unknown" in warning for warning in report(annuli(LEDS, 1)).warnings)
    # Twice the frames, twice the measurements.
    one, two = (report(random_patterns(LEDS, OPTICS, k)).patterns for k in (44, 4))
    assert two.redundancy / one.redundancy == pytest.approx(48 / 38)


def test_a_pattern_says_what_it_is() -> None:
    assert (
        repr(Multiplexed(LEDS, annuli(LEDS, 5))) == "Multiplexed: 5 frames of 5 to 24 LEDs, of 81 LEDs up to NA 0.308"
    )
    model = fs.ForwardModel(OPTICS, Multiplexed(LEDS, half_circles(LEDS, OPTICS)), (24, 24))
    assert repr(model).startswith("ForwardModel: 36 LEDs in 4 patterns, frames of 24 × 24")
