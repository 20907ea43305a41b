"""Compressed chunks of HDF5 and Zarr: the same numbers as their libraries read, and never more than was declared."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import h5py
import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

from fouriscope.acquisition import hdf5_chunks, open_frames
from fouriscope.acquisition.hdf5_file import own_dataset
from fouriscope.errors import InsufficientMemoryError, InvalidInputError

STACK = np.random.default_rng(5).poisson(100, (6, 20, 30)).astype(np.uint16)
BOMB = bytes(2**22)
CODECS: dict[str, Any] = {
    "zlib": numcodecs.Zlib(), "gzip": numcodecs.GZip(), "bz2": numcodecs.BZ2(), "lzma": numcodecs.LZMA(),
    "zstd": numcodecs.Zstd(), "blosc": numcodecs.Blosc(), "lz4": numcodecs.LZ4(),
}  # fmt: skip
CODECS_3: dict[str, Any] = {"gzip": GzipCodec(), "zstd": ZstdCodec(), "blosc": BloscCodec()}


@pytest.fixture
def questioned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every chunk is one that could fill the memory."""
    monkeypatch.setattr(hdf5_chunks, "UNQUESTIONED", 0)


@pytest.mark.usefixtures("questioned")
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("chunks", [(1, 20, 30), (4, 7, 11), (6, 20, 1)])
@pytest.mark.parametrize("dtype", ["<u2", ">u2", "<f4", "u1"])
def test_hdf5_is_inflated_as_hdf5_does(tmp_path: Path, shuffle: bool, chunks: tuple[int, ...], dtype: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        options: dict[str, Any] = {"chunks": chunks, "compression": "gzip", "shuffle": shuffle, "fillvalue": 7}
        stack = file.create_dataset("y", STACK.shape, dtype, **options)
        plain = np.full(chunks, 3, dtype)
        stack.id.write_direct_chunk((0, 0, 0), plain.tobytes(), filter_mask=3 if shuffle else 1)  # not packed
        stack[1:4, :, 15:] = STACK[1:4, :, 15:]  # some chunks are never written
        expected = stack[()]
        for selection in ((), (2, slice(3, 17), slice(0, 30)), (slice(1, 6), slice(19, 20), slice(5, 25)), (5, 0, 0)):
            ours = own_dataset(file, "y", tmp_path / "a.h5")
            assert isinstance(ours, hdf5_chunks.InflatedDataset)
            np.testing.assert_array_equal(ours[selection], stack[selection])
            assert ours[selection].dtype == stack[selection].dtype
    np.testing.assert_array_equal(np.asarray(open_frames(tmp_path / "a.h5")), expected)


@pytest.mark.usefixtures("questioned")
def test_an_hdf5_chunk_that_unpacks_to_more(tmp_path: Path) -> None:
    whole = zlib.compress(BOMB)
    for name, stored, words in (
        ("more", whole, "more than the 1200 bytes"),
        ("cut", whole[:4000], "more than the 1200 bytes"),
        ("less", zlib.compress(STACK.tobytes()[:1000]) + bytes(3000), "less than the 1200 bytes"),
    ):
        path = tmp_path / f"{name}.h5"
        with h5py.File(path, "w") as file:
            stack = file.create_dataset("y", data=STACK, chunks=(1, 20, 30), compression="gzip")
            stack.id.write_direct_chunk((1, 0, 0), stored)
        frames = open_frames(path)
        np.testing.assert_array_equal(frames[0], STACK[0])
        with pytest.raises(InvalidInputError, match=f"{name}.h5: a chunk of y unpacks to {words}"):
            frames[1]


def test_hdf5_chunks_that_only_hdf5_can_unpack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read if the worst they can do fits into memory; filters without a worst are not used."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("lzf", data=STACK, chunks=(1, 20, 30), compression="lzf")
        file.create_dataset("sum", data=STACK, chunks=(1, 20, 30), compression="gzip", fletcher32=True)
        file.create_dataset("scaled", data=STACK, chunks=(1, 20, 30), scaleoffset=0)
    for name in ("lzf", "sum"):
        np.testing.assert_array_equal(np.asarray(open_frames(path, dataset=name)), STACK)
    with pytest.raises(InvalidInputError, match=r"scaled uses the filter 6, whose memory cannot be bounded.*h5repack"):
        open_frames(path, dataset="scaled")
    with h5py.File(path, "r+") as file:
        file["sum"].id.write_direct_chunk((1, 0, 0), bytes(2**20))
    monkeypatch.setattr("fouriscope.acquisition.input_files.memory_available", lambda: 10**9)
    with pytest.raises(InsufficientMemoryError, match=r"what a chunk of sum can unpack to takes 1\.08 GB"):
        open_frames(path, dataset="sum")


def test_an_hdf5_chunk_that_is_too_long_is_questioned(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        stack = file.create_dataset("y", data=STACK, chunks=(1, 20, 30), compression="gzip")
        stack.id.write_direct_chunk((1, 0, 0), zlib.compress(BOMB) + bytes(2**19))
    with pytest.raises(InvalidInputError, match="a chunk of y unpacks to more than the 1200 bytes"):
        open_frames(tmp_path / "a.h5")[1]


def test_a_virtual_dataset_shows_plain_ones_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = tmp_path / "outside.h5"
    folder = tmp_path / "data"
    folder.mkdir()
    layout = h5py.VirtualLayout(STACK.shape, STACK.dtype)
    layout[:] = h5py.VirtualSource("b.h5", "y", STACK.shape)
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_virtual_dataset("y", layout)
    with h5py.File(folder / "b.h5", "w") as file:
        file.create_dataset("y", data=STACK, chunks=(1, 20, 30), compression="gzip")
    np.testing.assert_array_equal(np.asarray(open_frames(folder / "a.h5")), STACK)
    with h5py.File(folder / "b.h5", "r+") as file:
        file["y"].id.write_direct_chunk((1, 0, 0), bytes(2**20))
    monkeypatch.setattr("fouriscope.acquisition.input_files.memory_available", lambda: 10**9)
    with pytest.raises(InsufficientMemoryError, match=r"b\.h5: what a chunk of y can unpack to"):
        open_frames(folder / "a.h5")
    with h5py.File(outside, "w") as file:
        file["y"] = STACK
    layout[:] = h5py.VirtualSource(str(outside), "y", STACK.shape)
    with h5py.File(folder / "b.h5", "w") as file:
        file.create_virtual_dataset("y", layout)
    with pytest.raises(InvalidInputError, match=r"shows y in b\.h5, which should hold its own numbers"):
        open_frames(folder / "a.h5")


@pytest.mark.parametrize("name", CODECS)
def test_a_chunk_of_zarr_2_that_unpacks_to_more(tmp_path: Path, name: str) -> None:
    path, codec = tmp_path / "a.zarr", CODECS[name]
    array = zarr.create_array(
        str(path), shape=STACK.shape, chunks=(1, 20, 30), dtype="u2", zarr_format=2, compressors=codec
    )
    array[:] = STACK
    np.testing.assert_array_equal(np.asarray(open_frames(path)), STACK)
    (path / "1.0.0").write_bytes(codec.encode(BOMB))
    (path / "2.0.0").write_bytes(codec.encode(STACK[2])[:-9])
    frames = open_frames(path)
    with pytest.raises(InvalidInputError, match=r"a\.zarr: frame 1 .*more than the 1200 bytes"):
        frames[1]
    with pytest.raises(InvalidInputError, match=r"a\.zarr: frame 2 cannot be read"):
        frames[2]


def test_filters_of_zarr_2_may_store_wider_numbers(tmp_path: Path) -> None:
    wider: Any = [numcodecs.Delta("u2", "i4"), numcodecs.CRC32()]
    for codec in (numcodecs.Zlib(), numcodecs.Blosc()):
        options: dict[str, Any] = {"filters": wider, "compressors": codec, "zarr_format": 2, "overwrite": True}
        array = zarr.create_array(
            str(tmp_path / "a.zarr"), shape=STACK.shape, chunks=(1, 20, 30), dtype="u2", **options
        )
        array[:] = STACK
        np.testing.assert_array_equal(np.asarray(open_frames(tmp_path / "a.zarr")), STACK)


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("name", CODECS_3)
def test_a_chunk_of_zarr_3_that_unpacks_to_more(tmp_path: Path, name: str, sharded: bool) -> None:
    path = tmp_path / "a.zarr"
    options: dict[str, Any] = {"chunks": (1, 20, 30), "compressors": CODECS_3[name], "dtype": "u2"}
    array = zarr.create_array(str(path), shape=STACK.shape, shards=(2, 20, 30) if sharded else None, **options)
    array[:] = STACK
    np.testing.assert_array_equal(np.asarray(open_frames(path)), STACK)
    # The chunks of an array that declares more than this one will say it does.
    larger = zarr.create_array(str(tmp_path / "b.zarr"), shape=(2, 200, 3000), **(
        options | {"chunks": (1, 200, 3000), "shards": (2, 200, 3000) if sharded else None}
    ))  # fmt: skip
    larger[:] = 1
    chunk = "c/0/0/0"
    (path / chunk).write_bytes((tmp_path / "b.zarr" / chunk).read_bytes())
    with pytest.raises(InvalidInputError, match=r"a\.zarr: frame 0 .*more than the 2374 bytes"):
        open_frames(path)[0]


def test_zstandard_without_a_length() -> None:
    from fouriscope.acquisition.zarr_codecs import _zstd_size

    assert _zstd_size(numcodecs.Zstd().encode(BOMB)[:32]) == len(BOMB)
    assert _zstd_size(numcodecs.Zstd().encode(bytes(300))[:32]) == 300
    assert _zstd_size(numcodecs.Zstd().encode(bytes(30))[:32]) == 30
    with pytest.raises(ValueError, match="does not say how long"):
        _zstd_size(b"\x28\xb5\x2f\xfd\x00\x58" + bytes(20))
