"""Structure that an estimate shows where frames hold none: what fits the noise of faint frames, and looks like dots."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.brightness import counted_pixels
from fouriscope.alignment.structure import telling
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray
from fouriscope.optics import Geometry

# At most so many frames of mere noise are left out, and at most a quarter of them.
MOST, SHARE = 17, 0.25
# Predicted structure matters from this share of a frame's variance on. It is imagined if less than half of it is there,
# by so many standard errors: no structure at all would then be a better prediction.
MATTERS, HALF, EVIDENCE = 0.005, 0.5, 2.0


def faint_frames(patch: Acquisition, geometry: Geometry, rng: np.random.Generator) -> NDArray[np.int64]:
    """Some of the dark-field frames that are mostly noise, to be left out and predicted."""
    dark = (patch.frame_weights > 0) & ~geometry.bright_field
    noise = np.flatnonzero(dark & ~telling(patch, geometry.bright_field))
    return np.sort(rng.choice(noise, min(MOST, int(SHARE * len(noise))), replace=False))


def imagines(data: Acquisition, model: ForwardModel, x: RealArray, leds: NDArray[np.int64]) -> bool:
    """Whether most of the structure that x predicts in the unseen frames of ``leds`` is certainly not there.

    A frame of noise is like no prediction, so it cannot tell which of two is better. But over many pixels it tells
    whether a predicted structure I is there at all: with means taken off, the slope b = Σ y I / Σ I² is 1 if it is, and
    0 if it is not. Below ½, nothing would be a better prediction than I.

    Parameters
    ----------
    data
        The frames.
    model, x
        A reconstruction that has not seen them.
    leds
        Of frames that are mostly noise (:func:`faint_frames`).

    Examples
    --------
    >>> from fouriscope.optics import LEDArray, Optics
    >>> optics = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> model = ForwardModel(optics, LEDArray.square(9, pitch=4e-3, height=70e-3), (32, 32), object="wave")
    >>> rng, leds = np.random.default_rng(0), np.arange(9)
    >>> x = 0.1 * rng.normal(size=model.x_shape).astype(np.float32)
    >>> there = model.intensity(x, np.arange(81))
    >>> noise = 2 * there[leds].std() * rng.normal(size=there.shape)
    >>> [imagines(Acquisition(optics, model.illumination, frames), model, x, leds) for frames in (there + noise, noise)]
    [False, True]
    """
    if not len(leds):
        return False
    products, squares, variance = np.zeros(len(leds)), np.zeros(len(leds)), 0.0
    for place, (led, predicted) in enumerate(zip(map(int, leds), model.intensity(x, leds), strict=True)):
        frame = np.asarray(data.frames.frame(led), np.float64)
        counts = counted_pixels(data, led, frame)
        if not counts.any():
            continue
        measured, structure = (one[counts] - one[counts].mean() for one in (frame, np.asarray(predicted, np.float64)))
        products[place], squares[place] = float(measured @ structure), float(structure @ structure)
        variance += float(measured @ measured)
    total = float(squares.sum())
    if total <= MATTERS * variance:
        return False
    slope = float(products.sum()) / total
    error = float(np.sqrt(np.sum((products - slope * squares) ** 2))) / total
    return slope + EVIDENCE * error < HALF
