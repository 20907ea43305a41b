"""Reconstructions with one number after another, all from the same point, and a score for each."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from fouriscope import metrics
from fouriscope.acquisition import Acquisition
from fouriscope.calibration.gains import gain_ratios
from fouriscope.errors import DivergenceError, InvalidInputError
from fouriscope.optics import Geometry
from fouriscope.priors import Prior
from fouriscope.run.assemble import build_solver
from fouriscope.run.doubt import REASON, Doubt
from fouriscope.run.priors import build_prior
from fouriscope.settings import ReconstructionConfig
from fouriscope.settings.explaining import explain
from fouriscope.solvers import Callback, Iterations, Solver
from fouriscope.solvers.frame_worth import frame_worth
from fouriscope.solvers.truth import observed_truth
from fouriscope.tuning.choice import STRENGTH, Criterion
from fouriscope.tuning.holdout import hold_out

ABSORPTION_STRENGTH = "prior_absorption.strength"
# A trial begins where a first run ended, and has only the difference of two strengths to work off.
WARM_SHARE = 0.35
# Of a configuration that limits only its time or its residual.
ITERATIONS = 300
# A strength belongs to a kind of object. If it were tuned for a phase, it would be used for a phase from then on.
NO_PHASE = (
    f"{REASON}, so the strength of its prior would be of no use; say what is reconstructed, and tune again: "
    '[object] model = "wave" and [solver] method = "spectral", sampler = "warm-up", or in Python '
    'object="wave", method=fs.settings.Spectral(sampler="warm-up")'
)


class Bench:
    """Runs trials, all from the same point and for the same number of iterations.

    Starting each where its neighbour ended would save more time, but would favour the last one, which has iterated
    most.

    A trial does what ``reconstruct`` would do with its value: the same method, and the same priors for all images of
    the object. One prior with a strength serves them all. If the absorption has its own prior, its strength keeps the
    ratio to that of the phase that the first run had.

    Held-out frames are judged as the solver judges the others. If gains are calibrated, their gain is fitted, because
    that of a held-out LED is not known. If the method balances frames, they are weighted by what the first run left of
    them.
    """

    def __init__(
        self,
        data: Acquisition,
        config: ReconstructionConfig,
        key: str,
        priors: tuple[Prior | None, Prior | None],
        criterion: Criterion,
        count: int | None,
        callbacks: Sequence[Callback],
        start: NDArray[Any] | None = None,
        *,
        doubt: Doubt | None = None,
    ) -> None:
        self.doubt = doubt
        self.config, self.key, self.criterion, self.callbacks = config, key, criterion, callbacks
        self.prior, self.absorption = priors
        if self.prior is None:
            self.prior = build_prior(config.prior, where="[prior]")
        if self.absorption is None and config.prior_absorption is not None:
            self.absorption = build_prior(config.prior_absorption, where="[prior_absorption]")
        used = np.flatnonzero(data.frame_weights > 0)
        self.frames = len(used)
        self.held: NDArray[np.int64] = np.empty(0, np.int64)
        if criterion == "held-out":
            geometry = Geometry.compile(
                data.optics, data.illumination, data.frame_shape, patch_center=data.patch_center
            )
            self.held = hold_out(geometry, used, count, np.random.default_rng((config.solver.seed, 2)))
            weights = data.frame_weights
            weights[self.held] = 0
            data = replace(data, weights=weights)
        self.data, self.start = data, start
        self.began: Solver | None = None
        self.ratio: float | None = None
        self.worth = np.ones(len(self.held))
        self.misfits: dict[float, NDArray[np.float64]] = {}

    def first(self) -> float:
        """The value to begin with, the configured or the automatic one; trials begin where its reconstruction ends."""
        assert self.prior is not None
        configured = _get(self.config, self.key) if self.key != STRENGTH else self.prior.strength
        solver = self._solver(None if configured == "auto" else float(configured))
        self._run(solver, 1.0, self.doubt)
        strengths = solver.strengths
        value = strengths[-1 if self.key == ABSORPTION_STRENGTH else 0] if configured == "auto" else float(configured)
        if not value > 0:
            raise InvalidInputError(
                f"{self.key} is {value:g} for the prior {self.prior.name!r}, so the search has no start; "
                "choose a prior with a strength, or begin with a positive number"
            )
        if self.key == STRENGTH and self.absorption is not None and strengths[-1] > 0:
            self.ratio = strengths[-1] / strengths[0]
        if len(self.held) and solver.balance:
            self.worth = self._worth(solver)
        self.began = solver
        return value

    def score(self, value: float) -> float:
        """The score after a short run from where the first one ended; −inf if it diverges."""
        solver = self._solver(value)
        try:
            self._run(solver, WARM_SHARE)
        except DivergenceError:
            self.misfits[value] = np.full(len(self.held), np.inf)
            return -np.inf
        found, misfits = self._scored(solver)
        self.misfits[value] = misfits
        return found

    def whole_run(self, worth: NDArray[np.float64] | None) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """The score of a whole run with the prior as it is, the misfits behind it, and how much each of them counts.

        ``worth`` is the last of these of another run, with which this one is to be compared. A score of a run that
        diverges is −inf.
        """
        solver = self._solver(None)
        try:
            self._run(solver, 1.0, self.doubt)
        except DivergenceError:
            return -np.inf, np.full(len(self.held), np.inf), self.worth if worth is None else worth
        if worth is not None:
            self.worth = worth
        elif len(self.held) and solver.balance:
            self.worth = self._worth(solver)
        return *self._scored(solver), self.worth

    def _scored(self, solver: Solver) -> tuple[float, NDArray[np.float64]]:
        if self.criterion == "held-out":
            misfits = self.worth * self._held_misfits(solver)
            return -float(misfits.mean()), misfits
        truth = observed_truth(solver.fidelity.model, self.data.truth)
        assert truth is not None
        return metrics.snr_both(solver.observed(), truth).aligned, np.empty(0)

    def settings(self, value: float) -> dict[str, float]:
        """What a configuration needs for ``value`` to be used."""
        return {self.key: value} | ({} if self.ratio is None else {ABSORPTION_STRENGTH: self.ratio * value})

    def _run(self, solver: Solver, share: float, doubt: Doubt | None = None) -> None:
        """Some of the configured iterations; other limits would compare trials of different lengths."""
        stop = Iterations(max(5, round(share * (self.config.stop.limit or ITERATIONS))))
        solver.solve(stop, self.callbacks if doubt is None else [*self.callbacks, doubt])
        if doubt is not None and doubt.asks_again(solver, stop):
            raise InvalidInputError(NO_PHASE)
        if stop(solver.history) is None:  # a callback ended it before
            raise KeyboardInterrupt

    def _solver(self, value: float | None) -> Solver:
        prior, absorption, config = copy.deepcopy(self.prior), copy.deepcopy(self.absorption), self.config
        assert prior is not None
        if value is not None and self.key == STRENGTH:
            prior.strength = value
            if self.ratio is not None and absorption is not None:
                absorption.strength = self.ratio * value
        elif value is not None:
            config = _with(config, self.key, value)
            if self.key.startswith("prior."):
                prior = build_prior(config.prior, where="[prior]")
            if self.key.startswith("prior_absorption.") and config.prior_absorption is not None:
                absorption = build_prior(config.prior_absorption, where="[prior_absorption]")
        began = self.began
        solver = build_solver(
            self.data, config, prior=prior, prior_absorption=absorption, start=self.start if began is None else began.x
        )
        if began is not None:
            solver.settle_like(began)
        return solver

    def _held_misfits(self, solver: Solver) -> NDArray[np.float64]:
        fidelity = solver.fidelity
        if self.config.calibration.gains:
            model = fidelity.model
            gains = np.ones(len(model)) if model.gains is None else np.array(model.gains, np.float64)
            gains[self.held] *= gain_ratios(fidelity, solver.x, self.held)
            fidelity.use(model.revised(gains=gains))
        return fidelity.misfits(solver.x, self.held)

    def _worth(self, solver: Solver) -> NDArray[np.float64]:
        pixels = [max(np.count_nonzero(solver.fidelity.mask_of(int(led))), 1) for led in self.held]
        variances = self._held_misfits(solver) / np.array(pixels)
        return frame_worth(variances, solver.fidelity.model.geometry.bright_field[self.held])


def _get(config: ReconstructionConfig, key: str) -> Any:
    value: Any = config.model_dump(mode="json")
    for name in key.split("."):
        if not isinstance(value, dict) or name not in value:
            raise InvalidInputError(f"{key!r} is not in the configuration; write it there with a value to start from")
        value = value[name]
    if isinstance(value, bool) or not (value == "auto" or (isinstance(value, int | float) and value > 0)):
        raise InvalidInputError(f"{key} = {value!r} cannot be tuned: a positive number is needed to start from")
    return value


def _with(config: ReconstructionConfig, key: str, value: float) -> ReconstructionConfig:
    document = config.model_dump(mode="json", exclude_none=True)
    *path, name = key.split(".")
    section = document
    for part in path:
        section = section[part]
    section[name] = type(section[name])(value) if isinstance(section[name], int) else value
    try:
        return type(config).model_validate(document)
    except ValidationError as error:
        raise InvalidInputError(explain(error, type(config), document)) from error
