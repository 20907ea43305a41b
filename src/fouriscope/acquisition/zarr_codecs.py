"""Codecs of Zarr that unpack a chunk to the size that its array declares and no further."""

from __future__ import annotations

import asyncio
import bz2
import lzma
import math
import zlib
from collections.abc import Callable
from typing import Any

import numcodecs
import numpy as np
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec
from zarr.registry import register_codec

from fouriscope.acquisition.input_files import UNQUESTIONED

_STREAMS: dict[str, Callable[[], Any]] = {
    "zlib": zlib.decompressobj,
    "gzip": lambda: zlib.decompressobj(31),
    "bz2": bz2.BZ2Decompressor,
    "lzma": lambda: lzma.LZMADecompressor(memlimit=UNQUESTIONED),
}
# Where a chunk says at its beginning how long it is, and no more is unpacked.
_DECLARED: dict[str, Callable[[bytes], int]] = {
    "blosc": lambda head: int.from_bytes(head[4:8], "little"),
    "lz4": lambda head: int.from_bytes(head[:4], "little"),
    "zstd": lambda head: _zstd_size(head),
}
COMPRESSORS = {*_STREAMS, *_DECLARED}


def unpacked(codec: Any, most: int, packed: Any, out: Any = None) -> Any:
    """``codec.decode(packed, out)`` of a chunk of at most ``most`` bytes; ``codec`` is one of numcodecs, and packs."""
    name = codec.codec_id
    if name in _DECLARED:
        _require(_DECLARED[name](bytes(memoryview(packed)[:32])), most)
        return type(codec).decode(codec, packed, out)
    stream = _STREAMS[name]()
    content = stream.decompress(bytes(packed), most + 1)
    _require(len(content), most)
    if not stream.eof:
        raise ValueError("a chunk ends too soon")
    return np.frombuffer(content, np.uint8)


def _require(size: int, most: int) -> None:
    if size > most:
        raise ValueError(
            f"a chunk unpacks to more than the {most} bytes that were expected; it is damaged, or made to fill the "
            "memory"
        )


def _zstd_size(head: bytes) -> int:
    """The length of the content that a frame of Zstandard declares (RFC 8878, 3.1.1.1)."""
    if len(head) < 6 or head[:4] != b"\x28\xb5\x2f\xfd":
        raise ValueError("a chunk is not Zstandard, as its array says")
    flags = head[4]
    alone = flags >> 5 & 1  # then there is no byte for the window
    width = (alone, 2, 4, 8)[flags >> 6]
    if width == 0:
        raise ValueError("a chunk does not say how long it is unpacked; write the array again with another codec")
    start = 6 - alone + (0, 1, 2, 4)[flags & 3]
    return int.from_bytes(head[start : start + width], "little") + (256 if width == 2 else 0)


class _Bounded:
    """Takes the place of a codec of Zarr 3 for reading."""

    unpacks: Any

    def _decode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        size = math.prod(chunk_spec.shape) * chunk_spec.dtype.to_native_dtype().itemsize
        # Where two codecs follow each other, what the second packs may have become a little longer in the first.
        content = unpacked(self.unpacks, size + size // 8 + 1024, chunk_bytes.as_numpy_array())
        return chunk_spec.prototype.buffer.from_array_like(np.frombuffer(content, np.uint8))

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._decode_sync, chunk_bytes, chunk_spec)


class BoundedGzip(_Bounded, GzipCodec):  # type: ignore[misc]
    unpacks = numcodecs.GZip()


class BoundedZstd(_Bounded, ZstdCodec):  # type: ignore[misc]
    unpacks = numcodecs.Zstd()


class BoundedBlosc(_Bounded, BloscCodec):  # type: ignore[misc]
    unpacks = numcodecs.Blosc()


BOUNDED: dict[str, str] = {}
"""Settings of Zarr under which arrays are opened with these codecs."""
for _codec in (BoundedGzip, BoundedZstd, BoundedBlosc):
    register_codec(_codec.unpacks.codec_id, _codec)
    BOUNDED[f"codecs.{_codec.unpacks.codec_id}"] = f"{__name__}.{_codec.__name__}"
