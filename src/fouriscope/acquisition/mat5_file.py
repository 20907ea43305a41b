"""MATLAB files of version 5 (MATLAB's -v6 and -v7), read with every length checked before it is used.

Numbers keep the type in which they are stored, as ``scipy.io.loadmat`` has it: MATLAB writes a double array of small
whole numbers as uint8.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.input_files import require_file, require_room
from fouriscope.errors import InvalidInputError

HEADER = 128
MATRIX, COMPRESSED = 14, 15
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
           16: "u1", 17: "u2", 18: "u4"}  # fmt: skip
_STRUCTURE, _TEXT, _NUMBERS, _OPAQUE = 2, 4, range(6, 16), 17
_COMPLEX = 1 << 11
_MOST_AXES, _DEEPEST = 32, 32
_BEGINNING = 4096  # bytes of a variable in which its shape and name stand
_PIECE = 2**16


class Variable(NamedTuple):
    """Where a variable is in the file: the first byte of its data, how many, and whether they are compressed."""

    shape: tuple[int, ...]
    place: int
    size: int
    is_packed: bool


class _Matrix(NamedTuple):
    kind: int
    is_complex: bool
    shape: tuple[int, ...]
    name: str


class Mat5File:
    """The variables of a file: their shapes at once, their values when asked for."""

    def __init__(self, path: Path) -> None:
        self.path, self._size = path, require_file(path)
        self.variables: dict[str, Variable] = {}
        with path.open("rb") as file:
            start = file.read(HEADER)
            if len(start) < HEADER or start[126:] not in (b"IM", b"MI"):
                old = len(start) >= 20 and 0 in start[:4]
                hint = "; one of version 4 holds no stacks: save it with -v7" if old else ""
                raise InvalidInputError(f"{path}: not a readable MATLAB file: it does not begin like one{hint}")
            self._order = "<" if start[126:] == b"IM" else ">"
            place = HEADER
            while place < self._size:
                place = self._look(file, place)

    def _look(self, file: IO[bytes], place: int) -> int:
        """Note the variable at ``place``, and return where the next one begins."""
        file.seek(place)
        kind, size = self._words(file.read(8), 0)
        begin, packed = place + 8, kind == COMPRESSED
        if kind not in (MATRIX, COMPRESSED):
            raise self._damaged(f"a variable was expected at byte {place}, got an element of type {kind}")
        if begin + size > self._size:
            raise self._damaged(f"{begin + size} bytes were expected, the file has {self._size}")
        content = memoryview(file.read(min(size, _BEGINNING)))
        if packed:
            content = memoryview(zlib.decompressobj().decompress(content, _BEGINNING))
            if len(content) < 8 or self._words(content, 0)[0] != MATRIX:
                raise self._damaged(f"the compressed part at byte {place} holds no variable")
            content = content[8:]
        matrix = self._header(content)[0]
        if matrix.name:  # what functions remember has no name
            self.variables[matrix.name] = Variable(matrix.shape, begin, size, packed)
        return begin + size

    def read(self, name: str) -> Any:
        """A variable: an array, text, a dictionary for a structure of one element, None for anything else."""
        return self._value(self._content(name), name, 0)

    def _content(self, name: str) -> memoryview:
        """All bytes of a variable, decompressed into memory that is taken once, and only if there is enough."""
        _, place, size, packed = self.variables[name]
        with self.path.open("rb") as file:
            file.seek(place)
            if not packed:
                require_room(self.path, f"the variable {name!r}", size)
                return np.fromfile(file, np.uint8, size).data
            inflate, left = zlib.decompressobj(), size
            first = file.read(min(left, _PIECE))
            start = inflate.decompress(first, 8)
            left -= len(first)
            total = self._words(start, 0)[1]
            require_room(self.path, f"the variable {name!r}", total, size)
            content, filled, piece = np.empty(total, np.uint8), 0, inflate.unconsumed_tail
            while not inflate.eof:
                if not piece:
                    piece = file.read(min(left, _PIECE))
                    left -= len(piece)
                    if not piece:
                        break
                # One byte more than fits, so that the end of the stream and its checksum are always reached.
                found = inflate.decompress(piece, min(total - filled, 2**20) + 1)
                piece = inflate.unconsumed_tail
                if filled + len(found) > total:
                    raise self._damaged(f"{name} holds more than the {total} bytes that were expected")
                content[filled : filled + len(found)] = np.frombuffer(found, np.uint8)
                filled += len(found)
        if filled < total or not inflate.eof:
            raise self._damaged(f"{name} ends after {filled} of {total} bytes")
        return content.data

    def _value(self, content: memoryview, name: str, depth: int) -> Any:
        matrix, place = self._header(content)
        if matrix.kind in _NUMBERS:
            real, place = self._numbers(content, place, matrix.shape, name)
            if not matrix.is_complex:
                return real
            return real + 1j * self._numbers(content, place, matrix.shape, name)[0]
        if matrix.kind == _TEXT:
            codes, _ = self._numbers(content, place, None, name)  # in UTF-8 there may be more of them than letters
            return "".join(chr(code) for code in codes.tolist() if 0 <= code < 0x110000)
        if matrix.kind == _STRUCTURE and math.prod(matrix.shape) == 1:
            if depth > _DEEPEST:
                raise self._damaged(f"{name} is nested more than {_DEEPEST} times")
            return self._fields(content, place, name, depth)
        return None

    def _fields(self, content: memoryview, place: int, name: str, depth: int) -> dict[str, Any]:
        _, data, place = self._element(content, place)
        length = int.from_bytes(data[:4], "little" if self._order == "<" else "big")
        _, data, place = self._element(content, place)
        if not 1 <= length <= len(data) + 1:
            raise self._damaged(f"the names of the fields of {name} cannot be read")
        fields = [_text(data[at : at + length]) for at in range(0, len(data), length)]
        found = {}
        for field in fields:
            kind, data, place = self._element(content, place)
            if kind != MATRIX:
                raise self._damaged(f"{name}.{field} is not a variable")
            found[field] = self._value(data, f"{name}.{field}", depth + 1) if len(data) else None
        return found

    def _numbers(
        self, content: memoryview, place: int, shape: tuple[int, ...] | None, name: str
    ) -> tuple[NDArray[Any], int]:
        kind, data, place = self._element(content, place)
        if kind not in _STORED:
            raise self._damaged(f"{name} holds an element of type {kind}, which is not a number")
        array = np.frombuffer(data, np.dtype(self._order + _STORED[kind]), len(data) // int(_STORED[kind][1]))
        if shape is None:
            return array, place
        if array.size != math.prod(shape):
            raise self._damaged(f"{name} of shape {shape} needs {math.prod(shape)} numbers, but holds {array.size}")
        return array.reshape(shape, order="F"), place

    def _header(self, content: memoryview) -> tuple[_Matrix, int]:
        """Class, shape and name of a matrix, and where its data begin."""
        elements = self._elements(content)
        flags = next(elements)[1]
        word = self._words(flags, 0)[0]
        kind = word & 0xFF
        if kind == _OPAQUE:  # an object of a class: it has a name, and no shape
            return _Matrix(kind, False, (1, 1), _text(next(elements)[1])), len(content)
        _, sizes, _ = next(elements)
        _, name, place = next(elements)
        shape = tuple(np.frombuffer(sizes, self._order + "i4", len(sizes) // 4).tolist())
        if not 1 <= len(shape) <= _MOST_AXES or min(shape) < 0:
            raise self._damaged(f"{_text(name)!r} cannot have the shape {shape}")
        return _Matrix(kind, bool(word & _COMPLEX), shape, _text(name)), place

    def _elements(self, content: memoryview) -> Iterator[tuple[int, memoryview, int]]:
        place = 0
        while True:
            kind, data, place = self._element(content, place)
            yield kind, data, place

    def _element(self, content: memoryview, place: int) -> tuple[int, memoryview, int]:
        """(type, data, where the next one begins); up to four bytes stand beside their type."""
        kind, size = self._words(content, place)
        begin, after = place + 8, place + 8 + -(-size // 8) * 8
        if kind >> 16:
            kind, size, begin, after = kind & 0xFFFF, kind >> 16, place + 4, place + 8
        if begin + size > len(content) or (begin == place + 4 and size > 4):
            raise self._damaged(f"an element of {size} bytes does not fit into its variable")
        return kind, content[begin : begin + size], after

    def _words(self, content: bytes | memoryview, place: int) -> tuple[int, int]:
        if place < 0 or len(content) < place + 8:
            raise self._damaged("it ends in the middle of a variable")
        first, second = np.frombuffer(content, self._order + "u4", 2, place).tolist()
        return first, second

    def _damaged(self, how: str) -> InvalidInputError:
        return InvalidInputError(f"{self.path}: not a readable MATLAB file: {how}")


def _text(data: memoryview) -> str:
    return bytes(data).partition(b"\0")[0].decode("latin-1")
