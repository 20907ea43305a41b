"""Compiled loops of the total-variation prox. Imported only by the functions that run them: numba takes long to load.

Everything is in units of the weight: z, x and the dual (p, r) belong to min ½‖x − z‖² + TV(x), and x = z + div p with
abs(p) ≤ 1. Fields are stacked as (4, rows, columns): p down the rows, p along the columns, then the same of r, the
extrapolated dual. Entries of p that would point out of the image are zero and stay so, because the gradient there is
computed as zero: no boundary cases remain in the inner loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numba import njit

Array = npt.NDArray[Any]
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile at the first call and keep the machine code on disk; the kernels meet finite numbers only."""
    fast: Function = njit(cache=True, nogil=True, fastmath=True)(function)
    return fast


@compiled
def _copy_row(source: Array, target: Array) -> None:
    for j in range(target.shape[0]):
        target[j] = source[j]


@compiled
def to_units_of_weight(image: Array, centre: float, weight: float, scaled: Array) -> float:
    """Write (image − centre)/weight, and return its variance (about its mean) summed in double precision."""
    inverse = scaled.dtype.type(1 / weight)
    middle = scaled.dtype.type(centre)
    total = 0.0
    squares = 0.0
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            value = (image[i, j] - middle) * inverse
            scaled[i, j] = value
            total += value
            squares += np.float64(value) * np.float64(value)
    mean = total / scaled.size
    return max(squares / scaled.size - mean * mean, 0.0)


@compiled
def from_units_of_weight(image: Array, scaled: Array, x: Array, weight: float, out: Array) -> None:
    """Write image + weight·(x − scaled): where x did not move, the pixel comes back exactly."""
    factor = out.dtype.type(weight)
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            out[i, j] = image[i, j] + factor * (x[i, j] - scaled[i, j])


@compiled
def _primal_row(z: Array, down: Array, down_above: Array, along: Array, x: Array) -> None:
    """One row of x = z + div p, and its last pixel once more so that the difference beyond it vanishes."""
    columns = z.shape[0]
    x[0] = z[0] + ((down[0] - down_above[0]) + along[0])
    for j in range(1, columns):
        x[j] = z[j] + ((down[j] - down_above[j]) + (along[j] - along[j - 1]))
    x[columns] = x[columns - 1]


@compiled
def _isotropic_row(
    p_down: Array, p_along: Array, r_down: Array, r_along: Array, x: Array, below: Array, step: float, beta: float
) -> None:
    """p ← r + step·∇x projected onto unit discs; r ← p + β (p − p before)."""
    one = p_down.dtype.type(1)
    for j in range(p_down.shape[0]):
        a = r_down[j] + step * (below[j] - x[j])
        b = r_along[j] + step * (x[j + 1] - x[j])
        # No branch: a loop with one is not vectorised, and costs five times as much.
        scale = one / np.sqrt(max(a * a + b * b, one))
        a *= scale
        b *= scale
        r_down[j] = a + beta * (a - p_down[j])
        r_along[j] = b + beta * (b - p_along[j])
        p_down[j] = a
        p_along[j] = b


@compiled
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


@compiled
def _isotropic_gap_row(
    p_down: Array, p_along: Array, r_down: Array, r_along: Array, x: Array, below: Array
) -> tuple[float, float]:
    """Sum over a row of abs(∇x) − p·∇x, and of −∇x·(r − p), the slope of the dual objective along the momentum.

    The first has no negative terms, so it does not cancel, and a row may be summed in the precision of the image.
    """
    zero = p_down.dtype.type(0)
    gap = zero
    slope = zero
    for j in range(p_down.shape[0]):
        a = below[j] - x[j]
        b = x[j + 1] - x[j]
        along_dual = p_down[j] * a + p_along[j] * b
        gap += max(np.sqrt(a * a + b * b) - along_dual, zero)
        slope += along_dual - (r_down[j] * a + r_along[j] * b)
    return np.float64(gap), np.float64(slope)


