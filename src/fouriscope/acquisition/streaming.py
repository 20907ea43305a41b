"""Frames from disk within a budget of memory: read ahead in the background, kept while they are wanted."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.byte_sizes import format_bytes, parse_bytes
from fouriscope.acquisition.frame_reader import FrameReader
from fouriscope.acquisition.frames import Frames
from fouriscope.acquisition.sequence import FrameSequence
from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError


@door_class
class StreamedFrames(FrameSequence):
    """Frames of which a bounded part is in memory.

    A frame that was read is kept as it was stored (a uint16 costs two bytes), as long as it fits into the budget;
    :class:`~fouriscope.acquisition.frame_cache.FrameCache` says which ones stay. If you know which frames are needed
    next, call :meth:`prefetch`, and one background thread reads them meanwhile. Frames that are compressed together
    (HDF5 and Zarr chunks) are read together. Values are those of ``frames``, bit for bit.

    Safe from several threads. The background thread ends with :meth:`close`, when the object is no longer used, and
    when Python ends.

    Parameters
    ----------
    frames
        What to read from, itself safe from several threads.
    memory
        The budget: bytes, or text such as "64MB". It holds frames that are kept and frames being read. Frames that the
        caller holds come on top.

    Attributes
    ----------
    reads, hits
        Frames read from ``frames`` so far, and calls of ``frame`` that found theirs in memory or on its way.

    Examples
    --------
    >>> from fouriscope.acquisition.frames import ArrayFrames
    >>> stack = np.arange(5 * 4 * 4, dtype=np.uint16).reshape(5, 4, 4)
    >>> with StreamedFrames(ArrayFrames(stack), memory=96) as frames:  # three frames of 32 bytes
    ...     frames.prefetch([4, 2, 0])
    ...     [int(frames.frame(i)[0, 0]) for i in (4, 2, 0, 2)], frames.reads
    ([64, 32, 0, 32], 3)
    """

    def __init__(self, frames: Frames, memory: int | str) -> None:
        self.frames = frames
        self.shape: tuple[int, int, int] = frames.shape
        stored = getattr(frames, "dtype", None)
        self.dtype: np.dtype[Any] = np.dtype(stored if stored is not None else frames.frame(0).dtype)
        self.memory = parse_bytes(memory)
        frame_bytes = self.shape[1] * self.shape[2] * self.dtype.itemsize
        if self.memory < 2 * frame_bytes:
            raise InvalidInputError(
                f"memory = {format_bytes(self.memory)} cannot hold two frames of {self.shape[1]} × {self.shape[2]} "
                f"{self.dtype}, one that is kept and one that is being read: give at least "
                f"{format_bytes(2 * frame_bytes)}, better enough for two minibatches"
            )
        self._reader = FrameReader(frames, self.shape, self.dtype, self.memory // frame_bytes)
        # The thread knows the reader, not this object, so this object can go; then the thread goes too.
        weakref.finalize(self, self._reader.stop)

    @property
    def reads(self) -> int:
        return self._reader.reads

    @property
    def hits(self) -> int:
        return self._reader.hits

    @property
    def room_to_grow(self) -> int:
        """Bytes that it may still take: the budget or, if that is less, the stack, without what is taken already."""
        whole = self.shape[0] * self.shape[1] * self.shape[2] * self.dtype.itemsize
        return max(0, min(self.memory, whole) - self.nbytes)

    @property
    def nbytes(self) -> int:
        """Bytes that the frames take now."""
        return self._reader.cache.nbytes

    @property
    def wants_hints(self) -> bool:
        """False once every frame is in memory: then there is nothing to read ahead."""
        return not self._reader.cache.complete

    def frame(self, index: int) -> NDArray[Any]:
        """Frame ``index`` as a copy: from memory, from a read in progress, or read now."""
        if not 0 <= index < self.shape[0]:
            raise InvalidInputError(f"frames are 0 to {self.shape[0] - 1}, got {index}")
        return self._reader.frame(index)

    def prefetch(self, indices: Sequence[int] | NDArray[np.integer[Any]]) -> None:
        """Frames will be needed in this order: read ahead as far as there is room. Replaces the order given before.

        A wrong hint costs time, but never gives a wrong frame. An error is raised by the ``frame(i)`` it belongs to.
        """
        self._reader.prefetch([int(index) for index in indices])

    def close(self) -> None:
        """End the background thread and free the memory. Frames can still be read."""
        self._reader.stop(wait=True)

    def __enter__(self) -> StreamedFrames:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def stream_below(frames: object) -> StreamedFrames | None:
    """The stream that corrections and the like (whatever holds its source in ``frames``) read from, if there is one.

    Parameters
    ----------
    frames
        Frames of any kind.
    """
    while frames is not None and not isinstance(frames, StreamedFrames):
        frames = getattr(frames, "frames", None)
    return frames


def announce_all(frames: Frames) -> None:
    """Announce that every frame will be needed, in order, so that streamed frames are read ahead."""
    stream = stream_below(frames)
    if stream is not None and stream.wants_hints:
        stream.prefetch(range(frames.shape[0]))


def read_through(frames: Frames) -> Iterator[NDArray[Any]]:
    """Every frame once, in order, and announced."""
    announce_all(frames)
    for index in range(frames.shape[0]):
        yield frames.frame(index)
