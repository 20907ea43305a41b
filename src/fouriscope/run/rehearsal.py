"""Strength of the prior, length of the steps, gains: before a run, a patch has to predict unseen frames."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.cross_validation import in_standard_errors
from fouriscope.errors import DivergenceError
from fouriscope.optics.frame_sources import coarse_sources
from fouriscope.parallel import run_sliced, thread_count
from fouriscope.priors import Prior
from fouriscope.run.assemble import build_model, build_solver, build_stop
from fouriscope.run.imagined import faint_frames, imagines
from fouriscope.run.judged import LEAST_LEDS, judged_patch
from fouriscope.run.priors import build_prior
from fouriscope.run.recipe import measured_sections
from fouriscope.settings import ReconstructionConfig, Stop
from fouriscope.settings.methods import Spectral
from fouriscope.verdict.heldout import correlations, drawn, misfits

# Other choices have to lower the misfit by this share. Less could be chance.
LEAST_GAIN = 0.005
# Strengths that are tried: (factor of a step, at most so many steps). A stronger prior hides detail that few frames
# see, so it goes less far: at 16 times the automatic strength, unseen frames of a target were predicted best, but its
# finest bars were gone.
SEARCH = ((1 / 4, 2), (4.0, 1))
# A stronger prior must lower the misfit by this share, or make frames and predictions more alike by so many standard
# errors: noise is most of the misfit of faint frames, and hides there what the prior gains.
GAIN_IF_STRONGER, CLEARLY = 0.01, 2.0
# A weaker prior fits noise, too. Frames and predictions may become less alike by so many standard errors.
HARDLY = 1.0
# Brightness decides the gains if it lowers the misfit by this share, or makes frames and predictions clearly more
# alike. It weakens what a model explains badly, so a little less misfit is no evidence.
GAIN_BY_BRIGHTNESS = 0.05
# Against imagined structure: the factor of a step, the largest factor of all, and the share by which a stronger prior
# may raise the misfit of other frames, because it also takes away detail.
CALMER, CALMEST, MOST_LOST = 2.0, 4.0, 0.1
# A trial has as many iterations as the run, but at most this many. A run of less than so many is meant to be short.
ITERATIONS, SHORT = 150, 100
# If a trial of the recipe's iterations is still under way, one of so many times as many shows whether that pays.
MORE = 4

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
    """``config`` with ``strength_factor``, ``long_steps``, ``gains_by`` and more iterations, if frames can decide.

    The automatic strength follows from the noise. Errors of the model want a stronger prior, and fine structure a
    weaker one, and neither is known beforehand. So a few LEDs are held out, as for the verdict, and the patch with the
    most structure is reconstructed with the strength as it is, a quarter of it, and so on as long as unseen frames are
    predicted better; otherwise with four times the strength. Before that, one trial shows whether steps should fade at
    once: the model of a thin sample should not be fitted to a thick one to the last. Another one shows whether the
    brightness of dark frames should decide their gains instead of their contrast. What counts is the geometric mean
    of the misfits in bright and dark field, and how much frames and predictions are alike (their correlation). Frames
    of mere noise have no part in that. But if they show that what is predicted for them is imagined
    (:func:`~fouriscope.run.imagined.imagines`), the prior is made twice as strong, and once more if that is not enough.
    If the estimate still travels after the 150 iterations of the recipe, a trial of 600 shows whether they pay.
    Each of the five to seven trials takes as long as a run on 64 × 64 frame pixels.

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
    count = min(ITERATIONS, iterations) if isinstance(iterations, int) else ITERATIONS
    # Nothing is calibrated yet.
    on_patch = on_patch.model_copy(update={"calibration": config.calibration, "stop": Stop(iterations=count)})
    rng = np.random.default_rng(method.seed)
    held = drawn(patch, geometry, rng, least=1)
    if not len(held):
        return config
    faint = faint_frames(patch, geometry, rng)
    weights = patch.frame_weights
    weights[held] = weights[faint] = 0
    seen = replace(patch, weights=weights)
    if stage is not None:
        stage("finding the strength of the prior with frames held out")
    trial = _Trials(seen, patch, (held, faint), prior, prior_absorption)
    long_steps = method.long_steps is not False
    if method.long_steps == "auto":
        trial.ahead((on_patch, 1.0, True), (on_patch, 1.0, False))
    best = trial(on_patch, 1.0, long_steps)
    if method.long_steps == "auto":
        faded = trial(on_patch, 1.0, False)
        if faded.misfit < (1 - LEAST_GAIN) * best.misfit:
            _tell(tell, "steps: if they fade from the first pass on, unseen frames are predicted better", faded, best)
            long_steps, best = False, faded
    if config.calibration.gains and config.calibration.gains_by == "auto":
        by = "contrast"
        brightness, contrast = (_with_gains_by(one, on_patch) for one in ("brightness", by))
        trial.ahead((brightness, 1.0, long_steps), (contrast, SEARCH[0][0], long_steps))  # it mostly stays the contrast
        by_brightness = trial(brightness, 1.0, long_steps)
        if _brightness_pays(by_brightness, best):
            _tell(tell, "gains: if brightness decides them, unseen frames are predicted better", by_brightness, best)
            by, best = "brightness", by_brightness
        config, on_patch = _with_gains_by(by, config), _with_gains_by(by, on_patch)
    factor, at_one = 1.0, best
    for step, most in SEARCH:
        for _ in range(most):
            found = trial(on_patch, factor * step, long_steps)
            if not (_stronger_pays if step > 1 else _weaker_pays)(found, best):
                break
            factor, best = factor * step, found
        if factor != 1.0:
            _tell(tell, f"prior: {factor:g} times the automatic strength predicts unseen frames best", best, at_one)
            break
    at_choice = best
    while best.imagines and factor * CALMER <= CALMEST:
        calmer = trial(on_patch, factor * CALMER, long_steps)
        if calmer.misfit > (1 + MOST_LOST) * at_choice.misfit:
            break
        factor, best = factor * CALMER, calmer
    if best is not at_choice:
        _tell(
            tell,
            f"prior: {factor:g} times the automatic strength, because less showed structure in frames of noise",
            best,
            at_choice,
        )
    if best.travels and iterations == measured_sections()["stop"]["iterations"]:
        most = MORE * count
        longer = trial(on_patch.model_copy(update={"stop": Stop(iterations=most)}), factor, long_steps)
        if _weaker_pays(longer, best):
            _tell(tell, f"iterations: {most} instead of {count} predict unseen frames better", longer, best)
            config = config.model_copy(update={"stop": config.stop.model_copy(update={"iterations": most})})
    found_options = {"strength_factor": factor, "long_steps": long_steps}
    return config.model_copy(update={"solver": method.model_copy(update=found_options)})


