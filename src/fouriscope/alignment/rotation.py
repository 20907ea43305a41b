"""By how much the LED array is turned: frames farther out are predicted from those inside, before they are used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.array import as_array, with_array
from fouriscope.alignment.cross_validation import in_standard_errors
from fouriscope.alignment.prediction import Unseen
from fouriscope.alignment.trials import Trials
from fouriscope.optics import Illumination

# Turns that are tried at a time, in radians.
ANGLES = np.radians(np.arange(-5.0, 5.01, 0.5))
AS_IT_IS = len(ANGLES) // 2
# The mean improvement of the likeness must be this many times its standard error.
EVIDENCE = 1.5
# The prediction itself improves with the turn that it led to.
ROUNDS = 3
# Radians. Less than this is not worth another round, and no reason to move an array.
SETTLED = float(np.radians(0.15))


@dataclass(frozen=True, eq=False)
class RotationFit:
    """The array as found by its rotation.

    Attributes
    ----------
    illumination
        The turned array.
    turn
        The rotation that was added, in radians.
    evidence
        How certain the first turn is, in standard errors.
    """

    illumination: Illumination
    turn: float
    evidence: float

    @property
    def changed(self) -> bool:
        return self.turn != 0


def find_rotation(acquisition: Acquisition, *, trials: Trials | None = None) -> RotationFit:
    """Turn the LED array to where inner LEDs predict the frames of outer ones best.

    LEDs within some radius are reconstructed, pupil included. The spectrum that they show reaches beyond them, so it
    predicts a part of the frames next to them. Each such frame is compared (correlation of amplitudes, which no
    exposure or gain changes) with its prediction at several turns. Over all radii and frames, the turn with
    the largest sum wins, if the frames agree on it: the mean improvement must be 1.5 times its standard error. Then the
    search is repeated from there.

    A misfit after all frames have been used tells much less: if neighbours are displaced alike, the object explains
    them at the wrong place as well.

    Parameters
    ----------
    acquisition
        The frames and what is known about the microscope.
    trials
        The short reconstructions to use. By default, those of the patch with the most structure.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> from fouriscope.alignment import find_rotation
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
    >>> model = fs.ForwardModel(optics, leds.moved(turn=np.radians(3)), (48, 48))
    >>> phase = np.random.default_rng(0).normal(0, 0.5, model.object_shape)
    >>> frames = fs.simulate(model, phase, seed=0).frames
    >>> found = find_rotation(fs.Acquisition(optics, leds, frames, periodic=True))
    >>> bool(abs(np.degrees(found.turn) - 3) < 0.3)
    True
    """
    trials = Trials.of(acquisition) if trials is None else trials
    array = as_array(acquisition.illumination)

    def turned(angle: float) -> Illumination:
        return with_array(acquisition.illumination, array.moved(turn=angle))

    unseen = Unseen(trials)
    turn, evidence = 0.0, 0.0
    for index in range(ROUNDS):
        lights = [turned(turn + float(angle)) for angle in ANGLES]
        likeness = unseen.likeness(lights, AS_IT_IS)
        step, certainty = _best(likeness) if likeness.size else (0.0, 0.0)
        evidence = certainty if not index else evidence
        if certainty < EVIDENCE:
            break
        turn += step
        if abs(step) < SETTLED:
            break
    if abs(turn) < SETTLED:
        return RotationFit(acquisition.illumination, 0.0, evidence)
    return RotationFit(turned(turn), turn, evidence)


def _best(likeness: NDArray[np.float64]) -> tuple[float, float]:
    """(turn, evidence) of the largest sum over the frames; between the angles by a parabola."""
    sums = likeness.sum(axis=1)
    best = int(sums.argmax())
    if best == AS_IT_IS:
        return 0.0, 0.0
    evidence = in_standard_errors(likeness[best] - likeness[AS_IT_IS])
    shift = 0.0
    if 0 < best < len(sums) - 1:
        before, here, after = sums[best - 1 : best + 2]
        curvature = before - 2 * here + after
        shift = 0.5 * (before - after) / curvature if curvature < 0 else 0.0
    return float(ANGLES[best] + shift * (ANGLES[1] - ANGLES[0])), evidence
