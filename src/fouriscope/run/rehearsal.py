"""Start, strength of the prior, length of the steps, gains: before a run, a patch has to predict unseen frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.priors import Prior
from fouriscope.run.assemble import build_model
from fouriscope.run.imagined import faint_frames
from fouriscope.run.judged import LEAST_LEDS, judged_patch
from fouriscope.run.predictions import Prediction, Trials
from fouriscope.run.priors import build_prior
from fouriscope.run.starts import with_best_seed
from fouriscope.settings import ReconstructionConfig, Stop
from fouriscope.settings.methods import Spectral
from fouriscope.verdict.heldout import drawn

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
# If a trial of "auto" iterations is still under way at its end, one of so many times as many shows whether that pays.
MORE = 4

AnyConfig = TypeVar("AnyConfig", bound=ReconstructionConfig)
Tell = Callable[[str], object] | None


def rehearsed(
    acquisition: Acquisition,
    config: AnyConfig,
    *,
    prior: Prior | None = None,
    prior_absorption: Prior | None = None,
    start: NDArray[Any] | None = None,
    tell: Tell = None,
    stage: Tell = None,
) -> AnyConfig:
    """``config`` with seed, ``strength_factor``, ``long_steps``, ``gains_by`` and iterations as frames decide.

    If starts with two seeds lead to different objects, several are tried first, and the seed that explains the frames
    best is kept (:func:`~fouriscope.run.starts.with_best_seed`).

    The automatic strength follows from the noise. Errors of the model want a stronger prior, and fine structure a
    weaker one, and neither is known beforehand. So a few LEDs are held out, as for the verdict, and the patch with the
    most structure is reconstructed with the strength as it is, a quarter of it, and so on as long as unseen frames are
    predicted better; otherwise with four times the strength. Before that, one trial shows whether steps should fade at
    once: the model of a thin sample should not be fitted to a thick one to the last. Another one shows whether the
    brightness of dark frames should decide their gains instead of their contrast. What counts is the geometric mean
    of the misfits in bright and dark field, and how much frames and predictions are alike (their correlation). Frames
    of mere noise have no part in that. But if they show that what is predicted for them is imagined
    (:func:`~fouriscope.run.imagined.imagines`), a weaker prior is not used, and the prior is made twice as strong, and
    once more if that is not enough.
    If ``iterations`` is "auto" and the estimate still travels after 150, a trial of 600 shows whether they pay.
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
    method, limit = config.solver, config.stop.limit
    if not isinstance(method, Spectral) or method.strength_factor != "auto" or start is not None:
        return config
    if limit is not None and limit < SHORT:
        return config
    if build_prior(config.prior if prior is None else prior, where="prior").strength != "auto":
        return config
    model = build_model(acquisition, config)
    used = acquisition.frame_weights > 0
    bright = int(np.count_nonzero(used & model.geometry.bright_field))
    if np.count_nonzero(used) < LEAST_LEDS or bright in (0, np.count_nonzero(used)):
        return config
    patch, on_patch, geometry = judged_patch(acquisition, model, config)
    rng = np.random.default_rng(method.seed)
    held = drawn(patch, geometry, rng, least=1)
    if not len(held):
        return config
    if stage is not None:
        stage("finding start and strength of the prior with frames held out")
    priors = (prior, prior_absorption)
    # Nothing is calibrated yet.
    on_patch = on_patch.model_copy(update={"calibration": config.calibration})
    config = with_best_seed(acquisition, config, patch, on_patch, priors, tell)
    count = min(ITERATIONS, limit or ITERATIONS)
    seeded = {"seed": config.solver.seed}
    on_patch = _with(on_patch, "solver", seeded).model_copy(update={"stop": Stop(iterations=count)})
    faint = faint_frames(patch, geometry, rng)
    weights = patch.frame_weights
    weights[held] = weights[faint] = 0
    trial = Trials(replace(patch, weights=weights), patch, (held, faint), priors)
    long_steps, best = _steps(trial, on_patch, method.long_steps, tell)
    if config.calibration.gains and config.calibration.gains_by == "auto":
        by, best = _deciding_gains(trial, on_patch, long_steps, best, tell)
        found = {"gains_by": by}
        config, on_patch = _with(config, "calibration", found), _with(on_patch, "calibration", found)
    factor, best = _strength(trial, on_patch, long_steps, best, tell)
    factor, best = _calmed(trial, on_patch, long_steps, factor, best, tell)
    if config.stop.iterations == "auto":
        chosen = _iterations(trial, on_patch, long_steps, factor, best, tell) if best.travels else count
        config = _with(config, "stop", {"iterations": chosen})
    return _with(config, "solver", {"strength_factor": factor, "long_steps": long_steps})


