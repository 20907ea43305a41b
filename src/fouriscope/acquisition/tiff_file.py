"""TIFF files: the pages that a file itself holds, each checked before it is decoded.

tifffile's ``imread`` combines pages as the metadata say, including pages of other files. Here each page is read by
itself; :mod:`fouriscope.acquisition.ome_set` reads sets of several files.
"""

from __future__ import annotations

import logging
import lzma
import math
import operator
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.input_files import UNQUESTIONED, require_file, require_room
from fouriscope.acquisition.stored import READ_ERRORS, first_line
from fouriscope.errors import FouriscopeError, InvalidInputError

# How much smaller a compression can make zeros, by its number in TIFF; some decoders take the memory before they look.
_AT_BEST = {8: 1032, 32946: 1032, 34925: 8192}
_LZMA = 34925


class TiffPages:
    """The pages of an open TIFF file. Their headers are read at once, pixels when asked for; not by several threads.

    Attributes
    ----------
    path, pages
        The file and its pages, as tifffile has them.
    complaints
        What tifffile logged about the file while it looked through it.
    """

    def __init__(self, path: Path) -> None:
        import tifffile

        self.path = path
        size = require_file(path)
        try:
            with listening("tifffile") as self.complaints:
                self._file = tifffile.TiffFile(path)
                try:
                    self.pages = list(_distinct(self._file.pages))
                    self._check_length(size)
                except BaseException:
                    self._file.close()
                    raise
        except READ_ERRORS as error:
            if isinstance(error, FouriscopeError):
                raise
            raise InvalidInputError(f"{path}: not a readable TIFF ({first_line(error)})") from error
        self.close = self._file.close

    def __len__(self) -> int:
        return len(self.pages)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the first page."""
        return tuple(self.pages[0].shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = np.dtype(self.pages[0].dtype)
        return dtype

    @property
    def ome(self) -> str | None:
        """The OME-XML of the file, if it has any."""
        text: str | None = self._file.ome_metadata
        return text

    def require_grey(self) -> tuple[int, int]:
        """(rows, columns), or an error if the pages are no images of one channel."""
        if len(self.shape) != 2 or self.pages[0].dtype is None or self.dtype.kind not in "fiu":
            raise InvalidInputError(
                f"{self.path}: grey pages were expected, got {self.pages[0].dtype} pages of shape {self.shape}"
                + ("; give plane, red, green or blue" if len(self.shape) == 3 else "")
            )
        rows, columns = self.shape
        return rows, columns

    def require_colour(self) -> tuple[int, int]:
        """(rows, columns), or an error if the pages are no images of three colours, by pixels or by planes."""
        shape = self.shape
        if len(shape) == 3 and shape[0] in (3, 4) and shape[2] not in (3, 4):
            shape = (*shape[1:], shape[0])
        if len(shape) != 3 or shape[2] not in (3, 4) or self.dtype.kind not in "fiu":
            raise InvalidInputError(
                f"{self.path}: colour pages (rows, columns, 3) were expected, got {self.pages[0].dtype} pages of shape "
                f"{self.shape}; leave out plane for grey ones, or give mosaic for the numbers of the sensor itself"
            )
        return shape[0], shape[1]

    def read(self, index: int) -> NDArray[Any]:
        """The pixels of one page."""
        page = self.pages[index]
        require_room(self.path, f"page {index}", page.nbytes, sum(page.databytecounts))
        self._refuse_bombs(page, index)
        with listening("tifffile"):  # what goes wrong is raised as well
            image: NDArray[Any] = page.asarray()
        if image.shape != tuple(page.shape):
            raise InvalidInputError(
                f"{self.path}: page {index} is damaged: {page.shape} was expected, got {image.shape}"
            )
        return image

    def _check_length(self, size: int) -> None:
        """A file that was cut short is found, and one in which parts of a page are not there; no pixel is read."""
        ends = [self._next_page() + 1]
        for number, page in enumerate(self.pages):
            offsets, counts = page.dataoffsets, page.databytecounts
            parts = 1 if page.is_contiguous else math.prod(page.chunked)
            if len(offsets) != len(counts) or len(offsets) < parts or not all(counts):
                raise InvalidInputError(
                    f"{self.path}: page {number} has {parts} parts, but only {sum(map(bool, counts))} are there"
                )
            ends.append(max(map(operator.add, offsets, counts)))
            if page.is_contiguous:
                ends.append(offsets[0] + page.nbytes)
        if size < max(ends):
            raise InvalidInputError(f"{self.path}: {max(ends)} bytes were expected, but the file has {size}")

    def _next_page(self) -> int:
        """Where the page after the last should begin: 0 in a whole file, beyond its end in one that was cut short."""
        handle, layout = self._file.filehandle, self._file.tiff
        handle.seek(self._file.pages.next_page_offset)
        return int(struct.unpack(layout.offsetformat, handle.read(layout.offsetsize))[0])

    def _refuse_bombs(self, page: Any, index: int) -> None:
        """A part of a page is decompressed whole, whatever its size is said to be: look first if it may be large."""
        ratio = _AT_BEST.get(page.compression)
        if ratio is None or max(page.databytecounts) * ratio <= UNQUESTIONED:
            return
        most = max(page.nbytes, math.prod(page.chunks) * page.dtype.itemsize)
        for offset, count in zip(page.dataoffsets, page.databytecounts, strict=True):
            self._file.filehandle.seek(offset)
            unpack = lzma.LZMADecompressor() if page.compression == _LZMA else zlib.decompressobj()
            if len(unpack.decompress(self._file.filehandle.read(count), most + 1)) > most:
                raise InvalidInputError(f"{self.path}: a part of page {index} unpacks to more than its {most} bytes")


def _distinct(pages: Any) -> Iterator[Any]:
    """Page after page; a file in which they go round in a circle has no end for tifffile."""
    seen: set[int] = set()
    while True:
        try:
            page = pages[len(seen)]
        except IndexError:
            if not seen:
                raise
            return
        if page.offset in seen:
            raise ValueError(f"after page {len(seen) - 1} an earlier one comes again")
        seen.add(page.offset)
        yield page


def read_tiff(path: Path) -> NDArray[Any]:
    """The image of a file, or a stack of its pages if there are several."""
    pages = TiffPages(path)
    try:
        if len(pages) == 1:
            return pages.read(0)
        wrong = [number for number, page in enumerate(pages.pages) if tuple(page.shape) != pages.shape]
        if wrong:
            shape = tuple(pages.pages[wrong[0]].shape)
            raise InvalidInputError(f"{path}: page {wrong[0]} has shape {shape}, but the first has {pages.shape}")
        require_room(path, "the stack", len(pages) * pages.pages[0].nbytes)
        return np.stack([pages.read(index) for index in range(len(pages))])
    finally:
        pages.close()


@contextmanager
def listening(library: str) -> Iterator[list[str]]:
    """Collect what a library would log, instead of printing it on the terminal."""
    logger, heard = logging.getLogger(library), list[str]()

    def hear(record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING:
            heard.append(record.getMessage())
        return False

    logger.addFilter(hear)
    try:
        yield heard
    finally:
        logger.removeFilter(hear)
