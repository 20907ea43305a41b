"""Tiles cover the frame, overlap as asked, and learn from tiles that learn from nobody."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriscope.errors import InvalidInputError
from fouriscope.field.tiling import Tiling

tilings = st.builds(
    Tiling,
    st.tuples(st.integers(16, 400), st.integers(16, 400)),
    tile=st.integers(16, 200),
    overlap=st.floats(0.05, 0.5),
)


@settings(deadline=None)
@given(tilings)
def test_tiles_cover_the_frame_and_stay_inside(tiling: Tiling) -> None:
    seen = np.zeros(tiling.frame_shape, int)
    for tile in tiling:
        assert tile.top >= 0
        assert tile.left >= 0
        seen[tile.top : tile.top + tile.height, tile.left : tile.left + tile.width] += 1
        assert (tile.height, tile.width) == tiling.tile_shape
    assert seen.shape == tiling.frame_shape
    assert seen.min() >= 1
    assert tiling[0].window[:2] == (0, 0)
    last = tiling[len(tiling) - 1]
    assert (last.top + last.height, last.left + last.width) == tiling.frame_shape


@settings(deadline=None)
@given(tilings)
def test_neighbours_share_what_was_asked(tiling: Tiling) -> None:
    for first, second in tiling.pairs():
        down, right = second.top - first.top, second.left - first.left
        assert (down == 0) != (right == 0)
        shared = first.height - down if down else first.width - right
        # Tiles start at whole pixels, spread evenly: one pixel may be missing.
        assert shared >= tiling.overlap * tiling.tile - 1
    rows, columns = tiling.lattice
    assert len(list(tiling.pairs())) == rows * (columns - 1) + columns * (rows - 1)


@settings(deadline=None)
@given(tilings)
def test_teachers_are_neighbours_that_learn_from_nobody(tiling: Tiling) -> None:
    for tile in tiling:
        sources = tiling.pupil_sources(tile)
        assert bool(sources) == bool(tile.row % 2 or tile.column % 2)
        assert len(sources) <= 4
        for source in sources:
            assert not tiling.pupil_sources(source)
            assert max(abs(source.row - tile.row), abs(source.column - tile.column)) == 1


def test_a_frame_smaller_than_a_tile_is_one_tile() -> None:
    tiling = Tiling((40, 60), tile=128)
    assert [tile.window for tile in tiling] == [(0, 0, 40, 60)]
    assert list(tiling.pairs()) == []


@pytest.mark.parametrize(("tile", "overlap"), [(8, 0.2), (128, 0.0), (128, 0.7), (128, float("nan"))])
def test_impossible_tilings(tile: int, overlap: float) -> None:
    with pytest.raises(InvalidInputError):
        Tiling((512, 512), tile, overlap)
    with pytest.raises(IndexError):
        _ = Tiling((512, 512))[25]
