"""Frames as Python and NumPy people expect them: ``frames[3]``, ``frames[-2:]``, ``len(frames)``, ``np.asarray``."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike, NDArray


class FrameSequence:
    """A stack of frames that is indexed like an array and read one frame at a time.

    A class that has ``shape`` and ``frame(i)`` inherits the rest:

    =====================  ===============================================================
    ``frames[3]``          one frame (rows, columns); −1 is the last
    ``frames[10:20]``      the frames of a slice in one array (frames, rows, columns)
    ``len(frames)``        how many there are
    ``for f in frames``    one after the other; no more than one is in memory
    ``np.asarray(frames)`` all of them in one array, which may be large
    =====================  ===============================================================

    If a stack is larger than the memory, use only ``frames[3]`` and the loop: a slice and an array hold all their
    frames at once.

    Examples
    --------
    >>> from fouriscope.acquisition import ArrayFrames, CalibratedFrames
    >>> frames = CalibratedFrames(ArrayFrames(np.arange(24, dtype=np.uint16).reshape(4, 2, 3)), offset=2, gain=2)
    >>> frames[-1].tolist()
    [[8.0, 8.5, 9.0], [9.5, 10.0, 10.5]]
    >>> frames[1:3].shape, len(frames), np.asarray(frames).dtype
    ((2, 2, 3), 4, dtype('float32'))
    >>> frames
    CalibratedFrames: 4 frames of 2 × 3
    """

    if TYPE_CHECKING:  # at run time some classes have a shape that is computed, others one that is stored

        @property
        def shape(self) -> tuple[int, int, int]: ...

        def frame(self, index: int) -> NDArray[Any]: ...

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: SupportsIndex | slice) -> NDArray[Any]:
        numbers = range(len(self))
        if isinstance(index, slice):
            return self._stacked(numbers[index])
        try:
            number = operator.index(index)
        except TypeError:
            raise TypeError(
                f"frames take a whole number or a slice as index, got {type(index).__name__}; "
                "np.asarray(frames) is an array that takes every other index"
            ) from None
        if not -len(self) <= number < len(self):
            raise IndexError(f"frames are 0 to {len(self) - 1}, got {number}")
        return self.frame(numbers[number])

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return self._read_each(range(len(self)))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("frames are read or computed when they are needed, so an array of them is always a copy")
        return self._stacked(range(len(self)), dtype)

    def __repr__(self) -> str:
        count, rows, columns = self.shape
        told = [f"{count} frames of {rows} × {columns}"]
        told += [str(getattr(self, name)) for name in ("dtype", "path") if hasattr(self, name)]
        return f"{type(self).__name__}: {', '.join(told)}"

    def _stacked(self, numbers: range, dtype: DTypeLike | None = None) -> NDArray[Any]:
        # Frame by frame into its place: a list of frames would take the memory twice.
        frames = self._read_each(numbers)
        first = next(frames) if numbers else self.frame(0)
        stack = np.empty((len(numbers), *first.shape), first.dtype if dtype is None else dtype)
        stack[:1] = first
        for place, frame in enumerate(frames, start=1):
            stack[place] = frame
        return stack

    def _read_each(self, numbers: range) -> Iterator[NDArray[Any]]:
        """For a class that reads several frames faster together than one by one."""
        return (self.frame(number) for number in numbers)
