"""One image from many tiles: a weighted mean in which no tile ends abruptly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.field.correction import Correction
from fouriscope.field.overlaps import TileImages, Window, object_window, part_of, usable_border
from fouriscope.field.tiling import Tile, Tiling
from fouriscope.run.phases import nearest_turn

FloatArray = NDArray[np.float64]
Image = NDArray[np.float32]


def tile_weights(tile: Tile, tiling: Tiling, scale: int, border: int) -> Image:
    """How much each object pixel of ``tile`` counts: the product of a profile down and one across.

    A profile is 1 where the tile is alone, 0 within ``border`` frame pixels of a neighbour's side, and sin² of 0 to π/2
    in between; two neighbours add up to one. Towards the edge of the frame it stays 1, because no other tile is there.
    If tiles share too little for twice the border, the border is smaller.

    >>> tiling = Tiling((16, 28), tile=16, overlap=0.25)
    >>> first, second = (tile_weights(tile, tiling, scale=1, border=1) for tile in tiling)
    >>> np.round(first[0, 10:].astype(float), 3).tolist()
    [1.0, 1.0, 1.0, 0.854, 0.146, 0.0]
    >>> bool(np.allclose(first[:, 12:] + second[:, :4], 1))
    True
    """
    down = _profile(tiling.tops, tile.row, tile.height, scale, border)
    across = _profile(tiling.lefts, tile.column, tile.width, scale, border)
    return np.asarray(np.outer(down, across), np.float32)


def tiles_of(block: Window, tiling: Tiling, scale: int) -> list[Tile]:
    """The tiles that have pixels in ``block`` (row, column, height, width of object pixels), by their index.

    >>> [tile.index for tile in tiles_of((0, 0, 30, 60), Tiling((100, 100), tile=32), scale=2)]
    [0, 1]
    """
    row, column, height, width = block
    size = tiling.tile_shape
    rows = _touching(tiling.tops, size[0], scale, row, row + height)
    columns = _touching(tiling.lefts, size[1], scale, column, column + width)
    return [tiling[r * len(tiling.lefts) + c] for r in rows for c in columns]


class Blend:
    """The weighted mean of corrected tiles in one block of the field, fed one tile at a time.

    Before a tile is averaged, each of its pixels is moved by the whole turns that bring it nearest to the mean so far:
    the mean of 3.1 and −3.1 is π, not 0. Each step is m ← m + w/(W + w) · (φ − m) with W the weights so far, so where
    tiles agree, the mean equals their value to the last bit. Memory holds the block and one tile, nothing else.

    >>> tiling = Tiling((16, 28), tile=16, overlap=0.25)
    >>> blend = Blend((0, 0, 16, 28), tiling, scale=1, border=1)
    >>> for tile, value in zip(tiling, (1.0, 2.0)):
    ...     blend.add(tile, TileImages(np.full((16, 16), value)), Correction())
    >>> np.round(blend.result()[0][0, 10:18].astype(float), 3).tolist()
    [1.0, 1.0, 1.0, 1.146, 1.854, 2.0, 2.0, 2.0]
    """

    def __init__(self, block: Window, tiling: Tiling, scale: int, border: int) -> None:
        if min(block) < 0 or not block[2] or not block[3]:
            raise InvalidInputError(f"a block must be (row, column, height, width) in object pixels, got {block}")
        self.block, self.tiling, self.scale, self.border = block, tiling, scale, border
        self._weight = np.zeros(block[2:])
        self._phase = np.zeros(block[2:])
        self._absorption: FloatArray | None = None
        self._last = -1

    def add(self, tile: Tile, images: TileImages, correction: Correction) -> None:
        """Average ``tile`` in; tiles must come in the order of their index, so that every run gives the same bits."""
        if tile.index <= self._last:
            raise InvalidInputError(
                f"tiles must be added once each in the order of their index; tile {tile.index} came after {self._last}"
            )
        if self._last >= 0 and (images.absorption is None) != (self._absorption is None):
            raise InvalidInputError(
                f"either all tiles must have an absorption or none, but tile {tile.index} differs from those before; "
                "solve all tiles of a field with the same kind of object"
            )
        window = _common(self.block, object_window(tile, self.scale))
        part = part_of(tile, images, window, self.scale)
        self._last = tile.index
        if images.absorption is not None and self._absorption is None:
            self._absorption = np.zeros(self._phase.shape)

        row, column = window[0] - self.block[0], window[1] - self.block[1]
        here = slice(row, row + window[2]), slice(column, column + window[3])

        seen = images.cut(*part)
        phase = seen.phase + correction.surface(tile, self.scale)[part]
        known = np.isfinite(phase) if seen.absorption is None else np.isfinite(phase) & np.isfinite(seen.absorption)
        weight = tile_weights(tile, self.tiling, self.scale, self.border)[part] * known
        before = self._weight[here]
        share = np.divide(weight, before + weight, out=np.zeros(before.shape), where=weight > 0)
        # Where nothing was before there is nothing to be near to: the first tile brings its own turns.
        phase = np.where(known, phase, 0)
        phase = np.where(before > 0, nearest_turn(phase, self._phase[here]), phase)
        self._phase[here] += share * (phase - self._phase[here])
        if self._absorption is not None and seen.absorption is not None:
            absorption = np.where(known, seen.absorption, 0) + correction.absorption
            self._absorption[here] += share * (absorption - self._absorption[here])
        self._weight[here] += weight

    def result(self) -> tuple[Image, Image | None]:
        """(phase, absorption or None); NaN where there is no tile."""
        absorption = None if self._absorption is None else self._shown(self._absorption)
        return self._shown(self._phase), absorption

    def _shown(self, mean: FloatArray) -> Image:
        return np.where(self._weight > 0, mean, np.nan).astype(np.float32)


def _profile(starts: Sequence[int], place: int, size: int, scale: int, border: int) -> FloatArray:
    profile = np.ones(size * scale)
    if place > 0:
        profile *= _rise(starts[place - 1] + size - starts[place], size, scale, border)
    if place + 1 < len(starts):
        profile *= _rise(starts[place] + size - starts[place + 1], size, scale, border)[::-1]
    return profile


def _rise(shared: int, size: int, scale: int, border: int) -> FloatArray:
    """0, then sin², then 1, for a side at which ``shared`` of ``size`` frame pixels belong to a neighbour too."""
    dark = usable_border(shared, border)
    slope = (shared - 2 * dark) * scale
    # At pixel centres, half a pixel from either end: then falling plus rising is one in every pixel.
    rise = np.sin(np.pi / 2 * np.clip((np.arange(size * scale) - dark * scale + 0.5) / slope, 0, 1)) ** 2
    return np.asarray(rise)


def _touching(starts: Sequence[int], size: int, scale: int, low: int, high: int) -> list[int]:
    return [place for place, start in enumerate(starts) if start * scale < high and (start + size) * scale > low]


def _common(block: Window, window: Window) -> Window:
    """What two windows share; of no height or width if they do not touch."""
    row, column = max(block[0], window[0]), max(block[1], window[1])
    bottom, right = (min(block[axis] + block[axis + 2], window[axis] + window[axis + 2]) for axis in (0, 1))
    return row, column, max(0, bottom - row), max(0, right - column)
