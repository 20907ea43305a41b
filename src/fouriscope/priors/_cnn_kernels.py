"""Compiled layers of the small network: convolutions of 3 × 3 pixels without bias.

Activations are flat arrays [row][column][channel] with a border of one pixel of zeros all around, which is what the
convolutions see beyond the image; kernels write inside the border only, so it is cleared once and stays. Weights are
flat too, [row of the filter][column][channel in][channel out]: the filter's columns and the channels of three pixels
side by side are one run of numbers in both. Each sum is made in that order, whatever the block of pixels it is
computed in, and so a result depends neither on threads nor on where an image is cut.

Importing this module imports numba, which takes a while: import it where it is used.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fouriscope.priors._vectors import load_4, load_32, multiply_add, positive, store, zeros_4, zeros_32

CHANNELS = 32
"""Channels between the layers: one vector of :mod:`fouriscope.priors._vectors`."""
PHASES = 4
INPUTS = PHASES + 1

_JIT = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(**_JIT)
def to_phases(image, top, centre, sigma, columns, phases, first, last):  # type: ignore[no-untyped-def]
    """Write (image − centre)/σ by phases, and a 1 for σ itself in the same units, to the rows [first, last).

    The first of all rows holds the image's rows 2·``top`` and 2·``top`` + 1. Beyond the last row and column of an odd
    size, the last one is repeated.
    """
    height, width = image.shape
    stride = (columns + 2) * INPUTS
    for r in range(first, last):
        for c in range(columns):
            target = (r + 1) * stride + (c + 1) * INPUTS
            for phase in range(PHASES):
                y = min(2 * (top + r) + phase // 2, height - 1)
                x = min(2 * c + phase % 2, width - 1)
                phases[target + phase] = np.float32((np.float64(image[y, x]) - centre) / sigma)
            phases[target + PHASES] = np.float32(1)


@njit(**_JIT)
def hidden_rows(source, inputs, weights, target, columns, first, last):  # type: ignore[no-untyped-def]
    """target = max(weights ∗ source, 0) in the rows [first, last), from ``inputs`` to ``CHANNELS`` channels.

    Three pixels at a time: their sums fill 12 registers of eight numbers, which leaves a small processor four for the
    weights, and a weight is loaded once for the three.
    """
    across = (columns + 2) * inputs
    for row in range(first, last):
        column = 0
        while column + 3 <= columns:
            a, b, c = zeros_32(), zeros_32(), zeros_32()
            w = 0
            for line in range(3):
                s = (row + line) * across + column * inputs
                for i in range(s, s + 3 * inputs):
                    weight = load_32(weights, w)
                    a = multiply_add(a, weight, source[i])
                    b = multiply_add(b, weight, source[i + inputs])
                    c = multiply_add(c, weight, source[i + 2 * inputs])
                    w += CHANNELS
            t = ((row + 1) * (columns + 2) + column + 1) * CHANNELS
            store(target, t, positive(a))
            store(target, t + CHANNELS, positive(b))
            store(target, t + 2 * CHANNELS, positive(c))
            column += 3
        while column < columns:
            a = zeros_32()
            w = 0
            for line in range(3):
                s = (row + line) * across + column * inputs
                for i in range(s, s + 3 * inputs):
                    a = multiply_add(a, load_32(weights, w), source[i])
                    w += CHANNELS
            store(target, ((row + 1) * (columns + 2) + column + 1) * CHANNELS, positive(a))
            column += 1


@njit(**_JIT)
def last_rows(source, weights, target, columns, first, last):  # type: ignore[no-untyped-def]
    """target = weights ∗ source, from ``CHANNELS`` to the four phases; the target has no border.

    Six pixels at a time, because sums of four numbers are short: a processor waits for each unless others are at hand.
    """
    across = (columns + 2) * CHANNELS
    for row in range(first, last):
        column = 0
        while column + 6 <= columns:
            a, b, c, d, e, f = zeros_4(), zeros_4(), zeros_4(), zeros_4(), zeros_4(), zeros_4()
            w = 0
            for line in range(3):
                s = (row + line) * across + column * CHANNELS
                for i in range(s, s + 3 * CHANNELS):
                    weight = load_4(weights, w)
                    a = multiply_add(a, weight, source[i])
                    b = multiply_add(b, weight, source[i + CHANNELS])
                    c = multiply_add(c, weight, source[i + 2 * CHANNELS])
                    d = multiply_add(d, weight, source[i + 3 * CHANNELS])
                    e = multiply_add(e, weight, source[i + 4 * CHANNELS])
                    f = multiply_add(f, weight, source[i + 5 * CHANNELS])
                    w += PHASES
            t = (row * columns + column) * PHASES
            store(target, t, a)
            store(target, t + PHASES, b)
            store(target, t + 2 * PHASES, c)
            store(target, t + 3 * PHASES, d)
            store(target, t + 4 * PHASES, e)
            store(target, t + 5 * PHASES, f)
            column += 6
        while column < columns:
            a = zeros_4()
            w = 0
            for line in range(3):
                s = (row + line) * across + column * CHANNELS
                for i in range(s, s + 3 * CHANNELS):
                    a = multiply_add(a, load_4(weights, w), source[i])
                    w += PHASES
            store(target, (row * columns + column) * PHASES, a)
            column += 1


@njit(**_JIT)
def subtract_noise(image, noise, means, top, sigma, limit, low, high, out, first, last):  # type: ignore[no-untyped-def]
    """out = image − σ·(noise − means) in the image's rows [first, last); the phases begin at the image's row 2·``top``.

    No pixel moves by more than ``limit``·σ, nor out of [low, high].
    """
    columns = means.shape[1]
    for y in range(first, last):
        row = y // 2 - top
        for x in range(image.shape[1]):
            phase = 2 * (y % 2) + x % 2
            found = np.float64(noise[(row * columns + x // 2) * PHASES + phase] - means[row, x // 2])
            found = min(max(found, -limit), limit)
            out[y, x] = min(max(np.float64(image[y, x]) - sigma * found, low), high)
