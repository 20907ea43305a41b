"""Compiled transforms of the rows of all blocks of BM3D at once, before and after the filtering of the groups.

A block's transform is separable, and everything but the shrinkage is linear. So the rows of the blocks are transformed
once per pixel: ``lines[y, x]`` holds the transform of the pixels (y, x … x + block − 1), and a block at (y, x) only
needs its columns transformed. The same on the way back: blocks are added up with their columns already inverted, in
the same layout, and their rows are inverted once per pixel in the end, when all blocks are in. The Kaiser window is a
product of two as well, and folded into the two inverse transforms; the weights are added up per block position and
spread by the window in the end.

Lines are padded with zeros to ``LANES`` coefficients or a multiple, a vector register: a zero stays zero throughout.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fouriscope.priors._bm3d_cells import Array, Index, compiled, inlined

LANES = 8
_1, _2, _3, _4, _5, _6, _7 = (Index(k) for k in range(1, 8))


@inlined
def _combine(source: Array, start: int, matrix: Array, lane: int, lanes: int, count: int) -> tuple[Any, ...]:
    """Σ_j source[start + j] matrix[j, lane … lane + 7] for j < ``count``; unrolled where the count is a constant."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = np.float32(0)
    for j in range(count):
        value = source[Index(start + j)]
        m = Index(j * lanes + lane)
        s0 += value * matrix[m]
        s1 += value * matrix[m + _1]
        s2 += value * matrix[m + _2]
        s3 += value * matrix[m + _3]
        s4 += value * matrix[m + _4]
        s5 += value * matrix[m + _5]
        s6 += value * matrix[m + _6]
        s7 += value * matrix[m + _7]
    return s0, s1, s2, s3, s4, s5, s6, s7


@inlined
def store(sums: tuple[Any, ...], target: Array, t: int) -> None:
    t0 = Index(t)
    target[t0] = sums[0]
    target[t0 + _1] = sums[1]
    target[t0 + _2] = sums[2]
    target[t0 + _3] = sums[3]
    target[t0 + _4] = sums[4]
    target[t0 + _5] = sums[5]
    target[t0 + _6] = sums[6]
    target[t0 + _7] = sums[7]


@inlined
def load(source: Array, s: int) -> tuple[Any, ...]:
    s0 = Index(s)
    return (
        source[s0],
        source[s0 + _1],
        source[s0 + _2],
        source[s0 + _3],
        source[s0 + _4],
        source[s0 + _5],
        source[s0 + _6],
        source[s0 + _7],
    )


@inlined
def add_lanes(sums: tuple[Any, ...], target: Array, t: int) -> None:
    # All loads before all stores: the compiler need not fear that they overlap, and makes each a single instruction.
    t0 = Index(t)
    a0 = target[t0] + sums[0]
    a1 = target[t0 + _1] + sums[1]
    a2 = target[t0 + _2] + sums[2]
    a3 = target[t0 + _3] + sums[3]
    a4 = target[t0 + _4] + sums[4]
    a5 = target[t0 + _5] + sums[5]
    a6 = target[t0 + _6] + sums[6]
    a7 = target[t0 + _7] + sums[7]
    target[t0] = a0
    target[t0 + _1] = a1
    target[t0 + _2] = a2
    target[t0 + _3] = a3
    target[t0 + _4] = a4
    target[t0 + _5] = a5
    target[t0 + _6] = a6
    target[t0 + _7] = a7


@compiled
def transform_rows(image: Array, matrix: Array, lines: Array) -> None:
    """lines[y, x, v] = Σ_j matrix[j, v] image[y, x + j]; flat, with ``matrix`` padded to the lanes."""
    rows, columns = image.shape
    block, lanes = matrix.shape
    flat = matrix.ravel()
    for y in range(rows):
        pixels = image[y]
        start = y * columns * lanes
        if block == 8:
            for x in range(columns - 7):
                store(_combine(pixels, x, flat, 0, 8, 8), lines, start + x * 8)
        else:
            for x in range(columns - block + 1):
                for q in range(0, lanes, LANES):
                    store(_combine(pixels, x, flat, q, lanes, block), lines, start + x * lanes + q)


@compiled
def finish_strip(
    summed: Array, weights: Array, columns: int, matrix: Array, window: Array, numerator: Array, denominator: Array
) -> None:
    """Invert the rows of the added blocks, and spread the weights by the window: both still to be divided."""
    lanes = matrix.shape[0]
    block = window.shape[0]
    rows = numerator.shape[0]
    flat = matrix.ravel()
    line = np.zeros(columns + lanes, np.float32)
    denominator[:] = 0
    for y in range(rows):
        line[:] = 0
        start = y * columns * lanes
        if lanes == 8:
            # Every eighth pixel, eight times over: a sum that overlaps with the one just stored would wait for it.
            for phase in range(8):
                for x in range(phase, columns - block + 1, 8):
                    add_lanes(_combine(summed, start + x * 8, flat, 0, 8, 8), line, x)
        else:
            for x in range(columns - block + 1):
                for q in range(0, lanes, LANES):
                    add_lanes(_combine(summed, start + x * lanes, flat, q, lanes, lanes), line, x + q)
        for x in range(columns):  # an assignment of slices would bring the words of its error, compiled
            numerator[y, x] = line[x]
        line[:] = 0
        for j in range(block):
            factor = window[j]
            source, target = Index(y * columns), Index(j)
            for x in range(Index(columns - block + 1)):
                line[target + x] += factor * weights[source + x]
        for k in range(min(block, rows - y)):
            factor = window[k]
            row = denominator[y + k]
            for x in range(columns):
                row[x] += factor * line[x]
