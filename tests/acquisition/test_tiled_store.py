"""Frames rewritten for tiles are the same bit for bit; damage is found, and a failure leaves nothing behind."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import zarr
from numpy.typing import NDArray

from fouriscope.acquisition import ArrayFrames, FolderFrames, ZarrFrames, open_frames
from fouriscope.acquisition import tiled_store as module
from fouriscope.acquisition.digest import checksum
from fouriscope.acquisition.tile_layout import MOST_FRAMES, TileLayout
from fouriscope.acquisition.tiled_store import verify_tiled, write_tiled
from fouriscope.errors import InvalidInputError
from tests.acquisition.test_storage import folder_of

RNG = np.random.default_rng(11)


def random_stack(shape: tuple[int, int, int], dtype: str = "uint16") -> NDArray[Any]:
    return (200 * RNG.random(shape)).astype(dtype)


def everything(path: Path) -> NDArray[Any]:
    frames = open_frames(path)
    return np.stack([frames.frame(index) for index in range(frames.shape[0])])


def shard_files(path: Path) -> list[Path]:
    return sorted(file for file in (path / "c").rglob("*") if file.is_file())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", ">u2", "float32", ">f8"])
@pytest.mark.parametrize("shape", [(1, 64, 64), (5, 7, 9), (37, 65, 130), (3, 513, 70)])
def test_the_same_bit_for_bit(tmp_path: Path, shape: tuple[int, int, int], dtype: str) -> None:
    stack, path = random_stack(shape, dtype), tmp_path / "a.zarr"
    written = write_tiled(ArrayFrames(stack), path)
    read = everything(path)
    assert read.dtype == stack.dtype.newbyteorder("=")
    np.testing.assert_array_equal(read, stack)
    assert written == checksum(ArrayFrames(stack)) == checksum(open_frames(path)) == verify_tiled(path)
    assert zarr.open_array(str(path)).attrs.asdict() == {"fouriscope_format": 1, "fouriscope_checksum": written}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.zarr"]


@pytest.mark.parametrize("memory", [40_000, "60kB", "1MB"])
def test_frames_of_a_window_whatever_the_memory(tmp_path: Path, memory: int | str) -> None:
    stack, path = random_stack((23, 70, 50), "uint8"), tmp_path / "a.zarr"
    write_tiled(ArrayFrames(stack), path, memory=memory)
    depth = zarr.open_array(str(path)).chunks[0]
    frames = open_frames(path, roi=(60, 3, 9, 40), memory="1MB")
    np.testing.assert_array_equal([frames.frame(index) for index in range(23)], stack[:, 60:69, 3:43])
    stored = ZarrFrames(path)
    assert stored.together(depth) == range(depth, min(2 * depth, 23))  # the inner chunk, not the shard
    np.testing.assert_array_equal(stored.read_together(range(1, 9)), stack[1:9])


def test_not_a_number_stays_what_it_is(tmp_path: Path) -> None:
    stack = random_stack((2, 9, 9), "float32")
    stack[1, 2, 3:6] = np.nan, np.inf, -0.0
    write_tiled(ArrayFrames(stack), tmp_path / "a.zarr")
    assert everything(tmp_path / "a.zarr").tobytes() == stack.tobytes()


@pytest.mark.parametrize(("count", "depth"), [(1, 1), (32, 32), (33, 17), (93, 31), (293, 30)])
def test_groups_of_frames_are_even(count: int, depth: int) -> None:
    layout = TileLayout.within(10**9, (count, 600, 64), np.dtype(np.uint16))
    assert layout.depth == depth <= MOST_FRAMES
    assert [index for group in layout.groups() for index in group] == list(range(count))
    assert layout.shards == (depth, 512, 64)
    seen = np.zeros((600, 64), int)
    for window in layout.windows():
        seen[window] += 1
    assert (seen == 1).all()


# ---------------------------------------------------------------------------------------------------------------------
# Memory, and how often the source is read


@pytest.mark.slow
def test_memory_is_bounded_and_less_makes_fewer_frames_a_chunk(tmp_path: Path) -> None:
    stack = RNG.integers(0, 2**16, (40, 256, 300), np.uint16)  # random bits: nothing is saved by compression
    np.save(tmp_path / "a.npy", stack)
    del stack
    frames = open_frames(tmp_path / "a.npy")
    write_tiled(frames, tmp_path / "warm.zarr")  # modules and threads are not what is measured
    depths = []
    for memory in (1_500_000, 3_000_000, 8_000_000):
        path = tmp_path / f"{memory}.zarr"
        tracemalloc.start()
        try:
            write_tiled(frames, path, memory=memory)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        # Some 200 kB are Python objects: keys, tasks and metadata of Zarr, whatever the frames.
        assert peak < memory + 300_000
        depths.append(zarr.open_array(str(path)).chunks[0])
    assert depths[0] < depths[1] < depths[2]


def test_too_little_memory_says_how_much_is_enough(tmp_path: Path) -> None:
    frames = ArrayFrames(random_stack((3, 64, 64)))  # 8192 bytes each: 4 of the source, 1 in the block, 3 in Zarr
    with pytest.raises(InvalidInputError, match=r"65.5 kB is not enough .* at least 65.5 kB"):
        write_tiled(frames, tmp_path / "a.zarr", memory=8 * 8192 - 1)
    assert not list(tmp_path.iterdir())
    write_tiled(frames, tmp_path / "a.zarr", memory=8 * 8192)


class CountedFolder(FolderFrames):
    def __init__(self, path: Path) -> None:
        self.read: Counter[int] = Counter()
        super().__init__(path)

    def _read(self, index: int, rows: slice, columns: slice) -> NDArray[Any]:
        self.read[index] += 1
        return super()._read(index, rows, columns)


class CountedArray(ArrayFrames):
    def __init__(self, array: NDArray[Any]) -> None:
        super().__init__(array)
        self.read: Counter[int] = Counter()

    def frame(self, index: int) -> NDArray[Any]:
        self.read[index] += 1
        return super().frame(index)


def test_the_source_is_read_once(tmp_path: Path) -> None:
    stack = random_stack((12, 20, 30))
    for frames in (CountedFolder(folder_of(tmp_path / "f", ".tif", stack)), CountedArray(stack)):
        frames.read.clear()  # opening may have looked at one
        write_tiled(frames, tmp_path / "a.zarr", memory=20_000, force=True)
        assert zarr.open_array(str(tmp_path / "a.zarr")).chunks[0] < 12
        assert frames.read == dict.fromkeys(range(12), 1)


def test_progress_counts_frames(tmp_path: Path) -> None:
    told: list[tuple[str, int]] = []
    write_tiled(
        ArrayFrames(random_stack((7, 20, 20))),
        tmp_path / "a.zarr",
        memory=20_000,
        progress=lambda doing, done: told.append((doing, done)),
    )
    assert told == [(doing, done) for doing in ("writing", "verifying") for done in range(1, 8)]


def test_frames_that_differ_are_refused(tmp_path: Path) -> None:
    class Changing:
        shape = (2, 8, 8)

        def frame(self, index: int) -> NDArray[Any]:
            return np.zeros((8, 8), np.uint8 if index else np.uint16)

    with pytest.raises(InvalidInputError, match=r"must be uint16 .* got uint8 .* for frame 1"):
        write_tiled(Changing(), tmp_path / "a.zarr")
    with pytest.raises(InvalidInputError, match="at most 64 bits were expected, got"):
        write_tiled(ArrayFrames(np.zeros((1, 4, 4), np.longdouble)), tmp_path / "a.zarr")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------------------------------------------------------
# Damage on the disk


class Stored(NamedTuple):
    path: Path
    stack: NDArray[Any]


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    """Four shards, one of them zeros, of which Zarr would not write a file by itself."""
    stack = random_stack((6, 520, 530), "uint8")
    stack[:, :512, 512:] = 0
    write_tiled(ArrayFrames(stack), tmp_path / "a.zarr")
    return Stored(tmp_path / "a.zarr", stack)


@pytest.mark.slow
def test_a_flipped_bit_is_an_error_and_never_data(stored: Stored) -> None:
    files = shard_files(stored.path)
    assert len(files) == 4
    flips = 0
    for file in files:
        content = file.read_bytes()
        for place in {0, len(content) - 1, *RNG.integers(0, len(content), 12).tolist()}:
            damaged = bytearray(content)
            damaged[place] ^= 1 << int(RNG.integers(8))
            file.write_bytes(damaged)
            with pytest.raises(InvalidInputError, match="cannot be read"):
                everything(stored.path)
            flips += 1
        file.write_bytes(content)
    assert flips > 40
    np.testing.assert_array_equal(everything(stored.path), stored.stack)


@pytest.mark.parametrize("damage", [lambda file: os.truncate(file, 0), lambda file: os.truncate(file, 100), os.unlink])
def test_a_short_or_missing_file_is_an_error_and_never_zeros(stored: Stored, damage: Callable[[Path], None]) -> None:
    elsewhere = open_frames(stored.path, roi=(0, 0, 100, 100))
    for file, roi in zip(
        shard_files(stored.path)[1:], [(0, 512, 9, 9), (512, 0, 8, 9), (500, 500, 20, 30)], strict=True
    ):
        frames, before = ZarrFrames(stored.path, roi=roi), file.read_bytes()
        damage(file)
        with pytest.raises(InvalidInputError, match=r"a\.zarr: frame 2 cannot be read"):
            frames.frame(2)
        with pytest.raises(InvalidInputError, match=r"a\.zarr: one of the frames 0 to 5 cannot be read"):
            frames.read_together(range(6))
        np.testing.assert_array_equal(elsewhere.frame(3), stored.stack[3, :100, :100])
        with pytest.raises(InvalidInputError, match="cannot be read"):
            verify_tiled(stored.path)
        file.write_bytes(before)
    assert verify_tiled(stored.path) == checksum(ArrayFrames(stored.stack))


def test_the_missing_file_is_named(stored: Stored) -> None:
    shard_files(stored.path)[1].unlink()
    with pytest.raises(InvalidInputError, match=r"frame 0 cannot be read \(its file c/0/0/1 is missing"):
        open_frames(stored.path).frame(0)


def test_a_format_of_the_future_is_refused(stored: Stored) -> None:
    zarr.open_array(str(stored.path)).attrs["fouriscope_format"] = 2
    with pytest.raises(InvalidInputError, match="tiles of format 1 were expected, got 2"):
        open_frames(stored.path)


def test_what_is_read_back_must_be_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create = module._create

    class Forgetful:
        """A disk that changes a pixel, and the CRC of its chunk with it."""

        def __init__(self, array: Any) -> None:
            self.array, self.attrs = array, array.attrs

        def __setitem__(self, place: Any, values: NDArray[Any]) -> None:
            values = values.copy()
            values[-1, -1, -1] ^= 1
            self.array[place] = values

    monkeypatch.setattr(module, "_create", lambda *arguments: Forgetful(create(*arguments)))
    with pytest.raises(InvalidInputError, match="but read back with sha256:"):
        write_tiled(ArrayFrames(random_stack((3, 20, 20))), tmp_path / "a.zarr")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------------------------------------------------------
# Whole or not at all


@pytest.mark.parametrize("doing", ["writing", "verifying"])
@pytest.mark.parametrize("existing", [False, True])
def test_an_interrupt_leaves_what_was_there(tmp_path: Path, doing: str, existing: bool) -> None:
    path, before = tmp_path / "a.zarr", random_stack((2, 20, 20))
    if existing:
        write_tiled(ArrayFrames(before), path)

    def interrupt(now: str, done: int) -> None:
        if (now, done) == (doing, 5):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_tiled(ArrayFrames(random_stack((9, 20, 20))), path, memory=20_000, progress=interrupt, force=True)
    assert [entry.name for entry in tmp_path.iterdir()] == (["a.zarr"] if existing else [])
    if existing:
        np.testing.assert_array_equal(everything(path), before)


def test_an_interrupt_waits_for_what_zarr_is_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a thread of Zarr would make the folder anew while it is removed."""
    set_item, finished, main_thread = zarr.Array.__setitem__, threading.Event(), threading.get_ident()

    def slow(array: Any, place: Any, values: Any) -> None:
        signal.pthread_kill(main_thread, signal.SIGINT)  # which wakes it, as Ctrl-C does
        time.sleep(0.3)
        set_item(array, place, values)
        finished.set()

    monkeypatch.setattr(zarr.Array, "__setitem__", slow)
    with pytest.raises(KeyboardInterrupt):
        write_tiled(ArrayFrames(random_stack((9, 20, 20))), tmp_path / "a.zarr")
    assert finished.is_set()
    assert not list(tmp_path.iterdir())


