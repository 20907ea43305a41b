"""Whether counts are a power of the intensity (gamma), although nobody says so: unseen frames tell."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.acquisition.straightening import can_be_straightened, straightened
from fouriscope.alignment.brightness import bright_gains
from fouriscope.alignment.cross_validation import (
    LEAST_FRAMES,
    CrossValidation,
    Guess,
    askable,
    in_standard_errors,
)
from fouriscope.alignment.exposure import find_exposure
from fouriscope.alignment.prediction import Unseen
from fouriscope.alignment.trials import PATCH, Trials, most_detailed_place, patch_at

Floats = NDArray[np.float64]

# Powers that are tried, and the steps around the best of them. Screens have 0.45; nobody stores powers above 1.
POWERS, FINER = (0.8, 0.65, 0.5, 0.4), (0.9, 1.1)
# LEDs up to this many NA from the axis take part, and of sparse arrays so many at least: their frames are bright
# enough to show how counts are bent.
INNER, LEAST_LEDS = 1.6, 60
# A power must lower what likeness lacks of 1 by such a share, and by so many standard errors, in other folds too.
# Without gamma, 0.8 lowers it by up to a tenth, because the residues of short reconstructions are like a power; but
# then frames do not agree on it.
CERTAIN = ((0.12, 4.0), (0.08, 8.0))
# Of the powers that are worse than the best by no more standard errors than this, the largest is used, for the same
# reason.
HARDLY_WORSE = 2.0


@dataclass(frozen=True, eq=False)
class ResponseFit:
    """What the search for a power found.

    Attributes
    ----------
    power
        p in counts = intensity^p; 1 if no other one is certain.
    tried
        The mean likeness of unseen frames for each power that was tried.
    evidence
        The improvement of likeness by the best of them, in standard errors.
    """

    power: float
    tried: dict[float, float]
    evidence: float

    @property
    def changed(self) -> bool:
        return self.power != 1.0


def find_response(acquisition: Acquisition, *, exposure: bool = True) -> ResponseFit | None:
    """The power p of counts = intensity^p with which unseen frames are predicted best; 1 unless another is certain.

    Programs that make pictures for screens raise intensities to a power near 1/2, and a stack of such pictures looks
    like any other. But what one frame shows brightly, its neighbours show faintly, and with a wrong power they do not
    agree. So a fifth of the inner frames at a time is left out of a short reconstruction of straightened frames, and
    predicted (:class:`~fouriscope.alignment.cross_validation.CrossValidation`).
    Predictions are bent again before they are compared, so that all powers predict the same numbers.

    A longer exposure of dark field looks like a power, too. Therefore each power has an exposure of its own, and is
    used only if it lowers what the mean correlation lacks of 1 by 12 %, or by 8 % if frames agree on it. The largest
    power that is not clearly worse
    than the best is used. Returns None if there are too few frames.

    Parameters
    ----------
    acquisition
        Place and focus must be known roughly.
    exposure
        Whether the exposure of dark field is free.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> from fouriscope.alignment import find_response
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
    >>> model = fs.ForwardModel(optics, leds, (48, 48))
    >>> phase = np.random.default_rng(0).normal(0, 0.5, model.object_shape)
    >>> frames = np.asarray(fs.simulate(model, phase, seed=0).frames)
    >>> bool(abs(find_response(fs.Acquisition(optics, leds, frames**0.5, periodic=True)).power - 0.5) < 0.06)
    True
    >>> find_response(fs.Acquisition(optics, leds, frames, periodic=True)).power
    1.0
    """
    radius = acquisition.illumination_na
    reach = max(INNER * acquisition.optics.na, float(np.sort(radius)[:LEAST_LEDS][-1]))
    inner = np.where(radius <= reach, acquisition.frame_weights, 0.0)
    if not can_be_straightened(acquisition.frames) or np.count_nonzero(inner) < LEAST_FRAMES:
        return None
    acquisition = replace(acquisition, weights=inner)
    place = most_detailed_place(acquisition, PATCH)
    as_stored = Unseen(Trials.of(patch_at(acquisition, place)))
    if np.count_nonzero(askable(as_stored.trials)) < LEAST_FRAMES:
        return None

    def likeness(power: float, seed: int) -> Floats:
        frames = straightened(acquisition.frames, power)
        patch = patch_at(replace(acquisition, frames=frames), place)
        if exposure:
            patch = replace(patch, gains=None)
            patch = replace(patch, gains=find_exposure(replace(patch, gains=bright_gains(patch))).gains)
        trials = Trials.of(patch)
        folds = CrossValidation(trials, askable(as_stored.trials), seed, unseen=_Bent(as_stored, trials))
        return np.asarray(folds.likeness([Guess(patch.illumination, trials.patch.pupil)])[0])

    found = {power: likeness(power, 0) for power in (1.0, *POWERS)}
    best = _largest_good(found)
    if best != 1.0:
        found |= {power: likeness(power, 0) for power in (best * step for step in FINER)}
        best = _largest_good(found)
    tried = {power: float(values.mean()) for power, values in found.items()}
    if best == 1.0:
        return ResponseFit(1.0, tried, 0.0)
    before, after = likeness(1.0, 1), likeness(best, 1)
    evidence = in_standard_errors(after - before)
    gain = min(_share(tried[1.0], tried[best]), _share(float(before.mean()), float(after.mean())))
    certain = any(gain > least and evidence >= errors for least, errors in CERTAIN)
    return ResponseFit(best if certain else 1.0, tried, evidence)


def _share(before: float, after: float) -> float:
    """Of what ``before`` lacks of 1, the share by which ``after`` lacks less."""
    return (after - before) / max(1 - before, 1e-9)


def _largest_good(found: dict[float, Floats]) -> float:
    """
    >>> best, near, far = np.array([0.6, 0.9, 0.7]), np.array([0.65, 0.8, 0.72]), np.array([0.5, 0.82, 0.6])
    >>> _largest_good({1.0: far, 0.8: near, 0.6: best})
    0.8
    """
    best = max(found.values(), key=lambda values: float(values.mean()))
    return max(power for power, values in found.items() if in_standard_errors(best - values) <= HARDLY_WORSE)


class _Bent(Unseen):
    """Frames as they are stored, compared with predictions of straightened ones that are bent as the frames are."""

    def __init__(self, as_stored: Unseen, straight: Trials) -> None:
        self.trials, self.patch = straight, straight.patch
        self.counts, self.amplitudes = as_stored.counts, as_stored.amplitudes
        self._stored = as_stored.patch.frames

    def seen_as(self, intensities: Floats, leds: NDArray[np.int64]) -> Floats:
        bent = np.empty_like(intensities)
        for row, led in enumerate(map(int, leds)):
            counts = self.counts[led]
            straight = np.asarray(self.patch.frames.frame(led), np.float64)[counts]
            stored = np.asarray(self._stored.frame(led), np.float64)[counts]
            total = float(intensities[row][counts].sum())
            scale = max(float(straight.sum()), 0.0) / total if total > 0 else 0.0
            order = np.argsort(straight)
            bent[row] = np.interp(scale * intensities[row], straight[order], np.maximum(stored[order], 0.0))
        return bent
