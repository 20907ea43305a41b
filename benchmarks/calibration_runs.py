"""Solvers run over a problem, with every gradient of an LED counted and the error noted after some passes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration_problems import Problem, on_frame_grid
from fouriscope.calibration import Calibration, Calibrator
from fouriscope.fidelity import AllLEDs, DataFidelity, StratifiedSampler
from fouriscope.forward import ForwardModel
from fouriscope.priors import NoPrior, Prior
from fouriscope.solvers import EPRY, Iterations, PnP
from fouriscope.solvers.base import Solver
from fouriscope.solvers.history import Record
from fouriscope.solvers.start import SWEEPS, StartName

PASSES = (10, 50)


class CountingFidelity(DataFidelity):
    """Counts the LEDs whose misfit or gradient was computed: those of the automatic step and strength too."""

    evaluated = 0

    def _evaluate(self, x: Any, batch: Any, **how: Any) -> Any:
        self.evaluated += len(batch.leds)
        return super()._evaluate(x, batch, **how)


@dataclass
class Run:
    """The errors after so many passes, and the pupil that was found at the end."""

    errors: dict[int, float] = field(default_factory=dict)
    centre: dict[int, float] = field(default_factory=dict)
    pupil: NDArray[Any] | None = None

    def note(self, passes: int, problem: Problem, found: NDArray[Any]) -> None:
        self.errors[passes] = problem.error(found)
        self.centre[passes] = problem.centre_error(found)


def pnp(
    problem: Problem,
    model: ForwardModel | None = None,
    *,
    prior: Callable[[], Prior] = NoPrior,
    calibrators: Sequence[Calibrator] = (),
    batch: int = 20,
    start: StartName = "flat",
    passes: Sequence[int] = PASSES,
) -> Run:
    """PnP without momentum, Poisson loss: the error when ``passes`` · J LEDs have been evaluated.

    Those that the automatic step and strength take count too, and so do the sweeps of a start by EPRY.
    """
    fidelity = CountingFidelity(problem.model if model is None else model, problem.frames, loss="poisson")
    sampler = StratifiedSampler(np.arange(len(fidelity)), batch, fidelity.model.geometry.bright_field)
    solver = PnP(fidelity, sampler, [prior(), prior()], acceleration=False, start=start, seed=0)
    swept = SWEEPS * len(fidelity) if start == "epry" else 0
    if calibrators:
        solver.calibration = Calibration(calibrators)
    run, waiting = Run(), sorted(passes)

    def see(_: Solver, record: Record) -> bool:
        del record
        seen = fidelity.evaluated + swept
        # An iteration that would go beyond the pass is not begun.
        while waiting and seen + batch > waiting[0] * len(fidelity):
            run.note(waiting.pop(0), problem, in_window(fidelity.model, solver.x))
        return not waiting

    solver.solve(Iterations(math.ceil(max(passes) * len(fidelity) / batch) + 1), [see])
    run.pupil = on_frame_grid(fidelity.model)
    return run


def epry(
    problem: Problem,
    model: ForwardModel | None = None,
    *,
    passes: Sequence[int] = PASSES,
    **steps: Any,
) -> Run:
    """EPRY, a sweep a pass."""
    fidelity = DataFidelity(problem.model if model is None else model, problem.frames, loss="amplitude")
    solver = EPRY(fidelity, AllLEDs(np.arange(len(fidelity))), seed=0, **steps)
    run = Run()

    def see(_: Solver, record: Record) -> None:
        if record.iteration in passes:
            run.note(record.iteration, problem, in_window(fidelity.model, solver.x))

    solver.solve(Iterations(max(passes)), [see])
    run.pupil = solver.pupil
    return run


def in_window(model: ForwardModel, x: NDArray[Any]) -> NDArray[Any]:
    """The object where the frames show it, without the margin."""
    return model.transmittance(x)[model.geometry.object_window]
