"""By how much the LED array is turned: frames farther out are predicted from those inside, before they are used."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.brightness import counted_pixels
from fouriscope.alignment.trials import Trials
from fouriscope.calibration.positions import as_array
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray
from fouriscope.optics import Adjusted, Illumination

# Turns that are tried at a time, in radians.
ANGLES = np.radians(np.arange(-5.0, 5.01, 0.5))
AS_IT_IS = len(ANGLES) // 2
# In units of the NA: LEDs within such a radius predict those up to so much farther out.
RADII, NEXT = (1.0, 1.4, 1.8, 2.2, 2.6, 3.0), 0.5
# LEDs this near to the pupil's edge, in NAs, are not used: whether their direct light passes outweighs all else.
EDGE = 0.03
# A radius is used if there are this many LEDs inside it and this many next to it.
LEAST_INSIDE, LEAST_NEXT = 5, 4
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
    array, shifts = as_array(acquisition.illumination)

    def turned(angle: float) -> Illumination:
        place = array.moved(turn=angle)
        return place if shifts is None else Adjusted(place, shifts)

    measured = _amplitudes(trials.patch)
    turn, evidence = 0.0, 0.0
    for index in range(ROUNDS):
        lights = [turned(turn + float(angle)) for angle in ANGLES]
        likeness = _likeness(trials, lights, *measured)
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
    gains = likeness[best] - likeness[AS_IT_IS]
    error = float(gains.std(ddof=1)) / np.sqrt(len(gains))
    evidence = float(gains.mean()) / error if error > 0 else 0.0
    shift = 0.0
    if 0 < best < len(sums) - 1:
        before, here, after = sums[best - 1 : best + 2]
        curvature = before - 2 * here + after
        shift = 0.5 * (before - after) / curvature if curvature < 0 else 0.0
    return float(ANGLES[best] + shift * (ANGLES[1] - ANGLES[0])), evidence


def _likeness(
    trials: Trials, lights: list[Illumination], measured: NDArray[np.float64], counts: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """For each of ``lights`` (the middle one is that of the reconstructions), the correlation of every frame asked."""
    patch = trials.patch
    radii = np.stack([np.hypot(*light.directions(patch.patch_center).T) for light in lights]) / patch.optics.na
    clear = (radii.max(axis=0) < 1 - EDGE) | (radii.min(axis=0) > 1 + EDGE)
    here, weights = radii[AS_IT_IS], patch.frame_weights
    found = [np.empty((len(lights), 0))]
    for radius in RADII:
        inside = (here < radius) & (weights > 0)
        beside = np.flatnonzero((here >= radius) & (here < radius + NEXT) & (weights > 0) & clear)
        if np.count_nonzero(inside) < LEAST_INSIDE or len(beside) < LEAST_NEXT:
            continue
        model = trials.model(lights[AS_IT_IS])
        solver = trials.sweeps(model, replace(patch, weights=np.where(inside, weights, 0.0)), free_pupil=True)
        model = solver.model
        found.append(
            np.stack(
                [
                    _correlations(model.revised(illumination=light), solver.x, beside, measured[beside], counts[beside])
                    for light in lights
                ]
            )
        )
    return np.concatenate(found, axis=1)


def _correlations(
    model: ForwardModel,
    x: RealArray,
    leds: NDArray[np.int64],
    measured: NDArray[np.float64],
    counts: NDArray[np.bool_],
) -> NDArray[np.float64]:
    predicted = _centred(np.sqrt(np.asarray(model.intensity(x, leds), np.float64)), counts)
    norms = np.linalg.norm(predicted, axis=(1, 2)) * np.linalg.norm(measured, axis=(1, 2))
    products = np.einsum("brc,brc->b", predicted, measured)
    return np.asarray(np.divide(products, norms, out=np.zeros_like(products), where=norms > 0))


def _amplitudes(patch: Acquisition) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """√y of every frame without its mean, and where it counts."""
    frames = [np.asarray(patch.frames.frame(led), np.float64) for led in range(len(patch))]
    counts = np.stack([counted_pixels(patch, led, frame) for led, frame in enumerate(frames)])
    return _centred(np.sqrt(np.maximum(np.where(counts, np.stack(frames), 0.0), 0.0)), counts), counts


def _centred(images: NDArray[np.float64], counts: NDArray[np.bool_]) -> NDArray[np.float64]:
    pixels = np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1)
    means = np.where(counts, images, 0.0).sum(axis=(1, 2), keepdims=True) / pixels
    return np.where(counts, images - means, 0.0)
