"""How noisy the frames are, and what that noise does to the data fidelity."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Frames

# The share of the highest spatial frequencies in which an image is taken to hold noise alone: the corners of the
# spectrum, which lie at or beyond the band 2 NA/λ of the intensity for any camera that samples it well.
CORNER_SHARE = 0.05
# The share of pixels that count: of a mosaic of colours at most half, and a little more at the edges of odd frames.
MOST_OF_MOSAIC = 0.6


def frame_noise(frame: NDArray[Any], mask: NDArray[Any] | None = None) -> float:
    """Standard deviation of the white noise in a frame, or in what a model leaves of it, from the corners of its
    spectrum. Pixels where ``mask`` is 0 do not count, whatever they hold; of a mosaic of colours one lattice is asked.

    A Hann taper keeps the jump between opposite borders of a real (non-periodic) frame out of the corners. The power
    of white noise is distributed exponentially over the bins, so its mean is the median / log 2, and the median is not
    moved by the few bins that an artefact may own. One frame of 100 × 100 pixels is good to 7 % (one standard
    deviation), one of 200 × 200 to 4 %.

    >>> noise = np.random.default_rng(0).normal(0, 0.1, (200, 200))
    >>> bool(abs(frame_noise(1 + noise) - 0.1) < 0.01)
    True
    """
    lattice = None if mask is None else only_lattice(np.asarray(mask) != 0)
    if lattice is not None:
        return frame_noise(frame[lattice])
    rows, columns = frame.shape
    taper = np.outer(np.hanning(rows + 2)[1:-1], np.hanning(columns + 2)[1:-1])
    image = np.asarray(frame, np.float64)
    counts = np.ones(frame.shape, bool) if mask is None else np.asarray(mask) != 0
    if not counts.any():
        return 0.0
    taper *= counts
    spectrum = np.fft.rfft2(np.where(counts, image - image[counts].mean(), 0.0) * taper)
    power = np.abs(spectrum[corner_of_spectrum(frame.shape)]) ** 2 / np.sum(taper**2)
    return float(np.sqrt(np.median(power) / np.log(2)))


@lru_cache(maxsize=8)
def corner_of_spectrum(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Where the half spectrum of an image (``rfft2``) is taken to hold noise alone."""
    rows, columns = shape
    radius = np.hypot(np.fft.fftfreq(rows)[:, None], np.fft.rfftfreq(columns)[None, :])
    corner = np.asarray(radius >= np.quantile(radius, 1 - CORNER_SHARE))
    corner.flags.writeable = False  # everybody gets the same array
    return corner


def only_lattice(counts: NDArray[np.bool_]) -> tuple[slice, slice] | None:
    """Every other row and column, if what counts are pixels of one kind of a colour camera: the spectrum of the others,
    set to 0, would be that of the signal once more, at the highest frequencies."""
    if counts.mean() > MOST_OF_MOSAIC:
        return None
    lattices = [(slice(row, None, 2), slice(column, None, 2)) for row in (0, 1) for column in (0, 1)]
    best = max(lattices, key=lambda lattice: float(counts[lattice].mean()))
    return best if counts[best].all() and min(counts[best].shape) > 1 else None


class PerturbedFrames:
    """Frames with more noise on top, the same each time a frame is read: to see what noise does to a gradient."""

    def __init__(self, frames: Frames, sigmas: dict[int, float], seed: int) -> None:
        self.frames, self.sigmas, self.seed = frames, sigmas, seed

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.frames.shape

    def frame(self, index: int) -> NDArray[Any]:
        rng = np.random.default_rng((self.seed, index))
        return self.frames.frame(index) + rng.normal(0.0, self.sigmas[index], self.shape[1:])
