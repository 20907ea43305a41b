"""The compiled loop over LEDs: one LED at a time through the cache, from the object's spectrum to its contribution to
the gradient. Importing this module imports numba; import it where it is used."""

from __future__ import annotations

import numpy as np
from numba import njit

from fouriscope.forward.kernels import JIT, PIECE, box_to_field, crop_spectrum, field_to_half


@njit(**PIECE)
def intensity_row(field, frame, mask):  # type: ignore[no-untyped-def]
    # Constants in the precision of the data: a plain 2 would make LLVM compute in double.
    total, two = frame.dtype.type(0), frame.dtype.type(2)
    for c in range(frame.size):
        psi = field[c]
        residual = (psi.real * psi.real + psi.imag * psi.imag - frame[c]) * mask[c]
        total += residual * residual
        q = two * residual
        field[c] = complex(psi.real * q, psi.imag * q)
    return total


@njit(**PIECE)
def amplitude_row(field, frame, mask, tiny):  # type: ignore[no-untyped-def]
    total = frame.dtype.type(0)
    for c in range(frame.size):
        psi = field[c]
        modulus = np.sqrt(psi.real * psi.real + psi.imag * psi.imag) + tiny
        residual = (modulus - np.sqrt(max(frame[c], frame.dtype.type(0)))) * mask[c]
        total += residual * residual
        q = residual / modulus
        field[c] = complex(psi.real * q, psi.imag * q)
    return total


@njit(**PIECE)
def poisson_row(field, frame, mask, epsilon):  # type: ignore[no-untyped-def]
    total, one = frame.dtype.type(0), frame.dtype.type(1)
    for c in range(frame.size):
        psi = field[c]
        rate = psi.real * psi.real + psi.imag * psi.imag + epsilon
        count = max(frame[c] + epsilon, frame.dtype.type(0))
        deviance = rate - count
        if count > 0:
            deviance += count * np.log(count / rate)
        total += deviance * mask[c]
        q = (one - count / rate) * mask[c]
        field[c] = complex(psi.real * q, psi.imag * q)
    return total


@njit(**PIECE)
def _weigh(spectrum, pupil, weight, out):  # type: ignore[no-untyped-def]
    """out = weight · spectrum ⊙ conj(pupil)."""
    for c in range(out.size):
        out[c] = spectrum[c] * (weight * np.conj(pupil[c]))


@njit(**JIT)
def led_gradients(  # type: ignore[no-untyped-def]
    spectrum,
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
    weights,
    loss,
    epsilon,
    with_gradient,
    boxes,
    misfits,
    start,
    stop,
):
    """For b in start…stop: misfits[b] = d_b and, if wanted, boxes[b] = weights[b] · P̄ ⊙ F[q ψ_b] on the support box.

    The mask is 1 inside the window where a pixel counts; outside the window (the margin) the loss sees nothing.
    """
    real = frames.dtype.type
    box = np.empty(pupils.shape[1:], spectrum.dtype)
    half = np.empty((grid_rows, pupils.shape[2]), spectrum.dtype)
    field = np.empty((grid_rows, grid_columns), spectrum.dtype)
    factor = 1.0 / spectrum.size
    eps = real(epsilon)
    tiny = real(1e-12)
    window_rows, window_columns = frames.shape[1], frames.shape[2]
    for b in range(start, stop):
        pupil = pupils[pupil_index[b]]
        crop_spectrum(spectrum, pupil, rows[b], columns[b], box)
        box_to_field(box, half, field, factor)
        frame, mask = frames[frame_index[b]], masks[mask_index[b]]
        misfit = 0.0
        for r in range(window_rows):
            row = field[r + margin, margin : margin + window_columns]
            if loss == 0:
                misfit += intensity_row(row, frame[r], mask[r])
            elif loss == 1:
                misfit += amplitude_row(row, frame[r], mask[r], tiny)
            else:
                misfit += poisson_row(row, frame[r], mask[r], eps)
        misfits[b] = misfit
        if not with_gradient:
            continue
        weight = real(weights[b])
        if weight == 0:  # left out, even if it holds NaN
            boxes[b] = 0
            continue
        if margin > 0:
            field[:margin] = 0
            field[margin + window_rows :] = 0
            field[:, :margin] = 0
            field[:, margin + window_columns :] = 0
        field_to_half(field, half)
        for r in range(box.shape[0]):
            _weigh(half[r], pupil[r], weight, boxes[b, r])
