"""Reconstruction while frames arrive: how soon a frame is used, and how good the picture is when the last one comes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import bar, table
from fouriscope.fidelity import ArrivingSampler
from fouriscope.live import WatchedFolder
from fouriscope.paper import PAPER_LEDS, PAPER_MICROSCOPE, paper_model, phase_image
from fouriscope.reconstruction import reconstruct
from fouriscope.run.config import parse_config
from fouriscope.simulation import simulate
from fouriscope.solvers import Record, Solver

RATE = 10.0
# The same for both, so that what is compared has converged.
ITERATIONS = 1000


@dataclass(frozen=True)
class LiveRun:
    """A watched acquisition: seconds from a file's last change to its frame's first use, and the SNR on the way."""

    latencies: NDArray[np.float64]
    at_last_frame: float
    final: float
    iterations_before: int


def main() -> None:
    model = paper_model()
    truth = phase_image(model.object_shape, 0.3)
    data = simulate(model, truth, snr_db=40, noise="stack", seed=0)
    with tempfile.TemporaryDirectory() as name:
        stack = np.stack([data.frames.frame(led) for led in range(len(data))])
        live = watch(Path(name), stack, truth)
    at_once = reconstruct(data, prior="tv", iterations=ITERATIONS, seed=0).history.last.snr
    p95, slowest = (float(np.percentile(live.latencies, q)) for q in (95, 100))
    difference, before = abs(live.final - at_once), live.final - live.at_last_frame
    table(
        f"293 frames of 100² at {RATE:g} per second from the axis outwards, 500² object, TV, 60 frames per iteration",
        ("what", "measured", "bar", ""),
        [
            ["complete on disk → used, median / s", f"{np.median(live.latencies):.2f}", "", ""],
            ["… 95th percentile / s", f"{p95:.2f}", *bar("frame used", p95, 1)],
            ["… slowest / s", f"{slowest:.2f}", "", ""],
            ["iterations before the last frame", str(live.iterations_before), "", ""],
            ["SNR with the last frame / dB", f"{live.at_last_frame:.2f}", "", ""],
            ["final SNR, live / dB", f"{live.final:.2f}", "", ""],
            ["final SNR, all frames at once / dB", f"{at_once:.2f}", "", ""],
            ["live beside at once / dB", f"{difference:.2f}", *bar("live beside at once", difference, 0.1)],
            ["still to come with the last frame / dB", f"{before:.2f}", *bar("to come at the end", before, 1)],
        ],
    )


def watch(folder: Path, stack: NDArray[Any], truth: NDArray[Any]) -> LiveRun:
    """Watch a folder that another process fills; the watch is there first, as an operator would have it."""
    frames, signal = folder / "frames", folder / "begin"
    frames.mkdir()
    np.save(folder / "stack.npy", stack)
    np.save(folder / "truth.npy", truth)
    player = [sys.executable, "-m", "benchmarks.live_player"]
    process = subprocess.Popen([*player, str(folder / "stack.npy"), str(frames), str(RATE), str(signal)])
    document = {
        "frames": {"path": "frames", "pattern": "led_*.tif", "truth": "truth.npy"},
        "microscope": PAPER_MICROSCOPE,
        "illumination": {"kind": "disc", **PAPER_LEDS, "radius": 9.5},
        "object": {"margin": 0},
        "prior": {"name": "tv"},
        "stop": {"iterations": ITERATIONS},
    }
    config = parse_config(document, where="benchmark")
    watched = WatchedFolder(config, folder, frames, folder / "run", first_number=0)
    used = np.full(len(stack), np.nan)

    def begin() -> bool:
        signal.touch()
        return False

    def note(solver: Solver, record: Record) -> None:
        assert watched.live is not None
        assert watched.live.solver is not None
        sampler = watched.live.solver.sampler
        assert isinstance(sampler, ArrivingSampler)
        used[(sampler.visits > 0) & np.isnan(used)] = time.time()

    try:
        result = watched.run(callbacks=[note], asked_to_stop=begin)
    finally:
        process.terminate()
        process.wait()
    assert result is not None
    complete = np.array([(frames / f"led_{led:03d}.tif").stat().st_mtime for led in range(len(stack))])
    all_there = int(np.argmax(result.history["frames_arrived"] == len(stack)))
    snr = result.history["snr"]
    return LiveRun(used - complete, float(snr[all_there]), float(snr[-1]), all_there)
