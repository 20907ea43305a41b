"""Compiled loops of the total-variation prox. Imported only by the functions that run them: numba takes long to load.

Everything is in units of the weight: z, x and the dual (p, r) belong to min ½‖x − z‖² + TV(x), and x = z + div p with
abs(p) ≤ 1. Fields are stacked as (4, rows, columns): p down the rows, p along the columns, then the same of r, the
extrapolated dual. Entries of p that would point out of the image are zero and stay so, because the gradient there is
computed as zero: no boundary cases remain in the inner loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Array = npt.NDArray[Any]


@njit(cache=True, nogil=True, fastmath=True)
def _primal_row(z: Array, down: Array, down_above: Array, along: Array, x: Array) -> None:
    """One row of x = z + div p, and its last pixel once more so that the difference beyond it vanishes."""
    columns = z.shape[0]
    x[0] = z[0] + ((down[0] - down_above[0]) + along[0])
    for j in range(1, columns):
        x[j] = z[j] + ((down[j] - down_above[j]) + (along[j] - along[j - 1]))
    x[columns] = x[columns - 1]


@njit(cache=True, nogil=True, fastmath=True)
def _isotropic_row(
    p_down: Array, p_along: Array, r_down: Array, r_along: Array, x: Array, below: Array, step: float, beta: float
) -> None:
    """p ← r + step·∇x projected onto unit discs; r ← p + β (p − p before)."""
    one = p_down.dtype.type(1)
    for j in range(p_down.shape[0]):
        a = r_down[j] + step * (below[j] - x[j])
        b = r_along[j] + step * (x[j + 1] - x[j])
        squared = a * a + b * b
        scale = one / np.sqrt(max(squared, one)) if squared > one else one
        a *= scale
        b *= scale
        r_down[j] = a + beta * (a - p_down[j])
        r_along[j] = b + beta * (b - p_along[j])
        p_down[j] = a
        p_along[j] = b


@njit(cache=True, nogil=True, fastmath=True)
def _anisotropic_row(
    p_down: Array, p_along: Array, r_down: Array, r_along: Array, x: Array, below: Array, step: float, beta: float
) -> None:
    """The same with unit squares."""
    one = p_down.dtype.type(1)
    for j in range(p_down.shape[0]):
        a = min(max(r_down[j] + step * (below[j] - x[j]), -one), one)
        b = min(max(r_along[j] + step * (x[j + 1] - x[j]), -one), one)
        r_down[j] = a + beta * (a - p_down[j])
        r_along[j] = b + beta * (b - p_along[j])
        p_down[j] = a
        p_along[j] = b


@njit(cache=True, nogil=True, fastmath=True)
def _gap_row(
    p_down: Array, p_along: Array, r_down: Array, r_along: Array, x: Array, below: Array, isotropic: bool
) -> tuple[float, float]:
    """Sum over a row of abs(∇x) − p·∇x, which is never negative, and of −∇x·(r − p), the slope along the momentum."""
    gap = 0.0
    slope = 0.0
    zero = p_down.dtype.type(0)
    for j in range(p_down.shape[0]):
        a = below[j] - x[j]
        b = x[j + 1] - x[j]
        length = np.sqrt(a * a + b * b) if isotropic else abs(a) + abs(b)
        gap += max(length - (p_down[j] * a + p_along[j] * b), zero)
        slope -= a * (r_down[j] - p_down[j]) + b * (r_along[j] - p_along[j])
    return gap, slope


@njit(cache=True, nogil=True, fastmath=True)
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

    Reads the dual ``before`` and writes ``after`` and ``x_out`` in these rows only. A new row depends on its two
    neighbours, so the strip starts with as many more rows on either side as there are iterations, and loses one a side
    with each: what neighbouring strips compute twice they compute alike, and no one waits for another.
    """
    height = z.shape[0]
    steps = betas.shape[0]
    top = max(first - steps - 1, 0)
    bottom = min(last + steps + 1, height)
    # scratch[:, k] holds row top + k − 1; the row above the image is zero, the row above the halo is never needed.
    work = scratch[:, : bottom - top + 1]
    work[:, 0] = 0
    work[:2, 1:] = before[:2, top:bottom]
    if restart:
        work[2:, 1:] = before[:2, top:bottom]
    else:
        work[2:, 1:] = before[2:, top:bottom]

    for k in range(steps):
        begin = top if top == 0 else top + k + 1
        end = bottom if bottom == height else bottom - k - 1
        beta = betas[k]
        i = begin - top + 1
        _primal_row(z[begin], work[2, i], work[2, i - 1], work[3, i], rows[begin % 2])
        for row in range(begin, end):
            i = row - top + 1
            x = rows[row % 2]
            below = x
            if row + 1 < height:
                # Before row i of r is renewed: the next row of x still needs its old values.
                below = rows[(row + 1) % 2]
                _primal_row(z[row + 1], work[2, i + 1], work[2, i], work[3, i + 1], below)
            if isotropic:
                _isotropic_row(work[0, i], work[1, i], work[2, i], work[3, i], x, below, step, beta)
            else:
                _anisotropic_row(work[0, i], work[1, i], work[2, i], work[3, i], x, below, step, beta)

    gap = 0.0
    slope = 0.0
    i = first - top + 1
    _primal_row(z[first], work[0, i], work[0, i - 1], work[1, i], rows[first % 2])
    for row in range(first, last):
        i = row - top + 1
        x = rows[row % 2]
        below = x
        if row + 1 < height:
            below = rows[(row + 1) % 2]
            _primal_row(z[row + 1], work[0, i + 1], work[0, i], work[1, i + 1], below)
        row_gap, row_slope = _gap_row(work[0, i], work[1, i], work[2, i], work[3, i], x, below, isotropic)
        gap += row_gap
        slope += row_slope
        x_out[row] = x[:-1]
    start = first - top + 1
    after[:, first:last] = work[:, start : start + last - first]
    return gap, slope
