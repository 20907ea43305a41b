"""The last look at place and focus of the LEDs: each frame is predicted from the others, by cross-validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.array import Motion, moved_array, names_of, one_bin
from fouriscope.alignment.prediction import Unseen
from fouriscope.alignment.trials import PATCH, Trials, most_detailed_patch
from fouriscope.calibration.positions import as_array
from fouriscope.errors import DivergenceError, InvalidInputError
from fouriscope.optics import Adjusted, Illumination, Pupil
from fouriscope.parallel import run_sliced

Floats = NDArray[np.float64]

# Each reconstruction leaves out one fold of the frames, and predicts it. So many frames are enough to compare guesses;
# of large arrays, some folds hold as many.
FOLDS, ENOUGH = 5, 90
# Frames whose LEDs are nearer to the pupil's edge than this, in bins, are not asked: whether their direct light passes
# outweighs all else. So many frames must remain.
EDGE, LEAST_FRAMES = 1.0, 20
# Steps of the search, in bins (root mean square over the LEDs) and, for the focus, in quarters of its depth; and how
# often each may be repeated as long as the likeness, or what it lacks of 1, changes by the share that comes next.
STEPS, ROUNDS, WORTHWHILE = (0.6, 0.3), 4, 1e-3
FOCUS_UNIT = 0.25
# The mean improvement of frames in other folds must be this many times its standard error.
EVIDENCE = 1.5
# The likeness of a guess with which nothing can be reconstructed.
HOPELESS = -1.0


@dataclass(frozen=True)
class Guess:
    """What is varied of a microscope."""

    illumination: Illumination
    pupil: Pupil


@dataclass(frozen=True, eq=False)
class PolishFit:
    """What the search by cross-validation found.

    Attributes
    ----------
    illumination, defocus
        As found, or as they were.
    before, after
        Mean correlation of the frames with their predictions, in folds that took no part in the search.
    evidence
        The improvement in standard errors.
    reconstructions
        How many it took.
    """

    illumination: Illumination
    defocus: float
    before: float
    after: float
    evidence: float
    reconstructions: int

    @property
    def changed(self) -> bool:
        return self.evidence >= EVIDENCE


class CrossValidation:
    """How well the frames of a patch are predicted, each from reconstructions that have not seen it.

    A frame that was used cannot tell where its LED is: the object adapts. A frame that was left out can, and it needs
    no gain or exposure for that, because correlations have none. Most of these frames lie between others that were
    used, so no guess makes the prediction easier than another.

    Parameters
    ----------
    trials
        The short reconstructions.
    askable
        Whether each frame may be asked: :func:`askable` ones.
    seed
        Of the random folds.
    """

    def __init__(self, trials: Trials, askable: NDArray[np.bool_], seed: int) -> None:
        asked = np.random.default_rng(seed).permutation(np.flatnonzero(askable))
        self.trials, self.unseen = trials, Unseen(trials)
        needed = min(FOLDS, math.ceil(FOLDS * ENOUGH / max(len(asked), 1)))
        self.folds = [asked[fold::FOLDS] for fold in range(needed)]
        self.frames, self.reconstructions = sum(map(len, self.folds)), 0

    def likeness(self, guesses: Sequence[Guess]) -> Floats:
        """The correlation of every frame with its prediction, one row per guess; all cores compute."""
        tasks = [(guess, fold) for guess in guesses for fold in self.folds]
        found: list[Floats] = [np.empty(0)] * len(tasks)

        def work(start: int, stop: int) -> None:
            for task in range(start, stop):
                found[task] = self._of_fold(*tasks[task])

        run_sliced(work, len(tasks))
        self.reconstructions += len(tasks)
        return np.concatenate(found).reshape(len(guesses), self.frames)

    def _of_fold(self, guess: Guess, fold: NDArray[np.int64]) -> Floats:
        weights = self.trials.patch.frame_weights
        weights[fold] = 0
        seen = replace(self.trials.patch, weights=weights)
        try:
            model = self.trials.model(guess.illumination, pupil=guess.pupil)
            solver = self.trials.sweeps(model, seen, free_pupil=True)
        except (InvalidInputError, DivergenceError):
            return np.full(len(fold), HOPELESS)  # an LED beyond the object's spectrum, or a guess that explains nothing
        return self.unseen.correlations(solver.model, solver.x, fold)


def askable(trials: Trials) -> NDArray[np.bool_]:
    """Frames that have a weight and whose LEDs are not at the pupil's edge."""
    patch = trials.patch
    radius = np.hypot(*patch.illumination.directions(patch.patch_center).T)
    clear: NDArray[np.bool_] = np.abs(radius - patch.optics.na) > EDGE * max(trials.bin_na)
    return clear & (patch.frame_weights > 0)


def evidence_for(other: Acquisition, acquisition: Acquisition) -> float:
    """By how many standard errors ``other`` predicts unseen frames better than ``acquisition``; 0 if too few are left.

    Both are beliefs about the microscope of the same frames. They are compared on one patch, with the frames that
    neither of them has at the pupil's edge.
    """
    patch = most_detailed_patch(acquisition, PATCH)
    beliefs = [Trials.of(patch)]
    named = {name: getattr(other, name) for name in ("optics", "illumination", "pupil", "gains", "weights")}
    beliefs.append(Trials.of(replace(patch, **named)))
    both = askable(beliefs[0]) & askable(beliefs[1])
    if np.count_nonzero(both) < LEAST_FRAMES:
        return 0.0
    known, tried = (
        CrossValidation(trials, both, 0).likeness([Guess(trials.patch.illumination, trials.patch.pupil)])[0]
        for trials in beliefs
    )
    return _evidence(tried - known)


