"""Compiled block matching of BM3D: for every reference block, the most similar blocks around it.

Reference blocks lie on a grid of ``step`` pixels. A block of ``block`` = q·step + rest pixels is q whole cells of the
grid and the first ``rest`` pixels of the next one, in each direction, so the squared distance of two blocks is a sum of
cell distances that neighbouring blocks share: exact, at a fraction of the work. For one displacement at a time, whole
rows of cells are summed. To keep the memory accesses of a row contiguous, the image comes as ``planes``: row y,
phase p and cell c hold the pixel (y, c·step + p), in one flat array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numba import njit

Array = npt.NDArray[Any]
Function = TypeVar("Function", bound=Callable[..., Any])

NOTHING = np.int64(2**63 - 1)
CODE_BITS = 32


def compiled(function: Function) -> Function:
    """Compile at the first call and keep the machine code on disk; the kernels meet finite numbers only."""
    fast: Function = njit(cache=True, nogil=True, fastmath=True)(function)
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


@compiled
def _add_four(planes: Array, a: int, b0: int, b1: int, b2: int, b3: int, width: int, n: int, total: Array) -> None:
    """Add the squared differences of one row of pixels to the cells, at a step of four (a whole number of cells)."""
    a1, a2, a3 = a + width, a + 2 * width, a + 3 * width
    for c in range(n):
        d0 = planes[a + c] - planes[b0 + c]
        d1 = planes[a1 + c] - planes[b1 + c]
        d2 = planes[a2 + c] - planes[b2 + c]
        d3 = planes[a3 + c] - planes[b3 + c]
        total[c] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)


@compiled
def _add_three(planes: Array, a: int, b0: int, b1: int, b2: int, width: int, n: int, total: Array, part: Array) -> None:
    """The same at a step of three, with the sums over the first two phases, by which a block of eight ends."""
    a1, a2 = a + width, a + 2 * width
    for c in range(n):
        d0 = planes[a + c] - planes[b0 + c]
        d1 = planes[a1 + c] - planes[b1 + c]
        d2 = planes[a2 + c] - planes[b2 + c]
        first = d0 * d0 + d1 * d1
        part[c] += first
        total[c] += first + d2 * d2


@compiled
def _add_phase(planes: Array, a: int, b: int, n: int, total: Array) -> None:
    for c in range(n):
        d = planes[a + c] - planes[b + c]
        total[c] += d * d


@compiled
def _add_row(
    planes: Array, y: int, dy: int, dx: int, c0: int, n: int, step: int, rest: int, width: int, total: Array, part: Array
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


@compiled
def _sum_across(total: Array, part: Array, whole: int, rest: int, n: int, row: Array) -> None:
    """Sum the cells that a block spans along a row of cells."""
    if whole == 2 and rest == 0:
        for c in range(n):
            row[c] = total[c] + total[c + 1]
    elif whole == 2:
        for c in range(n):
            row[c] = total[c] + total[c + 1] + part[c + 2]
    else:
        row[:n] = 0
        for k in range(whole):
            for c in range(n):
                row[c] += total[c + k]
        if rest > 0:
            for c in range(n):
                row[c] += part[c + whole]


@compiled
def _insert(keys: Array, start: int, count: int, key: int) -> None:
    """Put ``key`` in its place among ``count`` ascending keys; the largest falls out."""
    j = start + count - 1
    while j > start and keys[j - 1] > key:
        keys[j] = keys[j - 1]
        j -= 1
    keys[j] = key


@compiled
def match_strip(
    planes: Array,
    shape: tuple[int, int],
    width: int,
    block: int,
    step: int,
    displacements: Array,
    limit: float,
    first: int,
    last: int,
    matches: Array,
) -> None:
    """Write to ``matches[first:last]`` the positions (row · columns + column) of the blocks nearest to each reference.

    The reference block comes first, the others by distance, among equals by their place in ``displacements``. Only
    distances below ``limit`` count; the number of matches is cut to a power of two and the rest filled with −1.
    """
    rows, columns = shape
    references, group = matches.shape[1], matches.shape[2]
    whole, rest = block // step, block % step
    height = last - first
    spare = 1 if rest > 0 else 0
    total = np.zeros(width, np.float32)
    part = np.zeros(width, np.float32)
    sums = np.zeros((height + whole + 1, references), np.float32)
    cut_sums = np.zeros((height + whole + 1, references), np.float32)
    distance = np.zeros(references, np.float32)
    bits = distance.view(np.int32)
    keys = np.full(height * references * group, NOTHING, np.int64)
    worst = np.full((height, references), np.float32(limit), np.float32)
    for i in range(height * references):
        keys[i * group] = -1
        if group == 1:
            worst[i // references, i % references] = 0

    for code in range(displacements.shape[0]):
        dy, dx = displacements[code, 0], displacements[code, 1]
        # Reference rows [r0, r1) and columns [c0, c1) whose displaced block lies within the image.
        r0 = max(first, (-dy + step - 1) // step)
        r1 = min(last, (rows - block - dy) // step + 1)
        c0 = max(0, (-dx + step - 1) // step)
        c1 = min(references, (columns - block - dx) // step + 1)
        n = c1 - c0
        if r1 <= r0 or n <= 0:
            continue
        cells = n + whole - 1 + spare
        for band in range(r0, r1 + whole - 1 + spare):
            total[:cells] = 0
            part[:cells] = 0
            here = sums[band - r0]
            for i in range(step):
                if rest > 0 and i == rest:
                    _sum_across(total, part, whole, rest, n, cut_sums[band - r0])
                    if band == r1 + whole - 1:
                        break
                _add_row(planes, band * step + i, dy, dx, c0, cells, step, rest, width, total, part)
            else:
                _sum_across(total, part, whole, rest, n, here)
            r = band - whole + 1 - spare
            if r < r0:
                continue
            _sum_down(sums, cut_sums, r - r0, whole, rest, n, distance)
            worst_here = worst[r - first]
            offset = ((r - first) * references + c0) * group
            for c in range(n):
                if distance[c] < worst_here[c0 + c]:
                    place = offset + c * group
                    _insert(keys, place, group, (np.int64(bits[c]) << CODE_BITS) | code)
                    bound = keys[place + group - 1]
                    if bound != NOTHING:
                        bits_of_bound[0] = np.int32(bound >> CODE_BITS)
                        worst_here[c0 + c] = bound_as_float[0]
