"""Compiled filtering of BM3D: the groups of matched blocks are transformed, shrunk and added up.

A block's transform is separable, and everything but the shrinkage is linear, which saves most of the work:

- Rows first, once per pixel: ``lines[y, x]`` holds the transform of the pixels (y, x … x + block − 1), so that a block
  at (y, x) only needs its columns transformed. The same on the way back: blocks are added up with their columns already
  inverted, in the same layout, and their rows are inverted once per pixel in the end, when all blocks are in.
- The Kaiser window is a product of two as well; it is folded into the two inverse transforms. The sum of the weights
  is kept per block position and spread by the window in the end.

Lines are padded with zeros to ``LANES`` coefficients or a multiple, a vector register: a zero stays zero throughout.
A group is stacked as [row of the block][member][coefficient], flat, with a distance of ``STRIDE`` between the rows: a
constant, or else the compiler would not see that they do not overlap. Members are in bit-reversed order, which makes
the two halves of every butterfly contiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fouriscope.priors._bm3d_matching import Array, Index, compiled, inlined

LANES = 8
STRIDE = 528
"""Room for 512 coefficients a row (64 blocks of 8, or 32 of 16), and one cache line against associativity conflicts."""

_1, _2, _3, _4, _5, _6, _7 = (Index(k) for k in range(1, 8))
_ROW1, _ROW2, _ROW3, _ROW4, _ROW5, _ROW6, _ROW7 = (Index(k * STRIDE) for k in range(1, 8))


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
def _store(sums: tuple[Any, ...], target: Array, t: int) -> None:
    t0 = Index(t)
    target[t0] = sums[0]
    target[t0 + _1] = sums[1]
    target[t0 + _2] = sums[2]
    target[t0 + _3] = sums[3]
    target[t0 + _4] = sums[4]
    target[t0 + _5] = sums[5]
    target[t0 + _6] = sums[6]
    target[t0 + _7] = sums[7]


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
                _store(_combine(pixels, x, flat, 0, 8, 8), lines, start + x * 8)
        else:
            for x in range(columns - block + 1):
                for q in range(0, lanes, LANES):
                    _store(_combine(pixels, x, flat, q, lanes, block), lines, start + x * lanes + q)


@inlined
def _load(source: Array, s: int) -> tuple[Any, ...]:
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
def _add_lanes(sums: tuple[Any, ...], target: Array, t: int) -> None:
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
def _gather(lines: Array, columns: int, members: Array, count: int, block: int, lanes: int, group: Array) -> None:
    for k in range(block):
        for i in range(count):
            source = (members[i] + k * columns) * lanes
            target = k * STRIDE + i * lanes
            if lanes == 8:
                _store(_load(lines, source), group, target)
            else:
                for q in range(0, lanes, LANES):
                    _store(_load(lines, source + q), group, target + q)


@compiled
def _scatter(group: Array, columns: int, members: Array, count: int, block: int, lanes: int, lines: Array) -> None:
    for k in range(block):
        for i in range(count):
            source = k * STRIDE + i * lanes
            target = (members[i] + k * columns) * lanes
            if lanes == 8:
                _add_lanes(_load(group, source), lines, target)
            else:
                for q in range(0, lanes, LANES):
                    _add_lanes(_load(group, source + q), lines, target + q)


@compiled
def _transform_columns(matrix: Array, source: Array, target: Array, n: int) -> None:
    """target[u] = Σ_k matrix[u, k] source[k], for rows of n numbers."""
    block = matrix.shape[0]
    if block == 8:
        for u in range(0, 8, 2):
            c0, c1, c2, c3 = matrix[u, 0], matrix[u, 1], matrix[u, 2], matrix[u, 3]
            c4, c5, c6, c7 = matrix[u, 4], matrix[u, 5], matrix[u, 6], matrix[u, 7]
            d0, d1, d2, d3 = matrix[u + 1, 0], matrix[u + 1, 1], matrix[u + 1, 2], matrix[u + 1, 3]
            d4, d5, d6, d7 = matrix[u + 1, 4], matrix[u + 1, 5], matrix[u + 1, 6], matrix[u + 1, 7]
            even, odd = Index(u * STRIDE), Index(u * STRIDE + STRIDE)
            for i in range(Index(n)):
                x0, x1, x2, x3 = source[i], source[_ROW1 + i], source[_ROW2 + i], source[_ROW3 + i]
                x4, x5, x6, x7 = source[_ROW4 + i], source[_ROW5 + i], source[_ROW6 + i], source[_ROW7 + i]
                target[even + i] = c0 * x0 + c1 * x1 + c2 * x2 + c3 * x3 + c4 * x4 + c5 * x5 + c6 * x6 + c7 * x7
                target[odd + i] = d0 * x0 + d1 * x1 + d2 * x2 + d3 * x3 + d4 * x4 + d5 * x5 + d6 * x6 + d7 * x7
    else:
        for u in range(block):
            t = Index(u * STRIDE)
            for i in range(Index(n)):
                target[t + i] = matrix[u, 0] * source[i]
            for k in range(1, block):
                factor = matrix[u, k]
                s = Index(k * STRIDE)
                for i in range(Index(n)):
                    target[t + i] += factor * source[s + i]


@inlined
def _butterflies(group: Array, start: int, half: int) -> None:
    root = np.float32(np.sqrt(0.5))
    upper, lower = Index(start), Index(start + half)
    for i in range(Index(half)):
        a = group[upper + i]
        b = group[lower + i]
        group[upper + i] = (a + b) * root
        group[lower + i] = (a - b) * root


@compiled
def _transform_group(group: Array, block: int, n: int, lanes: int, hadamard: bool, inverse: bool) -> None:
    """Transform along the members, in place: Haar goes on with the averages, Hadamard with the differences as well."""
    levels = 0
    while lanes << levels < n:
        levels += 1
    for k in range(block):
        for level in range(levels):
            size = lanes << (level + 1) if inverse else n >> level
            for part in range(n // size if hadamard else 1):
                _butterflies(group, k * STRIDE + part * size, size // 2)


@compiled
def _shrink_hard(group: Array, block: int, n: int, threshold: float) -> np.float32:
    """Set what is below the threshold to zero, but not the average; return how many coefficients are left."""
    average = group[0]
    limit = np.float32(threshold)
    left = np.float32(0)
    for k in range(block):
        start = Index(k * STRIDE)
        for i in range(Index(n)):
            value = group[start + i]
            keep = np.float32(1) if abs(value) > limit else np.float32(0)
            group[start + i] = value * keep
            left += keep
    if group[0] != average or average == 0:
        left += 1
    group[0] = average
    return np.float32(left)


@compiled
def _shrink_wiener(group: Array, pilot: Array, block: int, n: int, noise: float) -> np.float32:
    """Multiply by p²/(p² + noise), but not the average; return the sum of the squared factors."""
    average = group[0]
    variance = np.float32(max(noise, 1e-30))
    energy = np.float32(0)
    for k in range(block):
        start = Index(k * STRIDE)
        for i in range(Index(n)):
            power = pilot[start + i] * pilot[start + i]
            factor = power / (power + variance)
            group[start + i] *= factor
            energy += factor * factor
    power = pilot[0] * pilot[0]
    factor = power / (power + variance)
    group[0] = average
    return np.float32(energy + 1 - factor * factor)


@compiled
def filter_strip(
    noisy: Array,
    pilot: Array,
    columns: int,
    lanes: int,
    top: int,
    matches: Array,
    first: int,
    last: int,
    tile: int,
    forward: Array,
    backward: Array,
    hadamard: bool,
    wiener: bool,
    level: float,
    summed: Array,
    weights: Array,
) -> None:
    """Filter the groups of the reference rows [first, last) and add them to ``summed`` (lines) and ``weights``.

    All of these start at row ``top`` of the image. The rows are worked on in tiles of columns, so that what the blocks
    of a window share stays in the cache however wide the image is.
    """
    block = forward.shape[0]
    references, largest = matches.shape[1], matches.shape[2]
    group = np.zeros(block * STRIDE, np.float32)
    other = np.zeros(block * STRIDE, np.float32)
    guide = np.zeros(block * STRIDE, np.float32)
    members = np.zeros(largest, np.int64)
    for left in range(0, references, tile):
        for row in range(first, last):
            for column in range(left, min(left + tile, references)):
                found = matches[row, column]
                count = 1
                while 2 * count <= largest and found[2 * count - 1] >= 0:
                    count *= 2
                reverse = 0
                for i in range(count):
                    members[reverse] = found[i] - top * columns
                    # The next number with its bits reversed: carry from the highest bit down.
                    bit = count >> 1
                    while bit & reverse:
                        reverse ^= bit
                        bit >>= 1
                    reverse |= bit
                n = count * lanes
                _gather(noisy, columns, members, count, block, lanes, group)
                _transform_columns(forward, group, other, n)
                _transform_group(other, block, n, lanes, hadamard, False)
                if wiener:
                    _gather(pilot, columns, members, count, block, lanes, group)
                    _transform_columns(forward, group, guide, n)
                    _transform_group(guide, block, n, lanes, hadamard, False)
                    weight = np.float32(1 / _shrink_wiener(other, guide, block, n, level))
                else:
                    weight = np.float32(1 / _shrink_hard(other, block, n, level))
                _transform_group(other, block, n, lanes, hadamard, True)
                _transform_columns(backward * weight, other, group, n)
                _scatter(group, columns, members, count, block, lanes, summed)
                for i in range(count):
                    weights[members[i]] += weight


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
            for x in range(columns - block + 1):
                _add_lanes(_combine(summed, start + x * 8, flat, 0, 8, 8), line, x)
        else:
            for x in range(columns - block + 1):
                for q in range(0, lanes, LANES):
                    _add_lanes(_combine(summed, start + x * lanes, flat, q, lanes, lanes), line, x + q)
        numerator[y] = line[:columns]
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
