"""What all frames in files share: a window, one way to read, and errors that name the file."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.file_states import FileStates
from fouriscope.acquisition.sequence import FrameSequence
from fouriscope.errors import FouriscopeError, InsufficientMemoryError, InvalidInputError

Region: TypeAlias = tuple[int, int, int, int]
"""(row, column, height, width) of the part of a frame that is wanted."""

# What libraries raise for a file that is not, or no longer, what it should be: codecs RuntimeError and LZMAError,
# Pillow SyntaxError, tifffile AssertionError.
READ_ERRORS = (
    *(OSError, ValueError, TypeError, EOFError, RuntimeError, IndexError, KeyError, SyntaxError),
    *(AttributeError, AssertionError, ArithmeticError, struct.error, zlib.error, lzma.LZMAError, zipfile.BadZipFile),
)


def first_line(error: BaseException) -> str:
    """The first line of an error, which is where libraries say what happened."""
    return (str(error).splitlines() or [type(error).__name__])[0]


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Whatever goes wrong inside the block is the fault of the file."""
    try:
        yield
    except FouriscopeError:
        raise
    except READ_ERRORS as error:
        raise InvalidInputError(
            f"{path}: {what} cannot be read ({first_line(error)}); was the file changed or removed?"
        ) from error
    except MemoryError as error:
        raise InsufficientMemoryError(
            f"{path}: there is not enough memory for {what} ({first_line(error)}); is the file damaged?"
        ) from error


class StoredFrames(FrameSequence):
    """Frames in a file or folder. They are read one at a time, and only the region of interest of each.

    Reading is safe from several threads at once. A subclass says how: ``_read(index, rows, columns)``. If a file has
    changed since it was first read, this is an error.

    Attributes
    ----------
    path, dtype
        Where the frames are, and the numbers they are stored as.
    shape
        (frames, rows, columns) of the frames that ``frame`` returns: those of the region, if one was given.
    stored_shape
        (rows, columns) of a whole frame.
    rows, columns
        The slices of a whole frame that are the region.
    states
        How the files were when they were first read.
    """

    def __init__(
        self, path: Path, count: int, stored_shape: tuple[int, int], dtype: np.dtype[Any], roi: Sequence[int] | None
    ) -> None:
        self.path, self.dtype, self.stored_shape = path, dtype, stored_shape
        self._watched: Sequence[str] = (str(path),)
        self.states = FileStates()
        if count < 1 or min(stored_shape) < 1:
            raise InvalidInputError(f"{path}: it holds no frame, got {count} frames of shape {stored_shape}")
        row, column, height, width = _checked_region(path, stored_shape, roi)
        self.rows, self.columns = slice(row, row + height), slice(column, column + width)
        self.shape: tuple[int, int, int] = (count, height, width)

    def frame(self, index: int) -> NDArray[Any]:
        """Frame ``index`` as it is stored, cut to the region of interest."""
        if not 0 <= index < self.shape[0]:
            raise InvalidInputError(f"{self.path}: frames are 0 to {self.shape[0] - 1}, got {index}")
        with reading(self.path, f"frame {index}"):
            files = self._files(range(index, index + 1))
            return self.states.read(files, lambda: self._read(index, self.rows, self.columns))

    def together(self, index: int) -> range:
        """The frames that a reader of frame ``index`` decompresses with it, so that they should be read in one go."""
        return range(index, index + 1)

    def read_together(self, indices: range) -> NDArray[Any]:
        """(frames, rows, columns): several frames, each chunk decompressed once; cut to the region of interest."""
        with reading(self.path, f"one of the frames {indices[0]} to {indices[-1]}"):
            files = self._files(indices)
            return self.states.read(files, lambda: self._read_several(indices, self.rows, self.columns))

    def _files(self, indices: range) -> Sequence[str]:
        """The files that these frames are read from, each time that they are."""
        return self._watched

    def _read(self, index: int, rows: slice, columns: slice) -> NDArray[Any]:
        raise NotImplementedError

    def _read_several(self, indices: range, rows: slice, columns: slice) -> NDArray[Any]:
        return np.stack([self._read(index, rows, columns) for index in indices])


def stored_below(frames: object) -> StoredFrames | None:
    """The stored frames that corrections and the like (whatever holds its source in ``frames``) read from, if any."""
    while frames is not None and not isinstance(frames, StoredFrames):
        frames = getattr(frames, "frames", None)
    return frames


def _checked_region(path: Path, shape: tuple[int, int], roi: Sequence[int] | None) -> Region:
    if roi is None:
        return 0, 0, *shape
    if len(roi) != 4:
        raise InvalidInputError(f"{path}: roi must be (row, column, height, width), got {tuple(roi)}")
    row, column, height, width = roi
    inside = min(row, column) >= 0 and row + height <= shape[0] and column + width <= shape[1]
    if not inside or height < 1 or width < 1:
        raise InvalidInputError(
            f"{path}: roi = (row, column, height, width) must lie inside the frames of {shape[0]} × {shape[1]}, "
            f"got {tuple(roi)}"
        )
    return row, column, height, width
