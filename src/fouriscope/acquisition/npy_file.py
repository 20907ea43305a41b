"""The .npy format, read without evaluating its header, and never more of it than the file holds."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.input_files import require_file
from fouriscope.errors import InvalidInputError

MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 2**16
_MOST_AXES = 32
_DESCRIPTION = re.compile(r"""['"]descr['"]\s*:\s*['"]([<>|=]?[a-zA-Z]\d{0,6})['"]""")
_ORDER = re.compile(r"""['"]fortran_order['"]\s*:\s*(True|False)""")
_SHAPE = re.compile(r"""['"]shape['"]\s*:\s*\(([\dL,\s]*)\)""")  # 12L is how Python 2 wrote a length


class NpyHeader(NamedTuple):
    """What a .npy says of its numbers: their shape, order and type, and where they begin."""

    shape: tuple[int, ...]
    order: str
    dtype: np.dtype[Any]
    offset: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(file: IO[bytes], path: Path) -> NpyHeader:
    """The header of a .npy that begins at the position of ``file``, which is then at the first number."""
    start = file.read(8)
    if start[:4] == b"PK\x03\x04":
        raise InvalidInputError(f"{path}: one array was expected, but this is an archive of arrays (.npz)")
    if len(start) < 8 or start[:6] != MAGIC:
        raise InvalidInputError(f"{path}: this is not a .npy file, or it is damaged")
    wide = start[6] > 1
    length = int.from_bytes(file.read(4 if wide else 2), "little")
    text = file.read(min(length, _LONGEST_HEADER)).decode("latin-1")
    described, order, sizes = (pattern.search(text) for pattern in (_DESCRIPTION, _ORDER, _SHAPE))
    shape = tuple(int(size.strip(" L\t\n")) for size in sizes[1].split(",") if size.strip()) if sizes else ()
    if not described or not order or not sizes or len(text) < length or len(shape) > _MOST_AXES:
        raise InvalidInputError(f"{path}: a plain array was expected, but its header says {text[:99].strip()!r}")
    try:
        dtype = np.dtype(described[1])
    except TypeError:
        raise InvalidInputError(f"{path}: {described[1]!r} is not a type of numbers") from None
    if dtype.hasobject:
        raise InvalidInputError(f"{path}: it holds Python objects, not numbers; save a plain array with np.save")
    if dtype.kind not in "fiubcUS":
        raise InvalidInputError(f"{path}: numbers or text were expected, but it holds {dtype}")
    offset = 8 + (4 if wide else 2) + length
    return NpyHeader(shape, "F" if order[1] == "True" else "C", dtype, offset)


def npy_layout(path: Path, start: int = 0) -> NpyHeader:
    """The header of the .npy at byte ``start`` of a file, with ``offset`` counted from the file's beginning.

    A file that is too short for its numbers is found.
    """
    size = require_file(path)
    with path.open("rb") as file:
        file.seek(start)
        header = read_header(file, path)
    header = header._replace(offset=start + header.offset)
    expected = header.offset + header.nbytes
    if size < expected:
        raise InvalidInputError(f"{path}: {expected} bytes were expected, but the file has {size}")
    return header


def read_npy(path: Path) -> NDArray[Any]:
    """The array of a .npy file."""
    header = npy_layout(path)
    array: NDArray[Any] = np.fromfile(path, header.dtype, math.prod(header.shape), offset=header.offset)
    return array.reshape(header.shape, order="F" if header.order == "F" else "C")


def read_member(file: IO[bytes], path: Path, header: NpyHeader) -> NDArray[Any]:
    """The numbers that follow ``header`` in a file that can only be read from one end to the other, without a copy."""
    flat = np.empty(header.nbytes, np.uint8)
    view, filled = flat.data, 0
    while filled < len(flat):
        piece = file.read(min(len(flat) - filled, 2**20))
        if not piece:
            raise InvalidInputError(f"{path}: {header.nbytes} bytes of numbers were expected, but there are {filled}")
        view[filled : filled + len(piece)] = piece
        filled += len(piece)
    if file.read(1):
        raise InvalidInputError(f"{path}: there is more after the {header.nbytes} bytes of numbers that were expected")
    return flat.view(header.dtype).reshape(header.shape, order="F" if header.order == "F" else "C")
