"""How well inner LEDs predict the frames of outer ones, which no gain, exposure or adapted object can feign."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.brightness import counted_pixels
from fouriscope.alignment.structure import telling
from fouriscope.alignment.trials import Trials
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray
from fouriscope.optics import Illumination

Floats = NDArray[np.float64]

# In units of the NA: LEDs within such a radius predict those up to so much farther out.
RADII, NEXT = (1.0, 1.4, 1.8, 2.2, 2.6, 3.0), 0.5
# LEDs this near to the pupil's edge, in NAs, are not asked: whether their direct light passes outweighs all else.
EDGE = 0.03
# A radius is used if there are this many LEDs inside it and this many next to it.
LEAST_INSIDE, LEAST_NEXT = 5, 4


def likeness(acquisition: Acquisition, *, na: float | None = None) -> float:
    """The mean correlation of outer frames with what inner LEDs predict of them, or NaN if none can be predicted.

    LEDs within some radius are reconstructed by a few sweeps of EPRY, pupil included. Their spectrum predicts a part of
    the frames next to them, which have not been used. An object adapts to a wrong place or aperture until it
    explains the frames that it is made from; what it then predicts of others is worse.

    Parameters
    ----------
    acquisition
        The frames, and a belief about the microscope.
    na
        The unit of the radii. Beliefs that differ in their aperture are comparable if they share it; by default, it is
        the aperture of ``acquisition``.
    """
    trials = Trials.of(acquisition)
    found = Unseen(trials).likeness([trials.patch.illumination], 0, na=na)
    return float(found.mean()) if found.size else math.nan


class Unseen:
    """The frames of a patch, to be compared with predictions from other frames."""

    def __init__(self, trials: Trials) -> None:
        patch = self.patch = trials.patch
        self.trials = trials
        self.amplitudes, self.counts = measured_amplitudes(patch, np.arange(len(patch)))
        # Noise looks like no prediction, and hides which prediction is better. If too few frames hold more, all count.
        tells = telling(patch, patch.bright_field) & (patch.frame_weights > 0)
        few = np.count_nonzero(tells) < LEAST_INSIDE + LEAST_NEXT
        self.tells = np.ones(len(patch), bool) if few else tells

    def likeness(self, lights: Sequence[Illumination], used: int, *, na: float | None = None) -> Floats:
        """For each of ``lights``, the correlation of every frame that is asked.

        Inner LEDs are reconstructed where light number ``used`` has them, and predict outer frames for all of the
        lights. Radii are counted in units of ``na``. Frames of mere noise are not asked.
        """
        patch, trials = self.patch, self.trials
        unit = patch.optics.na if na is None else na
        radii = np.stack([np.hypot(*light.directions(patch.patch_center).T) for light in lights])
        edge, room = patch.optics.na, EDGE * patch.optics.na
        clear = self.tells & ((radii.max(axis=0) < edge - room) | (radii.min(axis=0) > edge + room))
        here, weights = radii[used] / unit, patch.frame_weights
        found = [np.empty((len(lights), 0))]
        for radius in RADII:
            inside = (here < radius) & (weights > 0)
            beside = np.flatnonzero((here >= radius) & (here < radius + NEXT) & (weights > 0) & clear)
            if np.count_nonzero(inside) < LEAST_INSIDE or len(beside) < LEAST_NEXT:
                continue
            inner = replace(patch, weights=np.where(inside, weights, 0.0))
            solver = trials.sweeps(trials.model(lights[used]), inner, free_pupil=True)
            model = solver.model
            found.append(
                np.stack([self.correlations(model.revised(illumination=light), solver.x, beside) for light in lights])
            )
        return np.concatenate(found, axis=1)

    def correlations(self, model: ForwardModel, x: RealArray, leds: NDArray[np.int64]) -> Floats:
        """Of the amplitudes of ``leds`` with those that the object x predicts; no exposure or gain changes them."""
        intensities = self.seen_as(np.asarray(model.intensity(x, leds), np.float64), leds)
        return correlations(self.amplitudes[leds], intensities, self.counts[leds])

    def seen_as(self, intensities: Floats, leds: NDArray[np.int64]) -> Floats:
        """Predicted ``intensities`` of ``leds`` in the units of the frames with which they are compared."""
        return intensities


def measured_amplitudes(patch: Acquisition, leds: NDArray[np.int64]) -> tuple[Floats, NDArray[np.bool_]]:
    """√y of ``leds`` without its mean, 0 where a pixel does not count, and which pixels count."""
    frames = np.stack([np.asarray(patch.frames.frame(int(led)), np.float64) for led in leds])
    counts = np.stack([counted_pixels(patch, int(led), frame) for led, frame in zip(leds, frames, strict=True)])
    return _centred(np.sqrt(np.maximum(np.where(counts, frames, 0.0), 0.0)), counts), counts


def correlations(measured: Floats, intensities: Floats, counts: NDArray[np.bool_]) -> Floats:
    """Of :func:`measured_amplitudes` with those of predicted ``intensities``, frame by frame; 0 if one is constant."""
    predicted = _centred(np.sqrt(intensities), counts)
    norms = np.linalg.norm(predicted, axis=(1, 2)) * np.linalg.norm(measured, axis=(1, 2))
    products = np.einsum("brc,brc->b", predicted, measured)
    return np.asarray(np.clip(np.divide(products, norms, out=np.zeros_like(products), where=norms > 0), -1, 1))


def _centred(images: Floats, counts: NDArray[np.bool_]) -> Floats:
    pixels = np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1)
    means = np.where(counts, images, 0.0).sum(axis=(1, 2), keepdims=True) / pixels
    return np.where(counts, images - means, 0.0)
