"""Zarr arrays from other people: opened only if their chunks can be read, and with no codec that runs code."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fouriscope.acquisition.input_files import require_files_below, require_room
from fouriscope.errors import InvalidInputError

# The codecs of numcodecs that turn numbers into numbers. Its "pickle" runs any code that a chunk holds.
_FILTERS = {
    *("shuffle", "delta", "bitround", "packbits", "fixedscaleoffset", "quantize", "astype"),
    *("crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"),
}
_WIDEST = 8
_CODECS_3 = {"bytes", "endian", "transpose", "gzip", "zstd", "blosc", "crc32c", "sharding_indexed"}


def open_node(path: Path) -> Any:
    """The array or group at ``path``, which is a folder of files and of nothing else."""
    import zarr

    _require_folder(path)
    return zarr.open(str(path), mode="r")


def open_array(path: Path, name: str | None = None) -> Any:
    """The array at ``path``, or the one called ``name`` in it. No chunk of it unpacks to more than it declares."""
    import zarr

    from fouriscope.acquisition.zarr_codecs import BOUNDED, COMPRESSORS, unpacked

    _require_folder(path)
    with zarr.config.set(BOUNDED):
        array = zarr.open_array(str(path), path=name or "", mode="r")
    metadata = array.metadata
    if metadata.zarr_format == 2:
        packs = metadata.compressor
        foreign = {codec.codec_id for codec in metadata.filters or ()} - _FILTERS
        foreign |= ({packs.codec_id} if packs else set()) - COMPRESSORS
    else:
        foreign = set(_names(metadata.codecs)) - _CODECS_3
    if foreign:
        raise InvalidInputError(
            f"{path}: the codec {min(foreign)!r} is refused: it is not for arrays of numbers, or its memory cannot be "
            "bounded"
        )
    if min(array.chunks, default=1) < 1 or (array.shards and min(array.shards) < 1):
        raise InvalidInputError(f"{path}: chunks must have at least one number along each axis, got {array.chunks}")
    size = math.prod(array.chunks) * array.dtype.itemsize
    require_room(path, "a chunk", size)
    if metadata.zarr_format == 2 and packs:
        # Filters may have made larger numbers of those that were packed, and added a checksum.
        packs.decode = functools.partial(unpacked, packs, _WIDEST * size + 1024 if metadata.filters else size)
    return array


def _names(codecs: Any) -> Iterator[str]:
    """Of codecs, and of those of the chunks within a shard."""
    for codec in codecs:
        yield codec.to_dict()["name"]
        yield from _names(getattr(codec, "codecs", ()))
        yield from _names(getattr(codec, "index_codecs", ()))


def _require_folder(path: Path) -> None:
    if not path.is_dir():
        raise InvalidInputError(f"{path}: a Zarr array is a folder, but this is a file")
    require_files_below(path)
