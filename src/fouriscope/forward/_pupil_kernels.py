"""Pupils evaluated for many LEDs, compiled: :meth:`fouriscope.optics.Pupil.evaluate`, a hundred times faster.

A calibration changes the pupil after every minibatch, and a large frame's pupils are too many to keep.
Importing this module imports numba; import it where it is used.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fouriscope.forward.kernels import JIT, PIECE, cos_sin


@njit(**PIECE)
def _chord(y, x0, step, limit2, width):  # type: ignore[no-untyped-def]
    """first, last: no pixel of the row outside of them lies in the disc. One more on either side, for rounding."""
    if y * y > limit2:
        return 0, 0
    half = np.sqrt(limit2 - y * y)
    first = max(int(np.ceil((-half - x0) / step)) - 1, 0)
    return first, max(min(int(np.floor((half - x0) / step)) + 2, width), first)


# The pieces below get the part of a row within the disc, with the places x of its pixels. A loop from first to last
# over the whole row would not be vectorised: as far as the compiler knows, indices might be negative.
@njit(**PIECE)
def _phase_row(y, x, powers, defocus, sine2, phase):  # type: ignore[no-untyped-def]
    """phase[c] at (y, x[c]), in units of the cutoff: a polynomial, and the exact phase of a defocus."""
    degree = powers.shape[0] - 1
    for c in range(phase.size):
        phase[c] = 0.0
    for q in range(degree, -1, -1):  # Horner's rule in x, with coefficients that are polynomials of y
        coefficient = 0.0
        for p in range(degree - q, -1, -1):
            coefficient = coefficient * y + powers[p, q]
        for c in range(phase.size):
            phase[c] = phase[c] * x[c] + coefficient
    if defocus != 0.0:
        for c in range(phase.size):
            squared = min((y * y + x[c] * x[c]) * sine2, 1.0)
            phase[c] -= defocus * squared / (np.sqrt(1.0 - squared) + 1.0)


@njit(**PIECE)
def _disc_row(y, x, limit2, root_gain, out):  # type: ignore[no-untyped-def]
    for c in range(out.size):
        out[c] = root_gain if y * y + x[c] * x[c] <= limit2 else 0.0


@njit(**PIECE)
def _turn_single(phase, out):  # type: ignore[no-untyped-def]
    for c in range(out.size):
        cosine, sine = cos_sin(phase[c])
        out[c] *= complex(cosine, sine)


@njit(**PIECE)
def _turn_double(phase, out):  # type: ignore[no-untyped-def]
    for c in range(out.size):
        out[c] *= complex(np.cos(phase[c]), np.sin(phase[c]))


@njit(**PIECE)
def _below(position):  # type: ignore[no-untyped-def]
    """The bin at or below a position, and how far the position lies above it; on a bin within rounding is on it."""
    whole = np.rint(position)
    if abs(position - whole) < 1e-9:
        position = whole
    lower = np.floor(position)
    return int(lower), position - lower


@njit(**PIECE)
def _blend_row(table, row, weight, column, out):  # type: ignore[no-untyped-def]
    """out[c] = the table between rows ``row`` and ``row + 1``, from ``column`` on; beyond its edge, the edge."""
    rows, columns = table.shape
    upper, lower = table[min(max(row, 0), rows - 1)], table[min(max(row + 1, 0), rows - 1)]
    for c in range(out.size):
        place = min(max(column + c, 0), columns - 1)
        out[c] = (1.0 - weight) * upper[place] + weight * lower[place]


@njit(**PIECE)
def _table_row(left, right, weight, out):  # type: ignore[no-untyped-def]
    """Multiply by a row of the table that is interpolated between its columns; all pixels of an LED lie at the same
    fraction of a bin."""
    for c in range(out.size):
        out[c] *= (1.0 - weight) * left[c] + weight * right[c]


@njit(**JIT)
def evaluate_pupils(  # type: ignore[no-untyped-def]
    fractions, gains, row0, column0, steps, limit2, powers, defocus, sine2, table, single, out, start, stop
):
    """out[b] = gains[b] · P((m − fractions[b]) du) for b in start…stop.

    ``steps`` is du of each axis in units of the cutoff NA/λ, ``limit2`` the squared radius of the disc in them,
    ``defocus`` is 2π z n/λ and ``sine2`` (NA/n)². A table of one pixel stands for none.
    """
    height, width = out.shape[1], out.shape[2]
    across, phases, blended = np.empty(width), np.empty(width), np.empty(width + 1, table.dtype)
    flat = defocus == 0.0 and powers.shape[0] == 1 and powers[0, 0] == 0.0
    for b in range(start, stop):
        x0 = (column0 - fractions[b, 1]) * steps[1]
        for c in range(width):
            across[c] = x0 + c * steps[1]
        column, column_weight = _below(column0 - fractions[b, 1] + table.shape[1] // 2)
        for r in range(height):
            y = (row0 + r - fractions[b, 0]) * steps[0]
            first, last = _chord(y, x0, steps[1], limit2, width)
            out[b, r, :first] = 0.0
            out[b, r, last:] = 0.0
            inside, x, phase = out[b, r, first:last], across[first:last], phases[first:last]
            _disc_row(y, x, limit2, gains[b], inside)
            if not flat:
                _phase_row(y, x, powers, defocus, sine2, phase)
                if single:
                    _turn_single(phase, inside)
                else:
                    _turn_double(phase, inside)
            if table.size > 1:
                row, row_weight = _below(row0 + r - fractions[b, 0] + table.shape[0] // 2)
                around = blended[first : last + 1]
                _blend_row(table, row, row_weight, column + first, around)
                _table_row(around[:-1], around[1:], column_weight, inside)
