from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fouriscope.errors import InvalidInputError
from fouriscope.optics import Directions, GlassSlide, LEDArray


def paper_disc(**placement: Any) -> LEDArray:
    return LEDArray.disc(pitch=4e-3, height=70e-3, radius=9.5, **placement)


def sizes(leds: LEDArray) -> Any:
    return np.hypot(*leds.directions().T)


def test_paper_disc_has_its_counts_and_apertures() -> None:
    na = sizes(paper_disc())
    assert (len(na), int((na <= 0.2).sum()), int((na > 0.2).sum())) == (293, 37, 256)
    assert na.max() == pytest.approx(0.4766, abs=5e-5)
    assert na[na <= 0.2].max() == pytest.approx(0.1778, abs=5e-5)
    assert na[na > 0.2].min() == pytest.approx(0.2018, abs=5e-5)  # √13 pitches


def test_order_is_row_major_and_centred() -> None:
    square = LEDArray.square((2, 3), pitch=1e-3, height=0.1)
    expected = [(y, x) for y in (-0.5e-3, 0.5e-3) for x in (-1e-3, 0.0, 1e-3)]
    np.testing.assert_allclose(square.positions, expected, atol=1e-18)
    assert len(LEDArray.square(15, pitch=4e-3, height=0.1)) == 225
    disc = paper_disc().positions
    assert np.array_equal(np.lexsort((disc[:, 1], disc[:, 0])), np.arange(293))


def test_an_led_at_plus_x_has_plus_na_x() -> None:
    (na_y, na_x) = LEDArray.at([(0.0, 3e-3)], height=4e-3).directions()[0]
    assert (na_y, na_x) == pytest.approx((0.0, 0.6))


def test_rings_have_a_centre_and_start_at_x() -> None:
    rings = LEDArray.rings([0.0, 10e-3, 20e-3], [1, 4, 8], height=0.1)
    np.testing.assert_allclose(rings.positions[:3], [(0, 0), (0, 10e-3), (10e-3, 0)], atol=1e-17)
    np.testing.assert_allclose(np.hypot(*rings.positions[5:].T), 20e-3)
    turned = LEDArray.rings([10e-3], [4], height=0.1, start_angle=math.pi / 2)
    np.testing.assert_allclose(turned.positions[0], (10e-3, 0), atol=1e-17)


def test_a_quarter_turn_permutes_a_square() -> None:
    """From x towards y: the LED at (y, x) goes to (x, −y)."""
    leds = LEDArray.square(3, pitch=4e-3, height=70e-3)
    turned = LEDArray.square(3, pitch=4e-3, height=70e-3, rotation=math.pi / 2)
    na = leds.directions()
    np.testing.assert_allclose(turned.directions(), np.stack([na[:, 1], -na[:, 0]], axis=1), atol=1e-15)
    assert set(map(tuple, turned.directions().round(9) + 0.0)) == set(map(tuple, na.round(9) + 0.0))


def test_offset_comes_after_rotation() -> None:
    leds = LEDArray.at([(0.0, 1e-3)], 0.1, rotation=math.pi / 2, offset=(0.0, 5e-3))
    np.testing.assert_allclose(leds.directions(), LEDArray.at([(1e-3, 5e-3)], 0.1).directions(), atol=1e-15)


def test_a_patch_off_the_axis_sees_a_shifted_array() -> None:
    slide = GlassSlide(1e-3, 1.52)
    for glass in (None, slide):
        there = paper_disc(slide=glass).directions((0.3e-3, -0.5e-3))
        np.testing.assert_allclose(there, paper_disc(slide=glass, offset=(-0.3e-3, 0.5e-3)).directions(), atol=1e-15)


@given(
    thickness=st.floats(1e-4, 0.9),
    index=st.floats(1.0, 2.5),
    distance=st.floats(1e-6, 50.0),
)
def test_the_ray_through_a_slide_arrives_where_it_should(thickness: float, index: float, distance: float) -> None:
    leds = LEDArray.at([(0.0, distance)], height=1.0, slide=GlassSlide(thickness, index))
    sine = leds.directions()[0, 1]
    arrival = (1 - thickness) * math.tan(math.asin(sine)) + thickness * math.tan(math.asin(sine / index))
    assert arrival == pytest.approx(distance, rel=1e-9)


def test_snell_agrees_with_brute_force_bisection() -> None:
    leds = paper_disc(slide=GlassSlide(5e-3, 1.52))
    low, high = np.zeros(293), np.full(293, math.pi / 2 - 1e-6)
    distance = np.hypot(*leds.positions.T)
    for _ in range(100):
        middle = (low + high) / 2
        short = 65e-3 * np.tan(middle) + 5e-3 * np.tan(np.arcsin(np.sin(middle) / 1.52)) < distance
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    np.testing.assert_allclose(sizes(leds), np.sin(low), atol=1e-12)


