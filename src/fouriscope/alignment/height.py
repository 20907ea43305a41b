"""How far away the LED array is: the height with which each frame is predicted best from the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.array import as_array, with_array
from fouriscope.alignment.cross_validation import (
    LEAST_FRAMES,
    CrossValidation,
    Guess,
    askable,
    in_standard_errors,
)
from fouriscope.alignment.trials import Trials
from fouriscope.optics import Illumination

# Heights that are tried, in shares of the described one, and how often, if the best is the first or the last.
SHARES, ROUNDS = np.arange(-6, 7) * 0.03, 2
# LEDs up to this many NA from the axis take part: of those farther out, a wrong height makes strangers.
INNER = 2.2
# Of heights that predict frames as well as the best, within so many standard errors, the one nearest to the description
# is used: with sparse LEDs all that are too far away predict nearly as well.
HARDLY_WORSE = 1.0
# A height that is nearer than this share to the described one is left to the searches that follow.
NEAR = 0.02
# A height must lower what the mean correlation lacks of 1 by this share, and by so many standard errors, in folds that
# took no part in the search. With a wrong focus or aperture, a wrong height is a little better.
LEAST_GAIN, CERTAIN = 0.1, 3.0


@dataclass(frozen=True, eq=False)
class HeightFit:
    """What the search for the height found.

    Attributes
    ----------
    factor
        The height as found, divided by the described one; 1 if no other is certain.
    before, after
        Mean correlation of the frames with their predictions, in folds that took no part in the search.
    evidence
        The improvement in standard errors.
    """

    factor: float
    before: float
    after: float
    evidence: float

    @property
    def changed(self) -> bool:
        return self.factor != 1.0


def find_height(acquisition: Acquisition) -> HeightFit | None:
    """The height of the LED array with which frames are predicted best by reconstructions that have not seen them.

    Few know the distance from the LEDs to the sample to better than a tenth. A wrong one scales all directions, so
    neighbouring pupils lie too near to each other in the object's spectrum, or too far apart. A misfit sees little of
    that, because another aperture and another place of the array make up for it. Predictions of unseen frames
    (:class:`~fouriscope.alignment.cross_validation.CrossValidation`) get better all the way to the right height.
    Dark-field frames are asked, if there are enough: bright ones resemble each other whatever the height. Returns None
    if there are too few frames.

    Parameters
    ----------
    acquisition
        The frames and what is known about the microscope. Place, exposure and focus should be known roughly.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> from fouriscope.alignment import find_height
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
    >>> model = fs.ForwardModel(optics, leds.moved(height=1.1), (48, 48))
    >>> phase = np.random.default_rng(0).normal(0, 0.5, model.object_shape)
    >>> frames = fs.simulate(model, phase, seed=0).frames
    >>> found = find_height(fs.Acquisition(optics, leds, frames, periodic=True))
    >>> bool(abs(found.factor - 1.1) < 0.03)
    True
    """
    inner = np.where(acquisition.illumination_na < INNER * acquisition.optics.na, acquisition.frame_weights, 0.0)
    if not np.count_nonzero(inner):
        return None
    trials = Trials.of(replace(acquisition, weights=inner))
    asked = askable(trials)
    if np.count_nonzero(asked) < LEAST_FRAMES:
        return None
    dark = asked & ~trials.patch.bright_field
    asked = dark if np.count_nonzero(dark) >= LEAST_FRAMES else asked
    search, check = CrossValidation(trials, asked, 0), CrossValidation(trials, asked, 1)
    array = as_array(acquisition.illumination)

    def guess(factor: float) -> Guess:
        lights: Illumination = with_array(acquisition.illumination, array.moved(height=factor))
        return Guess(lights, trials.patch.pupil)

    factor = 1.0
    for _ in range(ROUNDS):
        factors = factor * (1 + SHARES)
        chosen, factor = _chosen(factors, search.likeness([guess(one) for one in factors]))
        if 0 < chosen < len(factors) - 1:
            break
    old, new = check.likeness([guess(1.0), guess(factor)])
    evidence = in_standard_errors(new - old)
    before, after = float(old.mean()), float(new.mean())
    certain = evidence >= CERTAIN and after - before >= LEAST_GAIN * (1 - before) and abs(factor - 1) > NEAR
    return HeightFit(factor if certain else 1.0, before, after, evidence)


def _chosen(factors: NDArray[Any], likeness: NDArray[np.float64]) -> tuple[int, float]:
    """The number of the chosen factor, and the factor; that of the best is the top of the parabola around it.

    >>> frames = np.array([[0.2, 0.2, 0.1], [0.6, 0.5, 0.5], [0.5, 0.6, 0.55]])
    >>> _chosen(np.array([1.0, 1.1, 1.2]), frames)
    (1, 1.1)
    """
    levels = likeness.mean(axis=1)
    best = int(levels.argmax())
    good = [k for k in range(len(factors)) if in_standard_errors(likeness[best] - likeness[k]) <= HARDLY_WORSE]
    chosen = min(good, key=lambda k: abs(float(factors[k]) - 1))
    if chosen != best or best in (0, len(levels) - 1):
        return chosen, float(factors[chosen])
    before, here, after = levels[best - 1 : best + 2]
    bend = before - 2 * here + after
    shift = 0.5 * (before - after) / bend if bend < 0 else 0.0
    return best, float(factors[best] + shift * (factors[1] - factors[0]))
