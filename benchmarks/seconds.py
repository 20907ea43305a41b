"""CPU-seconds of one thread until the field is right to 5 % and 3 %: the default beside our EPRY and PtyLab, on every
problem of ``defaults``."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks import ptylab_peer
from benchmarks.calibration_problems import ZOOM, Problem
from benchmarks.calibration_runs import in_window
from benchmarks.defaults_problems import Task, tasks
from benchmarks.ptylab_peer import PtyLabRun, Stage
from benchmarks.report import bar, table
from fouriscope import settings
from fouriscope.forward import ForwardModel
from fouriscope.parallel import threads
from fouriscope.reconstruction import reconstruct
from fouriscope.solvers import Record, Solver

LEVELS = (0.05, 0.03)
# Rivals have so many times the seconds that the default took to the last level, and at most so many passes.
PATIENCE, SWEEPS = 5.0, 50
# The default has to be first: its seconds beside those of the first rival.
BAR = 1.0
DEFAULT, EPRY, PTYLAB = "default", "EPRY", "PtyLab"


class Clock:
    """CPU-seconds since it was made. It stands still while errors are measured.

    Parameters
    ----------
    task
        Whose errors are measured.
    most
        Seconds after which nobody waits any longer.

    Attributes
    ----------
    seconds
        For each level, when the error first was no larger; infinite if it never was.
    """

    def __init__(self, task: Task, most: float) -> None:
        self.task, self.most, self.seconds = task, most, dict.fromkeys(LEVELS, math.inf)
        self._spent, self._resumed = 0.0, time.process_time()

    def look(self, field: NDArray[Any]) -> bool:
        """Measure the error of ``field``; whether all levels are reached, or the time is over."""
        self._spent += time.process_time() - self._resumed
        error = self.task.error_of(field) if np.isfinite(field).all() else math.inf
        for level in LEVELS:
            if error <= level:
                self.seconds[level] = min(self.seconds[level], self._spent)
        self._resumed = time.process_time()
        return self._spent > self.most or all(map(math.isfinite, self.seconds.values()))


Seconds: TypeAlias = dict[float, float]


def main(names: list[str]) -> None:
    """All problems, or those whose names contain one of ``names``."""
    peer = ptylab_peer.is_here()
    rows = []
    for name, task in tasks().items():
        if names and not any(part in name for part in names):
            continue
        with threads(1):
            found = {DEFAULT: of_run(task, {})}
            most = PATIENCE * max(seconds for seconds in found[DEFAULT].values() if math.isfinite(seconds))
            found[EPRY] = best([of_run(task, how, most) for how in epry(task)])
            if peer:
                found[PTYLAB] = best([of_ptylab(task, stage, most) for stage in stages(task)])
        cells = [cell for level in LEVELS for cell in _cells(name, found, level)]
        rows.append([name, *cells])
        print(
            *rows[-1], sep="; ", file=sys.stderr, flush=True
        )  # the table comes when all are done, which takes minutes
    ways = (DEFAULT, EPRY, *([PTYLAB] if peer else []))
    header = [cell for level in LEVELS for cell in (*(f"{way}, {level:g}" for way in ways), "beside the first rival")]
    title = (
        f"CPU-seconds of one thread to an NRMSE; rivals have {PATIENCE:g} times as long, and the best of their settings"
    )
    table(title, ("problem", *header), rows)


def _cells(name: str, found: dict[str, Seconds], level: float) -> list[str]:
    cells = [f"{one[level]:.2f}" if math.isfinite(one[level]) else "never" for one in found.values()]
    mine, rival = found[DEFAULT][level], min(one[level] for way, one in found.items() if way != DEFAULT)
    if not math.isfinite(min(mine, rival)):
        return [*cells, "nobody"]
    if not math.isfinite(rival):
        beside, shown = 0.0, "alone"
    else:
        beside = mine / rival
        shown = f"{beside:.2f}"
    return [*cells, " ".join((shown, *bar(f"{name}: CPU-s to {level:g}", beside, BAR)))]


def epry(task: Task) -> list[dict[str, Any]]:
    """Sweeps in two orders, as a wave, and as a phase if the sample is one."""
    pupil = 1.0 if task.free else 0.0
    orders = (
        settings.EPRY(order="random", pupil_step=pupil, decay=0.3),
        settings.EPRY(order="na", pupil_step=pupil, decay=0.0),
    )
    common: dict[str, Any] = {"iterations": SWEEPS, "align": (), "calibrate": ()}
    kinds = ("wave",) if task.complex else ("phase", "wave")
    return [common | {"object": kind, "method": order} for kind, order in product(kinds, orders)]


def stages(task: Task) -> list[Stage]:
    """Settings that came nearest to the truth in ``calibration``, with and without the pupil."""
    if task.free:
        return [
            Stage("ePIE", SWEEPS, {"betaObject": 0.25, "betaProbe": 1.0}),
            Stage("mPIE", SWEEPS, weigh_by_intensity=True),
        ]
    return [
        Stage("ePIE", SWEEPS, {"betaObject": 0.25, "betaProbe": 0.0}),
        Stage("mPIE", SWEEPS, {"betaProbe": 0.0}),
    ]


def best(ways: list[Seconds]) -> Seconds:
    """Of each level the least of all ways, as if somebody had known which."""
    return {level: min(one[level] for one in ways) for level in LEVELS}


def of_run(task: Task, how: dict[str, Any], most: float = math.inf) -> Seconds:
    """Seconds of ``fs.reconstruct``, with everything that it does before the first iteration."""
    reconstruct(task.data, seed=0, **how | {"iterations": 2} | ({} if how else {"align": ()}))  # compiles
    clock = Clock(task, most)

    def see(solver: Solver, record: Record) -> bool:
        del record
        return clock.look(in_window(solver.fidelity.model, solver.x))

    reconstruct(task.data, seed=0, callbacks=[see], **how)
    return clock.seconds


class ReachedError(Exception):
    """PtyLab has no other way to end early."""


def of_ptylab(task: Task, stage: Stage, most: float) -> Seconds:
    """Seconds of its passes alone. It takes every field for periodic, and directions for whole bins."""
    data = task.data
    side = ZOOM * data.frame_shape[0]
    model = ForwardModel(
        *(data.optics, data.illumination, data.frame_shape),
        pupil=data.pupil,
        object="complex",
        object_shape=(side, side),
    )
    frames = np.stack([data.frames.frame(led) for led in range(len(data))])
    peer = PtyLabRun(Problem(model, model, frames, task.truth))
    clock = Clock(task, most)

    def see(_: int) -> None:
        if clock.look(peer.field()):
            raise ReachedError

    with contextlib.suppress(ReachedError):
        peer.run(stage, see)
    return clock.seconds
