"""Streamed frames are the stored frames, within their budget, each read as seldom as can be."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fouriscope.acquisition import (
    Acquisition,
    ArrayFrames,
    CorrectedFrames,
    Corrections,
    FrameMasks,
    StreamedFrames,
    open_frames,
    stream_below,
    survey_frames,
)
from fouriscope.acquisition.byte_sizes import parse_bytes
from fouriscope.acquisition.frame_cache import FrameCache
from fouriscope.errors import InvalidInputError
from tests.conftest import LEDS, OPTICS

COUNT, ROWS, COLUMNS = 40, 6, 5
STACK = np.random.default_rng(0).integers(0, 4096, (COUNT, ROWS, COLUMNS)).astype(np.uint16)
FRAME = STACK[0].nbytes


class Counting(ArrayFrames):
    """Frames in memory that count how often each was asked for, and can be held up or broken."""

    def __init__(self, array: NDArray[Any]) -> None:
        super().__init__(array)
        self.dtype = array.dtype
        self.asked: Counter[int] = Counter()
        self.gate = threading.Event()
        self.gate.set()
        self.broken: set[int] = set()

    def frame(self, index: int) -> NDArray[Any]:
        assert self.gate.wait(30)
        self.asked[index] += 1
        if index in self.broken:
            raise InvalidInputError(f"frame {index} is broken")
        return super().frame(index)


def until(condition: Callable[[], bool]) -> None:
    """Wait for the background thread; a test that waits in vain fails."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "the background thread did not do it"
        time.sleep(0.001)


def streamed(frames: int, source: ArrayFrames | None = None) -> StreamedFrames:
    return StreamedFrames(source or Counting(STACK), frames * FRAME)


# ---------------------------------------------------------------------------------------------------------------------
# Values and budget


@settings(deadline=None, max_examples=30)
@given(
    room=st.integers(2, COUNT + 3),
    orders=st.lists(st.lists(st.integers(0, COUNT - 1), max_size=60), min_size=1, max_size=4),
    hinted=st.booleans(),
)
def test_values_are_those_of_the_stack_whatever_the_order_and_the_budget(
    room: int, orders: list[list[int]], hinted: bool
) -> None:
    with streamed(room) as frames:
        for order in orders:
            if hinted:
                frames.prefetch(order)
            for index in order:
                np.testing.assert_array_equal(frames.frame(index), STACK[index])
                assert frames.nbytes <= room * FRAME
        assert frames.frame(0).dtype == STACK.dtype


def test_a_frame_is_the_callers_own() -> None:
    with streamed(5) as frames:
        frames.frame(3)[:] = 0
        np.testing.assert_array_equal(frames.frame(3), STACK[3])
        assert frames.reads == 1


def test_a_pass_after_a_pass_reads_only_what_did_not_fit() -> None:
    source, room = Counting(STACK), 16
    with streamed(room, source) as frames:
        for turn in range(4):
            # Planned, not prefetched: what the background thread reads too soon depends on the load of the machine.
            frames._reader.cache.plan([*range(COUNT), *range(COUNT)])
            for index in range(COUNT):
                frames.frame(index)
            # One slot is for the frame being read; the others keep theirs from pass to pass.
            assert frames.reads == COUNT + turn * (COUNT - (room - 1))
    assert sum(source.asked.values()) == frames.reads


def test_a_stack_that_fits_is_read_once() -> None:
    source = Counting(STACK)
    with streamed(COUNT + 1, source) as frames:
        for _ in range(3):
            frames.prefetch(range(COUNT))
            for index in np.random.default_rng(1).permutation(COUNT):
                frames.frame(int(index))
        assert not frames.wants_hints
    assert set(source.asked.values()) == {1}


@pytest.mark.parametrize("memory", [1, 2 * FRAME - 1])
def test_a_budget_too_small_says_what_is_needed(memory: int) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot hold two frames of 6 × 5 uint16.*at least 120 bytes"):
        StreamedFrames(ArrayFrames(STACK), memory)


