"""An OME-Zarr pyramid of any size, written block by block by many processes, none of which ever holds the whole.

A block is 1024 × 1024 pixels of one level, and exactly one file in each channel. So no two blocks touch the same file,
and blocks of a level can be written in any order and at the same time. A block that is written again, because its
worker was killed or lost, replaces its files by equal ones: Zarr writes a file under another name and renames it.

Only the order of the levels matters: :meth:`Pyramid.coarsen_block` reads the finer level, which must be there.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.run.halving import covered, halved_part, level_shapes
from fouriscope.run.ome_zarr import create_object as create_object_array
from fouriscope.run.ome_zarr import create_ome_zarr, display_window, write_metadata
from fouriscope.run.phases import nearest_turn

BLOCK = 1024  # pixels per side
# Rows of a coarse block that are made at a time: the finer level that a whole one covers would take more memory than a
# tile's reconstruction, and a worker of a large field more than one of a small field.
STRIP = 128
PHASE, AMPLITUDE = "phase", "amplitude"


class Block(NamedTuple):
    """A part of one level: the place of its first pixel, and its size."""

    row: int
    column: int
    height: int
    width: int

    @property
    def slices(self) -> tuple[slice, slice]:
        return slice(self.row, self.row + self.height), slice(self.column, self.column + self.width)


def blocks(shape: tuple[int, int]) -> list[Block]:
    """The blocks of a level of ``shape``, row by row; those at the end are as small as what is left.

    >>> blocks((1500, 800))
    [Block(row=0, column=0, height=1024, width=800), Block(row=1024, column=0, height=476, width=800)]
    """
    rows, columns = (range(0, size, BLOCK) for size in shape)
    return [_block_at(row, column, shape) for row in rows for column in columns]


def _block_at(row: int, column: int, shape: tuple[int, int]) -> Block:
    return Block(row, column, min(BLOCK, shape[0] - row), min(BLOCK, shape[1] - column))


@dataclass(frozen=True)
class Pyramid:
    """The image at ``path``, of level 0's ``shape`` and ``pixel`` size in metres; it holds no data and can be pickled.

    A channel called "phase" is coarsened as the phase of the field, with the channel "amplitude" as its modulus where
    there is one; all other channels become local means. In order: :meth:`create`, :meth:`write_block` for every block
    of level 0, :meth:`coarsen_block` for every block of level 1, then of level 2 and so on, and :meth:`finish`.
    Channels that are named ``later`` take no part in that; :meth:`write_channel` writes them on every level.

    >>> import tempfile
    >>> pyramid = Pyramid(Path(tempfile.mkdtemp()) / "field.ome.zarr", ("phase",), (300, 1500), (1e-7, 1e-7), "field")
    >>> pyramid.create()
    >>> for block in pyramid.blocks(0):
    ...     pyramid.write_block(0, block, {"phase": np.full((block.height, block.width), 0.5, np.float32)})
    >>> for level in range(1, len(pyramid.shapes)):
    ...     for block in pyramid.blocks(level):
    ...         pyramid.coarsen_block(level, block)
    >>> pyramid.finish()
    >>> pyramid.shapes[-1], pyramid.read(3, slice(0, 1), slice(0, 2)).round(6).tolist()
    ((38, 188), [[[0.5, 0.5]]])
    """

    path: Path
    channels: tuple[str, ...]
    shape: tuple[int, int]
    pixel: tuple[float, float]
    name: str
    later: tuple[str, ...] = ()

    @property
    def first(self) -> tuple[str, ...]:
        """The channels that blocks are written with."""
        return tuple(channel for channel in self.channels if channel not in self.later)

    @property
    def overview(self) -> int:
        """The finest level that is no larger than a block."""
        return next(number for number, (rows, columns) in enumerate(self.shapes) if rows * columns <= BLOCK**2)

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """(rows, columns) of the levels, fine to coarse."""
        return level_shapes(self.shape)

    def blocks(self, level: int) -> list[Block]:
        return blocks(self.shapes[level])

    def create(self) -> None:
        """Make the empty arrays of all levels, under another name first: a folder at ``path`` has all of them."""
        _require_nothing_at(self.path)
        unfinished = self.path.with_name(f".{self.path.name}.part")
        shutil.rmtree(unfinished, ignore_errors=True)
        create_ome_zarr(unfinished, len(self.channels), self.shape, shard=BLOCK)
        unfinished.rename(self.path)

    def read(self, level: int, rows: slice, columns: slice) -> NDArray[np.float32]:
        """A window of a level, (channel, row, column); NaN where nothing was written."""
        return np.asarray(_opened(self.path / str(level), "r")[:, rows, columns])

    def write_block(self, level: int, block: Block, images: Mapping[str, NDArray[Any]]) -> None:
        """Write all channels of ``block``, by their names."""
        _require_block(block, self.shapes[level])
        if set(images) != set(self.first):
            raise InvalidInputError(
                f"a block must be written with all of its channels: expected {', '.join(self.first)}, "
                f"got {', '.join(images) or 'none'}"
            )
        for channel in self.first:
            self.write_channel(level, block, channel, images[channel])

    def write_channel(self, level: int, block: Block, channel: str, image: NDArray[Any]) -> None:
        """Write one channel of ``block``."""
        _require_block(block, self.shapes[level])
        _require_size(image, block, channel)
        array = _opened(self.path / str(level), "r+")
        array[self.channels.index(channel), *block.slices] = image.astype(np.float32)

    def coarsen_block(self, level: int, block: Block) -> None:
        """Compute ``block`` of ``level`` from the part of the finer level that it covers, and write it."""
        if level < 1:
            raise InvalidInputError(
                f"level {level} has no finer level to be computed from: coarsen levels 1 to {len(self.shapes) - 1}, "
                "and give the pixels of level 0 to write_block"
            )
        _require_block(block, self.shapes[level])
        images = {channel: np.empty((block.height, block.width), np.float32) for channel in self.first}
        for first in range(0, block.height, STRIP):
            height = min(STRIP, block.height - first)
            strip = Block(block.row + first, block.column, height, block.width)
            for channel, image in self._coarsened(level, strip).items():
                images[channel][first : first + height] = image
        self.write_block(level, block, images)

    def _coarsened(self, level: int, strip: Block) -> dict[str, NDArray[Any]]:
        fine_shape = self.shapes[level - 1]
        rows, columns = (covered(part, size) for part, size in zip(strip.slices, fine_shape, strict=True))
        read = dict(zip(self.channels, self.read(level - 1, rows, columns), strict=True))
        fine = {channel: read[channel] for channel in self.first}
        mean = partial(_finite_mean, coarse=strip.slices, shape=fine_shape)
        images = {channel: mean(image) for channel, image in fine.items()}
        if PHASE in fine:
            with np.errstate(invalid="ignore"):  # of missing pixels, which some processors complain about
                field = fine.get(AMPLITUDE, np.float32(1)) * np.exp(1j * fine[PHASE])
            images[PHASE] = nearest_turn(np.angle(mean(field)), images[PHASE])
        return images

    def finish(self) -> None:
        """Write the metadata, by which viewers find the image; call it when every level is complete.

        What viewers show at first is chosen from the finest level that is no larger than a block.
        """
        images = self.read(self.overview, slice(None), slice(None))
        windows = {channel: display_window(image) for channel, image in zip(self.channels, images, strict=True)}
        write_metadata(self.path, windows, self.shape, self.pixel, name=self.name)


def create_object(path: Path, shape: tuple[int, int], pixel: tuple[float, float]) -> None:
    """A plain Zarr array of the complex transmittance, in the :func:`blocks` of a level of the same ``shape``."""
    _require_nothing_at(path)
    create_object_array(path, shape, pixel, np.complex64, shard=BLOCK)


def write_object_block(path: Path, block: Block, field: NDArray[Any]) -> None:
    array = _opened(path, "r+")
    _require_block(block, array.shape)
    _require_size(field, block, "field")
    array[block.slices] = field.astype(np.complex64)


def _finite_mean(image: NDArray[Any], coarse: tuple[slice, slice], shape: tuple[int, int]) -> NDArray[Any]:
    """:func:`halved_part` of the finite pixels alone; NaN where a coarse pixel covers none of them."""
    known = np.isfinite(image)
    if known.all():
        return halved_part(image, coarse, shape)
    weight = halved_part(known.astype(image.real.dtype), coarse, shape)
    total = halved_part(np.where(known, image, 0).astype(image.dtype), coarse, shape)
    return np.asarray(np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0))


def _opened(path: Path, mode: str) -> Any:
    import zarr

    return zarr.open_array(str(path), mode=mode)


def _require_nothing_at(path: Path) -> None:
    if path.exists():
        raise InvalidInputError(
            f"expected nothing at {path} yet, but something is there: write blocks into it to continue, or remove it"
        )


def _require_block(block: Block, shape: tuple[int, int]) -> None:
    rows, columns = shape
    inside = block.row in range(0, rows, BLOCK) and block.column in range(0, columns, BLOCK)
    if not inside or block != _block_at(block.row, block.column, shape):
        raise InvalidInputError(
            f"expected one of the blocks of a level of {rows} × {columns} pixels, got {block}: take it from blocks(…), "
            "which cut a level where its files begin"
        )


def _require_size(image: NDArray[Any], block: Block, what: str) -> None:
    if image.shape != (block.height, block.width):
        raise InvalidInputError(
            f"{what} must have the {block.height} × {block.width} pixels of its block, got shape {image.shape}"
        )
