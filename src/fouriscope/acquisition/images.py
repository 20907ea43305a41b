"""Stacks of images: a TIFF with many pages, or a folder with one file per frame."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.input_files import require_name
from fouriscope.acquisition.npy_file import npy_layout, read_npy
from fouriscope.acquisition.ome_set import planes_of_set
from fouriscope.acquisition.png_file import png_header, read_png
from fouriscope.acquisition.stored import READ_ERRORS, StoredFrames, first_line, reading
from fouriscope.acquisition.tiff_file import TiffPages, read_tiff
from fouriscope.errors import FouriscopeError, InvalidInputError

MOST_OPEN = 16  # files of an OME-TIFF at once
TIFF = (".tif", ".tiff")
IMAGES = (*TIFF, ".png", ".npy")


class TiffFrames(StoredFrames):
    """Frames in a multi-page TIFF (OME and ImageJ too), one page per frame, read page by page.

    If an OME-TIFF has several files, give any of them; all are read, and must lie in the same folder.

    Parameters
    ----------
    path
        The file.
    roi
        (row, column, height, width): only this part of each frame is used.
    colour
        Whether the pages are colour images. A frame is then (rows, columns, 3).

    Attributes
    ----------
    complaints
        What was odd about the file that was given, though it could be read.
    """

    def __init__(self, path: Path, roi: Sequence[int] | None = None, *, colour: bool = False) -> None:
        first = TiffPages(path)
        self._opened = {path: first}
        self._lock = threading.Lock()  # pages share one file and its position
        weakref.finalize(self, _close_all, self._opened)
        self.complaints, self._page_shape = first.complaints, first.shape
        shape = first.require_colour() if colour else first.require_grey()
        self._planes = planes_of_set(path, first.ome) or [(path, page) for page in range(len(first))]
        self._check_files(first.dtype)
        try:
            self._page(0)  # an unknown compression is found now, not in the middle of a run
        except READ_ERRORS as error:
            if isinstance(error, FouriscopeError):
                raise
            codec = "; install it: pip install imagecodecs" if "imagecodecs" in str(error) else ""
            raise InvalidInputError(f"{path}: the first page cannot be decoded ({first_line(error)}){codec}") from error
        super().__init__(path, len(self._planes), shape, first.dtype, roi)

    def _read(self, index: int, rows: slice, columns: slice) -> NDArray[Any]:
        image = self._page(index)
        if image.shape != self._page_shape:
            raise InvalidInputError(
                f"{self.path}: page {index} has shape {image.shape}, but the first has {self._page_shape}"
            )
        return colours_last(image, self.stored_shape)[rows, columns]

    def _page(self, index: int) -> NDArray[Any]:
        file, page = self._planes[index]
        with self._lock:
            return self._pages_of(file).read(page)

    def _pages_of(self, file: Path) -> TiffPages:
        """An open file of the set; not too many are kept open at once."""
        if file not in self._opened:
            if len(self._opened) >= MOST_OPEN:
                self._opened.pop(next(iter(self._opened))).close()
            self._opened[file] = TiffPages(file)
        return self._opened[file]

    def _check_files(self, dtype: np.dtype[Any]) -> None:
        """Every file of a set has pages like the first, and as many as are asked for."""
        wanted: dict[Path, int] = {}
        for file, page in self._planes:
            wanted[file] = max(page, wanted.get(file, 0))
        for file, last in wanted.items():
            pages = self._pages_of(file)
            if last >= len(pages) or pages.shape != self._page_shape or pages.dtype != dtype:
                raise InvalidInputError(
                    f"{file}: page {last}, {dtype} of shape {self._page_shape}, was expected in this file of an "
                    f"OME-TIFF; it has {len(pages)} pages, {pages.dtype} of shape {pages.shape}"
                )


def _close_all(opened: dict[Path, TiffPages]) -> None:
    for pages in opened.values():
        pages.close()


class FolderFrames(StoredFrames):
    """Frames in a folder, one TIFF, PNG or .npy file each, in natural order: ``_2`` comes before ``_10``.

    All files are looked at when the folder is opened (their headers alone), so that one of another size is found then.

    Parameters
    ----------
    path
        The folder.
    roi
        (row, column, height, width): only this part of each frame is used.
    pattern
        Which files, such as ``"led_*.tif"``. By default all images of the folder, which must be of one kind.
    files
        Names in the order of the LEDs, relative to the folder, instead of a pattern.
    colour
        Whether they are colour images. A frame is then (rows, columns, 3).
    """

    def __init__(
        self,
        path: Path,
        roi: Sequence[int] | None = None,
        *,
        pattern: str | None = None,
        files: Sequence[str] | None = None,
        colour: bool = False,
    ) -> None:
        self._colour = colour
        self.files = [path / name for name in files] if files is not None else images_of(path, pattern)
        if not self.files:
            raise InvalidInputError(
                f"{path}: no frames in this folder; expected {pattern or 'files that end in ' + ', '.join(IMAGES)}"
            )
        shape, dtype = image_header(self.files[0], colour=colour)
        for file in self.files[1:]:
            other = image_header(file, colour=colour)
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
        image = read_image(self.files[index], colour=self._colour)
        if image.shape[:2] != self.stored_shape:
            raise InvalidInputError(f"{self.files[index]}: expected shape {self.stored_shape}, got {image.shape}")
        return image[rows, columns]


def images_of(folder: Path, pattern: str | None = None) -> list[Path]:
    """The images of a folder as people count, _2 before _10; without a pattern they must be of one kind."""
    from tifffile import natural_sorted

    if pattern is not None:
        return [Path(name) for name in natural_sorted(_named(folder.glob(pattern)))]
    found = [path for path in folder.iterdir() if path.suffix.lower() in IMAGES and not path.name.startswith(".")]
    kinds = {".tif" if path.suffix.lower() in TIFF else path.suffix.lower() for path in found}
    if len(kinds) > 1:
        raise InvalidInputError(
            f"{folder}: images of several kinds ({', '.join(sorted(kinds))}); say which are frames, for example "
            f"pattern = '*{sorted(kinds)[0]}' (fouriscope import '{folder}/*{sorted(kinds)[0]}')"
        )
    return [Path(name) for name in natural_sorted(_named(found))]


def _named(paths: Iterable[Path]) -> list[str]:
    names = sorted(map(str, paths))
    for name in names:
        require_name(Path(name))
    return names


def image_header(path: Path, *, colour: bool = False) -> tuple[tuple[int, int], np.dtype[Any]]:
    """(rows, columns) and type of one image, grey or in ``colour``, without reading its pixels."""
    with _decoding(path):
        if path.suffix.lower() == ".png":
            return png_header(path, colour=colour)
        if path.suffix.lower() == ".npy":
            header = npy_layout(path)
            shape, dtype = header.shape, header.dtype
        else:
            pages = TiffPages(path)
            pages.close()
            if len(pages) > 1:
                raise InvalidInputError(f"{path}: one image was expected, got {len(pages)} pages; give the file itself")
            return pages.require_colour() if colour else pages.require_grey(), pages.dtype
    expected = len(shape) == 3 and shape[2] in (3, 4) if colour else len(shape) == 2
    if not expected or dtype.kind not in "fiu":
        wanted = "colour image (rows, columns, 3)" if colour else "grey image"
        raise InvalidInputError(f"{path}: one {wanted} was expected, got {dtype} of shape {shape}")
    return (shape[0], shape[1]), dtype


def read_image(path: Path, *, colour: bool = False) -> NDArray[Any]:
    """One grey image: TIFF, PNG or .npy; a TIFF with several pages is a stack of them.

    A colour PNG counts as grey if its channels are equal, as in screenshots of grey images. Any other is refused,
    because nobody can guess which channel saw the LED. With ``colour``, the image is (rows, columns, 3 or 4).
    """
    with _decoding(path):
        if path.suffix.lower() == ".npy":
            return read_npy(path)
        if path.suffix.lower() == ".png":
            return read_png(path, colour=colour)
        image = read_tiff(path)
        return colours_last(image, image.shape[1:]) if colour and image.shape[-1] not in (3, 4) else image


def colours_last(image: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """An image of ``shape`` (rows, columns) with its colours, if it has any, as the last axis."""
    return np.moveaxis(image, 0, -1) if image.ndim == 3 and image.shape[1:] == shape else image


def _decoding(path: Path) -> Any:
    return reading(path, "the image")
