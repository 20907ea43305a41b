"""Compiled sums of squared differences for the block matching of BM3D, and how its kernels are compiled.

Reference blocks lie on a grid of ``step`` pixels. A block of ``block`` = q·step + rest pixels is q whole cells of the
grid and the first ``rest`` pixels of the next one, in each direction, so the squared distance of two blocks is a sum of
cell distances that neighbouring blocks share: exact, at a fraction of the work. To keep the memory accesses of a row
contiguous, the image comes as ``planes``: row y, phase p and cell c hold the pixel (y, c·step + p), in one flat array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numba import njit

Array = npt.NDArray[Any]
Function = TypeVar("Function", bound=Callable[..., Any])

Index = np.uintp
MARGIN = 16
"""Numbers to spare behind the last one, for loops in steps of whole vector registers."""


def compiled(function: Function) -> Function:
    """Compile at the first call and keep the machine code on disk; the kernels meet finite numbers only.

    Python's negative indices count from the end, and a loop that might meet one is not vectorised: hence the unsigned
    ``Index`` in inner loops (which must not be mixed with signed numbers: their sum would be a float). The cache of a
    kernel notices changes of its own file only: after changing this file, touch those that import from it.
    """
    fast: Function = njit(cache=True, nogil=True, fastmath=True, error_model="numpy")(function)
    return fast


def inlined(function: Function) -> Function:
    """For small kernels called within loops: a true call counts the references of its arrays, which is expensive."""
    fast: Function = njit(cache=True, nogil=True, fastmath=True, error_model="numpy", inline="always")(function)
    return fast


@compiled
def to_planes(image: Array, step: int, width: int, planes: Array) -> None:
    """Sort the pixels of each row by their phase; cells beyond the image are zero."""
    rows, columns = image.shape
    planes[:] = 0
    for y in range(rows):
        for p in range(step):
            start = (y * step + p) * width
            for c in range((columns - p + step - 1) // step):
                planes[start + c] = image[y, c * step + p]


@inlined
def _add_four(planes: Array, a: int, b0: int, b1: int, b2: int, b3: int, width: int, n: int, total: Array) -> None:
    """Add the squared differences of one row of pixels to the cells, at a step of four (a whole number of cells)."""
    a0, a1, a2, a3 = Index(a), Index(a + width), Index(a + 2 * width), Index(a + 3 * width)
    e0, e1, e2, e3 = Index(b0), Index(b1), Index(b2), Index(b3)
    for c in range(Index(n)):
        d0 = planes[a0 + c] - planes[e0 + c]
        d1 = planes[a1 + c] - planes[e1 + c]
        d2 = planes[a2 + c] - planes[e2 + c]
        d3 = planes[a3 + c] - planes[e3 + c]
        total[c] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)


@inlined
def _add_three(planes: Array, a: int, b0: int, b1: int, b2: int, width: int, n: int, total: Array, part: Array) -> None:
    """The same at a step of three, with the sums over the first two phases, by which a block of eight ends."""
    a0, a1, a2 = Index(a), Index(a + width), Index(a + 2 * width)
    e0, e1, e2 = Index(b0), Index(b1), Index(b2)
    for c in range(Index(n)):
        d0 = planes[a0 + c] - planes[e0 + c]
        d1 = planes[a1 + c] - planes[e1 + c]
        d2 = planes[a2 + c] - planes[e2 + c]
        first = d0 * d0 + d1 * d1
        part[c] += first
        total[c] += first + d2 * d2


@inlined
def _add_phase(planes: Array, a: int, b: int, n: int, total: Array) -> None:
    a0, b0 = Index(a), Index(b)
    for c in range(Index(n)):
        d = planes[a0 + c] - planes[b0 + c]
        total[c] += d * d


@inlined
def add_row(
    planes: Array,
    y: int,
    dy: int,
    dx: int,
    c0: int,
    n: int,
    step: int,
    rest: int,
    width: int,
    total: Array,
    part: Array,
) -> None:
    """Add row y, displaced by (dy, dx), to the sums of whole cells and of cells cut off after ``rest`` phases."""
    a = y * step * width + c0
    b = (y + dy) * step * width + c0
    if step == 4 and rest == 0:
        _add_four(
            planes,
            a,
            b + (dx % 4) * width + dx // 4,
            b + ((dx + 1) % 4) * width + (dx + 1) // 4,
            b + ((dx + 2) % 4) * width + (dx + 2) // 4,
            b + ((dx + 3) % 4) * width + (dx + 3) // 4,
            width,
            n,
            total,
        )
    elif step == 3 and rest == 2:
        _add_three(
            planes,
            a,
            b + (dx % 3) * width + dx // 3,
            b + ((dx + 1) % 3) * width + (dx + 1) // 3,
            b + ((dx + 2) % 3) * width + (dx + 2) // 3,
            width,
            n,
            total,
            part,
        )
    else:
        for p in range(step):
            q = b + ((dx + p) % step) * width + (dx + p) // step
            _add_phase(planes, a + p * width, q, n, total)
            if p < rest:
                _add_phase(planes, a + p * width, q, n, part)


@inlined
def sum_across(total: Array, part: Array, whole: int, rest: int, n: int, sums: Array, start: int) -> None:
    """Sum the cells that a block spans along a row of cells."""
    one, two, begin = Index(1), Index(2), Index(start)
    if whole == 2 and rest == 0:
        for c in range(Index(n)):
            sums[begin + c] = total[c] + total[c + one]
    elif whole == 2:
        for c in range(Index(n)):
            sums[begin + c] = total[c] + total[c + one] + part[c + two]
    else:
        for c in range(Index(n)):
            sums[begin + c] = total[c]
        for k in range(1, whole):
            shift = Index(k)
            for c in range(Index(n)):
                sums[begin + c] += total[c + shift]
        if rest > 0:
            shift = Index(whole)
            for c in range(Index(n)):
                sums[begin + c] += part[c + shift]


@inlined
def clear(numbers: Array, n: int) -> None:
    for c in range(Index(n)):
        numbers[c] = 0


@inlined
def add_sums(sums: Array, start: int, n: int, distance: Array) -> None:
    begin = Index(start)
    for c in range(Index(n)):
        distance[c] += sums[begin + c]
