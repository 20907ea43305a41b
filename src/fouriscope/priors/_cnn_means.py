"""Compiled local means of the predicted noise, which are taken off it.

White noise has next to no local mean: over the window here, some 1/25 of σ. What a network predicts there is its own
error, too small to be seen in one denoised image; but a solver calls it hundreds of times, and phase measurements
hardly resist slow variations, so that the errors add up. On a simulated problem they cost 1.5 to 2 dB.

The four phases of a cell (2 × 2 pixels) are averaged, and the averages pass twice through a moving mean over
2·``RADIUS`` + 1 cells, along the columns and along the rows: a window like a triangle, whose transfer function is not
negative anywhere, as that of a single moving mean would be. With M this mean, M + M (1 − M) is taken off: slow
variations then remain with the square of 1 − M, that is hardly at all. At the edges the mean is over what there is of
the window. Each sum starts at its own first cell, so that results do not depend on where an image is cut.

Importing this module imports numba, which takes a while: import it where it is used.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fouriscope.priors._cnn_kernels import PHASES

RADIUS = 4
"""Cells to either side: a triangle with a standard deviation of 7 pixels. Less would leave noise in the image."""
PASSES = 2

_JIT = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(**_JIT)
def cell_means(noise, columns, cells, first, last):  # type: ignore[no-untyped-def]
    """cells = the mean of the four phases, in the rows [first, last)."""
    quarter = np.float32(1 / PHASES)
    for row in range(first, last):
        for column in range(columns):
            start = (row * columns + column) * PHASES
            pair = noise[start] + noise[start + 1]
            cells[row, column] = quarter * (pair + (noise[start + 2] + noise[start + 3]))


@njit(**_JIT)
def mean_along(source, columns, target, first, last):  # type: ignore[no-untyped-def]
    """target = the moving mean of source along each of the rows [first, last)."""
    for row in range(first, last):
        for column in range(columns):
            begin, end = max(column - RADIUS, 0), min(column + RADIUS + 1, columns)
            total = np.float32(0)
            for k in range(begin, end):
                total += source[row, k]
            target[row, column] = total / np.float32(end - begin)


@njit(**_JIT)
def mean_down(source, rows, columns, target, first, last):  # type: ignore[no-untyped-def]
    """target = the moving mean of source down the columns, in the rows [first, last) of ``rows``."""
    for row in range(first, last):
        begin, end = max(row - RADIUS, 0), min(row + RADIUS + 1, rows)
        share = np.float32(1) / np.float32(end - begin)
        for column in range(columns):
            target[row, column] = np.float32(0)
        for k in range(begin, end):
            for column in range(columns):
                target[row, column] += source[k, column]
        for column in range(columns):
            target[row, column] *= share
