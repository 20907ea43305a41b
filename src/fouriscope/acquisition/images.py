"""Stacks of images: a TIFF with many pages, or a folder with one file a frame."""

from __future__ import annotations

import logging
import struct
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.stored import READ_ERRORS, StoredFrames, first_line, reading
from fouriscope.errors import InvalidInputError

TIFF = (".tif", ".tiff")
IMAGES = (*TIFF, ".png", ".npy")


class TiffFrames(StoredFrames):
    """Frames in a multi-page TIFF (OME and ImageJ too), one page a frame, read page by page."""

    def __init__(self, path: Path, roi: Sequence[int] | None = None) -> None:
        self._file, count, shape, dtype = _open_tiff(path)
        weakref.finalize(self, self._file.close)
        try:
            self._file.pages[0].asarray()  # an unknown compression is found now, not in the middle of a run
        except READ_ERRORS as error:
            codec = "; install it: pip install imagecodecs" if "imagecodecs" in str(error) else ""
            raise InvalidInputError(f"{path}: the first page cannot be decoded ({first_line(error)}){codec}") from error
        super().__init__(path, count, shape, dtype, roi)
        self._lock = threading.Lock()  # pages share one file and its position

    def _read(self, index: int, rows: slice, columns: slice) -> NDArray[Any]:
        with self._lock:
            image: NDArray[Any] = self._file.pages[index].asarray()
        if image.shape != self.stored_shape:
            raise InvalidInputError(f"{self.path}: page {index} has shape {image.shape}, the first {self.stored_shape}")
        return image[rows, columns]


def _open_tiff(path: Path) -> tuple[Any, int, tuple[int, int], np.dtype[Any]]:
    """The open file, its number of pages, and their shape and type; a file cut short is found, no pixel is read."""
    import tifffile

    try:
        with _muted("tifffile"):
            file = tifffile.TiffFile(path)
            try:
                page, count = file.pages[0], len(file.pages)
                shape, dtype = tuple(page.shape), np.dtype(page.dtype)
                ends = [sum(last) for p in file.pages for last in zip(p.dataoffsets, p.databytecounts, strict=True)]
                more = _next_page(file)
            except BaseException:
                file.close()
                raise
    except (tifffile.TiffFileError, *READ_ERRORS) as error:
        raise InvalidInputError(f"{path}: not a readable TIFF ({first_line(error)})") from error
    expected, size = max(*ends, more + 1 if more else 0), path.stat().st_size
    problem = ""
    if len(shape) != 2 or dtype.kind not in "fiu":
        problem = f"grey pages were expected, got {dtype} pages of shape {shape}"
    elif size < expected:
        problem = f"{expected} bytes were expected, the file has {size}"
    if problem:
        file.close()
        raise InvalidInputError(f"{path}: {problem}")
    return file, count, (shape[0], shape[1]), dtype


def _next_page(file: Any) -> int:
    """Where the page after the last should begin: 0 in a whole file, beyond its end in one that was cut short."""
    handle, layout = file.filehandle, file.tiff
    handle.seek(file.pages.next_page_offset)
    return int(struct.unpack(layout.offsetformat, handle.read(layout.offsetsize))[0])


@contextmanager
def _muted(library: str) -> Iterator[None]:
    """What a library would log about a broken file is said in the error instead."""
    logger, mute = logging.getLogger(library), lambda _: False
    logger.addFilter(mute)
    try:
        yield
    finally:
        logger.removeFilter(mute)


