"""Peak memory of an online run: it should follow the object, not the number of frames."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import microscope
from benchmarks.report import bar, table
from fouriscope.forward import ForwardModel

LIMIT_MB = 5.0
RUNS = 3
MB = 1e6


def online_run(path: Path, copies: int, side: int) -> dict[str, int]:
    """The leanest of a few fresh processes (see :mod:`benchmarks.online_run`)."""
    command = [sys.executable, "-m", "benchmarks.online_run", str(path), str(copies), str(side)]
    reports: list[dict[str, int]] = []
    for _ in range(RUNS):
        finished = subprocess.run(command, check=True, capture_output=True, text=True)
        reports.append(json.loads(finished.stdout))
    return min(reports, key=lambda report: report["peak"])


def main() -> None:
    model = ForwardModel(microscope.optics(), microscope.leds(), (100, 100))
    frames = model.intensity(microscope.sample(model.x_shape))
    peaks: dict[tuple[int, int], float] = {}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for copies, side in ((1, 500), (4, 500), (1, 1000)):
            path = Path(folder) / f"{copies}.npy"
            np.save(path, np.tile(frames, (copies, 1, 1)))
            report = online_run(path, copies, side)
            peaks[copies, side] = (report["peak"] - report["tables"]) / MB
            cells = [report["peak"], report["tables"], report["peak"] - report["tables"]]
            rows.append([f"{report['leds']} frames, object {side}²", *(f"{cell / MB:.1f}" for cell in cells)])
    header = ["run", "peak / MB", "pupils of the model / MB", "the rest / MB"]
    table("Online run, 20 minibatches of 60 frames of 100² from a .npy file, each in a fresh process", header, rows)
    growth = peaks[4, 500] - peaks[1, 500]
    bytes_per_pixel = (peaks[1, 1000] - peaks[1, 500]) * MB / (1000**2 - 500**2)
    rows = [
        ["4 × the frames", f"{growth:+.1f} MB", *bar("memory, growth with the frames / MB", growth, LIMIT_MB)],
        ["4 × the object's pixels", f"{bytes_per_pixel:.0f} bytes per pixel", "", ""],
    ]
    table("Growth beyond the model's own pupils", ["with", "growth", "bar / MB", ""], rows)


if __name__ == "__main__":
    main()
