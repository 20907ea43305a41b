"""Pupils evaluated for many LEDs in plain NumPy: the same names and arguments as the compiled ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def evaluate_pupils(
    fractions: Array,
    gains: Array,
    row0: int,
    column0: int,
    steps: Array,
    limit2: float,
    powers: Array,
    defocus: float,
    sine2: float,
    table: Array,
    single: bool,
    out: Array,
    start: int,
    stop: int,
) -> None:
    """out[b] = gains[b] · P((m − fractions[b]) du) for b in start…stop (see the compiled twin)."""
    del single  # both precisions are computed in double here
    ones = np.ones(len(fractions))
    evaluate_coloured_pupils(
        *(fractions, gains, ones, row0, column0, steps, limit2, powers, defocus, sine2, table, out, start, stop)
    )


def evaluate_coloured_pupils(
    fractions: Array,
    gains: Array,
    scales: Array,
    row0: int,
    column0: int,
    steps: Array,
    limit2: float,
    powers: Array,
    defocus: float,
    sine2: float,
    table: Array,
    out: Array,
    start: int,
    stop: int,
) -> None:
    """:func:`evaluate_pupils` of sources of the wavelengths λ / scales[b]."""
    flat = defocus == 0.0 and powers.shape == (1, 1) and powers[0, 0] == 0.0
    for b in range(start, stop):
        scale = scales[b]
        bins_y = (row0 + np.arange(out.shape[1]) - fractions[b, 0])[:, None]
        bins_x = (column0 + np.arange(out.shape[2]) - fractions[b, 1])[None, :]
        y, x = bins_y * steps[0] / scale, bins_x * steps[1] / scale
        radius2 = y * y + x * x
        values = np.where(radius2 <= limit2, gains[b], 0.0).astype(np.complex128)
        if not flat:
            in_y, in_x = (np.vander(places.ravel(), len(powers), increasing=True) for places in (y, x))
            phase = in_y @ powers @ in_x.T
            squared = np.minimum(radius2 * sine2, 1.0)
            phase = phase - defocus * squared / (np.sqrt(1.0 - squared) + 1.0)
            values *= np.exp(1j * scale * phase)
        if table.size > 1:
            values *= _interpolated(table, bins_y[:, 0] / scale, bins_x[0] / scale)
        out[b] = values


def _interpolated(table: Array, rows: Array, columns: Array) -> Array:
    """The table at places given in bins from its middle, linearly; beyond its edge it goes on as it is there."""
    lower, weight = _below(rows + table.shape[0] // 2)
    left, right = (np.clip(lower + step, 0, table.shape[0] - 1) for step in (0, 1))
    lines = (1 - weight)[:, None] * table[left] + weight[:, None] * table[right]
    lower, weight = _below(columns + table.shape[1] // 2)
    left, right = (np.clip(lower + step, 0, table.shape[1] - 1) for step in (0, 1))
    return np.asarray((1 - weight) * lines[:, left] + weight * lines[:, right])


def _below(position: Array) -> tuple[Array, Array]:
    """The bin at or below each position, and how far it lies above; on a bin within rounding is on it."""
    whole = np.rint(position)
    position = np.where(np.abs(position - whole) < 1e-9, whole, position)
    lower = np.floor(position)
    return lower.astype(np.int64), position - lower
