"""Frames on demand: the small protocol through which every measurement reaches the solver."""

from __future__ import annotations

import struct
import threading
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError


@runtime_checkable
class Frames(Protocol):
    """A stack of intensity frames, of which one at a time is read.

    Whoever implements these two members can feed fouriscope: a file, a camera, a database.
    """

    @property
    def shape(self) -> tuple[int, int, int]:
        """(frames, rows, columns)."""
        ...

    def frame(self, index: int) -> NDArray[Any]:
        """Frame ``index`` as a real 2-D array; called in any order, any number of times."""
        ...


class ArrayFrames:
    """Frames that are already in memory.

    >>> ArrayFrames(np.ones((3, 4, 5), np.float32)).frame(2).shape
    (4, 5)
    """

    def __init__(self, array: NDArray[Any]) -> None:
        array = np.asarray(array)
        if array.ndim != 3 or array.dtype.kind not in "fiu":
            raise InvalidInputError(
                f"frames must be a real array (frames, rows, columns), got {array.dtype} of shape {array.shape}"
            )
        self.array = array

    @property
    def shape(self) -> tuple[int, int, int]:
        count, rows, columns = self.array.shape
        return count, rows, columns

    def frame(self, index: int) -> NDArray[Any]:
        frame: NDArray[Any] = self.array[index]
        return frame


# What readers of files raise for one that is not, or no longer, what it should be; codecs raise RuntimeError.
_READ_ERRORS = (OSError, ValueError, EOFError, RuntimeError, IndexError, KeyError, struct.error, zlib.error)


@contextmanager
def _reading(path: Path, index: int) -> Iterator[None]:
    """Whatever goes wrong inside the block is the fault of the file."""
    try:
        yield
    except InvalidInputError:
        raise
    except _READ_ERRORS as error:
        raise InvalidInputError(
            f"{path}: frame {index} cannot be read ({(str(error).splitlines() or ['?'])[0]}); "
            "was the file changed or removed?"
        ) from error


class NpyFrames:
    """Frames in a ``.npy`` file, read one by one (not mapped: a mapped file would count as memory of the process)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        mapped: Any = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(mapped, np.memmap):
            mapped.close()
            raise InvalidInputError(f"{path}: one array was expected, this is an archive of arrays (.npz)")
        if mapped.ndim != 3 or mapped.dtype.kind not in "fiu" or not mapped.flags.c_contiguous:
            raise InvalidInputError(
                f"{path}: a C-ordered real array of shape (frames, rows, columns) was expected, "
                f"got {mapped.dtype} of shape {mapped.shape}"
            )
        self.shape: tuple[int, int, int] = mapped.shape
        self.dtype = mapped.dtype
        self._first_byte = mapped.offset
        # A file cut short is found now, not in the middle of a run.
        expected = self._first_byte + mapped.nbytes
        if path.stat().st_size < expected:
            raise InvalidInputError(f"{path}: {expected} bytes were expected, the file has {path.stat().st_size}")

    def frame(self, index: int) -> NDArray[Any]:
        pixels = self.shape[1] * self.shape[2]
        with _reading(self.path, index), self.path.open("rb") as file:
            file.seek(self._first_byte + index * pixels * self.dtype.itemsize)
            return np.fromfile(file, self.dtype, pixels).reshape(self.shape[1:])


class TiffFrames:
    """Frames in a multi-page TIFF, one page a frame, read page by page."""

    def __init__(self, path: Path) -> None:
        import tifffile

        self.path = path
        self._lock = threading.Lock()  # one place in the file for all threads
        try:
            self._file = tifffile.TiffFile(path)
            weakref.finalize(self, self._file.close)
            page = self._file.pages[0]
            ends = [sum(last) for p in self._file.pages for last in zip(p.dataoffsets, p.databytecounts, strict=True)]
        except (tifffile.TiffFileError, IndexError, struct.error) as error:
            raise InvalidInputError(f"{path}: not a readable TIFF ({error})") from error
        if len(page.shape) != 2 or np.dtype(page.dtype).kind not in "fiu":
            raise InvalidInputError(f"{path}: grey pages were expected, got {page.dtype} pages of shape {page.shape}")
        # A file cut short or of an unknown compression is found now, not in the middle of a run.
        if path.stat().st_size < max(ends):
            raise InvalidInputError(f"{path}: {max(ends)} bytes were expected, the file has {path.stat().st_size}")
        self.shape: tuple[int, int, int] = (len(self._file.pages), *page.shape)
        try:
            page.asarray()
        except _READ_ERRORS as error:
            codec = "; install it: pip install imagecodecs" if "imagecodecs" in str(error) else ""
            raise InvalidInputError(f"{path}: the first page cannot be decoded ({error}){codec}") from error

    def frame(self, index: int) -> NDArray[Any]:
        with _reading(self.path, index), self._lock:
            image: NDArray[Any] = self._file.pages[index].asarray()
        if image.shape != self.shape[1:]:
            raise InvalidInputError(
                f"{self.path}: page {index} has shape {image.shape}, the first has {self.shape[1:]}"
            )
        return image


class ZarrFrames:
    """Frames in a Zarr array of shape (frames, rows, columns); one chunk a frame reads best."""

    def __init__(self, path: Path) -> None:
        import zarr

        self.path = path
        self.array = zarr.open_array(str(path), mode="r")
        if len(self.array.shape) != 3 or np.dtype(self.array.dtype).kind not in "fiu":
            raise InvalidInputError(
                f"{path}: a real array of shape (frames, rows, columns) was expected, "
                f"got {self.array.dtype} of shape {self.array.shape}"
            )
        self.shape: tuple[int, int, int] = self.array.shape

    def frame(self, index: int) -> NDArray[Any]:
        with _reading(self.path, index):
            self.path.stat()  # a chunk that is missing reads as zeros, and so would a folder that is
            return np.asarray(self.array[index])


class CalibratedFrames:
    """(counts − offset) / gain: from camera counts to intensity in units of the empty bright field."""

    def __init__(self, frames: Frames, *, offset: float = 0.0, gain: float = 1.0) -> None:
        if not (np.isfinite(gain) and gain > 0 and np.isfinite(offset)):
            raise InvalidInputError(f"gain must be positive and offset finite, got gain {gain} and offset {offset}")
        self.frames, self.offset, self.gain = frames, float(offset), float(gain)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.frames.shape

    def frame(self, index: int) -> NDArray[Any]:
        counts = self.frames.frame(index)
        double = counts.dtype.newbyteorder("=") == np.float64
        image: NDArray[Any] = counts.astype(np.float64 if double else np.float32)
        return (image - self.offset) / self.gain


_READERS: dict[str, Callable[[Path], Frames]] = {
    ".npy": NpyFrames,
    ".tif": TiffFrames,
    ".tiff": TiffFrames,
    ".zarr": ZarrFrames,
}


def open_frames(path: str | Path) -> Frames:
    """Open a stack of frames lazily; the format follows from the name: .npy, .tif, .tiff or .zarr."""
    path = Path(path)
    if not path.exists():
        raise InvalidInputError(f"{path}: no such file; frames must be a .npy, .tif, .tiff or .zarr stack")
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InvalidInputError(f"{path}: frames must be a .npy, .tif, .tiff or .zarr stack, got {path.suffix!r}")
    try:
        return reader(path)
    except (OSError, ValueError, EOFError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"{path}: cannot be read as a stack of frames ({error})") from error
