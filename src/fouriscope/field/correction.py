"""What is added to a tile so that it fits its neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import legvander
from numpy.typing import NDArray

from fouriscope.field.overlaps import object_window
from fouriscope.field.tiling import Tile

FloatArray = NDArray[np.float64]

# Legendre polynomials along a side, from a constant to a cubic: slower than a tile, and little more.
ORDER = 3
SIDES = 4


@dataclass(frozen=True)
class Correction:
    """What to add to a tile: φ + ``phase`` + ``ramp`` · (r − r_k) + ``bend`` · edge surfaces, and μ + ``absorption``.

    The surfaces are those of :func:`edge_surfaces`, and r_k is the tile's centre. ``phase`` and ``bend`` in rad,
    ``ramp`` in rad per object pixel, down and across.
    """

    phase: float = 0.0
    ramp: tuple[float, float] = (0.0, 0.0)
    absorption: float = 0.0
    bend: tuple[float, ...] = ()

    def surface(self, tile: Tile, scale: int) -> FloatArray:
        """What is added to the phase, on the tile's object window.

        >>> Correction(1.0, (0.0, 0.5)).surface(Tile(0, 0, 0, top=0, left=8, height=1, width=4), scale=1).tolist()
        [[0.25, 0.75, 1.25, 1.75]]
        """
        sizes = object_window(tile, scale)[2:]
        y, x = (np.arange(size) - (size - 1) / 2 for size in sizes)
        plane = np.asarray(self.phase + self.ramp[0] * y[:, None] + self.ramp[1] * x)
        return plane + bent_edges(self.bend, 2 * y / sizes[0], 2 * x / sizes[1]) if self.bend else plane


def edge_surfaces(y: FloatArray, x: FloatArray) -> FloatArray:
    """Surfaces that lift the rim of a tile and do not change its middle: rows × columns × (4 sides · polynomials).

    ``y`` and ``x`` run from −1 to 1 over the tile. Towards its side each is 3s² − 2s³, 1 at the side and 0 from the
    middle on, flat at both ends; along the side it is a Legendre polynomial. The sides are top, bottom, left, right.

    >>> edge_surfaces(np.array([-1.0, 0.0]), np.array([0.0]))[:, 0, 0].tolist()
    [1.0, 0.0]
    """
    along_x, along_y = legvander(x, ORDER)[None], legvander(y, ORDER)[:, None]
    parts = [_rise(sign * y)[:, None, None] * along_x for sign in (-1, 1)]
    parts += [_rise(sign * x)[None, :, None] * along_y for sign in (-1, 1)]
    return np.concatenate(parts, axis=2)


def bent_edges(bend: tuple[float, ...], y: FloatArray, x: FloatArray) -> FloatArray:
    """``edge_surfaces(y, x) @ bend``, as four products of what depends on ``y`` and on ``x`` alone."""
    top, bottom, left, right = np.reshape(bend, (SIDES, ORDER + 1))
    along_x, along_y = legvander(x, ORDER), legvander(y, ORDER)
    down = np.outer(_rise(-y), along_x @ top) + np.outer(_rise(y), along_x @ bottom)
    return np.asarray(down + np.outer(along_y @ left, _rise(-x)) + np.outer(along_y @ right, _rise(x)))


def _rise(t: FloatArray) -> FloatArray:
    s = np.clip(t, 0.0, 1.0)
    return np.asarray(s**2 * (3 - 2 * s))
