"""Spirals of LEDs: closed forms, symmetries, and what three laboratories lit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fouriscope.errors import InvalidInputError
from fouriscope.optics import GlassSlide, LEDArray
from fouriscope.optics.spiral import Start, spiral_steps

DATA = Path(os.environ.get("FOURISCOPE_DATA", Path(__file__).parents[2].parent / "shared" / "data")) / "fpm"
STARTS: tuple[Start, ...] = ("right", "down", "left", "up")


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("clockwise", [True, False])
def test_a_spiral_lights_each_led_of_the_square_once(size: int, start: Start, clockwise: bool) -> None:
    leds = LEDArray.spiral(size, 2e-3, 0.1, start=start, clockwise=clockwise).positions
    square = LEDArray.square(size, 2e-3, 0.1).positions
    np.testing.assert_allclose(leds[np.lexsort(leds.T[::-1])], square, atol=1e-15)
    steps = np.diff(leds, axis=0) / 2e-3
    assert (np.abs(steps).sum(axis=1).round(9) == 1).all(), "from neighbour to neighbour"
    ring = np.abs(leds / 2e-3).max(axis=1)
    assert (np.diff(ring).round(9) >= 0).all(), "from the centre outwards"


def test_the_first_step_and_the_turn() -> None:
    first = {"right": (0, 1), "down": (1, 0), "left": (0, -1), "up": (-1, 0)}
    for index, start in enumerate(STARTS):
        for turn, clockwise in ((1, True), (-1, False)):
            a, b, c = spiral_steps(3, even=True, start=start, clockwise=clockwise)
            assert tuple(b - a) == first[start]
            assert tuple(c - b) == first[STARTS[(index + turn) % 4]]
            assert np.abs([a, b, c]).max() == 0.5


def test_wrong_spirals() -> None:
    for count in (0, 10):
        with pytest.raises(InvalidInputError, match=f"count from 1 to size² = 9, got a count of {count}"):
            LEDArray.spiral(3, 1e-3, 0.1, count=count)
    with pytest.raises(InvalidInputError, match="start must be 'right' or 'down' or 'left' or 'up', got 'north'"):
        LEDArray.spiral(3, 1e-3, 0.1, start="north")  # type: ignore[arg-type]


@pytest.mark.skipif(not DATA.is_dir(), reason=f"the real acquisitions are not here: {DATA}")
@pytest.mark.parametrize(
    ("name", "size", "options", "within"),
    [
        ("elfpie_usaf", 8, {"pitch": 8e-3, "height": 0.18}, 1e-6),
        ("pi_usaf", 15, {"pitch": 3.3e-3, "height": 0.05, "clockwise": False}, 1e-7),
        (
            "uconn_bloodsmear_green",
            15,
            {"pitch": 4e-3, "height": 91.88e-3, "offset": (0.35e-3, 0.0), "slide": GlassSlide(1e-3, 1.52)},
            2e-4,
        ),
    ],
)
def test_spirals_of_real_arrays(name: str, size: int, options: dict[str, Any], within: float) -> None:
    table = np.loadtxt(DATA / name / "illumination_na.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(LEDArray.spiral(size, **options).directions(), table[:, ::-1], atol=within)
