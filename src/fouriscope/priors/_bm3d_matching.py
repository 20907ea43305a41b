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
Index = np.uintp
MARGIN = 16
"""Numbers to spare behind the last one, for loops in steps of whole vector registers."""
RANK_BITS = 32
RANK_MASK = 2**32 - 1


def compiled(function: Function) -> Function:
    """Compile at the first call and keep the machine code on disk; the kernels meet finite numbers only.

    Python's negative indices count from the end, and a loop that might meet one is not vectorised: hence the unsigned
    ``Index`` in inner loops (which must not be mixed with signed numbers: their sum would be a float).
    """
    fast: Function = njit(cache=True, nogil=True, fastmath=True, error_model="numpy")(function)
    return fast


def inlined(function: Function) -> Function:
    """For small kernels called within loops: a true call counts the references of its arrays, at dear atomic cost."""
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
def _add_row(
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
def _sum_across(total: Array, part: Array, whole: int, rest: int, n: int, sums: Array, start: int) -> None:
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
def _clear(numbers: Array, n: int) -> None:
    for c in range(Index(n)):
        numbers[c] = 0


@inlined
def _add_sums(sums: Array, start: int, n: int, distance: Array) -> None:
    begin = Index(start)
    for c in range(Index(n)):
        distance[c] += sums[begin + c]


@inlined
def _find_candidates(distance: Array, worst: Array, start: int, n: int, found: Array) -> int:
    """List the c with distance[c] ≤ worst[start + c], without a branch; return how many."""
    count = 0
    offset = Index(start)
    for c in range(Index(n)):
        found[count] = c
        count += distance[c] <= worst[offset + c]
    return count


@inlined
def _insert(keys: Array, start: int, count: int, key: np.int64) -> None:
    """Put ``key`` in its place among ``count`` descending keys, of which the largest falls out.

    Without a branch, and reading ahead of what it writes: a few vector instructions, where a search for the place would
    mispredict. The entry behind the last one is smaller than any key.
    """
    here, ahead = Index(start), Index(start + 1)
    for i in range(Index(count)):
        keys[here + i] = max(keys[ahead + i], min(keys[here + i], key))


@compiled
def match_strip(
    planes: Array,
    shape: tuple[int, int],
    width: int,
    block: int,
    step: int,
    displacements: Array,
    runs: Array,
    limit: float,
    first: int,
    last: int,
    matches: Array,
) -> None:
    """Write to ``matches[first:last]`` the positions (row · columns + column) of the blocks nearest to each reference.

    ``displacements`` holds (down, along, rank), sorted into runs of equal "down" that begin and end at ``runs``: bands
    of cells are compared with all displacements of a run while both are in the cache. The reference block comes first,
    the others by distance, among equals by rank. Only distances up to ``limit`` count; the number of matches is cut to
    a power of two and the rest filled with −1.
    """
    rows, columns = shape
    references, group = matches.shape[1], matches.shape[2]
    whole, rest = block // step, block % step
    spare = 1 if rest > 0 else 0
    height = last - first
    total = np.zeros(width + MARGIN, np.float32)
    part = np.zeros(width + MARGIN, np.float32)
    distance = np.zeros(references + MARGIN, np.float32)
    bits = distance.view(np.int32)
    bound_distance = np.zeros(1, np.float32)
    bound_bits = bound_distance.view(np.int32)
    found = np.zeros(references + 1, np.int64)
    # Of each displacement of a run, the last ``whole`` bands, in a ring.
    length = references + MARGIN
    longest = 0
    for run in range(runs.shape[0] - 1):
        longest = max(longest, runs[run + 1] - runs[run])
    sums = np.zeros(longest * whole * length, np.float32)
    # A key is a distance and a rank: comparing keys compares both. That of the reference is smaller than any other.
    room = group + 1
    keys = np.full(height * references * room, NOTHING, np.int64)
    worst = np.full(height * references, np.float32(limit), np.float32)
    for i in range(height * references):
        keys[i * room + group - 1] = -1
        keys[i * room + group] = -1

    for run in range(runs.shape[0] - 1):
        down = displacements[runs[run], 0]
        # Reference rows [r0, r1), and below columns [c0, c1), whose displaced block lies within the image.
        r0 = max(first, (-down + step - 1) // step)
        r1 = min(last, (rows - block - down) // step + 1)
        for band in range(r0, r1 + whole - 1 + spare if r1 > r0 else r0):
            r = band - whole + 1 - spare
            for d in range(runs[run], runs[run + 1]):
                along = displacements[d, 1]
                c0 = max(0, (-along + step - 1) // step)
                c1 = min(references, (columns - block - along) // step + 1)
                n = c1 - c0
                if n <= 0:
                    continue
                # Whole vector registers: what is computed beyond the last block is read by nobody.
                wide = (n + 7) // 8 * 8
                cells = (n + whole + spare + 6) // 8 * 8
                ring = (d - runs[run]) * whole
                _clear(total, cells)
                if rest > 0:
                    _clear(part, cells)
                for i in range(rest):
                    _add_row(planes, band * step + i, down, along, c0, cells, step, rest, width, total, part)
                if r >= r0:
                    _clear(distance, wide)
                    if rest > 0:
                        _sum_across(total, part, whole, rest, wide, distance, 0)
                    for k in range(1 - spare, whole):
                        _add_sums(sums, (ring + (band - k - spare) % whole) * length, wide, distance)
                if band < r1 + whole - 1:
                    for i in range(rest, step):
                        _add_row(planes, band * step + i, down, along, c0, cells, step, rest, width, total, part)
                    _sum_across(total, part, whole, rest, wide, sums, (ring + band % whole) * length)
                    if rest == 0 and r >= r0:
                        _add_sums(sums, (ring + band % whole) * length, wide, distance)
                if r < r0:
                    continue
                corner = (r - first) * references + c0
                rank = displacements[d, 2]
                for hit in range(_find_candidates(distance, worst, corner, n, found)):
                    c = found[hit]
                    start = (corner + c) * room
                    _insert(keys, start, group, (np.int64(bits[c]) << RANK_BITS) | rank)
                    if keys[start] != NOTHING:
                        bound_bits[0] = np.int32(keys[start] >> RANK_BITS)
                        worst[corner + c] = bound_distance[0]
    _write_matches(keys, displacements, step, columns, first, last, matches)


@compiled
def _write_matches(
    keys: Array, displacements: Array, step: int, columns: int, first: int, last: int, matches: Array
) -> None:
    """Turn sorted keys into positions."""
    references, group = matches.shape[1], matches.shape[2]
    shift = np.zeros(displacements.shape[0], np.int64)
    for d in range(displacements.shape[0]):
        shift[displacements[d, 2]] = displacements[d, 0] * columns + displacements[d, 1]
    for r in range(first, last):
        for c in range(references):
            end = ((r - first) * references + c) * (group + 1) + group - 1
            count = 1
            while 2 * count <= group and keys[end - 2 * count + 1] != NOTHING:
                count *= 2
            here = matches[r, c]
            here[:] = -1
            reference = (r * columns + c) * step
            here[0] = reference
            for k in range(1, count):
                here[k] = reference + shift[keys[end - k] & RANK_MASK]
