"""The options of EPRY, and the order in which it visits LEDs."""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError

Order = Literal["na", "random", "sampler"]

# Directions nearer than this are on one ring: rounding must not decide in which order it is gone round.
SAME_NA = 1e-6


def check_options(order: Order, object_step: float, pupil_step: float, pupil_start: int, decay: float) -> None:
    """Raise for an option that makes no sense."""
    if order not in get_args(Order):
        raise InvalidInputError(f"order must be one of {', '.join(get_args(Order))}, got {order!r}")
    if not (math.isfinite(object_step) and object_step > 0):
        raise InvalidInputError(f"object_step must be a positive number (1 is usual), got {object_step}")
    if not (math.isfinite(pupil_step) and pupil_step >= 0):
        raise InvalidInputError(f"pupil_step must be a number ≥ 0 (0 keeps the pupil, 1 recovers it), got {pupil_step}")
    if not (isinstance(pupil_start, int | np.integer) and pupil_start >= 1):
        raise InvalidInputError(f"pupil_start must be an iteration, a whole number from 1, got {pupil_start!r}")
    if not (math.isfinite(decay) and decay >= 0):
        raise InvalidInputError(f"decay must be a number ≥ 0 (0 keeps the steps), got {decay}")


def visiting_order(order: Order, na: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Where among LEDs of the directions ``na`` to find the one that is visited first, second…"""
    if order == "sampler":
        return np.arange(len(na))
    if order == "random":
        return rng.permutation(len(na))
    na_y, na_x = na.T
    rings = np.rint(np.hypot(na_y, na_x) / SAME_NA)
    # + 0.0 makes −0 into 0, which arctan2 would put at the other end of the round.
    angles = np.arctan2(np.rint(na_y / SAME_NA) + 0.0, np.rint(na_x / SAME_NA) + 0.0)
    return np.lexsort((angles, rings))
