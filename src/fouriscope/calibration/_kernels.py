"""Compiled sums over the boxes of a gradient. Importing this module imports numba; import it where it is used."""

from __future__ import annotations

import numpy as np
from numba import njit

from fouriscope.forward.kernels import JIT, PIECE, copy_row


@njit(**PIECE)
def _crop_row(spectrum, row, column, out):  # type: ignore[no-untyped-def]
    """out = a row of the object's spectrum from ``column`` on, around the edges of the FFT layout."""
    rows, columns = spectrum.shape
    source = row - rows if row >= rows else row
    unwrapped = min(out.size, columns - column)
    copy_row(spectrum[source, column : column + unwrapped], out[:unwrapped])
    copy_row(spectrum[source, : out.size - unwrapped], out[unwrapped:])


@njit(**PIECE)
def _add_moments(values, xs, y, moments, row_sums):  # type: ignore[no-untyped-def]
    """moments[p, q] += Σ_c values[c] y^p xs[c]^q; ``values`` is used up."""
    count = moments.shape[1]
    for q in range(count):
        total = values.dtype.type(0)
        for c in range(values.size):
            total += values[c]
            values[c] *= xs[c]
        row_sums[q] = total
    power = 1.0
    for p in range(moments.shape[0]):
        for q in range(count):
            moments[p, q] += power * row_sums[q]
        power *= y


@njit(**JIT)
def box_moments(  # type: ignore[no-untyped-def]
    spectrum, pupils, pupil_index, boxes, rows, columns, fractions, row0, column0, steps, slopes, energies, start, stop
):
    """Moments of each LED's box, for b in start…stop, in coordinates (y, x) that are 1 at the pupil's edge:

    slopes[b, p, q]   = Σ y^p x^q · 2 Im{ conj(S_b O) ⊙ boxes[b] }, from which ∂d/∂(phase of the pupil) follows for any
                        phase that is a polynomial;
    energies[b, p, q] = Σ y^p x^q · |P_b S_b O|², where the light of the frame passes the pupil.
    """
    height, width = boxes.shape[1], boxes.shape[2]
    real = boxes.real.dtype.type
    light = np.empty(width, boxes.dtype)
    values = np.empty(width, boxes.real.dtype)
    xs = np.empty(width, boxes.real.dtype)
    row_sums = np.empty(energies.shape[2])
    for b in range(start, stop):
        slopes[b] = 0.0
        energies[b] = 0.0
        pupil = pupils[pupil_index[b]]
        for c in range(width):
            xs[c] = real((column0 + c - fractions[b, 1]) * steps[1])
        for r in range(height):
            y = (row0 + r - fractions[b, 0]) * steps[0]
            _crop_row(spectrum, rows[b] + r, columns[b], light)
            for c in range(width):
                values[c] = real(2) * (light[c].real * boxes[b, r, c].imag - light[c].imag * boxes[b, r, c].real)
            _add_moments(values, xs, y, slopes[b], row_sums)
            for c in range(width):
                passed = light[c] * pupil[r, c]
                values[c] = passed.real * passed.real + passed.imag * passed.imag
            _add_moments(values, xs, y, energies[b], row_sums)


@njit(**JIT)
def box_products(spectrum, pupils, pupil_index, boxes, rows, columns, products, energies, start, stop):  # type: ignore[no-untyped-def]
    """Bin by bin, for the rows start…stop of the boxes: products += Σ_b conj(S_b O) ⊙ boxes[b], in the order of b, and
    energies[b] = |P_b S_b O|²."""
    count, width = boxes.shape[0], boxes.shape[2]
    light = np.empty(width, boxes.dtype)
    for b in range(count):
        pupil = pupils[pupil_index[b]]
        for r in range(start, stop):
            _crop_row(spectrum, rows[b] + r, columns[b], light)
            for c in range(width):
                products[r, c] += np.conj(light[c]) * boxes[b, r, c]
                passed = light[c] * pupil[r, c]
                energies[b, r, c] = passed.real * passed.real + passed.imag * passed.imag
