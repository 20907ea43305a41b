"""Sums over whole arrays where numba is not installed: NumPy's pairwise sums, in double, without BLAS."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def dot(a: NDArray[Any], b: NDArray[Any]) -> float:
    return float(np.sum(a * b, dtype=np.float64))


def squared_distance(a: NDArray[Any], b: NDArray[Any]) -> float:
    difference = a - b
    return dot(difference, difference)


def sum_all(a: NDArray[Any]) -> float:
    return float(np.sum(a, dtype=np.float64))


def squared_deviation(a: NDArray[Any], mean: float) -> float:
    centred = a - a.dtype.type(mean)
    return dot(centred, centred)
