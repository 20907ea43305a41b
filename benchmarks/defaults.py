"""``fs.reconstruct(data)`` with nothing chosen, beside choices made by hand: errors and CPU-seconds."""

from __future__ import annotations

import math
import time
from typing import Any

from benchmarks.defaults_problems import Task, tasks
from benchmarks.report import bar, table
from fouriscope import settings
from fouriscope.parallel import threads
from fouriscope.reconstruction import reconstruct

# How much larger the error, and the time, may be than those of the best choice by hand: 0.2 dB for phases, 5 % of the
# NRMSE for complex fields, a tenth of the time.
PHASE_BAR, COMPLEX_BAR, TIME_BAR = 10 ** (0.2 / 20), 1.05, 1.1
# The default and the best choice run so often, unless one run takes longer than so many seconds.
TURNS, LONG = 3, 30.0
# EPRY that recovers the pupil is a peer, not a choice of ours.
PEER = "EPRY"

FOR_PHASES: dict[str, dict[str, Any]] = {
    "pnp, automatic loss": {},
    "pnp, intensity": {"loss": "intensity"},
    "pnp, poisson": {"loss": "poisson"},
    "pnp, start by EPRY": {"start": "epry"},
}
WARM: dict[str, Any] = {
    "object": "wave",
    "loss": "amplitude",
    "start": "flat",
    "method": settings.Spectral(sampler="warm-up", batch=20, strength_factor=1.0),
    "iterations": 130,
}
# With fewer LEDs pupils overlap little here, and a warm-up takes longer.
SPARSE, SPARSE_ITERATIONS = 200, 190
FOR_FIELDS: dict[str, dict[str, Any]] = {
    "spectral, warm-up": WARM,
    "pnp, complex, start by EPRY": {"object": "complex", "start": "epry", "iterations": 200},
}


def choices(task: Task) -> dict[str, dict[str, Any]]:
    """Those that somebody could make who knows what the sample and the microscope are."""
    data = {"align": (), "calibrate": "zernike" if task.free else (), "prior": "tv"}
    by_hand = {name: data | how for name, how in FOR_FIELDS.items()}
    if not task.complex:
        by_hand = {name: data | {"object": "phase", "method": "pnp"} | how for name, how in FOR_PHASES.items()}
        by_hand["spectral, warm-up"] = data | WARM
    elif len(task.data) < SPARSE:
        by_hand["spectral, warm-up"]["iterations"] = SPARSE_ITERATIONS
    pupil = settings.EPRY(pupil_step=1.0 if task.free else 0.0, decay=0.3)
    peer = {"object": "wave" if task.complex else "phase", "method": pupil, "iterations": 20, "prior": None}
    return by_hand | {PEER: data | peer | {"calibrate": ()}}


def main() -> None:
    for name, task in tasks().items():
        _report(name, task)


def _report(name: str, task: Task) -> None:
    ways: dict[str, dict[str, Any]] = {"default": {}} | choices(task)
    found = {way: timed(task, how) for way, how in ways.items()}
    best = min((way for way in found if way not in ("default", PEER)), key=lambda way: found[way][0])
    if found["default"][1] < LONG:  # others use the machine too: both take turns, and the fastest of each counts
        for _ in range(TURNS - 1):
            for way in ("default", best):
                found[way] = min(found[way], timed(task, ways[way]), key=lambda measured: measured[1])
    error, seconds = (mine / theirs for mine, theirs in zip(found["default"], found[best], strict=True))
    limit = COMPLEX_BAR if task.complex else PHASE_BAR
    judged = [
        " ".join((f"{error:.3f}", *bar(f"{name}: error beside {best}", error, limit))),
        " ".join((f"{seconds:.2f}", *bar(f"{name}: time beside {best}", seconds, TIME_BAR))),
    ]
    rows = [
        [way, f"{found[way][0]:.4f}", f"{found[way][1]:.1f}", *(judged if way == "default" else ["", ""])]
        for way in found
    ]
    header = ("way", "NRMSE", "CPU-s", f"error beside {best}", "time")
    table(f"{name}: {len(task.data)} LEDs", header, rows)


def timed(task: Task, how: dict[str, Any]) -> tuple[float, float]:
    """The error, and CPU-seconds of one thread; nothing is compiled in them."""
    with threads(1):
        reconstruct(task.data, seed=0, **how | {"iterations": 2})
        began = time.process_time()
        result = reconstruct(task.data, seed=0, **how)
        seconds = time.process_time() - began
    error = task.error(result)
    return error if math.isfinite(error) else math.inf, seconds
