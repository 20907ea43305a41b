"""How frames lie in a Zarr array that tiles are read from: its chunks, its memory, and that nothing is missing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.byte_sizes import format_bytes
from fouriscope.errors import InvalidInputError

CHUNK, SHARD = 64, 512
MOST_FRAMES = 32
# While Zarr writes or reads a shard: its pixels, its compressed chunks, and the two made into one.
SHARD_COPIES = 3
# Of the source: one frame that is kept and one that is being read, which is what a stream takes, one that was read
# beyond its budget, and one in our hands.
STREAM_FRAMES, HAND_FRAMES = 2, 2
SOURCE_FRAMES = STREAM_FRAMES + HAND_FRAMES

FORMAT_KEY, FORMAT = "fouriscope_format", 1
CHECKSUM_KEY = "fouriscope_checksum"


@dataclass(frozen=True)
class TileLayout:
    """Chunks of ``depth`` frames × 64 × 64 pixels, and files (shards) of as many frames × 512 × 512.

    A tile then touches few chunks, a chunk is read by its place in a file, and a stack is few files. Frames smaller
    than a chunk make smaller chunks.

    >>> layout = TileLayout.within(256_000_000, (93, 1000, 2048), np.dtype(np.uint16))
    >>> layout.chunks, layout.shards, [len(group) for group in layout.groups()]
    ((31, 64, 64), (31, 512, 512), [31, 31, 31])
    """

    shape: tuple[int, int, int]
    dtype: np.dtype[Any]
    depth: int

    @classmethod
    def within(cls, memory: int, shape: tuple[int, int, int], dtype: np.dtype[Any]) -> TileLayout:
        """The deepest layout, of at most 32 frames, that can be written within this many bytes."""
        shallow = cls(shape, dtype, 1)
        least = shallow.buffer_bytes + SOURCE_FRAMES * shallow.frame_bytes
        if memory < least:
            raise InvalidInputError(
                f"memory = {format_bytes(memory)} is not enough to write frames of {shape[1]} × {shape[2]} {dtype} "
                f"as tiles: give at least {format_bytes(least)}, better {MOST_FRAMES} times as much"
            )
        deepest = min(MOST_FRAMES, (memory - SOURCE_FRAMES * shallow.frame_bytes) // shallow.buffer_bytes)
        groups = -(-shape[0] // deepest)
        return cls(shape, dtype, -(-shape[0] // groups))

    @property
    def chunks(self) -> tuple[int, int, int]:
        return self.depth, min(CHUNK, self.shape[1]), min(CHUNK, self.shape[2])

    @property
    def shards(self) -> tuple[int, int, int]:
        depth, *sides = self.chunks
        height, width = (min(SHARD, -(-size // side) * side) for size, side in zip(self.shape[1:], sides, strict=True))
        return depth, height, width

    @property
    def frame_bytes(self) -> int:
        return self.shape[1] * self.shape[2] * self.dtype.itemsize

    @property
    def buffer_bytes(self) -> int:
        """What a group of frames takes, in memory and on its way to or from the disk."""
        return self.depth * self.frame_bytes + SHARD_COPIES * int(np.prod(self.shards)) * self.dtype.itemsize

    def groups(self) -> Iterator[range]:
        """The frames that lie in the same chunks, group after group."""
        for start in range(0, self.shape[0], self.depth):
            yield range(start, min(start + self.depth, self.shape[0]))

    def windows(self) -> Iterator[tuple[slice, slice]]:
        """The (rows, columns) of each shard."""
        starts = (range(0, size, side) for size, side in zip(self.shape[1:], self.shards[1:], strict=True))
        for row, column in itertools.product(*starts):
            yield (
                slice(row, min(row + self.shards[1], self.shape[1])),
                slice(column, min(column + self.shards[2], self.shape[2])),
            )


class CompleteArray:
    """An array that :func:`~fouriscope.acquisition.tiled_store.write_tiled` wrote: every shard of it is a file.

    Zarr reads a missing file as zeros. Here it is an error.
    """

    def __init__(self, array: Any, folder: Path) -> None:
        version = array.attrs.get(FORMAT_KEY)
        if version != FORMAT:
            raise InvalidInputError(
                f"{folder}: tiles of format {FORMAT} were expected, got {version}; read it with the version of "
                f"fouriscope that wrote it, or import the frames again"
            )
        self._array, self._folder, self._shards = array, folder, Shards(array)
        self.shape, self.dtype, self.chunks = array.shape, array.dtype, array.chunks
        self.checksum = str(array.attrs[CHECKSUM_KEY])

    def __getitem__(self, selection: tuple[int | slice, ...]) -> NDArray[Any]:
        part = np.asarray(self._array[selection])
        # Looked for afterwards: between a look and a read the file could go.
        for name in self._shards.names(selection):
            if not (self._folder / name).is_file():
                raise FileNotFoundError(f"its file {name} is missing")
        return part


class Shards:
    """The files that a Zarr ``array`` is made of. Zarr computes properties of an array again with each access."""

    def __init__(self, array: Any) -> None:
        self._sizes = list(zip(array.shape, array.shards or array.chunks, strict=True))
        self._name: Callable[[tuple[int, ...]], str] = array.metadata.encode_chunk_key

    def names(self, selection: Iterable[int | slice]) -> Iterator[str]:
        """Of the files, below the folder of the array, in which a part of it lies."""
        touched = []
        for chosen, (size, side) in zip(selection, self._sizes, strict=True):
            first, last = (chosen, chosen) if isinstance(chosen, int) else (chosen.start, min(chosen.stop, size) - 1)
            touched.append(range(first // side, last // side + 1))
        return map(self._name, itertools.product(*touched))