class FolderFrames(StoredFrames):
    """Frames in a folder, one TIFF, PNG or .npy file each, in natural order: ``_2`` comes before ``_10``.

    All files are looked at when the folder is opened (their headers alone), so that one of another size is found then.

    Parameters
    ----------
    pattern
        Which files, such as ``"led_*.tif"``. Without it, all images of the folder, which must be of one kind.
    files
        Names in the order of the LEDs, relative to the folder, instead of a pattern.
    """

    def __init__(
        self,
        path: Path,
        roi: Sequence[int] | None = None,
        *,
        pattern: str | None = None,
        files: Sequence[str] | None = None,
    ) -> None:
        self.files = [path / name for name in files] if files is not None else images_of(path, pattern)
        if not self.files:
            raise InvalidInputError(
                f"{path}: no frames in this folder; expected {pattern or 'files that end in ' + ', '.join(IMAGES)}"
            )
        shape, dtype = image_header(self.files[0])
        for file in self.files[1:]:
            other = image_header(file)
            if other != (shape, dtype):
                raise InvalidInputError(
                    f"{file}: every frame must be like {self.files[0].name}, {dtype} of shape {shape}; "
                    f"this one is {other[1]} of shape {other[0]}"
                )
        super().__init__(path, len(self.files), shape, dtype, roi)
        self.frame(0)  # an unknown compression is found now, not in the middle of a run

    def _files(self, indices: range) -> Sequence[str]:
        return [str(self.files[index]) for index in indices]

    def _read(self, index: int, rows: slice, columns: slice) -> NDArray[Any]:
        image = read_image(self.files[index])
        if image.shape != self.stored_shape:
            raise InvalidInputError(f"{self.files[index]}: it has shape {image.shape}, expected {self.stored_shape}")
        return image[rows, columns]


def images_of(folder: Path, pattern: str | None = None) -> list[Path]:
    """The images of a folder as people count, _2 before _10; without a pattern they must be of one kind."""
    from tifffile import natural_sorted

    if pattern is not None:
        return [Path(name) for name in natural_sorted(sorted(map(str, folder.glob(pattern))))]
    found = [path for path in folder.iterdir() if path.suffix.lower() in IMAGES and not path.name.startswith(".")]
    kinds = {".tif" if path.suffix.lower() in TIFF else path.suffix.lower() for path in found}
    if len(kinds) > 1:
        raise InvalidInputError(
            f"{folder}: images of several kinds ({', '.join(sorted(kinds))}); say which are frames, for example "
            f"pattern = '*{sorted(kinds)[0]}' (fouriscope import '{folder}/*{sorted(kinds)[0]}')"
        )
    return [folder / name for name in natural_sorted(sorted(path.name for path in found))]


def image_header(path: Path) -> tuple[tuple[int, int], np.dtype[Any]]:
    """(rows, columns) and type of one image, without reading its pixels."""
    if not path.is_file():
        raise InvalidInputError(f"{path}: no such file")
    with _decoding(path):
        if path.suffix.lower() == ".png":
            with _open_png(path) as picture:
                return (picture.height, picture.width), np.dtype(np.uint16 if "I" in picture.mode else np.uint8)
        if path.suffix.lower() == ".npy":
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            shape, dtype = array.shape, array.dtype
        else:
            file, count, shape, dtype = _open_tiff(path)
            file.close()
            if count > 1:
                raise InvalidInputError(f"{path}: one image was expected, got {count} pages; give the file itself")
    if len(shape) != 2 or dtype.kind not in "fiu":
        raise InvalidInputError(f"{path}: one grey image was expected, got {dtype} of shape {shape}")
    return (shape[0], shape[1]), dtype


def read_image(path: Path) -> NDArray[Any]:
    """One grey image: TIFF, PNG or .npy.

    A colour PNG is grey if its channels are equal, as screenshots of grey images are. Any other is refused: which of
    its channels saw the LED cannot be guessed.
    """
    with _decoding(path):
        if path.suffix.lower() == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        if path.suffix.lower() == ".png":
            with _open_png(path) as picture:
                image = np.asarray(picture)
            if image.ndim == 3:
                if not (np.array_equal(image[..., 0], image[..., 1]) and np.array_equal(image[..., 0], image[..., 2])):
                    raise InvalidInputError(
                        f"{path}: a grey image was expected, got colour; save the channel that the LED lights as grey"
                    )
                image = image[..., 0]
            # Some versions of Pillow read 16 bits into 32.
            return image if image.dtype == np.uint8 else image.astype(np.uint16)
        import tifffile

        return np.asarray(tifffile.imread(path))


def _open_png(path: Path) -> Any:
    from PIL import Image

    picture = Image.open(path, formats=["PNG"])
    if picture.mode not in ("L", "I;16", "I;16B", "I", "RGB", "RGBA"):
        picture.close()
        raise InvalidInputError(f"{path}: a grey image was expected, got one of mode {picture.mode}; convert it first")
    return picture


def _decoding(path: Path) -> Any:
    return reading(path, "the image")
