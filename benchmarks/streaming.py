"""Frames from disk within a budget: peak memory of a run, and its time beside that with all frames in memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from benchmarks import microscope
from benchmarks.report import bar, table
from fouriscope.forward import ForwardModel
from fouriscope.paper import PAPER_LEDS

SIDE, TILE = 512, 128
# The smallest square that holds the field's spectrum of the synthetic aperture, which is 2.11 times a frame's; "auto"
# takes 2560², which holds that of the intensity too, and 700 MB of images of the object.
OBJECT = 1080
BATCH = 60
BUDGET, PLENTY = "64MB", "1GB"
LIMIT_MB = 450.0
PEERS = (("PtyLab", 1574), ("fpm-rs", 1386))
RUNS = 2
PASSES = 8  # the first is not timed: kernels are loaded, and memory fills
STEP = 1e-3  # of the timed runs: to find one takes longer than their passes
MB = 1e6


def counts() -> NDArray[np.uint16]:
    """293 frames of 512²: 16 copies of a simulated one side by side, with photon noise that makes each its own."""
    model = ForwardModel(microscope.optics(), microscope.leds(), (TILE, TILE))
    intensity = np.tile(model.intensity(microscope.sample(model.x_shape)), (1, SIDE // TILE, SIDE // TILE))
    return np.random.default_rng(0).poisson(1000 * intensity).astype(np.uint16)


def write_tiff(path: Path, stack: NDArray[Any]) -> None:
    import tifffile

    tifffile.imwrite(path, stack, compression="zlib", photometric="minisblack")


def write_hdf5(path: Path, stack: NDArray[Any], chunks: tuple[int, int, int] = (1, SIDE, SIDE)) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("frames", data=stack, chunks=chunks, compression="gzip", shuffle=True)


def write_deep_hdf5(path: Path, stack: NDArray[Any]) -> None:
    """Each chunk holds a piece of 16 frames: for one frame of a minibatch, 16 are decompressed."""
    write_hdf5(path, stack, (16, 64, 64))


STORED = (
    ("TIFF, zlib", "frames.tif", write_tiff),
    ("HDF5, gzip, a chunk per frame", "frames.h5", write_hdf5),
    ("HDF5, gzip, chunks of 16 × 64²", "deep.h5", write_deep_hdf5),
    (".npy", "frames.npy", np.save),
)


def configuration(frames: str, iterations: int, step: float | str) -> dict[str, Any]:
    scope = microscope.optics()
    return {
        "frames": {"path": frames, "gain": 1000.0},
        "microscope": {
            "wavelength": scope.wavelength,
            "na": scope.na,
            "magnification": scope.magnification,
            "camera_pixel": scope.camera_pixel,
        },
        "illumination": {"kind": "disc", **PAPER_LEDS, "radius": 9.5},
        "object": {"shape": [OBJECT, OBJECT], "margin": 0},
        "solver": {"batch": BATCH, "step": step},
        "stop": {"iterations": iterations},
        "prior": {"name": "none"},
    }


def run(folder: Path, frames: str, memory: str, passes: int, step: float | str = "auto") -> tuple[float, float]:
    """(peak MB of the process, seconds of a pass) of `fouriscope reconstruct`, in a process of its own."""
    a_pass = -(-len(microscope.leds()) // BATCH)
    config = folder / "config.toml"
    config.write_text(tomli_w.dumps(configuration(frames, passes * a_pass, step)), encoding="utf-8")
    with tempfile.TemporaryDirectory(dir=folder) as out:
        command = [sys.executable, "-m", "benchmarks.peak", "reconstruct", str(config), "--out", f"{out}/run", "-q"]
        finished = subprocess.run([*command, "--memory", memory], check=True, capture_output=True, text=True)
        lines = (Path(out) / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    seconds = [json.loads(line)["seconds"] for line in lines]
    timed = (seconds[-1] - seconds[a_pass - 1]) / (passes - 1) if passes > 1 else float("nan")
    return int(finished.stderr.split()[-1]) / MB, timed


def main() -> None:
    stack = counts()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for label, file, write in STORED:
            write(folder / file, stack)
            if label == STORED[0][0]:
                run(folder, file, BUDGET, 1, STEP)  # compiles, where nothing is compiled yet
            peak = max(run(folder, file, BUDGET, 1)[0] for _ in range(RUNS))
            both = [[run(folder, file, memory, PASSES, STEP) for memory in (BUDGET, PLENTY)] for _ in range(RUNS)]
            streamed, resident = (min(pair[k][1] for pair in both) for k in (0, 1))
            size = (folder / file).stat().st_size / MB
            cells = [f"{peak:.0f}", *bar(f"streaming, {label}, peak memory / MB", peak, LIMIT_MB)]
            rows.append([label, f"{size:.0f}", *cells, f"{streamed:.2f}", f"{streamed / resident:.2f}"])
            (folder / file).unlink()
    header = ["frames on disk", "file / MB", "peak / MB", "bar", "", "s per pass", "× everything in memory"]
    table(
        f"`fouriscope reconstruct --memory {BUDGET}`: {len(stack)} frames of {SIDE}² uint16, "
        f"{stack.nbytes / MB:.0f} MB, minibatches of {BATCH}, object {OBJECT}², no prior; "
        "the peak is of the whole process, of one pass",
        header,
        rows,
    )
    print("others, measured on such a stack: " + ", ".join(f"{peer} {peak} MB" for peer, peak in PEERS))


if __name__ == "__main__":
    main()
