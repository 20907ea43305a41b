"""Norms and products of real arrays, with one order of summation.

NumPy hands these to BLAS, whose own threads make the last digits depend on the machine and, on a busy one, wait for
each other for longer than the sum takes. Here blocks are summed in the precision of the data, and the blocks in double.
"""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray


def dot(a: NDArray[Any], b: NDArray[Any]) -> float:
    """⟨a, b⟩ for real arrays of one shape and type.

    >>> import numpy as np
    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    from fouriscope import _reduction_kernels

    return _reduction_kernels.dot(a.reshape(-1), b.reshape(-1))


def norm(a: NDArray[Any]) -> float:
    """‖a‖."""
    return math.sqrt(dot(a, a))


def distance(a: NDArray[Any], b: NDArray[Any]) -> float:
    """‖a − b‖, without an array for the difference."""
    from fouriscope import _reduction_kernels

    return math.sqrt(_reduction_kernels.squared_distance(a.reshape(-1), b.reshape(-1)))


def spread(a: NDArray[Any]) -> float:
    """‖a − mean(a)‖."""
    from fouriscope import _reduction_kernels

    flat = a.reshape(-1)
    return math.sqrt(_reduction_kernels.squared_deviation(flat, _reduction_kernels.sum_all(flat) / flat.size))
