"""Which start: where a sample has several turns of phase each leads to another object, and frames fit one best."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.errors import DivergenceError
from fouriscope.metrics import field_nrmse
from fouriscope.run.predictions import Priors, at_the_same_time, can_be_together, mean_misfit, trial_solver
from fouriscope.settings import ReconstructionConfig
from fouriscope.solvers import Iterations

# Two starts lead to the same object if the results differ by less than this share of it. Noise and minibatches leave a
# few hundredths; where the phase has several turns it is mostly a quarter and more.
ALIKE = 0.1
# Starts that are tried if the first two lead to different objects. After so many iterations the better half goes on.
STARTS, ITERATIONS, OF_THE_BETTER_HALF = 6, 60, 150
# Of frames with more pixels than so many times those of a patch, each start is better in one place and worse in
# another: a choice gains little there, and takes long.
LARGEST = 4

AnyConfig = TypeVar("AnyConfig", bound=ReconstructionConfig)


def with_best_seed(
    acquisition: Acquisition,
    config: AnyConfig,
    patch: Acquisition,
    on_patch: ReconstructionConfig,
    priors: Priors = (None, None),
    tell: Callable[[str], object] | None = None,
) -> AnyConfig:
    """``config`` with the seed whose start leads to the smallest misfit, if different starts lead to different objects.

    The sweeps of EPRY at the start visit LEDs in a random order. An object with several turns of phase can end in
    different places then, where no step that lowers the misfit leads out. So two seeds are tried on a patch. If their
    objects differ by a tenth (:func:`~fouriscope.metrics.field_nrmse`), six are tried on the frames. What counts is the
    geometric mean of the misfits in bright and dark field: the loss has weights that each attempt finds for itself.

    Parameters
    ----------
    acquisition, config
        After the alignment. The first seed is that of the configuration.
    patch, on_patch
        From :func:`~fouriscope.run.judged.judged_patch`.
    priors
        Objects that replace those of the configuration.
    tell
        Called with what was found.
    """
    seed = config.solver.seed
    if config.solver.start != "epry" or math.prod(acquisition.frame_shape) > LARGEST * math.prod(patch.frame_shape):
        return config
    two = [_Attempt(patch, on_patch, number, priors) for number in (seed, seed + 1)]
    one, other = _best_first(two, ITERATIONS, priors)
    if math.isfinite(other.misfit) and field_nrmse(one.wave, other.wave) < ALIKE:  # other is the worse of the two
        return config
    attempts = [_Attempt(acquisition, config, number, priors) for number in range(seed, seed + STARTS)]
    better_half = _best_first(attempts, ITERATIONS, priors)[: STARTS // 2]
    best, second, *_ = _best_first(better_half, OF_THE_BETTER_HALF, priors)
    if tell is not None:
        tell(
            f"start: different ones lead to different objects, as where a phase has several turns; of {STARTS}, that "
            f"of seed {best.seed} explains the frames best (misfit {best.misfit:.3g}, next {second.misfit:.3g})"
        )
    return config.model_copy(update={"solver": config.solver.model_copy(update={"seed": best.seed})})


class _Attempt:
    """A reconstruction from the start of one seed."""

    def __init__(self, acquisition: Acquisition, config: ReconstructionConfig, seed: int, priors: Priors) -> None:
        self.seed, self._acquisition = seed, acquisition
        seeded = config.model_copy(update={"solver": config.solver.model_copy(update={"seed": seed})})
        self._solver = trial_solver(acquisition, seeded, priors)
        self.misfit = math.inf

    def go_on(self, iterations: int) -> None:
        """Up to so many iterations; the misfit stays infinite if they diverge."""
        try:
            self._solver.solve(Iterations(iterations))
        except DivergenceError:
            self.misfit = math.inf
            return
        used = np.flatnonzero(self._acquisition.frame_weights > 0)
        self.misfit = mean_misfit(self._acquisition, self._solver.model, self._solver.x, used)

    @property
    def wave(self) -> NDArray[Any]:
        """What is behind the sample, in the window of the frames."""
        model = self._solver.model
        return model.transmittance(self._solver.x)[model.geometry.object_window]


def _best_first(attempts: list[_Attempt], iterations: int, priors: Priors) -> list[_Attempt]:
    """``attempts`` by their misfit after so many iterations."""
    jobs = [partial(attempt.go_on, iterations) for attempt in attempts]
    if can_be_together(priors):
        at_the_same_time(jobs)
    else:
        for job in jobs:
            job()
    return sorted(attempts, key=lambda attempt: attempt.misfit)
