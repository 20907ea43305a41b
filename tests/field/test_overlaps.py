"""Two tiles compared: what cells say is what was put in, whatever lies in the borders or is not a number."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriscope.errors import InvalidInputError
from fouriscope.field.overlaps import ANY_PHASE, MOST_CELLS, TileImages, compare, object_window, usable_border
from fouriscope.field.tiling import Tile, Tiling
from tests.field.conftest import cut_field

FIRST, SECOND = Tiling((32, 56), tile=32, overlap=0.25)
FLAT = np.zeros((64, 64), np.float32)


def cells_differ(overlap: object, expected: np.ndarray) -> float:
    """The largest phase, modulo 2π, between the cells and what they should be."""
    return float(np.abs(np.angle(overlap.product * np.exp(-1j * expected))).max())  # type: ignore[attr-defined]


@pytest.mark.parametrize("pair", [0, 1])  # one side by side, one above the other
def test_cells_hold_the_difference_of_the_tiles_constants_and_ramps(pair: int) -> None:
    field = cut_field(ramps=1.0)
    first, second = list(field.tiling.pairs())[pair]
    overlap = field.overlaps()[pair]
    planes = []
    for tile in (first, second):
        correction, (row, column, height, width) = field.corrections[tile.index], object_window(tile, field.scale)
        down = correction.ramp[0] * (overlap.rows - row - (height - 1) / 2)
        across = correction.ramp[1] * (overlap.columns - column - (width - 1) / 2)
        planes.append(correction.phase + down[:, None] + across)
    assert (overlap.first, overlap.second) == (first.index, second.index)
    assert cells_differ(overlap, planes[1] - planes[0]) < 1e-5
    found = field.corrections[second.index].absorption - field.corrections[first.index].absorption
    assert overlap.absorption == pytest.approx(found, abs=1e-6)


def test_a_steep_ramp_does_not_average_out_within_cells() -> None:
    ramp = (2.0 * np.arange(64, dtype=np.float32)) * np.ones((64, 1), np.float32)  # some two turns a cell of eight
    overlap = compare(FIRST, SECOND, TileImages(FLAT), TileImages(ramp), 2, 0)
    assert np.allclose(np.abs(overlap.product), np.abs(overlap.product).mean(), rtol=1e-5)
    assert overlap.weight == pytest.approx(64 * 16, rel=1e-5)
    assert cells_differ(overlap, -2.0 * (overlap.columns - 48) * np.ones((len(overlap.rows), 1))) < 1e-4


def test_turn_is_as_found_beyond_a_turn() -> None:
    overlap = compare(FIRST, SECOND, TileImages(FLAT + 10), TileImages(FLAT - 10), 2, 2)
    assert overlap.turn == 20
    assert cells_differ(overlap, np.array(20.0)) < 1e-5


def test_swapping_the_tiles_conjugates_everything() -> None:
    field = cut_field(ramps=0.5, noise=0.1)
    a, b = next(field.tiling.pairs())
    one = compare(a, b, field.images[0], field.images[1], 2, 2)
    other = compare(b, a, field.images[1], field.images[0], 2, 2)
    assert np.allclose(other.product, one.product.conj(), atol=1e-4)
    assert other.turn == -one.turn
    assert other.noise == pytest.approx(one.noise)
    assert other.absorption == pytest.approx(-one.absorption, abs=1e-3)


def test_noise_is_the_rms_disagreement() -> None:
    rng = np.random.default_rng(0)
    first, second = (TileImages((3 + rng.normal(0, 0.2, (64, 64))).astype(np.float32)) for _ in range(2))
    assert compare(FIRST, SECOND, first, second, 2, 0).noise == pytest.approx(0.2 * np.sqrt(2), rel=0.05)


def test_pixels_that_are_not_finite_are_left_out() -> None:
    spoiled = FLAT + 1
    spoiled[::3, 50:] = np.nan
    spoiled[1::7] = np.inf
    overlap = compare(FIRST, SECOND, TileImages(spoiled), TileImages(FLAT), 2, 2)
    known = np.isfinite(spoiled[4:-4, 52:60]).sum()
    assert overlap.weight == pytest.approx(known, rel=1e-6)
    assert overlap.turn == 1
    assert cells_differ(overlap, np.array(1.0)) < 1e-6


def test_tiles_without_a_common_finite_pixel_say_that_they_know_nothing() -> None:
    overlap = compare(FIRST, SECOND, TileImages(FLAT + np.nan), TileImages(FLAT), 2, 2)
    assert overlap.weight == 0
    assert (overlap.turn, overlap.absorption, overlap.noise) == (0, 0, ANY_PHASE)


def test_one_bright_pixel_counts_for_two() -> None:
    bright = FLAT.copy()
    bright[30, 56] = -50.0
    phase = FLAT.copy()
    phase[30, 56] = np.pi
    overlap = compare(FIRST, SECOND, TileImages(phase, bright), TileImages(FLAT, FLAT), 2, 0)
    assert overlap.product.sum().real == pytest.approx(64 * 16 - 1 - 2, rel=1e-6)


def test_dark_pixels_hardly_count_and_a_tiles_brightness_not_at_all() -> None:
    half = FLAT.copy()
    half[:32] = 6.0
    phase = np.where(half > 0, np.float32(2.0), FLAT)
    plain, dimmed = (
        compare(FIRST, SECOND, TileImages(phase, half + constant), TileImages(FLAT, FLAT), 2, 0)
        for constant in (0.0, 100.0)
    )
    # Half of the pixels are off by 2 rad, but e⁶ times darker; all alike, they would give 1 rad.
    assert abs(np.angle(plain.product.sum())) < 0.03
    assert np.allclose(plain.product, dimmed.product, rtol=1e-4)
    assert dimmed.absorption - plain.absorption == pytest.approx(100, rel=1e-6)


def test_an_overlap_stays_small_and_survives_a_journey() -> None:
    tiling = Tiling((600, 1000), tile=600, overlap=0.3)
    first, second = tiling
    images = TileImages(np.zeros((1200, 1200), np.float32))
    overlap = compare(first, second, images, images, 2, 4)
    assert overlap.product.size <= MOST_CELLS
    packed = pickle.dumps(overlap)
    assert len(packed) < 8000
    assert np.array_equal(pickle.loads(packed).product, overlap.product)
    assert np.isrealobj(overlap.rows)
    assert {type(overlap.turn), type(overlap.absorption), type(overlap.noise)} == {float}


@given(shared=st.integers(1, 300), border=st.integers(0, 300))
def test_a_border_leaves_a_third_to_compare(shared: int, border: int) -> None:
    used = usable_border(shared, border)
    assert used == border or used == shared // 3 < border
    assert 3 * (shared - 2 * used) >= shared


@settings(deadline=None, max_examples=30)
@given(
    frame=st.tuples(st.integers(16, 90), st.integers(16, 90)),
    overlap=st.floats(0.05, 0.5),
    scale=st.integers(1, 3),
    border=st.integers(0, 20),
    constant=st.floats(-3, 3),
)
def test_every_pair_of_every_tiling_can_be_compared(
    frame: tuple[int, int], overlap: float, scale: int, border: int, constant: float
) -> None:
    tiling = Tiling(frame, tile=16, overlap=overlap)
    flat = np.zeros(tuple(scale * size for size in tiling.tile_shape), np.float32)
    for a, b in tiling.pairs():
        found = compare(a, b, TileImages(flat + np.float32(constant)), TileImages(flat), scale, border)
        assert found.weight > 0
        assert cells_differ(found, np.array(constant)) < 1e-5
        for centres, start, size in zip((found.rows, found.columns), (b.top, b.left), (b.height, b.width), strict=True):
            assert start * scale <= centres.min() <= centres.max() < (start + size) * scale


@pytest.mark.parametrize(
    ("second", "images", "border", "message"),
    [
        (SECOND, TileImages(FLAT[1:]), 2, r"phase of tile 1 must have 64 × 64 object pixels .* got shape \(63, 64\)"),
        (SECOND, TileImages(FLAT, FLAT), 2, "only one has"),
        (SECOND, TileImages(FLAT), -1, "got -1"),
        (Tile(7, 0, 1, 0, 32, 32, 32), TileImages(FLAT), 2, "tiles 0 and 7 share no pixels"),
    ],
)
def test_what_cannot_be_compared_is_refused(second: Tile, images: TileImages, border: int, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        compare(FIRST, second, TileImages(FLAT), images, 2, border)
