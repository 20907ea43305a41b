"""LEDs on concentric rings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np

from fouriscope.errors import InvalidInputError
from fouriscope.optics._points import FloatArray, require_count, require_few


def ring_points(radii: Sequence[float], counts: Sequence[SupportsIndex], start_angle: float) -> FloatArray:
    """(y, x) of ``counts`` LEDs on each ring, in equal steps from ``start_angle``.

    >>> ring_points([0.0, 1.0], [1, 2], 0.0).round(9).tolist()
    [[0.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    """
    if len(radii) != len(counts) or len(radii) == 0:
        raise InvalidInputError(
            f"rings need one count for each radius, got {len(radii)} radii and {len(counts)} counts."
        )
    require_few(sum(require_count("a count of LEDs", count) for count in counts))
    rings = []
    for radius, given in zip(radii, counts, strict=True):
        count = require_count("a count of LEDs", given)
        if not radius >= 0 or count < 1 or (radius == 0 and count != 1):
            raise InvalidInputError(
                f"a ring must have a radius ≥ 0 and at least one LED (exactly one if the radius is 0), "
                f"got radius {radius!r} m with {count!r} LEDs."
            )
        angle = start_angle + 2 * np.pi * np.arange(count) / count
        rings.append(radius * np.stack([np.sin(angle), np.cos(angle)], axis=1))
    return np.concatenate(rings)
