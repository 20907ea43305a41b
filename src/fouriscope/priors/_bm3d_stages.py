"""A stage of BM3D over a whole image: padding, strips for the threads, and their sum.

Reference blocks are cut into strips of rows by the size of the image alone, never by the number of threads. A strip has
memory of its own for everything its groups reach, and the strips are added in their order: so the result does not
depend on the number of threads, to the last bit. All images here are float32 in units of σ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fouriscope.parallel import run_sliced, split
from fouriscope.priors._bm3d_parameters import StageParameters
from fouriscope.priors._bm3d_transforms import block_transform, kaiser_window

Array = npt.NDArray[Any]

MATCH_ROWS = 16
"""Rows of reference blocks that are matched together: few enough for their lists of candidates to stay in the cache."""
FILTER_ROWS = 16
"""Rows of reference blocks that are filtered together: many more than the rows around them that they also reach."""
TILE = 32
"""Reference blocks along a row that are filtered before the next row is begun."""


@dataclass(frozen=True)
class Layout:
    """Where the reference blocks of an image lie; the image is extended so that the last ones end at its edges."""

    rows: int
    columns: int
    reference_rows: int
    reference_columns: int

    @classmethod
    def of(cls, shape: tuple[int, int], parameters: StageParameters) -> Layout:
        counts = [max(0, -((parameters.block - length) // parameters.step)) + 1 for length in shape]
        rows, columns = ((count - 1) * parameters.step + parameters.block for count in counts)
        return cls(rows, columns, *counts)

    def extend(self, image: Array) -> Array:
        """Mirror the last rows and columns outwards, as often as it takes."""
        missing = [(0, self.rows - image.shape[0]), (0, self.columns - image.shape[1])]
        return np.ascontiguousarray(np.pad(image, missing, mode="symmetric") if np.any(missing) else image)


def run_stage(
    noisy: Array, pilot: Array | None, parameters: StageParameters, matches: Array | None
) -> tuple[Array, Array]:
    """Filter ``noisy``, by thresholds or, given a ``pilot``, by Wiener factors; match blocks unless that was done.

    Returns the filtered image and the matches.
    """
    rows, columns = noisy.shape
    layout = Layout.of((rows, columns), parameters)
    noisy = layout.extend(noisy)
    if pilot is not None:
        pilot = layout.extend(pilot)
    if matches is None:
        matches = find_matches(noisy if pilot is None else pilot, layout, parameters)
    return filter_groups(noisy, pilot, matches, layout, parameters)[:rows, :columns], matches


@cache
def displacements(radius: int, dense_radius: int) -> tuple[Array, Array]:
    """The window's displacements (down, along, rank) without (0, 0), and where those with another "down" begin.

    The nearer ones have the lower rank and tend to come first: they are the likeliest matches.
    """
    down, along = (axis.ravel() for axis in np.mgrid[-radius : radius + 1, -radius : radius + 1])
    near = np.maximum(abs(down), abs(along)) <= dense_radius
    used = (near | ((down + along) % 2 == 0)) & ((down != 0) | (along != 0))
    down, along = down[used], along[used]
    order = np.lexsort((along, down, down**2 + along**2))
    table = np.stack([down[order], along[order], np.arange(len(order))], axis=1)
    table = table[np.lexsort((table[:, 2], table[:, 0], abs(table[:, 0])))]
    runs = np.flatnonzero(np.diff(table[:, 0], prepend=-radius - 1, append=radius + 1))
    return np.ascontiguousarray(table, np.int64), runs.astype(np.int64)


def find_matches(image: Array, layout: Layout, parameters: StageParameters) -> Array:
    """Return positions (row · columns + column) of the blocks of each group, int32, −1 where there are fewer."""
    from fouriscope.priors._bm3d_cells import MARGIN, to_planes
    from fouriscope.priors._bm3d_matching import match_strip

    block, step = parameters.block, parameters.step
    width = -(-layout.columns // step) + 1
    planes = np.empty(layout.rows * step * width + MARGIN, np.float32)
    to_planes(image, step, width, planes)
    window, runs = displacements(parameters.radius, parameters.dense_radius)
    limit = min(parameters.match_threshold * block * block, 1e30)
    matches = np.empty((layout.reference_rows, layout.reference_columns, parameters.group), np.int32)
    strips = _strips(layout.reference_rows, MATCH_ROWS)

    def work(start: int, stop: int) -> None:
        for first, last in strips[start:stop]:
            match_strip(planes, image.shape, width, block, step, window, runs, limit, first, last, matches)

    run_sliced(work, len(strips))
    return matches


def filter_groups(
    noisy: Array, pilot: Array | None, matches: Array, layout: Layout, parameters: StageParameters
) -> Array:
    """Shrink all groups and return the average of their blocks at every pixel, by weight."""
    from fouriscope.priors._bm3d_kernels import filter_strip
    from fouriscope.priors._bm3d_lines import LANES, finish_strip, transform_rows

    block, step, columns = parameters.block, parameters.step, layout.columns
    lanes = -(-block // LANES) * LANES
    forward, inverse = block_transform(parameters.transform, block)
    window = kaiser_window(block, parameters.kaiser_beta)
    columns_forward = forward.astype(np.float32)
    columns_back = (window[:, None] * inverse).astype(np.float32)
    rows_forward = _padded(columns_forward.T, (block, lanes))
    rows_back = _padded(columns_back.T, (lanes, lanes))
    window = window.astype(np.float32)
    hadamard = parameters.group_transform == "hadamard"

    strips = _strips(layout.reference_rows, FILTER_ROWS)
    reach = [
        (max(0, first * step - parameters.radius), min(layout.rows, (last - 1) * step + parameters.radius + block))
        for first, last in strips
    ]
    tallest = max(bottom - top for top, bottom in reach)
    sums = [np.empty((2, bottom - top, columns), np.float32) for top, bottom in reach]

    def work(start: int, stop: int) -> None:
        noisy_lines = np.empty(tallest * columns * lanes, np.float32)
        pilot_lines = noisy_lines if pilot is None else np.empty_like(noisy_lines)
        added = np.empty_like(noisy_lines)
        weights = np.empty(tallest * columns, np.float32)
        for (first, last), (top, bottom), (numerator, denominator) in zip(
            strips[start:stop], reach[start:stop], sums[start:stop], strict=True
        ):
            transform_rows(noisy[top:bottom], rows_forward, noisy_lines)
            if pilot is not None:
                transform_rows(pilot[top:bottom], rows_forward, pilot_lines)
            added[: (bottom - top) * columns * lanes] = 0
            weights[: (bottom - top) * columns] = 0
            filter_strip(
                noisy_lines,
                pilot_lines,
                columns,
                lanes,
                top,
                matches,
                first,
                last,
                TILE,
                columns_forward,
                columns_back,
                hadamard,
                pilot is not None,
                parameters.shrinkage,
                added,
                weights,
            )
            finish_strip(added, weights, columns, rows_back, window, numerator, denominator)

    run_sliced(work, len(strips))
    filtered = np.empty_like(noisy)

    def add_up(start: int, stop: int) -> None:
        total = np.zeros((2, stop - start, columns), np.float32)
        for (top, bottom), share in zip(reach, sums, strict=True):
            first, last = max(start, top), min(stop, bottom)
            if first < last:
                total[:, first - start : last - start] += share[:, first - top : last - top]
        np.divide(total[0], total[1], out=filtered[start:stop])

    run_sliced(add_up, layout.rows)
    return filtered


def _strips(rows: int, height: int) -> list[tuple[int, int]]:
    """Cut the rows into an even number of strips where possible: two threads then share them fairly."""
    return split(rows, max(1, 2 * round(rows / (2 * height))))


def _padded(matrix: Array, shape: tuple[int, int]) -> Array:
    padded = np.zeros(shape, np.float32)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    return padded
