"""Trials of a rehearsal: a patch is reconstructed without some of its frames, and predicts them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.cross_validation import in_standard_errors
from fouriscope.errors import DivergenceError
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray
from fouriscope.optics.frame_sources import coarse_sources
from fouriscope.parallel import run_sliced, thread_count
from fouriscope.priors import Prior
from fouriscope.run.assemble import build_solver, build_stop
from fouriscope.run.imagined import imagines
from fouriscope.settings import ReconstructionConfig
from fouriscope.solvers import Solver
from fouriscope.verdict.heldout import correlations, misfits

# Of the two images; None is the prior of the configuration.
Priors = tuple[Prior | None, Prior | None]


@dataclass(frozen=True, eq=False)
class Prediction:
    """How well unseen frames are predicted: geometric mean of both fields' misfits, correlation of each frame, and
    whether structure is predicted for frames of noise that is not there; and whether the estimate still travels."""

    misfit: float
    correlations: NDArray[np.float64]
    imagines: bool = False
    travels: bool = False

    def evidence(self, other: Prediction) -> float:
        """By how many standard errors frames are more like this prediction than like the other."""
        return in_standard_errors(self.correlations - other.correlations) if len(self.correlations) > 1 else 0.0


class Trials:
    """What trials predict of unseen frames: each is made once, and those that are asked for together on all cores.

    Parameters
    ----------
    seen, patch
        The patch without the frames that are held out, and with them.
    unseen
        LEDs of the frames that are held out: of those that tell something, and of those that are noise.
    priors
        Objects that replace those of the configuration.
    """

    def __init__(
        self, seen: Acquisition, patch: Acquisition, unseen: tuple[NDArray[np.int64], NDArray[np.int64]], priors: Priors
    ) -> None:
        self._predict = partial(prediction, seen, patch, unseen, priors)
        self._priors = priors
        self._found: dict[tuple[object, ...], Prediction] = {}

    def __call__(self, config: ReconstructionConfig, factor: float, long_steps: bool) -> Prediction:
        options = (config.calibration.gains_by, factor, long_steps, config.stop.iterations)
        if options not in self._found:
            self._found[options] = self._predict(config, factor, long_steps)
        return self._found[options]

    def ahead(self, *choices: tuple[ReconstructionConfig, float, bool]) -> None:
        """Make these trials at the same time, if that can be."""
        if can_be_together(self._priors):
            at_the_same_time([partial(self, *choice) for choice in choices])


def can_be_together(priors: Priors) -> bool:
    """Whether trials can be made at the same time: whoever made a prior in Python did not expect that two use it."""
    return priors == (None, None) and thread_count() > 1


def at_the_same_time(jobs: Sequence[Callable[[], object]]) -> None:
    """One job on each core: two of them wait less for each other than the threads of one do.

    After an error or an interruption no other job begins.
    """
    failed = Event()

    def work(start: int, stop: int) -> None:
        for job in jobs[start:stop]:
            if failed.is_set():
                return
            try:
                job()
            except BaseException:
                failed.set()
                raise

    run_sliced(work, len(jobs))


def trial_solver(acquisition: Acquisition, config: ReconstructionConfig, priors: Priors) -> Solver:
    """The solver of a trial. Only LEDs near the pupil's edge have a size: the size of the others changes all trials
    alike, and takes most of their time."""
    solver = build_solver(acquisition, config, prior=priors[0], prior_absorption=priors[1])
    model = solver.fidelity.model
    few = coarse_sources(model.illumination, model.optics, model.geometry.patch_center)
    if few is not None:
        solver.fidelity.use(model.revised(sources=few))
    return solver


def prediction(
    seen: Acquisition,
    patch: Acquisition,
    unseen: tuple[NDArray[np.int64], NDArray[np.int64]],
    priors: Priors,
    config: ReconstructionConfig,
    factor: float,
    long_steps: bool,
) -> Prediction:
    """What a trial predicts of ``unseen`` frames.

    The misfit is infinite if the trial diverges, or if there is no light in any of these frames.
    """
    held, faint = unseen
    section = config.solver.model_copy(update={"strength_factor": factor, "long_steps": long_steps})
    solver = trial_solver(seen, config.model_copy(update={"solver": section}), priors)
    try:
        solver.solve(build_stop(config.stop))
    except DivergenceError:
        return Prediction(math.inf, np.zeros(len(held)))
    found = (patch, solver.model, solver.x)
    return Prediction(mean_misfit(*found, held), correlations(*found, held), imagines(*found, faint), solver.travels)


def mean_misfit(data: Acquisition, model: ForwardModel, x: RealArray, leds: NDArray[np.int64]) -> float:
    """The geometric mean of the misfits in bright and dark field; infinite without any light in frames of ``leds``."""
    known = [misfit for misfit in misfits(data, model, x, leds) if misfit is not None]
    return float(np.exp(np.mean(np.log(np.maximum(known, np.finfo(float).tiny))))) if known else math.inf
