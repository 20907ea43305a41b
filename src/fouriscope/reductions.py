"""Norms and products of real arrays, with one order of summation.

NumPy hands these to BLAS, whose own threads make the last digits depend on the machine and, on a busy one, wait for
each other for longer than the sum takes. Here blocks are summed in the precision of the data, and the blocks in double.
Without numba NumPy's own sums, in double, do the same. Tensors are summed where they lie.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.engines import numba_is_installed
from fouriscope.placement import namespace


def _kernels(a: NDArray[Any]) -> Any:
    if namespace(a) is not np:
        from fouriscope import _torch_reductions

        return _torch_reductions
    if numba_is_installed():
        from fouriscope import _reduction_kernels

        return _reduction_kernels
    from fouriscope import _plain_reductions

    return _plain_reductions


def dot(a: NDArray[Any], b: NDArray[Any]) -> float:
    """⟨a, b⟩ for real arrays of one shape and type.

    >>> import numpy as np
    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float(_kernels(a).dot(a.reshape(-1), b.reshape(-1)))


def norm(a: NDArray[Any]) -> float:
    """‖a‖."""
    return math.sqrt(dot(a, a))


def distance(a: NDArray[Any], b: NDArray[Any]) -> float:
    """‖a − b‖, without an array for the difference."""
    return math.sqrt(_kernels(a).squared_distance(a.reshape(-1), b.reshape(-1)))


def spread(a: NDArray[Any]) -> float:
    """‖a − mean(a)‖."""
    kernels, flat = _kernels(a), a.reshape(-1)
    return math.sqrt(kernels.squared_deviation(flat, kernels.sum_all(flat) / len(flat)))