def test_a_slide_of_air_is_no_slide() -> None:
    air = paper_disc(slide=GlassSlide(10e-3, 1.0))
    np.testing.assert_allclose(air.directions(), paper_disc().directions(), atol=1e-15)


def test_subset_keeps_placement_and_order() -> None:
    leds = paper_disc(rotation=0.1, offset=(1e-3, 2e-3))
    np.testing.assert_array_equal(leds.subset([5, 2]).directions(), leds.directions()[[5, 2]])
    mask = np.arange(293) < 7
    assert len(leds.subset(mask)) == 7
    for wrong in ([293], [0.5], [[1]], [True, False]):
        with pytest.raises(InvalidInputError, match="indices must"):
            leds.subset(wrong)
    with pytest.raises(InvalidInputError, match="N ≥ 1"):
        leds.subset(np.zeros(293, dtype=bool))


def test_arrays_are_copies_and_read_only() -> None:
    positions = np.zeros((1, 2))
    leds = LEDArray(positions, 0.1)
    positions[0, 0] = 1
    assert leds.positions[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        leds.positions[0, 0] = 1


def test_directions_with_height_equal_the_led_array() -> None:
    leds = paper_disc()
    given_na = Directions(leds.directions(), height=70e-3)
    np.testing.assert_array_equal(given_na.directions(), leds.directions())
    np.testing.assert_allclose(given_na.directions((1e-3, -2e-3)), leds.directions((1e-3, -2e-3)), atol=1e-14)
    assert len(given_na) == 293
    subset = given_na.subset([3, 1])
    assert subset.height == 70e-3
    np.testing.assert_array_equal(subset.na, given_na.na[[3, 1]])


def test_directions_without_height_know_the_axis_only() -> None:
    with pytest.raises(InvalidInputError, match="height"):
        Directions([(0.0, 0.1)]).directions((0.0, 1e-3))
    with pytest.raises(InvalidInputError, match=r"got 1\.2 for LED 1"):
        Directions([(0.0, 0.1), (1.2, 0.0)])


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("height must be positive", {"height": 0.0}),
        ("rotation must be a finite", {"rotation": math.nan}),
        ("offset must be ", {"offset": (1.0, 2.0, 3.0)}),
        ("thinner than height", {"slide": GlassSlide(0.1, 1.5)}),
        ("for LED 1", {"positions": [(0.0, 0.0), (math.nan, 0.0)]}),
        (r"shape \(0, 2\)", {"positions": np.empty((0, 2))}),
        (r"shape \(3,\)", {"positions": [1.0, 2.0, 3.0]}),
    ],
)
def test_errors_say_what_is_wrong(message: str, change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=message):
        LEDArray.at(**{"positions": [(0.0, 0.0)], "height": 0.1, **change})


def test_constructors_and_slides_check_their_arguments() -> None:
    with pytest.raises(InvalidInputError, match="at least 1 row"):
        LEDArray.square((0, 3), 4e-3, 0.1)
    with pytest.raises(InvalidInputError, match="one count for each radius"):
        LEDArray.rings([1e-3], [3, 4], 0.1)
    with pytest.raises(InvalidInputError, match=r"radius 0\.0 m with 2 LEDs"):
        LEDArray.rings([0.0], [2], 0.1)
    with pytest.raises(InvalidInputError, match="at least 1"):
        GlassSlide(1e-3, 0.9)
    with pytest.raises(InvalidInputError, match="patch_center"):
        paper_disc().directions((math.inf, 0.0))


def test_counts_are_whole_numbers() -> None:
    assert len(LEDArray.square(np.int64(5), 4e-3, 0.1)) == 25
    assert len(LEDArray.square((np.int32(3), 2), 4e-3, 0.1)) == 6
    assert len(LEDArray.square(np.array([3, 2]), 4e-3, 0.1)) == 6
    assert len(LEDArray.rings([1e-3], [np.int64(3)], 0.1)) == 3
    for shape in (3.5, (3.5, 2), (3, 2.0), "33", None):
        with pytest.raises(InvalidInputError, match="shape must be a whole number"):
            LEDArray.square(shape, 4e-3, 0.1)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"shape must be a whole number or .*, got \(3,\)"):
        LEDArray.square((3,), 4e-3, 0.1)  # type: ignore[arg-type]
    for count in (3.5, "3", None):
        with pytest.raises(InvalidInputError, match=r"counts must be .* a whole number, got "):
            LEDArray.rings([1e-3], [count], 0.1)  # type: ignore[list-item]


@pytest.mark.parametrize("values", [[(0.0, 0.1), (0.2,)], [("north", "east")], [(None, 0.0)], 3.0])
def test_points_that_are_none(values: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"positions must be "):
        LEDArray.at(values, 0.1)
    with pytest.raises(InvalidInputError, match=r"(na|directions) must be "):
        Directions(values)
