"""Pupils of sources whose wavelengths differ. Importing this module imports numba; import it where it is used.

They have a kernel of their own, so that pupils of one wavelength stay as they are to the last bit.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fouriscope.forward._pupil_kernels import _below, _chord, _disc_row, _phase_row, _turn_double
from fouriscope.forward.kernels import JIT, PIECE


@njit(**PIECE)
def _table_row(table, row, column0, scale, out):  # type: ignore[no-untyped-def]
    """Multiply by the table at the angle of each bin, interpolated linearly; places are in bins from the middle."""
    rows, columns = table.shape
    upper, row_weight = _below(row / scale + rows // 2)
    above, below = table[min(max(upper, 0), rows - 1)], table[min(max(upper + 1, 0), rows - 1)]
    for c in range(out.size):
        lower, weight = _below((column0 + c) / scale + columns // 2)
        left, right = min(max(lower, 0), columns - 1), min(max(lower + 1, 0), columns - 1)
        value = (1.0 - row_weight) * ((1.0 - weight) * above[left] + weight * above[right])
        out[c] *= value + row_weight * ((1.0 - weight) * below[left] + weight * below[right])


@njit(**JIT)
def evaluate_coloured_pupils(  # type: ignore[no-untyped-def]
    fractions, gains, scales, row0, column0, steps, limit2, powers, defocus, sine2, table, out, start, stop
):
    """:func:`~fouriscope.forward._pupil_kernels.evaluate_pupils` of sources of the wavelengths λ / scales[b].

    The disc is as many times larger, and the optical path of an aberration as many times more of a wave.
    """
    width = out.shape[2]
    across, phases = np.empty(width), np.empty(width)
    for b in range(start, stop):
        scale = scales[b]
        step = steps[1] / scale
        x0 = (column0 - fractions[b, 1]) * step
        for c in range(width):
            across[c] = x0 + c * step
        for r in range(out.shape[1]):
            y = (row0 + r - fractions[b, 0]) * steps[0] / scale
            first, last = _chord(y, x0, step, limit2, width)
            out[b, r, :first] = 0.0
            out[b, r, last:] = 0.0
            inside, x, phase = out[b, r, first:last], across[first:last], phases[first:last]
            _disc_row(y, x, limit2, gains[b], inside)
            _phase_row(y, x, powers, defocus, sine2, phase)
            for c in range(phase.size):
                phase[c] *= scale
            _turn_double(phase, inside)
            if table.size > 1:
                _table_row(table, row0 + r - fractions[b, 0], column0 + first - fractions[b, 1], scale, inside)
