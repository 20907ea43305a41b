"""Arrays in files of a run folder: a header is compared with the size of its file before memory is allocated.

A run writes its arrays uncompressed, except in Zarr. So no file can grow while it is read, and an array is never larger
than its file.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.stored import READ_ERRORS, first_line
from fouriscope.errors import FouriscopeError, RunFolderError
from fouriscope.run.folder_files import LARGEST_FILE, FolderFiles, check_nesting, open_regular

# Of one archive; a solver keeps some dozens.
MOST_MEMBERS = 1024
# Pixels of one image that is read as a whole.
LARGEST_IMAGE = 2**26
VALUES = "state.json"


class Header(NamedTuple):
    """What a file says of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@contextmanager
def reading(where: object) -> Iterator[None]:
    """Whatever a library says inside the block is the fault of the file."""
    try:
        yield
    except FouriscopeError:
        raise
    except (*READ_ERRORS, MemoryError) as error:
        raise RunFolderError(f"{where}: not readable ({first_line(error)})") from error


def read_arrays(path: Path, *, most: int | None = None) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and values that :func:`~fouriscope.run.files.write_arrays` wrote; ``most`` bytes, if that is given."""
    with open_regular(path) as file:
        if most is not None and os.fstat(file.fileno()).st_size > most:
            raise RunFolderError(f"{path} is larger than {most} bytes")
        with reading(path), zipfile.ZipFile(file) as archive:
            arrays: dict[str, NDArray[Any]] = {}
            members = _members(archive, file)
            for name, member in members.items():
                data = io.BytesIO(archive.read(member))
                _npy_header(data, member.file_size)
                data.seek(0)
                arrays[name] = np.lib.format.read_array(data, allow_pickle=False)
            return arrays, _values(archive)


def read_headers(path: Path) -> tuple[dict[str, Header], dict[str, Any]]:
    """Shapes and dtypes of the arrays, and the values: almost nothing is read."""
    with open_regular(path) as file, reading(path), zipfile.ZipFile(file) as archive:
        headers = {}
        for name, member in _members(archive, file).items():
            with archive.open(member) as start:
                headers[name] = _npy_header(start, member.file_size)
        return headers, _values(archive)


def _members(archive: zipfile.ZipFile, file: BinaryIO) -> dict[str, zipfile.ZipInfo]:
    """The arrays of an archive, by name; together they are no larger than the file."""
    found = archive.infolist()
    if len(found) > MOST_MEMBERS:
        raise ValueError(f"it holds {len(found)} files, more than any run writes")
    if any(member.compress_type != zipfile.ZIP_STORED for member in found):
        raise ValueError("it is compressed, which no run writes")
    if sum(member.file_size for member in found) > os.fstat(file.fileno()).st_size:
        raise ValueError("it claims to hold more than it does")
    return {m.filename.removesuffix(".npy"): m for m in found if m.filename.endswith(".npy")}


def _values(archive: zipfile.ZipFile) -> dict[str, Any]:
    if archive.getinfo(VALUES).file_size > LARGEST_FILE:
        raise ValueError(f"{VALUES} is larger than {LARGEST_FILE} bytes")
    values = json.loads(archive.read(VALUES))
    check_nesting(values)
    if not isinstance(values, dict):
        raise TypeError(f"{VALUES} must be an object of JSON, got {type(values).__name__}")
    return values


def _npy_header(file: Any, size: int) -> Header:
    """The header of a .npy of ``size`` bytes, which its array must fill."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != size - file.tell():
        raise ValueError(f"{size} bytes do not hold an array of {dtype} and shape {shape}")
    return Header(shape, dtype)


def read_npy(files: FolderFiles, name: str) -> NDArray[Any]:
    """An array of numbers in a .npy file."""
    with files.open(name) as file, reading(files.root / name):
        header = _npy_header(file, os.fstat(file.fileno()).st_size)
        if math.prod(header.shape) > LARGEST_IMAGE:
            raise ValueError(f"it has shape {header.shape}, more than {LARGEST_IMAGE} numbers")
        file.seek(0)
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def read_tiff(files: FolderFiles, name: str, *, largest: int | None = None) -> NDArray[np.float32]:
    """The image of a TIFF that a run wrote: its first page, and never what its OME-XML says of other files."""
    import tifffile

    with files.open(name) as file, reading(files.root / name), tifffile.TiffFile(file) as tiff:
        page: Any = tiff.pages[0]
        size = os.fstat(file.fileno()).st_size
        if len(page.shape) != 2 or page.dtype != np.float32 or page.compression != tifffile.COMPRESSION.NONE:
            raise ValueError(f"expected one uncompressed image of float32, got {page.dtype} of shape {page.shape}")
        if page.nbytes > size or sum(page.databytecounts) > size:
            raise ValueError(f"{size} bytes do not hold an image of shape {page.shape}")
        if largest is not None and page.size > largest:
            raise ValueError(f"it has shape {page.shape}, more than {largest} pixels")
        return np.asarray(page.asarray())


def zarr_header(files: FolderFiles, name: str) -> Header:
    """Shape and dtype of a Zarr array that a run wrote. Its chunks are no larger than an image may be."""
    found = files.json(f"{name}/zarr.json")
    with reading(files.root / name):
        shape, chunks = (_sides(one) for one in (found["shape"], found["chunk_grid"]["configuration"]["chunk_shape"]))
        if found["zarr_format"] != 3 or found["node_type"] != "array" or len(shape) != len(chunks):
            raise ValueError("expected an array of Zarr 3")
        if math.prod(chunks) > LARGEST_IMAGE:
            raise ValueError(f"its chunks have shape {chunks}, more than {LARGEST_IMAGE} numbers")
        return Header(shape, np.dtype(str(found["data_type"])))


def _sides(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(side) is int and 0 < side < 2**31 for side in value):
        raise ValueError(f"expected the sides of an array, got {str(value)[:80]}")
    return tuple(value)
