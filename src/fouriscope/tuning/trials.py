"""One reconstruction after another, each with another strength, and a score for each."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from fouriscope import metrics, plots
from fouriscope.acquisition import Acquisition
from fouriscope.errors import DivergenceError, InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray
from fouriscope.optics import Geometry
from fouriscope.priors import Prior, PriorLike
from fouriscope.reconstruction import configure
from fouriscope.run.aligned import aligned
from fouriscope.run.assemble import BuiltSolver, build_prior, build_solver
from fouriscope.run.config import explain
from fouriscope.run.sections import ReconstructionConfig
from fouriscope.solvers import Callback, Iterations
from fouriscope.solvers.truth import observed_truth
from fouriscope.tuning.holdout import hold_out
from fouriscope.tuning.search import FIRST_FACTOR, Trial, log_search

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Criterion = Literal["held-out", "truth"]
STRENGTH = "prior.strength"
# A trial begins where a first run ended, and has only the difference of two strengths to work off.
WARM_SHARE = 0.35
# Of a configuration that limits only its time or its residual.
ITERATIONS = 300


@dataclass(frozen=True, eq=False)
class Tuning:
    """What a search found.

    Attributes
    ----------
    key, value
        The parameter and its best value, for a reconstruction from all frames.
    criterion
        "truth" (score: SNR in dB) or "held-out" (score: minus the mean misfit of frames that were not used).
    trials
        Every value that was tried, in increasing order.
    held_out
        The LEDs that were set aside; empty with a truth.
    """

    key: str
    value: float
    criterion: Criterion
    trials: tuple[Trial, ...]
    held_out: NDArray[np.int64]

    def figure(self) -> Figure:
        """The curve that the choice was made on."""
        values = np.array([trial.value for trial in self.trials])
        scores = np.array([trial.score for trial in self.trials])
        scores[~np.isfinite(scores)] = np.nan
        if self.criterion == "held-out":
            scores = 100 * (np.nanmax(scores) - scores) / abs(np.nanmax(scores))
        return plots.tuning_figure(
            values,
            scores,
            self.value,
            xlabel="strength λ" if self.key == STRENGTH else self.key,
            ylabel="SNR (dB)" if self.criterion == "truth" else f"misfit of {len(self.held_out)} held-out frames (+ %)",
        )


def tune(
    data: Acquisition,
    *,
    prior: PriorLike = "tv",
    criterion: Criterion | None = None,
    held_out: int | None = None,
    evaluations: int = 12,
    factor: float = FIRST_FACTOR,
    on_trial: Callable[[Trial], object] | None = None,
    callbacks: Sequence[Callback] = (),
    **options: Any,
) -> Tuning:
    """Choose the strength λ of ``prior`` for an acquisition.

    With a truth (a simulation), the strength of the highest SNR. **Without one, a few LEDs are held out**, spread over
    bright and dark field, and the strength whose reconstruction predicts their frames best is taken: too weak a prior
    leaves noise of the frames it was fitted to, too strong a one smooths away what the others show. The value is for
    the full set of frames (λ belongs to a mean over J frames, so that the one found with J − h is multiplied by
    (J − h)/J).

    The search is golden section on log λ, from the automatic strength outwards. The first reconstruction starts from
    nothing and takes ``iterations``; the trials start where it ended, and take a third each.

    Parameters
    ----------
    data, prior
        As in :func:`fouriscope.reconstruct`.
    criterion
        "truth" or "held-out"; by default the truth where ``data`` has one.
    held_out
        How many LEDs to hold out: 8 % by default.
    evaluations
        Trials at most.
    factor
        How far apart the first three trials are.
    on_trial
        Called with every :class:`Trial`.
    callbacks
        Called in every iteration; one that returns True ends the search with ``KeyboardInterrupt``.
    **options
        Everything else that :func:`fouriscope.reconstruct` takes: batch, iterations, loss, method, seed …

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> model = fs.ForwardModel(optics, fs.LEDArray.square(9, pitch=4e-3, height=70e-3), (24, 24))
    >>> phase = 0.3 * (np.indices(model.object_shape).sum(axis=0) % 40 < 20)
    >>> data = fs.simulate(model, phase, snr_db=30, seed=0)
    >>> found = fs.tune(data, prior="tv", criterion="held-out", batch=20, iterations=40, evaluations=5, seed=0)
    >>> result = fs.reconstruct(data, prior=fs.TV(strength=found.value), batch=20, iterations=40, seed=0)
    """
    chosen = build_prior(prior, where="prior")
    config = configure(data, prior=chosen, **options)
    return tune_config(
        data,
        config,
        prior=chosen,
        criterion=criterion,
        held_out=held_out,
        evaluations=evaluations,
        factor=factor,
        on_trial=on_trial,
        callbacks=callbacks,
    )


def tune_config(
    data: Acquisition,
    config: ReconstructionConfig,
    *,
    key: str = STRENGTH,
    prior: Prior | None = None,
    criterion: Criterion | None = None,
    held_out: int | None = None,
    evaluations: int = 12,
    factor: float = FIRST_FACTOR,
    on_trial: Callable[[Trial], object] | None = None,
    callbacks: Sequence[Callback] = (),
) -> Tuning:
    """The same for a configuration and any positive number in it, such as "prior.strength" or "solver.denoiser_weight".

    ``prior`` stands in for the configured one, as in :func:`fouriscope.run.assemble.build_solver`. ``callbacks`` are
    called in every iteration of every trial, two of which may run at once; one that returns True ends the search with
    ``KeyboardInterrupt``.
    """
    if criterion is None:
        criterion = "held-out" if data.truth is None else "truth"
    if criterion == "truth" and data.truth is None:
        raise InvalidInputError('there is no truth to tune against; use criterion="held-out"')
    data = aligned(data, config.alignment).acquisition  # once: all trials look through the same microscope
    bench = _Bench(data, config, key, prior, criterion, held_out, callbacks)
    trials = log_search(bench.score, bench.first(), evaluations=evaluations, factor=factor, on_trial=on_trial)
    best = max(trials, key=lambda trial: trial.score)
    value = best.value * (1 - len(bench.held) / bench.frames if key.endswith("strength") else 1)
    return Tuning(key, value, criterion, tuple(trials), bench.held)


class _Bench:
    """Runs trials, all from the same point and for the same number of iterations.

    Starting each where its neighbour ended would save more, but favour whichever comes last: it has iterated most.
    """

    def __init__(
        self,
        data: Acquisition,
        config: ReconstructionConfig,
        key: str,
        prior: Prior | None,
        criterion: Criterion,
        count: int | None,
        callbacks: Sequence[Callback],
    ) -> None:
        self.config, self.key, self.criterion, self.callbacks = config, key, criterion, callbacks
        self.prior = build_prior(config.prior, where="[prior]") if prior is None else prior
        used = np.arange(len(data)) if data.weights is None else np.flatnonzero(np.asarray(data.weights) > 0)
        self.frames = len(used)
        self.held: NDArray[np.int64] = np.empty(0, np.int64)
        if criterion == "held-out":
            geometry = Geometry.compile(
                data.optics, data.illumination, data.frame_shape, patch_center=data.patch_center
            )
            self.held = hold_out(geometry, used, count, np.random.default_rng((config.solver.seed, 2)))
            weights = np.ones(len(data)) if data.weights is None else np.array(data.weights, np.float64)
            weights[self.held] = 0
            data = replace(data, weights=weights)
        self.data = data
        self.start: RealArray | None = None
        self.model: ForwardModel | None = None

    def first(self) -> float:
        """The value to begin with, the configured or the automatic one, and where its reconstruction ends."""
        configured = _get(self.config, self.key) if self.key != STRENGTH else self.prior.strength
        solver = self._solver(None if configured == "auto" else float(configured))
        self._run(solver, 1.0)
        value = solver.history.last.strength if configured == "auto" else float(configured)
        if not value > 0:
            raise InvalidInputError(
                f"{self.key} is {value:g} for the prior {self.prior.name!r}: there is nothing to search around; "
                "choose a prior with a strength, or begin with a positive number"
            )
        # Object and microscope belong together: trials begin with what a calibration had found.
        self.start, self.model = solver.x, solver.fidelity.model
        return value

    def score(self, value: float) -> float:
        """The score after a short run from where the first one ended; −inf where it diverges."""
        solver = self._solver(value)
        try:
            self._run(solver, WARM_SHARE)
        except DivergenceError:
            return -np.inf
        return self._score(solver)

    def _run(self, solver: BuiltSolver, share: float) -> None:
        """Some of the configured iterations; other limits would compare trials of different lengths."""
        iterations = self.config.stop.iterations
        solver.solve(
            Iterations(max(5, round(share * (iterations if isinstance(iterations, int) else ITERATIONS)))),
            self.callbacks,
        )
        if solver.stop_reason == "interrupted":
            raise KeyboardInterrupt

    def _solver(self, value: float | None) -> BuiltSolver:
        prior, config = copy.deepcopy(self.prior), self.config
        if value is not None and self.key == STRENGTH:
            prior.strength = value
        elif value is not None:
            config = _with(config, self.key, value)
            if self.key.startswith("prior."):
                prior = build_prior(config.prior, where="[prior]")
        solver = build_solver(self.data, config, prior=prior, start=self.start)
        if self.model is not None and solver.calibration is not None:
            solver.fidelity.use(self.model)
        return solver

    def _score(self, solver: BuiltSolver) -> float:
        if self.criterion == "held-out":
            return -float(solver.fidelity.misfits(solver.x, self.held).mean())
        truth = observed_truth(solver.fidelity.model, self.data.truth)
        assert truth is not None
        return metrics.snr_both(solver.observed(), truth).aligned


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
