"""One sweep of EPRY, compiled: each LED sees what the LED before it left behind, so one thread does it all.

Importing this module imports numba; import it where it is used.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fouriscope.fidelity import AmplitudeLoss
from fouriscope.fidelity.kernels import clear_margin, loss_row
from fouriscope.forward.kernels import PIECE, box_to_field, copy_row, crop_spectrum, field_to_half

# The gradient of the amplitude loss is what EPRY does to a field: it takes off the change to the measured modulus.
change_row = njit(**PIECE)(AmplitudeLoss.row)


@njit(**PIECE)
def _squared(value):  # type: ignore[no-untyped-def]
    return value.real * value.real + value.imag * value.imag


@njit(**PIECE)
def product(a, b, out):  # type: ignore[no-untyped-def]
    """out = a ⊙ b; returns max|out|²."""
    largest = out.real.dtype.type(0)
    for r in range(out.shape[0]):
        for c in range(out.shape[1]):
            value = a[r, c] * b[r, c]
            out[r, c] = value
            largest = max(largest, _squared(value))
    return largest


@njit(**PIECE)
def pull(target, lever, change, step, largest, damping):  # type: ignore[no-untyped-def]
    """target += step · |lever|/max|lever| · conj(lever)/(|lever|² + damping · max|lever|²) ⊙ change, along a row."""
    scale = step / np.sqrt(largest)
    floor = damping * largest
    for c in range(target.size):
        here = _squared(lever[c])
        weight = scale * np.sqrt(here) / (here + floor)
        target[c] += weight * (np.conj(lever[c]) * change[c])


@njit(**PIECE)
def light_row(frame, mask):  # type: ignore[no-untyped-def]
    total = frame.dtype.type(0)
    for c in range(frame.size):
        total += max(frame[c], frame.dtype.type(0)) * mask[c]
    return total


def sweep(  # type: ignore[no-untyped-def]
    spectrum,
    correction,
    pupils,
    pupil_index,
    rows,
    columns,
    grid_rows,
    grid_columns,
    margin,
    frames,
    frame_index,
    masks,
    mask_index,
    epsilon,
    is_projection,
    object_step,
    pupil_step,
    largest_lever,
    damping,
    misfits,
    lights,
):
    """Update ``spectrum`` (O) and ``correction`` (C) in place, LED after LED. To be compiled ``for_loss``.

    misfits[b] = d_b of the field before its update, in that loss; lights[b] = the mean of max(y_b, 0), which
    bounds what an object that explains the frames may hold. ``largest_lever`` is max|P|² max|O|² before the sweep.

    The field's modulus is replaced by √y where the mask is 1; only the *change* of the field is transformed back, and
    that is zero in the margin and under the mask. A field that is exactly zero has no phase to keep, and stays.
    """
    real = frames.dtype.type
    shape = pupils.shape[1:]
    pupil = np.empty(shape, spectrum.dtype)
    box = np.empty(shape, spectrum.dtype)
    lever = np.empty(shape, spectrum.dtype)
    half = np.empty((grid_rows, shape[1]), spectrum.dtype)
    field = np.empty((frames.shape[1], grid_columns), spectrum.dtype)
    row_copy = np.empty(frames.shape[2], spectrum.dtype)
    factor = 1.0 / spectrum.size
    # The way back: F of F⁻¹ is the number of the grid's pixels, and change_row gives the change with a minus.
    back = real(-(spectrum.size / (grid_rows * grid_columns)))
    eps, delta = real(epsilon), real(damping)
    alpha, beta = real(object_step), real(pupil_step)
    brightest = real(largest_lever)
    window_rows, window_columns = frames.shape[1], frames.shape[2]
    total_rows, total_columns = spectrum.shape
    for b in range(rows.size):
        led_pupil = pupils[pupil_index[b]]
        largest_pupil = product(correction, led_pupil, pupil)
        crop_spectrum(spectrum, pupil, rows[b], columns[b], box)
        box_to_field(box, half, field, margin, factor)
        frame, mask = frames[frame_index[b]], masks[mask_index[b]]
        misfit = light = counted = 0.0
        for r in range(window_rows):
            row = field[r, margin : margin + window_columns]
            if is_projection:
                misfit += loss_row(row, frame[r], mask[r], eps)
            else:
                copy_row(row, row_copy)
                misfit += loss_row(row_copy, frame[r], mask[r], eps)
                change_row(row, frame[r], mask[r], real(0))
            light += light_row(frame[r], mask[r])
            counted += mask[r].sum()
        misfits[b] = misfit
        lights[b] = light / max(counted, 1.0)
        clear_margin(field, margin)
        field_to_half(field, half, margin)
        # O before its update pulls C, so C goes first.
        if beta > 0 and brightest > 0:
            crop_spectrum(spectrum, led_pupil, rows[b], columns[b], lever)
            for r in range(shape[0]):
                pull(correction[r], lever[r], half[r], back * beta, brightest, delta)
        if largest_pupil > 0:
            unwrapped = min(shape[1], total_columns - columns[b])
            for r in range(shape[0]):
                target = rows[b] + r
                if target >= total_rows:
                    target -= total_rows
                part = spectrum[target, columns[b] : columns[b] + unwrapped]
                pull(part, pupil[r, :unwrapped], half[r, :unwrapped], back * alpha, largest_pupil, delta)
                if unwrapped < shape[1]:
                    part = spectrum[target, : shape[1] - unwrapped]
                    pull(part, pupil[r, unwrapped:], half[r, unwrapped:], back * alpha, largest_pupil, delta)
