"""Cutting a field into overlapping tiles, and which tile starts from the pupils of which."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from fouriscope.errors import InvalidInputError

SMALLEST_TILE = 16
# Less leaves no pixels to compare neighbours by once their borders are dropped; more is work done twice.
OVERLAPS = (0.05, 0.5)


@dataclass(frozen=True)
class Tile:
    """One tile of a field.

    Attributes
    ----------
    index
        Its number.
    row, column
        Its place in the lattice of tiles.
    top, left, height, width
        Its window of the frames, in pixels.
    """

    index: int
    row: int
    column: int
    top: int
    left: int
    height: int
    width: int

    @property
    def window(self) -> tuple[int, int, int, int]:
        """(row, column, height, width): a region of interest of the frames."""
        return self.top, self.left, self.height, self.width


@dataclass(frozen=True)
class Tiling:
    """Tiles of ``tile`` × ``tile`` frame pixels that cover frames of ``frame_shape``.

    Neighbours share at least the fraction ``overlap`` of a tile. Tiles are spread evenly, so that the last one ends
    where the frame ends, and all have the same size and object shape. If a frame is smaller than a tile, the tile is as
    small as the frame. Tiles are numbered in row-major order.

    Parameters
    ----------
    frame_shape
        (rows, columns) of a frame.
    tile
        Side of a tile in frame pixels.
    overlap
        Share of a tile that neighbours have in common, at least.

    Examples
    --------
    >>> tiling = Tiling((512, 300), tile=128, overlap=0.2)
    >>> tiling.lattice, len(tiling), tiling[1].window
    ((5, 3), 15, (0, 86, 128, 128))
    """

    frame_shape: tuple[int, int]
    tile: int = 128
    overlap: float = 0.2

    def __post_init__(self) -> None:
        low, high = OVERLAPS
        if self.tile < SMALLEST_TILE:
            raise InvalidInputError(f"a tile must have at least {SMALLEST_TILE} frame pixels per side, got {self.tile}")
        if not low <= self.overlap <= high:
            raise InvalidInputError(
                f"overlap, the part of a tile that it shares with its neighbour, must be from {low} to {high}, "
                f"got {self.overlap}"
            )

    @cached_property
    def tops(self) -> tuple[int, ...]:
        """The first row of each row of tiles."""
        return _starts(self.frame_shape[0], self.tile, self.overlap)

    @cached_property
    def lefts(self) -> tuple[int, ...]:
        """The first column of each column of tiles."""
        return _starts(self.frame_shape[1], self.tile, self.overlap)

    @property
    def lattice(self) -> tuple[int, int]:
        """(rows, columns) of tiles."""
        return len(self.tops), len(self.lefts)

    @property
    def tile_shape(self) -> tuple[int, int]:
        """(rows, columns) of frame pixels in each tile."""
        return min(self.tile, self.frame_shape[0]), min(self.tile, self.frame_shape[1])

    def __len__(self) -> int:
        return len(self.tops) * len(self.lefts)

    def __getitem__(self, index: int) -> Tile:
        if not 0 <= index < len(self):
            raise IndexError(index)
        row, column = divmod(index, len(self.lefts))
        return Tile(index, row, column, self.tops[row], self.lefts[column], *self.tile_shape)

    def __iter__(self) -> Iterator[Tile]:
        return (self[index] for index in range(len(self)))

    def pairs(self) -> Iterator[tuple[Tile, Tile]]:
        """Neighbours to the right and below: every overlap of two tiles side by side, once."""
        rows, columns = self.lattice
        for tile in self:
            if tile.column + 1 < columns:
                yield tile, self[tile.index + 1]
            if tile.row + 1 < rows:
                yield tile, self[tile.index + columns]

    def pupil_sources(self, tile: Tile) -> list[Tile]:
        """The neighbours whose pupil ``tile`` starts from; none for the quarter of all tiles that come first.

        Those in even rows and columns start from the configured pupil, the others from the mean of the one to four of
        them that they touch. This order is fixed, so the result does not depend on which tile is done first.

        >>> tiling = Tiling((512, 512))
        >>> [tile.index for tile in tiling.pupil_sources(tiling[6])], tiling.pupil_sources(tiling[0])
        ([0, 2, 10, 12], [])
        """
        if not tile.row % 2 and not tile.column % 2:
            return []
        rows, columns = self.lattice
        near_rows = (tile.row,) if not tile.row % 2 else (tile.row - 1, tile.row + 1)
        near_columns = (tile.column,) if not tile.column % 2 else (tile.column - 1, tile.column + 1)
        return [self[r * columns + c] for r in near_rows if r < rows for c in near_columns if c < columns]


def _starts(size: int, tile: int, overlap: float) -> tuple[int, ...]:
    room = size - tile
    if room <= 0:
        return (0,)
    count = 1 + math.ceil(room / max(1, math.floor(tile * (1 - overlap))))
    return tuple(round(room * place / (count - 1)) for place in range(count))
