"""One image of many tiles: nothing is lost where tiles agree, nothing jumps where they do not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriscope.errors import InvalidInputError
from fouriscope.field.blending import Blend, tile_weights, tiles_of
from fouriscope.field.correction import Correction
from fouriscope.field.overlaps import TileImages, object_window
from fouriscope.field.tiling import Tiling
from tests.field.conftest import cut_field

TILINGS = st.builds(
    Tiling,
    st.tuples(st.integers(16, 100), st.integers(16, 100)),
    tile=st.integers(16, 48),
    overlap=st.floats(0.05, 0.5),
)


def total_weight(tiling: Tiling, scale: int, border: int) -> np.ndarray:
    total = np.zeros((tiling.frame_shape[0] * scale, tiling.frame_shape[1] * scale))
    for tile in tiling:
        row, column, height, width = object_window(tile, scale)
        total[row : row + height, column : column + width] += tile_weights(tile, tiling, scale, border)
    return total


@settings(deadline=None, max_examples=60)
@given(tiling=TILINGS, scale=st.integers(1, 3), border=st.integers(0, 20))
def test_every_pixel_of_every_field_has_weight(tiling: Tiling, scale: int, border: int) -> None:
    assert total_weight(tiling, scale, border).min() > 0


def test_where_two_tiles_meet_weights_add_up_to_one() -> None:
    tiling = Tiling((100, 117), tile=32, overlap=0.25)
    assert {b - a for a, b in zip(tiling.lefts, tiling.lefts[1:], strict=False)} == {21, 22}  # overlaps differ
    assert np.allclose(total_weight(tiling, 3, 2), 1, atol=1e-6)


def test_borders_have_no_weight_but_at_the_edge_of_the_frame() -> None:
    tiling = Tiling((80, 80), tile=32, overlap=0.25)
    corner, middle = tile_weights(tiling[0], tiling, 2, 2), tile_weights(tiling[4], tiling, 2, 2)
    assert corner[0, 0] == 1
    assert not corner[-4:].any()
    assert not corner[:, -4:].any()
    assert corner[:-4, :-4].min() > 0
    assert not middle[:4].any()
    assert not middle[:, -4:].any()
    assert middle[4:-4, 4:-4].min() > 0
    assert middle.dtype == np.float32


def test_weights_have_no_steps() -> None:
    """sin² over n pixels never climbs by more than π/2n a pixel."""
    tiling = Tiling((80, 80), tile=32, overlap=0.25)
    shared = tiling.lefts[0] + 32 - tiling.lefts[1]
    steepest = np.pi / 2 / ((shared - 2 * 2) * 4)
    weights = tile_weights(tiling[4], tiling, 4, 2)
    assert max(np.abs(np.diff(weights, axis=axis)).max() for axis in (0, 1)) <= steepest * 1.001


@settings(deadline=None, max_examples=25)
@given(tiling=TILINGS, scale=st.integers(1, 2), border=st.integers(0, 6), seed=st.integers(0, 99))
def test_tiles_that_agree_come_back_as_they_are(tiling: Tiling, scale: int, border: int, seed: int) -> None:
    shape = tiling.frame_shape[0] * scale, tiling.frame_shape[1] * scale
    rng = np.random.default_rng(seed)
    phase, absorption = (rng.normal(0, 4, shape).astype(np.float32) for _ in range(2))
    blend = Blend((0, 0, *shape), tiling, scale, border)
    for tile in tiling:
        row, column, height, width = object_window(tile, scale)
        here = slice(row, row + height), slice(column, column + width)
        blend.add(tile, TileImages(phase[here], absorption[here]), Correction())
    blended_phase, blended_absorption = blend.result()
    assert np.array_equal(blended_phase, phase)
    assert blended_absorption is not None
    assert np.array_equal(blended_absorption, absorption)


def test_a_constant_disagreement_becomes_a_smooth_transition() -> None:
    tiling = Tiling((32, 56), tile=32, overlap=0.25)
    blend = Blend((0, 0, 128, 224), tiling, 4, 2)
    for tile, value in zip(tiling, (0.0, 0.5), strict=True):
        blend.add(tile, TileImages(np.full((128, 128), value, np.float32)), Correction())
    phase, absorption = blend.result()
    steps = np.diff(phase, axis=1)
    assert absorption is None
    assert steps.min() >= 0  # from one to the other without detours
    assert steps.max() <= 0.5 * np.pi / 2 / 16 * 1.001  # 8 − 2·2 frame pixels, of 4 object pixels each
    assert (phase[0, 0], phase[0, -1]) == (0.0, 0.5)


def test_the_mean_is_taken_around_the_circle() -> None:
    """3.1 and −3.1 lie 0.08 apart on the circle: their mean is near ±π, and so is every value on the way."""
    tiling = Tiling((32, 56), tile=32, overlap=0.25)
    blend = Blend((0, 0, 64, 112), tiling, 2, 2)
    for tile, value in zip(tiling, (3.1, -3.1), strict=True):
        blend.add(tile, TileImages(np.full((64, 64), value, np.float32)), Correction())
    assert np.abs(np.abs(blend.result()[0]) - np.pi).max() < 0.05


def test_corrections_are_added_about_the_tiles_centre() -> None:
    tiling = Tiling((16, 16), tile=16)
    blend = Blend((0, 0, 32, 32), tiling, 2, 0)
    flat = np.zeros((32, 32), np.float32)
    blend.add(tiling[0], TileImages(flat, flat), Correction(1.0, (0.1, -0.2), 0.5))
    phase, absorption = blend.result()
    y, x = np.indices((32, 32)) - 15.5
    assert np.allclose(phase, 1 + 0.1 * y - 0.2 * x, atol=1e-6)
    assert absorption is not None
    assert np.allclose(absorption, 0.5)


@pytest.mark.parametrize("block", [(0, 0, 50, 40), (37, 61, 80, 70), (90, 10, 1, 142)])
def test_a_block_is_a_part_of_the_whole(block: tuple[int, int, int, int]) -> None:
    field = cut_field(noise=0.2)
    phase, absorption = field.stitched(field.corrections)
    blend = Blend(block, field.tiling, field.scale, field.border)
    for tile in tiles_of(block, field.tiling, field.scale):
        blend.add(tile, field.images[tile.index], field.corrections[tile.index])
    row, column, height, width = block
    here = slice(row, row + height), slice(column, column + width)
    assert np.array_equal(blend.result()[0], phase[here])
    assert np.array_equal(blend.result()[1], absorption[here])  # type: ignore[arg-type]


@settings(deadline=None)
@given(tiling=TILINGS, place=st.tuples(st.integers(0, 15), st.integers(0, 15), st.integers(1, 60), st.integers(1, 60)))
def test_tiles_of_a_block_are_those_that_touch_it(tiling: Tiling, place: tuple[int, int, int, int]) -> None:
    def touches(window: tuple[int, int, int, int]) -> bool:
        return all(
            window[axis] < place[axis] + place[axis + 2] and place[axis] < window[axis] + window[axis + 2]
            for axis in (0, 1)
        )

    expected = [tile.index for tile in tiling if touches(object_window(tile, 2))]
    assert [tile.index for tile in tiles_of(place, tiling, 2)] == expected


def test_pixels_that_are_not_finite_are_taken_from_the_neighbour_or_stay_unknown() -> None:
    tiling = Tiling((32, 56), tile=32, overlap=0.25)
    first, second = np.ones((2, 32, 32), np.float32)
    first[5, 28] = np.nan  # the second tile has this pixel too
    first[6, 3] = np.inf  # and not this one
    blend = Blend((0, 0, 32, 56), tiling, 1, 1)
    for tile, phase in zip(tiling, (first, second), strict=True):
        blend.add(tile, TileImages(phase), Correction())
    result = blend.result()[0]
    assert np.argwhere(np.isnan(result)).tolist() == [[6, 3]]
    assert set(result[np.isfinite(result)].tolist()) == {1.0}


def test_what_cannot_be_blended_is_refused() -> None:
    tiling = Tiling((32, 56), tile=32, overlap=0.25)
    flat = np.zeros((32, 32), np.float32)
    blend = Blend((0, 0, 32, 56), tiling, 1, 1)
    with pytest.raises(InvalidInputError, match=r"must have 32 × 32 object pixels .* got shape \(31, 32\)"):
        blend.add(tiling[0], TileImages(flat[1:]), Correction())
    blend.add(tiling[0], TileImages(flat), Correction())
    with pytest.raises(InvalidInputError, match="tile 0 came after 0"):
        blend.add(tiling[0], TileImages(flat), Correction())
    with pytest.raises(InvalidInputError, match="tile 1 differs from those before"):
        blend.add(tiling[1], TileImages(flat, flat), Correction())
    with pytest.raises(InvalidInputError, match=r"got \(0, 0, 0, 5\)"):
        Blend((0, 0, 0, 5), tiling, 1, 1)
