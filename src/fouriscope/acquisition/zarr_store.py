"""Zarr arrays of other people: opened only if their chunks can be read, and with no codec that runs code."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from fouriscope.acquisition.input_files import require_files_below, require_room
from fouriscope.errors import InvalidInputError

# Of what numcodecs registers, the ones that store arrays of numbers. Its "pickle" runs whatever a chunk says.
_CODECS = {
    *("blosc", "zlib", "gzip", "zstd", "lz4", "bz2", "lzma", "shuffle", "delta", "bitround", "packbits"),
    *("fixedscaleoffset", "quantize", "astype", "crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"),
}


def open_node(path: Path) -> Any:
    """The array or group at ``path``, which is a folder of files and of nothing else."""
    import zarr

    _require_folder(path)
    return zarr.open(str(path), mode="r")


def open_array(path: Path, name: str | None = None) -> Any:
    """The array at ``path``, or the one called ``name`` in it."""
    import zarr

    _require_folder(path)
    array = zarr.open_array(str(path), path=name or "", mode="r")
    metadata = array.metadata
    used = [*(getattr(metadata, "filters", None) or ()), getattr(metadata, "compressor", None)]
    foreign = {codec.codec_id for codec in used if hasattr(codec, "codec_id")} - _CODECS
    if foreign:
        raise InvalidInputError(f"{path}: the codec {min(foreign)!r} is not for arrays of numbers, and is not used")
    if min(array.chunks, default=1) < 1 or (array.shards and min(array.shards) < 1):
        raise InvalidInputError(f"{path}: chunks have at least one number along each axis, got {array.chunks}")
    require_room(path, "a chunk", math.prod(array.chunks) * array.dtype.itemsize)
    return array


def _require_folder(path: Path) -> None:
    if not path.is_dir():
        raise InvalidInputError(f"{path}: a Zarr array is a folder, this is none")
    require_files_below(path)
