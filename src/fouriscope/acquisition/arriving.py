"""Frames that arrive one by one, in any order, while a solver already uses those that are there."""

from __future__ import annotations

import threading
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.sequence import FrameSequence
from fouriscope.checks import door, door_class
from fouriscope.errors import InvalidInputError


@door_class
class ArrivingFrames(FrameSequence):
    """A stack whose frames come later: :meth:`add` from any thread, ``frame(i)`` for those that have arrived.

    Every frame that has arrived is kept in memory in its own type (two bytes per pixel for uint16): 293 frames of
    512 × 512 uint16 take 154 MB when all are there. They are copies, because the acquisition could rewrite a file while
    a solver reads it again.

    Parameters
    ----------
    shape
        (frames, rows, columns) of the whole stack: one frame for each LED.

    Examples
    --------
    >>> frames = ArrivingFrames((3, 4, 4))
    >>> frames.add(np.ones((4, 4), np.uint16), led=2)
    >>> frames.arrived.tolist(), int(frames.frame(2)[0, 0])
    ([False, False, True], 1)
    """

    def __init__(self, shape: tuple[int, int, int]) -> None:
        if len(shape) != 3 or min(shape) < 1:
            raise InvalidInputError(f"the shape of a stack is (frames, rows, columns), got {tuple(shape)}")
        self.shape: tuple[int, int, int] = (int(shape[0]), int(shape[1]), int(shape[2]))
        self._images: list[NDArray[Any] | None] = [None] * self.shape[0]
        self._dtype: np.dtype[Any] | None = None
        self._checksums = np.zeros(self.shape[0], np.int64)
        self._fresh: dict[int, None] = {}  # in the order of arrival
        self._lock = threading.Lock()

    @property
    def arrived(self) -> NDArray[np.bool_]:
        """One bool per frame: whether it is there."""
        with self._lock:
            return np.array([image is not None for image in self._images])

    @property
    def checksums(self) -> NDArray[np.int64]:
        """A CRC-32 of each frame that is there, and 0 for the others, to compare them with those of an earlier run."""
        with self._lock:
            return self._checksums.copy()

    @door
    def add(self, frame: NDArray[Any], led: int) -> None:
        """Add a copy of the frame of LED ``led``. A frame that was there is replaced, and counts as new.

        A frame with a fault raises an error, and then nothing is changed.
        """
        count, *expected = self.shape
        if not 0 <= led < count:
            raise InvalidInputError(f"LEDs are 0 to {count - 1}, got a frame of LED {led}")
        image = np.array(frame)
        if image.shape != tuple(expected) or image.dtype.kind not in "fiu":
            raise InvalidInputError(
                f"the frame of LED {led} must be real and of shape {tuple(expected)}, like the others; got "
                f"{image.dtype} of shape {image.shape}"
            )
        bad = int(image.size - np.count_nonzero(np.isfinite(image)))
        if bad:
            raise InvalidInputError(
                f"the frame of LED {led} holds {bad} NaN or infinite pixels of {image.size}; add it again without them"
            )
        with self._lock:
            if self._dtype is not None and image.dtype != self._dtype:
                raise InvalidInputError(
                    f"the frame of LED {led} is {image.dtype}, but the first was {self._dtype}; add all in one type"
                )
            self._dtype = image.dtype
            self._images[led] = image
            self._checksums[led] = zlib.crc32(np.ascontiguousarray(image).data)
            self._fresh.pop(led, None)
            self._fresh[led] = None

    def frame(self, index: int) -> NDArray[Any]:
        """Frame ``index``; raises while it has not arrived."""
        image = self._images[index] if 0 <= index < self.shape[0] else None
        if image is None:
            raise InvalidInputError(f"frame {index} of {self.shape[0]} has not arrived yet")
        return image

    def take_fresh(self) -> list[int]:
        """LEDs whose frames arrived, or were replaced, since the last call, in the order of their arrival."""
        with self._lock:
            fresh, self._fresh = list(self._fresh), {}
        return fresh


def arriving_below(frames: object) -> ArrivingFrames | None:
    """The arriving frames below corrections and the like (anything that holds its source in ``frames``), or None.

    ``arriving_below(fidelity.frames).arrived`` says for each LED of a live run whether its frame has arrived.

    Parameters
    ----------
    frames
        Frames of any kind.
    """
    while frames is not None and not isinstance(frames, ArrivingFrames):
        frames = getattr(frames, "frames", None)
    return frames
