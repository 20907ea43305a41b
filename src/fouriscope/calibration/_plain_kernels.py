"""Sums over the boxes of a gradient in plain NumPy: the same names and arguments as the compiled ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.forward.plain_kernels import crop, squared

Array = NDArray[Any]


def box_moments(
    spectrum: Array,
    pupils: Array,
    pupil_index: Array,
    boxes: Array,
    rows: Array,
    columns: Array,
    fractions: Array,
    row0: int,
    column0: int,
    steps: Array,
    slopes: Array,
    energies: Array,
    start: int,
    stop: int,
) -> None:
    """Moments of each LED's box, for b in start…stop (see the compiled twin)."""
    height, width = boxes.shape[1:]
    for b in range(start, stop):
        light = crop(spectrum, (height, width), rows[b : b + 1], columns[b : b + 1])[0]
        y = (row0 + np.arange(height) - fractions[b, 0]) * steps[0]
        x = (column0 + np.arange(width) - fractions[b, 1]) * steps[1]
        slope = 2 * (light.real * boxes[b].imag - light.imag * boxes[b].real)
        for values, moments in ((slope, slopes[b]), (squared(light * pupils[pupil_index[b]]), energies[b])):
            in_y, in_x = (np.vander(places, len(moments), increasing=True) for places in (y, x))
            moments[...] = np.einsum("rp,rc,cq->pq", in_y, values, in_x, optimize=True)


def box_products(
    spectrum: Array,
    pupils: Array,
    pupil_index: Array,
    boxes: Array,
    rows: Array,
    columns: Array,
    products: Array,
    energies: Array,
    start: int,
    stop: int,
) -> None:
    """products += Σ_b conj(S_b O) ⊙ boxes[b] and energies[b] = |P_b S_b O|², for the rows start…stop of the boxes."""
    for b in range(len(boxes)):
        light = crop(spectrum, boxes.shape[1:], rows[b : b + 1], columns[b : b + 1])[0, start:stop]
        products[start:stop] += np.conj(light) * boxes[b, start:stop]
        energies[b, start:stop] = squared(light * pupils[pupil_index[b], start:stop])
