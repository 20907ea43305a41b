"""Compressed chunks of HDF5, unpacked to their declared size and no further: HDF5 itself sets no limit."""

from __future__ import annotations

import functools
import itertools
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.input_files import UNQUESTIONED, require_room
from fouriscope.errors import InvalidInputError

# How much longer what a filter unpacks can be than what is stored, by HDF5's number of the filter.
_DEFLATE, _SHUFFLE = 1, 2
_GROWTH = {_DEFLATE: 1032, _SHUFFLE: 1, 3: 1, 32000: 88}  # 3 is a checksum (Fletcher), 32000 is LZF
_KEPT = 2**20  # bytes of unpacked chunks, as HDF5 itself keeps them


def bounded(path: Path, name: str, item: Any) -> Any:
    """The dataset, or one that is sliced like it and unpacks its chunks itself, if HDF5 could fill the memory so."""
    if not (filters := _filters(item)):
        return item
    most = most_unpacked(path, name, item)
    plain = item.dtype.kind in "fiu" and item.id.get_type().get_precision() == 8 * item.dtype.itemsize
    if most > UNQUESTIONED and plain and filters in ((_DEFLATE,), (_SHUFFLE, _DEFLATE)):
        return InflatedDataset(path, name, item, shuffled=len(filters) == 2)
    require_room(path, f"what a chunk of {name} can unpack to", most)
    return item


def most_unpacked(path: Path, name: str, item: Any) -> int:
    """Bytes that the longest chunk of a dataset can unpack to, whatever is in it."""
    filters = _filters(item)
    if unknown := [number for number in filters if number not in _GROWTH]:
        raise InvalidInputError(
            f"{path}: {name} uses the filter {unknown[0]}, whose memory cannot be bounded, so it is refused; deflate, "
            "shuffle, LZF and Fletcher's checksum are allowed: rewrite the file, as with h5repack -f SHUF -f GZIP=1"
        )
    return math.prod(_GROWTH[number] for number in filters) * _largest_chunk(item) if filters else 0


def _filters(item: Any) -> tuple[int, ...]:
    settings = item.id.get_create_plist()
    return tuple(settings.get_filter(place)[0] for place in range(settings.get_nfilters()))


def _largest_chunk(item: Any) -> int:
    """Bytes of the longest chunk as it is stored."""
    sizes = [0]
    item.id.chunk_iter(lambda chunk: sizes.append(chunk.size))
    return max(sizes)


class InflatedDataset:
    """Numbers in deflated chunks, sliced like the dataset of h5py that they are."""

    def __init__(self, path: Path, name: str, item: Any, *, shuffled: bool) -> None:
        self.shape, self.dtype, self.chunks = item.shape, item.dtype, item.chunks
        self.size, self.attrs = item.size, item.attrs
        self._path, self._name, self._item, self._shuffled = path, name, item, shuffled
        self._bytes = math.prod(item.chunks) * item.dtype.itemsize
        self._chunk = functools.lru_cache(_KEPT // self._bytes)(self._read_chunk)

    def __getitem__(self, selection: tuple[int | slice, ...]) -> NDArray[Any]:
        chosen = selection or (slice(None),) * len(self.shape)
        wanted = [
            range(*(slice(place, place + 1) if isinstance(place, int) else place).indices(size))
            for place, size in zip(chosen, self.shape, strict=True)
        ]
        sides = list(zip(wanted, self.chunks, strict=True))
        whole = tuple(0 if isinstance(place, int) else slice(None) for place in chosen)
        if all(w.start % side == 0 and len(w) == side for w, side in sides):  # one chunk, and nobody else wants it
            return np.require(self._read_chunk(tuple(w.start for w in wanted))[whole], requirements="W")
        part = np.empty([len(places) for places in wanted], self.dtype)
        for corner in itertools.product(*(range(w.start // side * side, w.stop, side) for w, side in sides)):
            spans = [
                (max(w.start, start), min(w.stop, start + side)) for (w, side), start in zip(sides, corner, strict=True)
            ]
            there = tuple(
                slice(first - w.start, last - w.start) for (first, last), w in zip(spans, wanted, strict=True)
            )
            here = tuple(slice(first - at, last - at) for (first, last), at in zip(spans, corner, strict=True))
            part[there] = self._chunk(corner)[here]
        return part[whole]

    def _read_chunk(self, corner: tuple[int, ...]) -> NDArray[Any]:
        import numcodecs

        if self._item.id.get_chunk_info_by_coord(corner).byte_offset is None:
            return np.full(self.chunks, self._item.fillvalue, self.dtype)
        left_out, content = self._item.id.read_direct_chunk(corner)
        deflated, shuffled = not left_out >> int(self._shuffled) & 1, self._shuffled and not left_out & 1
        if deflated:
            stream = zlib.decompressobj()
            content = stream.decompress(content, self._bytes + 1)
            if len(content) <= self._bytes and not stream.eof:
                raise self._wrong_size("less")
        if len(content) != self._bytes:
            raise self._wrong_size("less" if len(content) < self._bytes else "more")
        if shuffled:  # first all first bytes, then all second ones
            content = numcodecs.Shuffle(self.dtype.itemsize).decode(content)
        return np.frombuffer(content, self.dtype).reshape(self.chunks)

    def _wrong_size(self, how: str) -> InvalidInputError:
        return InvalidInputError(
            f"{self._path}: a chunk of {self._name} unpacks to {how} than the {self._bytes} bytes that were expected; "
            "the file is damaged, or made to fill the memory"
        )
