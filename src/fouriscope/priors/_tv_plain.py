"""The loops of the total-variation prox in plain NumPy, for machines without numba: the same names and arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def to_units_of_weight(image: Array, centre: float, weight: float, scaled: Array) -> float:
    """Write (image − centre)/weight, and return its variance."""
    np.multiply(image - scaled.dtype.type(centre), scaled.dtype.type(1 / weight), out=scaled)
    return float(np.var(scaled, dtype=np.float64))


def from_units_of_weight(image: Array, scaled: Array, x: Array, weight: float, out: Array) -> None:
    """Write image + weight·(x − scaled)."""
    out[...] = image + out.dtype.type(weight) * (x - scaled)


def advance_strip(
    z: Array,
    before: Array,
    after: Array,
    x_out: Array,
    scratch: Array,
    rows: Array,
    first: int,
    last: int,
    betas: Array,
    step: float,
    restart: bool,
    isotropic: bool,
) -> tuple[float, float]:
    """Iterate ``len(betas)`` times on rows [first, last), and return their share of the gap and of the slope.

    The strip has as many more rows on either side as there are iterations: what goes wrong at its edges does not reach
    the rows that count.
    """
    del scratch, rows  # of the compiled twin
    top, bottom = max(first - len(betas) - 1, 0), min(last + len(betas) + 1, len(z))
    z = z[top:bottom]
    p = before[:2, top:bottom].copy()
    r = p.copy() if restart else before[2:, top:bottom].copy()
    for beta in betas:
        new = _projected(r + step * _gradient(_primal(z, r)), isotropic)
        r, p = new + beta * (new - p), new
    x = _primal(z, p)
    inside = slice(first - top, last - top)
    slopes, p, r, x = _gradient(x)[:, inside], p[:, inside], r[:, inside], x[inside]
    along_dual = (p * slopes).sum(axis=0)
    gap = np.maximum(_length(slopes, isotropic) - along_dual, 0).sum(dtype=np.float64)
    slope = (along_dual - (r * slopes).sum(axis=0)).sum(dtype=np.float64)
    x_out[first:last], after[:2, first:last], after[2:, first:last] = x, p, r
    return float(gap), float(slope)


def total_variation(image: Array, isotropic: bool) -> float:
    """Σ √(dx² + dy²) or Σ |dx| + |dy|."""
    return float(_length(_gradient(image), isotropic).sum(dtype=np.float64))


def _primal(z: Array, dual: Array) -> Array:
    """z + div p."""
    x = z + dual[0] + dual[1]
    x[1:] -= dual[0, :-1]
    x[:, 1:] -= dual[1, :, :-1]
    return np.asarray(x)


def _gradient(x: Array) -> Array:
    """Differences down the rows and along the columns; beyond the last they are zero."""
    out = np.zeros((2, *x.shape), x.dtype)
    np.subtract(x[1:], x[:-1], out=out[0, :-1])
    np.subtract(x[:, 1:], x[:, :-1], out=out[1, :, :-1])
    return out


def _projected(dual: Array, isotropic: bool) -> Array:
    if isotropic:
        return np.asarray(dual / np.sqrt(np.maximum((dual * dual).sum(axis=0), 1)))
    return np.clip(dual, -1, 1)


def _length(gradient: Array, isotropic: bool) -> Array:
    return np.asarray(np.sqrt((gradient * gradient).sum(axis=0)) if isotropic else np.abs(gradient).sum(axis=0))
