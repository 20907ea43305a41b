"""The last look at place and focus of the LEDs: each frame is predicted from the others, by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.array import Motion, as_array, moved_array, names_of, one_bin, with_array
from fouriscope.alignment.cross_validation import (
    LEAST_FRAMES,
    CrossValidation,
    Guess,
    askable,
    in_standard_errors,
)
from fouriscope.alignment.trials import PATCH, Trials
from fouriscope.optics import Illumination, Pupil

Floats = NDArray[np.float64]

# Steps of the search, in bins (root mean square over the LEDs) and, for the focus, in quarters of its depth; and how
# often each may be repeated as long as the likeness, or what it lacks of 1, changes by the share that comes next.
STEPS, ROUNDS, WORTHWHILE = (0.6, 0.3), 4, 1e-3
FOCUS_UNIT = 0.25
# The mean improvement of frames in other folds must be this many times its standard error.
EVIDENCE = 1.5


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


def polish(
    acquisition: Acquisition,
    *,
    motions: Sequence[Motion] = ("shift", "rotation", "height"),
    focus: bool = True,
    other_focus: float | None = None,
    side: int = PATCH,
) -> PolishFit | None:
    """Move the LED array and the focus to where frames are predicted best by reconstructions that have not seen them.

    A fifth of the frames at a time is left out of a short reconstruction, and predicted. Steps along each motion show
    a parabola of the mean correlation (:class:`~fouriscope.alignment.cross_validation.CrossValidation`). The search
    goes to its top as long as that helps, first with long steps, then with shorter ones. What it finds is used if the
    frames are predicted better in other folds too, which took no part in the search: by 1.5 standard errors.

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
    side
        Of the patch, in frame pixels. A patch of twice the side has four times the pixels, and bins of half the size:
        it finds a rotation several times more exactly, and takes three times as long.

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
    trials = Trials.of(acquisition, side=side)
    asked = askable(trials)
    if np.count_nonzero(asked) < LEAST_FRAMES:
        return None
    search, check = CrossValidation(trials, asked, 0), CrossValidation(trials, asked, 1)
    array = as_array(acquisition.illumination)
    optics, pupil = acquisition.optics, trials.patch.pupil
    names = [name for name in names_of(motions) if one_bin(trials, array, name) < np.inf]
    units = [one_bin(trials, array, name) for name in names]

    def guess(values: Floats, base: Pupil) -> Guess:
        place = with_array(acquisition.illumination, moved_array(array, names, values[: len(names)] * units))
        depth = FOCUS_UNIT * optics.wavelength / optics.na**2 * float(values[len(names) :].sum())
        return Guess(place, replace(base, defocus=base.defocus + depth))

    nowhere = np.zeros(len(names) + focus)
    pupils = [pupil]
    if other_focus is not None and other_focus != pupil.defocus:
        pupils.append(replace(pupil, defocus=other_focus))
    begun = pupils[int(search.likeness([guess(nowhere, one) for one in pupils]).mean(axis=1).argmax())]
    best = _climb(lambda places: search.likeness([guess(place, begun) for place in places]).mean(axis=1), nowhere)
    old, new = guess(nowhere, pupil), guess(best, begun)
    before, after = check.likeness([old, new])
    evidence = in_standard_errors(after - before)
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
