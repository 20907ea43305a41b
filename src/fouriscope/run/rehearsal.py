"""How strong the prior should be: short reconstructions of a patch, before a run, have to predict unseen frames."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.errors import DivergenceError
from fouriscope.priors import Prior
from fouriscope.run.assemble import build_model, build_solver
from fouriscope.run.judged import LEAST_LEDS, judged_patch
from fouriscope.run.priors import build_prior
from fouriscope.settings import ReconstructionConfig
from fouriscope.settings.methods import Spectral
from fouriscope.solvers import Iterations
from fouriscope.verdict.heldout import drawn, misfits

# Strengths are tried in steps of this factor, at most so many steps up or down.
FACTOR, STEPS = 4.0, 2
# A step has to lower the misfit by this share. Less could be chance, and the strength stays as it is.
LEAST_GAIN = 0.005
# A trial has as many iterations as the run, but at most this many. A run of less than so many is meant to be short.
ITERATIONS, SHORT = 150, 100

AnyConfig = TypeVar("AnyConfig", bound=ReconstructionConfig)


def rehearsed(
    acquisition: Acquisition,
    config: AnyConfig,
    *,
    prior: Prior | None = None,
    prior_absorption: Prior | None = None,
    start: NDArray[Any] | None = None,
    tell: Callable[[str], object] | None = None,
    stage: Callable[[str], object] | None = None,
) -> AnyConfig:
    """``config`` with a number for ``strength_factor``, if it is "auto" there and frames can decide it.

    The automatic strength follows from the noise. Errors of the model want a stronger prior, and fine structure a
    weaker one, and neither is known beforehand. So a few LEDs are held out, as for the verdict, and the patch with the
    most structure is reconstructed with the strength as it is, a quarter of it, and so on as long as unseen frames are
    predicted better; otherwise with four times the strength and so on. What counts is the geometric mean of the misfits
    in bright and dark field. Each of the three to four trials takes as long as a run on 64 × 64 frame pixels.

    Parameters
    ----------
    acquisition, config
        After the alignment.
    prior, prior_absorption, start
        As in :func:`~fouriscope.run.assemble.build_solver`.
    tell, stage
        Called with what was found, and with what is being done.
    """
    method, iterations = config.solver, config.stop.iterations
    if not isinstance(method, Spectral) or method.strength_factor != "auto" or start is not None:
        return config
    if isinstance(iterations, int) and iterations < SHORT:
        return config
    if build_prior(config.prior if prior is None else prior, where="prior").strength != "auto":
        return config
    model = build_model(acquisition, config)
    used = acquisition.frame_weights > 0
    bright = int(np.count_nonzero(used & model.geometry.bright_field))
    if np.count_nonzero(used) < LEAST_LEDS or bright in (0, np.count_nonzero(used)):
        return config
    patch, on_patch, geometry = judged_patch(acquisition, model, config)
    on_patch = on_patch.model_copy(update={"calibration": config.calibration})  # nothing is calibrated yet
    held = drawn(patch, geometry, np.random.default_rng(method.seed), least=1)
    if not len(held):
        return config
    weights = patch.frame_weights
    weights[held] = 0
    seen = replace(patch, weights=weights)
    if stage is not None:
        stage("finding the strength of the prior with frames held out")
    trial = partial(_misfit, seen, patch, held, on_patch, prior, prior_absorption)
    factor, found = 1.0, {1.0: trial(1.0)}
    for direction in (1 / FACTOR, FACTOR):
        for _ in range(STEPS):
            found[factor * direction] = trial(factor * direction)
            if not found[factor * direction] < (1 - LEAST_GAIN) * found[factor]:
                break
            factor *= direction
        if factor != 1.0:
            break
    if tell is not None and factor != 1.0:
        tell(
            f"prior: {factor:g} times the automatic strength predicts unseen frames best "
            f"(misfit {found[factor]:.3g} instead of {found[1.0]:.3g})"
        )
    return config.model_copy(update={"solver": method.model_copy(update={"strength_factor": factor})})


def _misfit(
    seen: Acquisition,
    patch: Acquisition,
    held: NDArray[np.int64],
    config: ReconstructionConfig,
    prior: Prior | None,
    prior_absorption: Prior | None,
    factor: float,
) -> float:
    """Geometric mean of the misfits of unseen frames in bright and dark field; infinite if the trial diverges."""
    solver_section = config.solver.model_copy(update={"strength_factor": factor})
    tried = config.model_copy(update={"solver": solver_section})
    solver = build_solver(seen, tried, prior=prior, prior_absorption=prior_absorption)
    try:
        iterations = config.stop.iterations
        solver.solve(Iterations(min(ITERATIONS, iterations) if isinstance(iterations, int) else ITERATIONS))
    except DivergenceError:
        return math.inf
    known = [misfit for misfit in misfits(patch, solver.model, solver.x, held) if misfit is not None]
    return float(np.exp(np.mean(np.log(np.maximum(known, np.finfo(float).tiny)))))
