"""What a frame is worth, how noisy dark ones are, and how firmly all of them hold a frequency."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriscope.fidelity import DataFidelity
from fouriscope.fidelity.noise import frame_noise
from fouriscope.forward.objects import RealArray

# The largest weight of a frame, in bright-field ones.
MOST_WORTH = 100.0
# Of the median coverage: frequencies that are seen less than this count as seen so much in their mean.
LEAST_COVERAGE = 0.05
# Of the noise of dark frames, in standard deviations; and from so many frames it is measured.
BACKGROUND, NOISE_FRAMES = 2.0, 32


def frame_worth(variances: NDArray[np.float64], bright_field: NDArray[np.bool_]) -> NDArray[np.float64]:
    """1/σ_j² of every frame, in units of a bright-field frame's; NaN (a frame that is not used) gets 1.

    A frame of a few counts can be explained perfectly by nothing at all: no frame is worth more than so many
    bright-field ones.

    >>> frame_worth(np.array([0.01, 0.01, 0.0001, 0.0]), np.array([True, True, False, False])).tolist()
    [1.0, 1.0, 100.0, 100.0]
    """
    known = np.isfinite(variances)
    bright = variances[known & bright_field]
    reference = float(np.median(bright if bright.size else variances[known]))
    if not reference > 0:
        return np.ones(len(variances))
    worth = reference / np.maximum(variances, reference / MOST_WORTH)
    return np.where(known, worth, 1.0)


def noise_background(fidelity: DataFidelity, leds: NDArray[np.int64]) -> float:
    """ε of an amplitude loss that noise does not mislead: twice the noise of dark-field frames among ``leds``.

    In the dark the camera's own noise counts, and that of the photons hardly does. Without dark field all frames are
    asked. At most 32 frames are read, spread evenly.
    """
    dark = leds[~fidelity.model.geometry.bright_field[leds]]
    asked = dark if len(dark) else leds
    asked = asked[np.unique(np.linspace(0, len(asked) - 1, min(NOISE_FRAMES, len(asked))).round().astype(int))]
    levels = [frame_noise(fidelity.frames.frame(int(led)), fidelity.mask_of(int(led))) for led in asked]
    return BACKGROUND * float(np.median(levels)) if levels else 0.0


def harmonic_mean(coverage: RealArray) -> float:
    """Of the coverage over the band; frequencies at its very edge, which hardly any frame sees, do not decide it."""
    seen = coverage[coverage > 0].astype(np.float64)
    return float(1 / np.mean(1 / np.maximum(seen, LEAST_COVERAGE * np.median(seen))))
