"""What it costs that nobody is trusted: reading all frames with the checks, beside reading without; starting workers
that nobody can reach, beside a cluster of Dask, which anybody on the machine can.

CPU-seconds of reading, so that others on the machine do not count. Both take turns, each begins every second time, and
each keeps its fastest turn: whatever else happens only adds. Starting is mostly waiting, and measured in seconds.
"""

from __future__ import annotations

import gc
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import h5py
import numpy as np
import tifffile
import zarr

from benchmarks.report import bar, table
from fouriscope.acquisition import open_frames
from fouriscope.field import connected
from fouriscope.field.dispatch import run_all

LIMIT = 1.05
LEAST_TURNS, CPU_SECONDS = 30, 2.0  # of each format: small files are read in milliseconds, and need many turns
START_LIMIT = 2.0
START_TURNS, WORKERS = 5, 2
COUNT, SMALL, LARGE = 100, 64, 512
READERS = "fouriscope.acquisition"


@contextmanager
def unchecked() -> Iterator[None]:
    """No look at the state of files, at declared sizes, at chunks and at codecs."""

    def nothing(*_: Any, **__: Any) -> None:
        return None

    with ExitStack() as stack:
        for name in ("stacks.require_room", "hdf5_file.require_room", "tiff_file.require_room"):
            stack.enter_context(patch(f"{READERS}.{name}", nothing))
        for name in ("images.FolderFrames", "images.TiffFrames", "stacks.ZarrFrames", "stored.StoredFrames"):
            stack.enter_context(patch(f"{READERS}.{name}._files", lambda *_: ()))
        stack.enter_context(patch(f"{READERS}.tiff_file.TiffPages._refuse_bombs", nothing))
        stack.enter_context(patch(f"{READERS}.tiff_file.TiffPages._check_length", nothing))
        stack.enter_context(patch(f"{READERS}.file_states.FileStates.read", lambda self, files, read: read()))
        stack.enter_context(patch(f"{READERS}.hdf5_file.bounded", lambda path, name, item: item))
        stack.enter_context(patch(f"{READERS}.stacks.open_array", lambda path, name: zarr.open_array(path, mode="r")))
        yield


def _folder(path: Path, frames: Any) -> None:
    path.mkdir()
    for number, frame in enumerate(frames):
        tifffile.imwrite(path / f"led_{number:03d}.tif", frame)


def _hdf5(path: Path, frames: Any, **options: Any) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("frames", data=frames, chunks=(1, *frames.shape[1:]), **options)


FORMATS: dict[str, tuple[str, Callable[[Path, Any], object]]] = {
    ".npy": ("a.npy", np.save),
    ".npz": ("a.npz", np.savez),
    ".npz, compressed": ("b.npz", np.savez_compressed),
    "TIFF": ("a.tif", tifffile.imwrite),
    "TIFF, deflate": ("b.tif", lambda path, frames: tifffile.imwrite(path, frames, compression="zlib")),
    "folder of TIFF": ("folder", _folder),
    "HDF5": ("a.h5", _hdf5),
    "HDF5, deflate": ("b.h5", lambda path, frames: _hdf5(path, frames, compression="gzip")),
    "HDF5, shuffle and deflate": ("c.h5", lambda path, frames: _hdf5(path, frames, compression="gzip", shuffle=True)),
    "Zarr": (
        "a.zarr",
        lambda path, frames: zarr.create_array(str(path), data=frames, chunks=(1, *frames.shape[1:])),
    ),
}


def seconds(path: Path, checked: bool) -> float:
    """CPU-seconds of opening a stack and reading each frame of it."""
    with nullcontext() if checked else unchecked():
        start = time.process_time()
        frames = open_frames(path)
        for index in range(len(frames)):
            frames.frame(index)
        return time.process_time() - start


def fastest(path: Path) -> tuple[float, float]:
    """The fastest turn without checks, and with them."""
    taken: dict[bool, list[float]] = {False: [], True: []}
    gc.collect()
    gc.disable()  # it would come in the turn of one or the other
    try:
        for turn in itertools.count():
            for checked in (False, True) if turn % 2 else (True, False):
                taken[checked].append(seconds(path, checked))
            if turn > LEAST_TURNS and sum(map(sum, taken.values())) > CPU_SECONDS:
                return min(taken[False][1:]), min(taken[True][1:])
    finally:
        gc.enable()
    raise AssertionError


def workers_seconds() -> float:
    """From nothing to the first answers of ``WORKERS`` workers of ``fouriscope field``."""
    start = time.perf_counter()
    with connected(workers=WORKERS) as workers:
        list(run_all(workers, [(number, os.getpid, ()) for number in range(WORKERS)]))
        return time.perf_counter() - start


def dask_seconds() -> float:
    """The same of a cluster of Dask on this machine, which is what ``field`` used to start."""
    from distributed import Client, LocalCluster

    start = time.perf_counter()
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.gather([client.submit(os.getpid, pure=False) for _ in range(WORKERS)])
        return time.perf_counter() - start


def main() -> None:
    _reading()
    _starting()


def _starting() -> None:
    turns = np.array([[dask_seconds(), workers_seconds()] for _ in range(START_TURNS)])
    dask, ours = np.median(turns, axis=0)
    row = [f"{WORKERS} workers", f"{dask:.2f}", f"{ours:.2f}", f"{ours - dask:+.2f}"]
    row += bar("checks, start of a field", ours - dask, START_LIMIT)
    header = ["started", "Dask / s", "field / s", "difference", "bar", ""]
    table(f"From nothing to the first answers, median of {START_TURNS} turns", header, [row])


def _reading() -> None:
    rng, rows = np.random.default_rng(0), []
    with tempfile.TemporaryDirectory() as folder:
        for side in (SMALL, LARGE):
            frames = rng.poisson(800, (COUNT, side, side)).astype(np.uint16)
            for name, (file, write) in FORMATS.items():
                path = Path(folder) / f"{side}-{file}"
                write(path, frames)
                without, with_checks = fastest(path)
                ratio, what = with_checks / without, f"{name}, {side}²"
                cells = [f"{1e3 * taken:.2f}" for taken in (without, with_checks)]
                rows.append([what, *cells, f"{ratio:.3f}", *bar(f"checks, {what}", ratio, LIMIT)])
    header = ["frames", "without / ms", "with / ms", "ratio", "bar", ""]
    table(f"Opening and reading {COUNT} frames of uint16, CPU-seconds", header, rows)
