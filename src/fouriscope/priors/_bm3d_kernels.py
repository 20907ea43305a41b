"""Compiled filtering of BM3D: the groups of matched blocks are transformed, shrunk and added up.

Blocks come as lines, their rows already transformed (see ``_bm3d_lines``). A group is stacked as [row of the
block][member][coefficient], flat, with a distance of ``STRIDE`` between the rows: a constant, or else the compiler
would not see that they do not overlap. Members are in bit-reversed order, which makes the two halves of every
butterfly contiguous.
"""

from __future__ import annotations

import numpy as np

from fouriscope.priors._bm3d_cells import Array, Index, compiled, inlined
from fouriscope.priors._bm3d_lines import LANES, add_lanes, load, store

STRIDE = 528
"""Room for 512 coefficients a row (64 blocks of 8, or 32 of 16), and one cache line against associativity conflicts."""

_ROW1, _ROW2, _ROW3, _ROW4, _ROW5, _ROW6, _ROW7 = (Index(k * STRIDE) for k in range(1, 8))


@compiled
def _gather(lines: Array, columns: int, members: Array, count: int, block: int, lanes: int, group: Array) -> None:
    for k in range(block):
        for i in range(count):
            source = (members[i] + k * columns) * lanes
            target = k * STRIDE + i * lanes
            if lanes == 8:
                store(load(lines, source), group, target)
            else:
                for q in range(0, lanes, LANES):
                    store(load(lines, source + q), group, target + q)


@compiled
def _scatter(group: Array, columns: int, members: Array, count: int, block: int, lanes: int, lines: Array) -> None:
    for k in range(block):
        for i in range(count):
            source = k * STRIDE + i * lanes
            target = (members[i] + k * columns) * lanes
            if lanes == 8:
                add_lanes(load(group, source), lines, target)
            else:
                for q in range(0, lanes, LANES):
                    add_lanes(load(group, source + q), lines, target + q)


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
    weighted = np.zeros((block, block), np.float32)
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
                for k in range(block):
                    for u in range(block):
                        weighted[k, u] = weight * backward[k, u]
                _transform_columns(weighted, other, group, n)
                _scatter(group, columns, members, count, block, lanes, summed)
                for i in range(count):
                    weights[members[i]] += weight
