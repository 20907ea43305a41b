"""Pairs (y, x) on their way from an illumination to its directions: checked, chosen, and turned into sines."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriscope.errors import InvalidInputError

FloatArray = NDArray[np.float64]

MOST_LEDS = 100_000  # arrays have thousands


def require_point(name: str, point: Sequence[float]) -> tuple[float, float]:
    """Return ``point`` as two floats (y, x), or say that argument ``name`` is something else."""
    try:
        y, x = (float(value) for value in point)
    except (TypeError, ValueError):
        y = x = math.nan
    if not (math.isfinite(y) and math.isfinite(x)):
        raise InvalidInputError(f"{name} must be two finite numbers (y, x) in metres, got {point!r}.")
    return y, x


def require_count(name: str, value: SupportsIndex) -> int:
    """Return ``value`` as an int, or say that argument ``name`` is not a whole number; 5.0 is not one either."""
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidInputError(f"{name} must be a whole number, got {value!r}.") from None


def read_only_pairs(name: str, meaning: str, values: ArrayLike) -> FloatArray:
    """Return ``values`` as a read-only (N, 2) copy, or say that argument ``name`` is something else."""
    try:
        pairs = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must be an (N, 2) array of {meaning}: {error}.") from error
    if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) == 0:
        raise InvalidInputError(f"{name} must be an (N, 2) array of {meaning} with N ≥ 1, got shape {pairs.shape}.")
    finite = np.isfinite(pairs).all(axis=1)
    if not finite.all():
        raise InvalidInputError(f"{name} must be finite, got {pairs[~finite][0].tolist()} for LED {finite.argmin()}.")
    pairs.setflags(write=False)
    return pairs


def require_few(count: float) -> None:
    """Before the LEDs are made: a wrong radius would fill the memory."""
    if count > MOST_LEDS:
        raise InvalidInputError(f"an array may have at most {MOST_LEDS} LEDs, but this one would have {count:.6g}")


def select(pairs: FloatArray, indices: ArrayLike) -> FloatArray:
    """The pairs of ``indices`` (integers, or a boolean mask), in that order."""
    chosen = np.asarray(indices)
    if chosen.ndim != 1 or not (chosen.dtype == np.bool_ or np.issubdtype(chosen.dtype, np.integer)):
        raise InvalidInputError(f"indices must be a sequence of integers or a boolean mask, got {indices!r}.")
    try:
        picked: FloatArray = pairs[chosen]
    except IndexError:
        raise InvalidInputError(f"indices must choose among {len(pairs)} LEDs, got {indices!r}.") from None
    return picked


def sines(lateral: FloatArray, height: float) -> FloatArray:
    """sin θ along each axis of rays that cover ``lateral`` (y, x) on their way of ``height``."""
    along_axes: FloatArray = lateral / np.sqrt(np.sum(lateral**2, axis=1, keepdims=True) + height**2)
    return along_axes


def told_of_directions(na: FloatArray) -> str:
    """How many LEDs there are and how far out, in words.

    >>> told_of_directions(np.array([(0.0, 0.1), (0.3, 0.4)]))
    '2 LEDs up to NA 0.5'
    """
    return f"{len(na)} LEDs up to NA {np.hypot(na[:, 0], na[:, 1]).max(initial=0.0):.3g}"
