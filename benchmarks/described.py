"""Real sets whose LEDs are described wrongly: ``python -m benchmarks described [names …]``.

The alignment of a set as it is described is the yardstick. Then the array is described too near, too far away, turned,
displaced by half a pitch or mirrored, and the alignment has to find the same directions again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.real import DATA, fouriscope
from benchmarks.report import bar, table
from fouriscope.acquisition import Acquisition
from fouriscope.alignment import align
from fouriscope.alignment.array import as_array, with_array
from fouriscope.alignment.brightness import lattice_pitch
from fouriscope.optics import LEDArray
from fouriscope.run.assemble import build_acquisition
from fouriscope.run.config import load_config

NAMES = ("zuo_usaf", "elfpie_usaf", "uconn_bloodsmear_green")
FAULTS: dict[str, Callable[[LEDArray], LEDArray]] = {
    "12 % too near": lambda leds: leds.moved(height=1 / 1.12),
    "12 % too far": lambda leds: leds.moved(height=1.12),
    "turned by 5°": lambda leds: leds.moved(turn=float(np.radians(5))),
    "half a pitch off": lambda leds: leds.moved(shift=(0.4 * lattice_pitch(leds), 0.5 * lattice_pitch(leds))),
    "mirrored": lambda leds: replace(leds, positions=leds.positions * (1, -1)),
}
# In pitches, root mean square over the LEDs: about a frequency bin of the patch that is aligned.
BAR = 0.1


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks described", description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, help="the sets")
    rows: list[list[str]] = []
    for name in parser.parse_args(arguments).names:
        if not (DATA / name).is_dir():
            print(f"{name} is left out: it is not in {DATA}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "acquisition.toml"
            fouriscope("import", DATA / name, "--out", file)
            data = build_acquisition(load_config(file), file.parent)
            rows += rows_of(name, data)
    if rows:
        table("Real sets that are described wrongly", ["set", "fault", "pitches left", "NA", "s", "bar", ""], rows)


def rows_of(name: str, data: Acquisition) -> list[list[str]]:
    right = align(data, curvature=False).acquisition
    leds = as_array(data.illumination)
    pitch = lattice_pitch(leds) / leds.height
    rows = []
    for fault, change in FAULTS.items():
        wrong = replace(data, illumination=with_array(data.illumination, change(leds)))
        started = time.perf_counter()
        found = align(wrong, curvature=False).acquisition
        seconds = time.perf_counter() - started
        left = apart(found, right) / pitch
        judged = bar(f"{name}, {fault}: pitches left", left, BAR)
        rows.append([name, fault, f"{left:.3f}", f"{found.optics.na:.4f}", f"{seconds:.0f}", *judged])
        print(*rows[-1], flush=True)
    return rows


def apart(one: Acquisition, other: Acquisition) -> float:
    """Root mean square distance of the directions; intensities cannot tell an array from its image through the axis."""
    here, there = (_directions(acquisition) for acquisition in (one, other))
    return min(float(np.sqrt(np.mean(np.sum((here - side * there) ** 2, axis=1)))) for side in (1, -1))


def _directions(acquisition: Acquisition) -> NDArray[np.float64]:
    return acquisition.illumination.directions(acquisition.patch_center)