def _with_gains_by(by: str, config: AnyConfig) -> AnyConfig:
    return config.model_copy(update={"calibration": config.calibration.model_copy(update={"gains_by": by})})


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


def _stronger_pays(stronger: Prediction, now: Prediction) -> bool:
    gain, evidence = 1 - stronger.misfit / now.misfit, stronger.evidence(now)
    return (gain > GAIN_IF_STRONGER and evidence >= 0) or (gain > -LEAST_GAIN and evidence >= CLEARLY)


def _weaker_pays(weaker: Prediction, now: Prediction) -> bool:
    return weaker.misfit < (1 - LEAST_GAIN) * now.misfit and weaker.evidence(now) >= -HARDLY


def _brightness_pays(by_brightness: Prediction, now: Prediction) -> bool:
    gain, evidence = 1 - by_brightness.misfit / now.misfit, by_brightness.evidence(now)
    return (gain > GAIN_BY_BRIGHTNESS and evidence >= -HARDLY) or (gain > 0 and evidence >= CLEARLY)


def _tell(tell: Callable[[str], object] | None, finding: str, now: Prediction, before: Prediction) -> None:
    if tell is not None:
        alike = (
            ""
            if np.array_equal(now.correlations, before.correlations)
            else (f", correlation {now.correlations.mean():.3f} instead of {before.correlations.mean():.3f}")
        )
        tell(f"{finding} (misfit {now.misfit:.3g} instead of {before.misfit:.3g}{alike})")


class _Trials:
    """What trials predict of unseen frames: each is made once, and those that are asked for together on all cores."""

    def __init__(
        self,
        seen: Acquisition,
        patch: Acquisition,
        unseen: tuple[NDArray[np.int64], NDArray[np.int64]],
        prior: Prior | None,
        prior_absorption: Prior | None,
    ) -> None:
        self._predict = partial(_prediction, seen, patch, unseen, prior, prior_absorption)
        # Whoever made a prior in Python did not expect that two trials use it at the same time.
        self._together = prior is None and prior_absorption is None
        self._found: dict[tuple[object, ...], Prediction] = {}

    def __call__(self, config: ReconstructionConfig, factor: float, long_steps: bool) -> Prediction:
        options = (config.calibration.gains_by, factor, long_steps, config.stop.iterations)
        if options not in self._found:
            self._found[options] = self._predict(config, factor, long_steps)
        return self._found[options]

    def ahead(self, *choices: tuple[ReconstructionConfig, float, bool]) -> None:
        """Make these trials at the same time, one on each core: two of them wait less for each other than the threads
        of one do."""
        if not self._together or thread_count() == 1:
            return

        def work(start: int, stop: int) -> None:
            for choice in choices[start:stop]:
                self(*choice)

        run_sliced(work, len(choices))


def _prediction(
    seen: Acquisition,
    patch: Acquisition,
    unseen: tuple[NDArray[np.int64], NDArray[np.int64]],
    prior: Prior | None,
    prior_absorption: Prior | None,
    config: ReconstructionConfig,
    factor: float,
    long_steps: bool,
) -> Prediction:
    """What a trial predicts of ``unseen`` frames, of those that tell something and of those that are noise.

    The misfit is infinite if the trial diverges, or if there is no light in any of these frames.
    """
    held, faint = unseen
    section = config.solver.model_copy(update={"strength_factor": factor, "long_steps": long_steps})
    tried = config.model_copy(update={"solver": section})
    solver = build_solver(seen, tried, prior=prior, prior_absorption=prior_absorption)
    # The size of LEDs far from the pupil's edge changes all trials alike, and takes most of their time.
    model = solver.fidelity.model
    few = coarse_sources(model.illumination, model.optics, model.geometry.patch_center)
    if few is not None:
        solver.fidelity.use(model.revised(sources=few))
    try:
        solver.solve(build_stop(config.stop))
    except DivergenceError:
        return Prediction(math.inf, np.zeros(len(held)))
    known = [misfit for misfit in misfits(patch, solver.model, solver.x, held) if misfit is not None]
    misfit = float(np.exp(np.mean(np.log(np.maximum(known, np.finfo(float).tiny))))) if known else math.inf
    found = (patch, solver.model, solver.x)
    return Prediction(misfit, correlations(*found, held), imagines(*found, faint), solver.travels)
