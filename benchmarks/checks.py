"""What it costs that files are not trusted: reading all frames with the checks, beside reading without, in one run.

CPU-seconds of one thread, so that others on the machine do not count; each keeps its fastest turn.
"""

from __future__ import annotations

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

LIMIT = 1.05
TURNS = 30
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


def main() -> None:
    rng, rows = np.random.default_rng(0), []
    with tempfile.TemporaryDirectory() as folder:
        for side in (SMALL, LARGE):
            frames = rng.poisson(800, (COUNT, side, side)).astype(np.uint16)
            for name, (file, write) in FORMATS.items():
                path = Path(folder) / f"{side}-{file}"
                write(path, frames)
                turns = np.array([[seconds(path, False), seconds(path, True)] for _ in range(TURNS)])
                fastest, what = turns[1:].min(axis=0), f"{name}, {side}²"
                ratio, cells = fastest[1] / fastest[0], [f"{1e3 * taken:.2f}" for taken in fastest]
                rows.append([what, *cells, f"{ratio:.3f}", *bar(f"checks, {what}", ratio, LIMIT)])
    header = ["frames", "without / ms", "with / ms", "ratio", "bar", ""]
    table(f"Opening and reading {COUNT} frames of uint16, CPU-seconds", header, rows)