def polish(
    acquisition: Acquisition,
    *,
    motions: Sequence[Motion] = ("shift", "rotation", "height"),
    focus: bool = True,
    other_focus: float | None = None,
) -> PolishFit | None:
    """Move the LED array and the focus to where frames are predicted best by reconstructions that have not seen them.

    A fifth of the frames at a time is left out of a short reconstruction, and predicted. Steps along each motion show
    a parabola of the mean correlation (:class:`CrossValidation`). The search goes to its top as long as that helps,
    first with long steps, then with shorter ones. What it finds is used if the frames are predicted better in other
    folds too, which took no part in the search: by 1.5 standard errors.

    Misfits of frames that were used have their minimum near the right place, too, but a flat one: half a degree of
    rotation, or a height that is wrong by one percent, hardly changes them. Returns None if there are too few frames.

    Parameters
    ----------
    acquisition
        Its array must be near its place, within a bin or two.
    motions
        Which of "shift", "rotation", "height" and "pitch" are free.
    focus
        Whether the defocus is free, too.
    other_focus
        Another defocus to begin with, in metres, if it predicts better: that of the description, say.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> from fouriscope.alignment import polish
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
    >>> model = fs.ForwardModel(optics, leds.moved(turn=np.radians(1)), (48, 48))
    >>> phase = np.random.default_rng(0).normal(0, 0.5, model.object_shape)
    >>> frames = fs.simulate(model, phase, seed=0).frames
    >>> fit = polish(fs.Acquisition(optics, leds, frames, periodic=True), motions=["rotation"], focus=False)
    >>> bool(abs(np.degrees(fit.illumination.rotation) - 1) < 0.1)
    True
    """
    trials = Trials.of(acquisition)
    asked = askable(trials)
    if np.count_nonzero(asked) < LEAST_FRAMES:
        return None
    search, check = CrossValidation(trials, asked, 0), CrossValidation(trials, asked, 1)
    array, shifts = as_array(acquisition.illumination)
    optics, pupil = acquisition.optics, trials.patch.pupil
    names = [name for name in names_of(motions) if one_bin(trials, array, name) < np.inf]
    units = [one_bin(trials, array, name) for name in names]

    def guess(values: Floats, base: Pupil) -> Guess:
        place = moved_array(array, names, values[: len(names)] * units)
        depth = FOCUS_UNIT * optics.wavelength / optics.na**2 * float(values[len(names) :].sum())
        return Guess(place if shifts is None else Adjusted(place, shifts), replace(base, defocus=base.defocus + depth))

    nowhere = np.zeros(len(names) + focus)
    pupils = [pupil]
    if other_focus is not None and other_focus != pupil.defocus:
        pupils.append(replace(pupil, defocus=other_focus))
    begun = pupils[int(search.likeness([guess(nowhere, one) for one in pupils]).mean(axis=1).argmax())]
    best = _climb(lambda places: search.likeness([guess(place, begun) for place in places]).mean(axis=1), nowhere)
    old, new = guess(nowhere, pupil), guess(best, begun)
    before, after = check.likeness([old, new])
    evidence = _evidence(after - before)
    kept = new if evidence >= EVIDENCE else old
    return PolishFit(
        kept.illumination if kept is new else acquisition.illumination,
        kept.pupil.defocus,
        float(before.mean()),
        float(after.mean()),
        evidence,
        search.reconstructions + check.reconstructions,
    )


def _climb(likeness: Callable[[list[Floats]], Floats], start: Floats) -> Floats:
    """The place of the largest likeness near ``start``."""
    here, level = start, float(likeness([start])[0])
    axes = np.eye(len(start))
    for step in STEPS:
        for _ in range(ROUNDS):
            around = [here + sign * step * axis for axis in axes for sign in (1, -1)]
            levels = likeness(around)
            jump = np.array([_top(level, *levels[2 * k : 2 * k + 2]) for k in range(len(start))]) * step
            # Along all axes, half as far, and along the axis that promises most: parabolas ignore each other.
            steepest = axes[int(levels.argmax()) // 2]
            further = [here + jump, here + jump / 2, here + jump * steepest]
            places, levels = [*around, *further], np.concatenate([levels, likeness(further)])
            best, before = int(levels.argmax()), level
            if levels[best] > level:
                here, level = places[best], float(levels[best])
            if level - before <= WORTHWHILE * min(abs(before), 1 - before):
                break
    return here


def _top(here: float, above: float, below: float) -> float:
    """Where a parabola through three levels one step apart is highest, within a step; or the higher end of it.

    >>> _top(1.0, 1.0, 0.0), _top(0.0, 2.0, 1.0)
    (0.5, 1.0)
    """
    curvature = above + below - 2 * here
    if curvature < 0:
        return float(np.clip(0.5 * (below - above) / curvature, -1, 1))
    return 0.0 if max(above, below) <= here else (1.0 if above > below else -1.0)


def _evidence(improvements: Floats) -> float:
    """The mean in standard errors; 0 if nothing has changed."""
    error = float(improvements.std(ddof=1)) / np.sqrt(len(improvements))
    return float(improvements.mean()) / error if error > 0 else 0.0