def _steps(trial: Trials, on_patch: ReconstructionConfig, asked: bool | str, tell: Tell) -> tuple[bool, Prediction]:
    """Whether steps stay long, as ``asked`` or as frames decide, and what the trial with them predicts."""
    if asked != "auto":
        return bool(asked), trial(on_patch, 1.0, bool(asked))
    trial.ahead((on_patch, 1.0, True), (on_patch, 1.0, False))
    best, faded = trial(on_patch, 1.0, True), trial(on_patch, 1.0, False)
    if faded.misfit >= (1 - LEAST_GAIN) * best.misfit:
        return True, best
    _tell(tell, "steps: if they fade from the first pass on, unseen frames are predicted better", faded, best)
    return False, faded


def _deciding_gains(
    trial: Trials, on_patch: ReconstructionConfig, long_steps: bool, best: Prediction, tell: Tell
) -> tuple[str, Prediction]:
    """What decides the gains of dark frames, and what the trial with that predicts."""
    brightness, contrast = (_with(on_patch, "calibration", {"gains_by": by}) for by in ("brightness", "contrast"))
    trial.ahead((brightness, 1.0, long_steps), (contrast, SEARCH[0][0], long_steps))  # it mostly stays the contrast
    by_brightness = trial(brightness, 1.0, long_steps)
    if not _brightness_pays(by_brightness, best):
        return "contrast", best
    _tell(tell, "gains: if brightness decides them, unseen frames are predicted better", by_brightness, best)
    return "brightness", by_brightness


def _strength(
    trial: Trials, on_patch: ReconstructionConfig, long_steps: bool, at_one: Prediction, tell: Tell
) -> tuple[float, Prediction]:
    """The factor of the automatic strength, and what the trial with it predicts."""
    factor, best = 1.0, at_one
    for step, most in SEARCH:
        for _ in range(most):
            found = trial(on_patch, factor * step, long_steps)
            pays = _stronger_pays(found, best) if step > 1 else _weaker_pays(found, best) and not found.imagines
            if not pays:
                break
            factor, best = factor * step, found
        if factor != 1.0:
            _tell(tell, f"prior: {factor:g} times the automatic strength predicts unseen frames best", best, at_one)
            break
    return factor, best


def _calmed(
    trial: Trials, on_patch: ReconstructionConfig, long_steps: bool, factor: float, at_choice: Prediction, tell: Tell
) -> tuple[float, Prediction]:
    """A larger factor if structure is imagined with this one, and what the trial with it predicts."""
    best = at_choice
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
    return factor, best


def _iterations(
    trial: Trials, on_patch: ReconstructionConfig, long_steps: bool, factor: float, best: Prediction, tell: Tell
) -> int:
    """How many iterations an estimate that still travels should have."""
    assert isinstance(on_patch.stop.iterations, int)
    count, most = on_patch.stop.iterations, MORE * on_patch.stop.iterations
    longer = trial(_with(on_patch, "stop", {"iterations": most}), factor, long_steps)
    if not _weaker_pays(longer, best):
        return count
    _tell(tell, f"iterations: {most} instead of {count} predict unseen frames better", longer, best)
    return most


def _with(config: AnyConfig, section: str, keys: dict[str, Any]) -> AnyConfig:
    """``config`` with these keys of a section changed."""
    return config.model_copy(update={section: getattr(config, section).model_copy(update=keys)})


def _stronger_pays(stronger: Prediction, now: Prediction) -> bool:
    gain, evidence = 1 - stronger.misfit / now.misfit, stronger.evidence(now)
    return (gain > GAIN_IF_STRONGER and evidence >= 0) or (gain > -LEAST_GAIN and evidence >= CLEARLY)


def _weaker_pays(weaker: Prediction, now: Prediction) -> bool:
    return weaker.misfit < (1 - LEAST_GAIN) * now.misfit and weaker.evidence(now) >= -HARDLY


def _brightness_pays(by_brightness: Prediction, now: Prediction) -> bool:
    gain, evidence = 1 - by_brightness.misfit / now.misfit, by_brightness.evidence(now)
    return (gain > GAIN_BY_BRIGHTNESS and evidence >= -HARDLY) or (gain > 0 and evidence >= CLEARLY)


def _tell(tell: Tell, finding: str, now: Prediction, before: Prediction) -> None:
    if tell is not None:
        alike = (
            ""
            if np.array_equal(now.correlations, before.correlations)
            else (f", correlation {now.correlations.mean():.3f} instead of {before.correlations.mean():.3f}")
        )
        tell(f"{finding} (misfit {now.misfit:.3g} instead of {before.misfit:.3g}{alike})")
