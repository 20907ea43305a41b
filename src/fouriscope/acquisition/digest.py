"""Checksums of frames: the same pixels give the same sum, whatever file they came from."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.frames import Frames
from fouriscope.acquisition.stored import stored_below
from fouriscope.acquisition.streaming import read_through, stream_below
from fouriscope.errors import FramesChangedError


def checksum(frames: Frames) -> str:
    """SHA-256 over the frames one at a time: the dtype of each and its pixels in little-endian order.

    The same pixels of the same dtype give the same sum from memory and from any file; another dtype gives another sum.

    >>> from fouriscope.acquisition.frames import ArrayFrames
    >>> stack = np.arange(8).reshape(2, 2, 2)
    >>> sums = [checksum(ArrayFrames(stack.astype(dtype))) for dtype in ("<u2", ">u2", "<u4")]
    >>> sums[0] == sums[1], sums[0] == sums[2]
    (True, False)
    """
    digest = FrameDigest(frames.shape)
    for image in read_through(frames):
        digest.add(image)
    return digest.checksum


class FrameDigest:
    """The :func:`checksum` of frames that other code reads, and of their masks if each frame has its own.

    ``acquisition.check_frames(watch=digest.add)`` checks and sums in one pass over the file.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._start = repr(tuple(shape)).encode()
        self._frames = hashlib.sha256(self._start)
        # Masks are one array, so its dtype comes once; array_checksum gives the same sum for an array.
        self._masks = hashlib.sha256(self._start + np.dtype(bool).str.encode())

    def add(self, image: NDArray[Any], mask: NDArray[Any] | None = None) -> None:
        """The next frame, and its mask."""
        _add_array(self._frames, image)
        if mask is not None:
            self._masks.update(np.ascontiguousarray(mask, bool).tobytes())

    @property
    def checksum(self) -> str:
        return f"sha256:{self._frames.hexdigest()}"

    @property
    def mask_checksum(self) -> str:
        return f"sha256:{self._masks.hexdigest()}"


def check_unchanged(frames: Frames, checksum_before: str) -> None:
    """Raise if the checksum of frames that were read from a file more than once has changed.

    Size and time show most changes when a file is read; this finds the others. Frames that were read once and have
    stayed in memory are not read again.
    """
    stream, stored = stream_below(frames), stored_below(frames)
    if stored is None or (stream is not None and stream.reads <= stream.shape[0]):
        return
    if stream is not None:
        stream.close()  # what counts is on the disk
    if checksum(frames) != checksum_before:
        raise FramesChangedError(
            f"{stored.path}: its frames were changed while they were in use; restore the old frames, or start again "
            "with frames that do not change"
        )


def array_checksum(array: NDArray[Any]) -> str:
    """SHA-256 over shape, dtype and numbers of one array, in little-endian order."""
    digest = hashlib.sha256(repr(array.shape).encode())
    _add_array(digest, array)
    return f"sha256:{digest.hexdigest()}"


def _add_array(digest: Any, array: NDArray[Any]) -> None:
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    digest.update(little.dtype.str.encode())
    digest.update(little.data)
