"""Sums over whole tensors, on their device; only the sum travels."""

from __future__ import annotations

from typing import Any


def _wide(a: Any) -> Any:
    """In double precision, which Apple's devices do not have."""
    return a if a.device.type == "mps" else a.double()


def dot(a: Any, b: Any) -> float:
    return float((_wide(a) * _wide(b)).sum())


def squared_distance(a: Any, b: Any) -> float:
    difference = a - b
    return dot(difference, difference)


def sum_all(a: Any) -> float:
    return float(_wide(a).sum())


def squared_deviation(a: Any, mean: float) -> float:
    centred = a - mean
    return dot(centred, centred)