@compiled
def _anisotropic_gap_row(
    p_down: Array, p_along: Array, r_down: Array, r_along: Array, x: Array, below: Array
) -> tuple[float, float]:
    """The same with the sum of absolute differences."""
    zero = p_down.dtype.type(0)
    gap = zero
    slope = zero
    for j in range(p_down.shape[0]):
        a = below[j] - x[j]
        b = x[j + 1] - x[j]
        along_dual = p_down[j] * a + p_along[j] * b
        gap += max(abs(a) + abs(b) - along_dual, zero)
        slope += along_dual - (r_down[j] * a + r_along[j] * b)
    return np.float64(gap), np.float64(slope)


@compiled
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
    neighbours, so the strip starts with as many more rows on either side as there are iterations, and loses one on
    each side with each: what neighbouring strips compute twice they compute alike, and no one waits for another.
    """
    height = z.shape[0]
    steps = betas.shape[0]
    top = max(first - steps - 1, 0)
    bottom = min(last + steps + 1, height)
    # scratch[:, k] holds row top + k − 1; the row above the image is zero, the row above the halo is never needed.
    # Whole rows are copied and passed on, for a slice of columns would lose the contiguity that vector loads rely on.
    for component in range(4):
        source = component - 2 if restart and component >= 2 else component
        scratch[component, 0] = 0
        for row in range(top, bottom):
            _copy_row(before[source, row], scratch[component, row - top + 1])

    for k in range(steps):
        begin = top if top == 0 else top + k + 1
        end = bottom if bottom == height else bottom - k - 1
        beta = betas[k]
        i = begin - top + 1
        _primal_row(z[begin], scratch[2, i], scratch[2, i - 1], scratch[3, i], rows[begin % 2])
        for row in range(begin, end):
            i = row - top + 1
            x = rows[row % 2]
            below = x
            if row + 1 < height:
                # Before row i of r is renewed: the next row of x still needs its old values.
                below = rows[(row + 1) % 2]
                _primal_row(z[row + 1], scratch[2, i + 1], scratch[2, i], scratch[3, i + 1], below)
            if isotropic:
                _isotropic_row(scratch[0, i], scratch[1, i], scratch[2, i], scratch[3, i], x, below, step, beta)
            else:
                _anisotropic_row(scratch[0, i], scratch[1, i], scratch[2, i], scratch[3, i], x, below, step, beta)

    gap = 0.0
    slope = 0.0
    i = first - top + 1
    _primal_row(z[first], scratch[0, i], scratch[0, i - 1], scratch[1, i], rows[first % 2])
    for row in range(first, last):
        i = row - top + 1
        x = rows[row % 2]
        below = x
        if row + 1 < height:
            below = rows[(row + 1) % 2]
            _primal_row(z[row + 1], scratch[0, i + 1], scratch[0, i], scratch[1, i + 1], below)
        fields = scratch[0, i], scratch[1, i], scratch[2, i], scratch[3, i]
        shares = _isotropic_gap_row(*fields, x, below) if isotropic else _anisotropic_gap_row(*fields, x, below)
        gap += shares[0]
        slope += shares[1]
        _copy_row(x, x_out[row])
    for component in range(4):
        for row in range(first, last):
            _copy_row(scratch[component, row - top + 1], after[component, row])
    return gap, slope


@compiled
def total_variation(image: Array, isotropic: bool) -> float:
    """Σ √(dx² + dy²) or Σ |dx| + |dy|: rows in the image's own precision, their sum in double."""
    rows, columns = image.shape
    zero = image.dtype.type(0)
    total = 0.0
    for i in range(rows):
        below = min(i + 1, rows - 1)
        row = zero
        for j in range(columns - 1):
            down = image[below, j] - image[i, j]
            along = image[i, j + 1] - image[i, j]
            row += np.sqrt(down * down + along * along) if isotropic else abs(down) + abs(along)
        row += abs(image[below, columns - 1] - image[i, columns - 1])
        total += row
    return total
