"""Compiled block matching of BM3D: for every reference block, the most similar blocks around it.

For one displacement at a time, whole rows of distances are summed from cells (see ``_bm3d_cells``), and those that are
among the smallest so far go to the sorted list of their reference block.
"""

from __future__ import annotations

import numpy as np

from fouriscope.priors._bm3d_cells import MARGIN, Array, Index, add_row, add_sums, clear, compiled, inlined, sum_across

NOTHING = np.int64(2**63 - 1)
RANK_BITS = 32
RANK_MASK = 2**32 - 1


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
                clear(total, cells)
                if rest > 0:
                    clear(part, cells)
                for i in range(rest):
                    add_row(planes, band * step + i, down, along, c0, cells, step, rest, width, total, part)
                if r >= r0:
                    clear(distance, wide)
                    if rest > 0:
                        sum_across(total, part, whole, rest, wide, distance, 0)
                    for k in range(1 - spare, whole):
                        add_sums(sums, (ring + (band - k - spare) % whole) * length, wide, distance)
                if band < r1 + whole - 1:
                    for i in range(rest, step):
                        add_row(planes, band * step + i, down, along, c0, cells, step, rest, width, total, part)
                    sum_across(total, part, whole, rest, wide, sums, (ring + band % whole) * length)
                    if rest == 0 and r >= r0:
                        add_sums(sums, (ring + band % whole) * length, wide, distance)
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
