"""Which frames hold more than noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.brightness import counted_pixels

# Neighbouring pixels of a frame with structure are correlated, those of white noise are not: below this correlation a
# frame cannot tell a good prediction from a bad one. If a pixel is almost as large as a speckle, λ/(2 NA), even
# structure looks like noise, and all frames are used.
TELLING, SAMPLED = 0.2, 0.8


def telling(patch: Acquisition, bright_field: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which frames hold more than noise: bright-field ones, and those whose neighbouring pixels are alike."""
    told = bright_field.copy()
    optics = patch.optics
    if optics.pixel > SAMPLED * optics.wavelength / (2 * optics.na):
        return np.ones_like(told)
    for led in np.flatnonzero(~told & (patch.frame_weights > 0)):
        frame = np.asarray(patch.frames.frame(int(led)), np.float64)
        counts = counted_pixels(patch, int(led), frame)
        told[led] = counts.any() and neighbour_correlation(frame, counts) >= TELLING
    return told


def neighbour_correlation(frame: NDArray[np.float64], counts: NDArray[np.bool_]) -> float:
    """Correlation of the amplitudes of pixels side by side, along rows and columns together; 0 of white noise.

    >>> noise = np.random.default_rng(0).random((64, 64))
    >>> smooth = np.sqrt(noise + np.roll(noise, 1, axis=0) + np.roll(noise, 1, axis=1))
    >>> [bool(neighbour_correlation(image, np.ones((64, 64), bool)) > TELLING) for image in (noise, smooth)]
    [False, True]
    """
    amplitude = np.sqrt(np.maximum(np.where(counts, frame, 0.0), 0))
    deviation = np.where(counts, amplitude - amplitude[counts].mean(), 0.0)
    variance = float(np.mean(deviation[counts] ** 2))
    pairs = np.count_nonzero(counts[1:] & counts[:-1]) + np.count_nonzero(counts[:, 1:] & counts[:, :-1])
    if not variance or not pairs:
        return 0.0
    products = np.sum(deviation[1:] * deviation[:-1]) + np.sum(deviation[:, 1:] * deviation[:, :-1])
    return float(products) / pairs / variance
