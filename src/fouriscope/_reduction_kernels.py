"""Compiled sums over whole arrays. Imported where they are used: numba takes long to load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., Any])
BLOCK = 1024


def compiled(function: Function) -> Function:
    fast: Function = njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"})(function)
    return fast


@compiled
def dot(a: NDArray[Any], b: NDArray[Any]) -> float:
    total = 0.0
    for start in range(0, a.size, BLOCK):
        block = a.dtype.type(0)
        for k in range(start, min(start + BLOCK, a.size)):
            block += a[k] * b[k]
        total += np.float64(block)
    return total


@compiled
def squared_distance(a: NDArray[Any], b: NDArray[Any]) -> float:
    total = 0.0
    for start in range(0, a.size, BLOCK):
        block = a.dtype.type(0)
        for k in range(start, min(start + BLOCK, a.size)):
            difference = a[k] - b[k]
            block += difference * difference
        total += np.float64(block)
    return total


@compiled
def sum_all(a: NDArray[Any]) -> float:
    total = 0.0
    for start in range(0, a.size, BLOCK):
        block = a.dtype.type(0)
        for k in range(start, min(start + BLOCK, a.size)):
            block += a[k]
        total += np.float64(block)
    return total


@compiled
def squared_deviation(a: NDArray[Any], mean: float) -> float:
    centre = a.dtype.type(mean)
    total = 0.0
    for start in range(0, a.size, BLOCK):
        block = a.dtype.type(0)
        for k in range(start, min(start + BLOCK, a.size)):
            difference = a[k] - centre
            block += difference * difference
        total += np.float64(block)
    return total
