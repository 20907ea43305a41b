"""What a frame is worth, and how firmly all of them hold a frequency."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriscope.forward.objects import RealArray

# The largest weight of a frame, in bright-field ones.
MOST_WORTH = 100.0
# Of the median coverage: frequencies that are seen less than this count as seen so much in their mean.
LEAST_COVERAGE = 0.05


def frame_worth(variances: NDArray[np.float64], bright_field: NDArray[np.bool_]) -> NDArray[np.float64]:
    """1/σ_j² of every frame, beside that of a bright-field frame; NaN (a frame that is not used) gets 1.

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


def harmonic_mean(coverage: RealArray) -> float:
    """Of the coverage over the band; frequencies at its very edge, which hardly any frame sees, do not decide it."""
    seen = coverage[coverage > 0].astype(np.float64)
    return float(1 / np.mean(1 / np.maximum(seen, LEAST_COVERAGE * np.median(seen))))