def test_frames_that_do_not_exist() -> None:
    with streamed(5) as frames:
        for wrong in (-1, COUNT):
            with pytest.raises(InvalidInputError, match="frames are 0 to 39, got"):
                frames.frame(wrong)
            with pytest.raises(InvalidInputError, match="frames are 0 to 39, got"):
                frames.prefetch([0, wrong])


@pytest.mark.parametrize("text", ["", "MB", "64 XB", "-1MB", "0", "1e3", "64MB 3", "nan"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(InvalidInputError, match="such as 64MB"):
        parse_bytes(text)


def test_sizes_as_people_write_them() -> None:
    assert [parse_bytes(text) for text in ("2GB", "512MiB", "1.5kB", "7", " 7 b ", "1tib")] == [
        *(2 * 10**9, 512 * 2**20, 1500, 7, 7, 2**40)
    ]


# ---------------------------------------------------------------------------------------------------------------------
# What is kept


def test_the_cache_drops_what_is_wanted_latest() -> None:
    cache = FrameCache(STACK.shape, STACK.dtype, 3)
    cache.plan([5, 6, 7, 5, 8, 7])
    for index in (7, 5, 6):
        cache.put(index, STACK[index])
    cache.put(8, STACK[8])  # wanted after all of them
    assert cache.take(8) is None
    assert cache.upcoming(set()) == (8, 4)
    assert cache.take(5) is not None  # now wanted at place 3
    assert cache.take(6) is not None  # not wanted any more, but in somebody's hands
    assert not cache.make_room(4)
    assert cache.take(7) is not None  # wanted again at place 5
    assert cache.make_room(4)
    cache.put(8, STACK[8])
    assert cache.take(6) is None
    assert cache.upcoming(set()) is None


def test_unplanned_frames_go_first_and_the_least_recently_used_of_them() -> None:
    cache = FrameCache(STACK.shape, STACK.dtype, 3)
    for index in (1, 2, 3):
        cache.put(index, STACK[index])
    for index in (2, 1, 3):
        cache.take(index)
    cache.plan([2, 9])
    cache.put(9, STACK[9])
    assert cache.take(1) is None
    assert cache.take(3) is not None
    assert cache.take(2) is not None


# ---------------------------------------------------------------------------------------------------------------------
# The background thread


def test_frames_are_read_before_they_are_asked_for() -> None:
    source = Counting(STACK)
    with streamed(10, source) as frames:
        frames.prefetch([30, 20, 10])
        until(lambda: frames.reads == 3)
        assert list(source.asked) == [30, 20, 10]
        frames.frame(10)
        assert (frames.reads, frames.hits) == (3, 1)


def test_the_thread_stops_where_room_ends_and_goes_on_when_there_is_some() -> None:
    source = Counting(STACK)
    with streamed(5, source) as frames:  # four are kept
        frames.prefetch(range(10))
        until(lambda: frames.reads == 4)
        time.sleep(0.02)
        assert frames.reads == 4, "what is wanted sooner must not make room"
        frames.frame(0)
        frames.frame(1)  # now frame 0 is no longer in use
        until(lambda: frames.reads == 5)
        assert sorted(source.asked) == list(range(5))


def test_a_frame_under_way_is_waited_for_and_not_read_again() -> None:
    source = Counting(STACK)
    source.gate.clear()
    with streamed(10, source) as frames:
        frames.prefetch([7])
        got: list[NDArray[Any]] = []
        callers = [threading.Thread(target=lambda: got.append(frames.frame(7))) for _ in range(3)]
        for caller in callers:
            caller.start()
        source.gate.set()
        for caller in callers:
            caller.join(30)
        assert source.asked == {7: 1}
        assert all(np.array_equal(image, STACK[7]) for image in got)
        assert len(got) == 3


def test_reading_ahead_goes_on_after_somebody_had_to_wait() -> None:
    """Who waits for the frame that is being read wakes the thread when he has it."""
    source = Counting(STACK)
    source.gate.clear()
    with streamed(10, source) as frames:
        frames.prefetch(list(range(8)))
        until(lambda: 0 in frames._reader._busy)  # or whoever asks for it would read it
        waiting = threading.Thread(target=lambda: frames.frame(0))
        waiting.start()
        until(lambda: frames._reader._waiting > 0)
        source.gate.set()
        waiting.join(30)
        until(lambda: len(source.asked) == 8)


def test_an_error_is_raised_by_the_frame_it_belongs_to() -> None:
    source = Counting(STACK)
    source.broken = {2}
    with streamed(10, source) as frames:
        frames.prefetch([1, 2, 3])
        until(lambda: sum(source.asked.values()) == 3)
        np.testing.assert_array_equal(frames.frame(1), STACK[1])
        np.testing.assert_array_equal(frames.frame(3), STACK[3])
        with pytest.raises(InvalidInputError, match="frame 2 is broken"):
            frames.frame(2)
        source.broken.clear()
        np.testing.assert_array_equal(frames.frame(2), STACK[2])


def test_many_threads_read_at_once() -> None:
    with streamed(7) as frames:
        wrong: list[int] = []

        def read(seed: int) -> None:
            for index in np.random.default_rng(seed).integers(0, COUNT, 300):
                if index % 50 == 0:
                    frames.prefetch(np.random.default_rng(seed).integers(0, COUNT, 20))
                if not np.array_equal(frames.frame(int(index)), STACK[index]):
                    wrong.append(int(index))

        threads = [threading.Thread(target=read, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        assert not wrong


def alive() -> set[threading.Thread]:
    """Those of other tests may end at any time: compare, do not count."""
    return {thread for thread in threading.enumerate() if thread.name == "fouriscope-frames"}


def test_nothing_is_left_behind() -> None:
    before = alive()
    frames = streamed(10)
    frames.prefetch([1, 2, 3])
    frames.close()
    assert alive() <= before
    assert frames.nbytes == 0
    np.testing.assert_array_equal(frames.frame(2), STACK[2])  # closed, not dead
    frames.prefetch([4])
    ghost = weakref.ref(frames)
    del frames
    gc.collect()
    assert ghost() is None
    until(lambda: alive() <= before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_reads_for_itself() -> None:
    with streamed(10) as frames:
        frames.prefetch(range(COUNT))
        child = os.fork()
        if child == 0:
            frames.prefetch([5, 6])
            os._exit(0 if np.array_equal(frames.frame(6), STACK[6]) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# ---------------------------------------------------------------------------------------------------------------------
# Chunks


def zarr_stack(path: Path, chunks: tuple[int, int, int]) -> Path:
    import zarr

    zarr.create_array(str(path), shape=STACK.shape, dtype=STACK.dtype, chunks=chunks)[...] = STACK
    return path


def hdf5_stack(path: Path, chunks: tuple[int, int, int]) -> Path:
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("frames", data=STACK, chunks=chunks, compression="gzip")
    return path


def matlab_stack(path: Path, chunks: tuple[int, int, int]) -> Path:
    import h5py

    with h5py.File(path, "w") as file:  # MATLAB's (rows, columns, frames) is (frames, columns, rows) in HDF5
        turned = (chunks[0], chunks[2], chunks[1])
        file.create_dataset("frames", data=STACK.transpose(0, 2, 1), chunks=turned, compression="gzip")
    return path


CHUNKED = [("a.zarr", zarr_stack), ("a.h5", hdf5_stack), ("a.mat", matlab_stack)]


@pytest.mark.parametrize(("name", "write"), CHUNKED)
@pytest.mark.parametrize("chunks", [(7, 3, 5), (1, 6, 5), (COUNT, 2, 2)])
@pytest.mark.parametrize("roi", [None, (1, 2, 4, 3)])
def test_frames_of_one_chunk_are_read_together(
    tmp_path: Path,
    name: str,
    write: Callable[..., Path],
    chunks: tuple[int, int, int],
    roi: tuple[int, int, int, int] | None,
) -> None:
    stored = open_frames(write(tmp_path / name, chunks), roi=roi)
    depth, part = chunks[0], STACK if roi is None else STACK[:, 1:5, 2:5]
    runs: list[range] = []
    several = stored.read_together  # type: ignore[attr-defined]
    single = stored.frame

    def read_together(indices: range) -> NDArray[Any]:
        runs.append(indices)
        return np.asarray(several(indices))

    def frame(index: int) -> NDArray[Any]:
        runs.append(range(index, index + 1))
        return single(index)

    stored.read_together, stored.frame = read_together, frame  # type: ignore[attr-defined, method-assign]
    with StreamedFrames(stored, 2 * COUNT * part[0].nbytes) as frames:
        for index in np.random.default_rng(0).permutation(COUNT):
            np.testing.assert_array_equal(frames.frame(int(index)), part[index])
    # Each chunk in one read, of a quarter of the budget at most.
    at_most = min(depth, 2 * COUNT // 4)
    assert sorted(runs, key=lambda run: run.start) == [
        range(start, min(start + at_most, stop))
        for first in range(0, COUNT, depth)
        for stop in (min(first + depth, COUNT),)
        for start in range(first, stop, at_most)
    ]


def test_each_chunk_is_decompressed_once_in_a_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fouriscope.acquisition.zarr_codecs import BoundedZstd

    decompressed: Counter[bytes] = Counter()
    decode = BoundedZstd._decode_single

    async def counted(codec: Any, chunk: Any, spec: Any) -> Any:
        decompressed[chunk.to_bytes()] += 1
        return await decode(codec, chunk, spec)

    frames = open_frames(zarr_stack(tmp_path / "a.zarr", (7, 3, 5)), memory=30 * FRAME)
    monkeypatch.setattr(BoundedZstd, "_decode_single", counted)
    for index in range(COUNT):
        np.testing.assert_array_equal(frames.frame(index), STACK[index])
    assert set(decompressed.values()) == {1}
    assert len(decompressed) == 6 * 2
    stream_below(frames).close()  # type: ignore[union-attr]


def test_pages_of_a_tiff_with_several_strips_are_read_once(tmp_path: Path) -> None:
    import tifffile

    tifffile.imwrite(tmp_path / "a.tif", STACK, compression="zlib", rowsperstrip=2, photometric="minisblack")
    with StreamedFrames(open_frames(tmp_path / "a.tif"), 10 * FRAME) as frames:
        frames.prefetch(range(COUNT))
        for index in range(COUNT):
            np.testing.assert_array_equal(frames.frame(index), STACK[index])
        assert frames.reads == COUNT


# ---------------------------------------------------------------------------------------------------------------------
# Corrections and masks above


def test_a_saturated_frame_is_read_once_for_its_intensity_and_its_mask() -> None:
    source = Counting(STACK)
    with streamed(4, source) as frames:
        corrected = CorrectedFrames(frames, Corrections(gain=10.0))
        masks = FrameMasks(frames, saturation=4000)
        frames.prefetch([*range(COUNT), *range(COUNT)])
        for index in range(COUNT):
            np.testing.assert_array_equal(corrected.frame(index), STACK[index].astype(np.float32) / np.float32(10))
            np.testing.assert_array_equal(masks.frame(index), STACK[index] < 4000)
        assert stream_below(corrected) is frames
        assert stream_below(masks) is frames
    assert set(source.asked.values()) <= {1, 2}  # the thread may have begun the second pass
    assert stream_below(ArrayFrames(STACK)) is None


def test_an_acquisition_is_checked_and_surveyed_within_the_budget() -> None:
    stack = np.random.default_rng(1).integers(1, 4096, (len(LEDS), 8, 8)).astype(np.uint16)
    source = Counting(stack)
    with StreamedFrames(source, 4 * stack[0].nbytes) as frames:
        masks = FrameMasks(frames, saturation=4000)
        seen: list[tuple[NDArray[Any], NDArray[Any] | None]] = []
        Acquisition(OPTICS, LEDS, frames, mask=masks).check_frames(lambda image, mask: seen.append((image, mask)))
        assert set(source.asked.values()) == {1}
        np.testing.assert_array_equal(np.stack([image for image, _ in seen]), stack)
        np.testing.assert_array_equal(np.stack([mask for _, mask in seen if mask is not None]), stack < 4000)
        np.testing.assert_array_equal(survey_frames(frames).high, stack.max(axis=(1, 2)))
        nothing = FrameMasks(frames, saturation=0.5)
        with pytest.raises(InvalidInputError, match="leaves no pixel"):
            Acquisition(OPTICS, LEDS, frames, mask=nothing).check_frames()
