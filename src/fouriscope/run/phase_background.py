"""The slow background of a phase: which there are to choose from, how one is found, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError

RealArray = NDArray[Any]

# The choices of [output] phase_background: the order of the polynomial, and what it takes off, in words.
ORDERS: dict[str, int | None] = {"none": None, "constant": 0, "plane": 1, "curved": 2}
WORDS = {
    "none": "nothing is taken off",
    "constant": "without the constant of its background",
    "plane": "without constant and ramp of its background",
    "curved": "without constant, ramp and curvature of its background",
}
ORDER = 2
SAMPLES = 256
ROUNDS_OF_EACH = 15
# Tukey's biweight: 95 % as efficient as least squares where all is noise; σ of normal noise over the median of |r|.
BIWEIGHT = 4.685
MAD_TO_SIGMA = 1.4826


def order_of(kind: str) -> int | None:
    """The order of a background by its name; None takes nothing off.

    >>> order_of("plane")
    1
    """
    if kind not in ORDERS:
        raise InvalidInputError(f"a background is one of {', '.join(ORDERS)}, got {kind!r}")
    return ORDERS[kind]


@dataclass(frozen=True, eq=False)
class Surface:
    """A polynomial b(y, x) over a field, from −1 at the centre of its first row and column to 1 at that of its last.

    ``coefficients`` are those of products of Legendre polynomials, of y down and of x across.
    """

    coefficients: NDArray[np.float64]

    def at(self, y: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Its values where rows at ``y`` cross columns at ``x``: (rows, columns)."""
        return np.asarray(legendre.leggrid2d(y, x, self.coefficients), np.float64)


def background(phase: RealArray, amplitude: RealArray | None = None, *, order: int = ORDER) -> NDArray[np.float64]:
    r"""The polynomial b(y, x) of degree ``order`` that a continuous ``phase`` follows where it is empty.

    Cells on an empty slide must not pull it up, so it is no plain least-squares fit: b minimises Σ w ρ(φ − b), first
    with ρ(r) = \|r\|, then with Tukey's biweight, which ignores pixels that are further than 4.7 σ away, σ by the
    median of all \|r\|. Both by reweighted least squares. So the background may be the smaller part of the frame only
    if nothing else follows a polynomial in a larger one.

    w = ``amplitude``², as far as it is given: in the dark a phase says nothing. Pixels that are not finite are left
    out. Of large images some 256 × 256 pixels are looked at.

    >>> y, x = np.indices((30, 40))
    >>> bool(np.allclose(background(0.01 * x * y + 0.1 * x), 0.01 * x * y + 0.1 * x))
    True
    """
    places = [centres(size) for size in phase.shape]
    return surface_of(phase, amplitude, order=order).at(*places)


def centres(size: int, over: int | None = None) -> NDArray[np.float64]:
    """Where the ``size`` pixels of a row or column lie, from −1 to 1.

    With ``over`` the same length is cut into ``over`` pixels there, whose centres lie from −1 to 1: so a surface that
    was found on one level of a pyramid is evaluated on another.

    >>> centres(3).tolist(), centres(4, over=2).tolist()
    ([-1.0, 0.0, 1.0], [-1.5, -0.5, 0.5, 1.5])
    """
    if over is None:
        return np.linspace(-1, 1, size) if size > 1 else np.zeros(size)
    return ((2 * np.arange(size) + 1) / size - 1) * (over / (over - 1) if over > 1 else 0.0)


def surface_of(phase: RealArray, amplitude: RealArray | None = None, *, order: int = ORDER) -> Surface:
    """The polynomial of :func:`background` itself, to be evaluated anywhere."""
    if order < 0:
        raise InvalidInputError(f"a polynomial has an order of at least 0, got {order}")
    places = [centres(size) for size in phase.shape]
    some = tuple(slice(None, None, -(-size // SAMPLES)) for size in phase.shape)
    values = phase[some].astype(np.float64)
    weights = np.ones_like(values) if amplitude is None else amplitude[some].astype(np.float64) ** 2
    known = np.isfinite(values) & np.isfinite(weights) & (weights > 0)
    coefficients = np.zeros((order + 1, order + 1))
    if known.any():
        terms = [(i, j) for i in range(order + 1) for j in range(order + 1 - i)]
        down, across = (legendre.legvander(place[part], order) for place, part in zip(places, some, strict=True))
        columns = np.stack([np.outer(down[:, i], across[:, j])[known] for i, j in terms], axis=1).astype(np.float64)
        coefficients[tuple(np.transpose(terms))] = _robust_fit(columns, values[known], weights[known])
    return Surface(coefficients)


def _robust_fit(
    columns: NDArray[np.float64], values: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """c that minimises Σ w ρ(values − columns · c): see :func:`background`."""
    least = max(1e-6 * float(np.ptp(values)), 1e-9)
    found: NDArray[Any] = np.zeros(columns.shape[1])
    trusted = weights
    for number in range(2 * ROUNDS_OF_EACH):
        weighted = columns * trusted[:, None]
        # Legendre polynomials are nearly orthogonal, so that the normal equations are good enough; a fit that is not
        # determined (a single row, say) has a solution too.
        previous, found = found, np.linalg.lstsq(weighted.T @ columns, weighted.T @ values, rcond=None)[0]
        distance = np.abs(values - columns @ found)
        typical = max(float(np.median(distance)), least)
        if number < ROUNDS_OF_EACH:
            trusted = weights / np.maximum(distance / typical, 0.1)
        else:
            trusted = weights * np.maximum(1 - (distance / (BIWEIGHT * MAD_TO_SIGMA * typical)) ** 2, 0) ** 2
            if float(np.abs(found - previous).max()) < least:
                break
    return found