def test_an_existing_target_is_replaced_only_on_demand(tmp_path: Path) -> None:
    path, first, second = tmp_path / "a.zarr", random_stack((2, 20, 20)), random_stack((3, 9, 9))
    write_tiled(ArrayFrames(first), path)
    with pytest.raises(InvalidInputError, match=r"a\.zarr exists; choose another name"):
        write_tiled(ArrayFrames(second), path)
    np.testing.assert_array_equal(everything(path), first)
    (tmp_path / ".a.zarr.part" / "c").mkdir(parents=True)  # of a writer that was killed
    write_tiled(ArrayFrames(second), path, force=True)
    np.testing.assert_array_equal(everything(path), second)
    write_tiled(open_frames(path), path, force=True)  # onto itself: it is read before it is replaced
    np.testing.assert_array_equal(everything(path), second)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.zarr"]


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames, path = ArrayFrames(random_stack((20, 20, 20))), tmp_path / "a.zarr"
    monkeypatch.setattr(shutil, "disk_usage", lambda where: shutil._ntuple_diskusage(10**6, 10**6 - 3999, 3999))
    with pytest.raises(InvalidInputError, match=r"16 kB of frames.* into the 4 kB that are free; make room"):
        write_tiled(frames, path)
    monkeypatch.undo()
    set_item = zarr.Array.__setitem__

    def fills_up(array: Any, place: Any, values: Any) -> None:
        if place[0].start:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        set_item(array, place, values)

    monkeypatch.setattr(zarr.Array, "__setitem__", fills_up)
    with pytest.raises(InvalidInputError, match=r"a\.zarr: cannot be written \(No space left on device\), nothing"):
        write_tiled(frames, path, memory=20_000)
    assert not list(tmp_path.iterdir())
    with pytest.raises(InvalidInputError, match=r"cannot be written \(No such file or directory\)"):
        write_tiled(frames, tmp_path / "no" / "a.zarr")


def test_a_source_that_breaks_leaves_nothing(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", ".tif", random_stack((12, 20, 30)))
    frames = open_frames(folder)
    (folder / "led_9.tif").write_bytes(b"II*\0")
    with pytest.raises(InvalidInputError, match=r"led_9\.tif"):
        write_tiled(frames, tmp_path / "a.zarr", memory=20_000)
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]
