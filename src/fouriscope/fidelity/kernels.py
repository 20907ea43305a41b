"""The compiled loop over LEDs: one LED at a time through the cache, from the object's spectrum to its contribution to
the gradient. Importing this module imports numba; import it where it is used."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from zlib import crc32

import numpy as np
from numba import njit

from fouriscope.fidelity.losses import Loss
from fouriscope.forward.kernels import JIT, PIECE, add_intensity, box_to_field, crop_spectrum, field_to_half

# Stands for the row of a loss in kernels that are written once for all losses and compiled for each.
loss_row = Loss.row


@cache
def for_loss(kernel: Callable[..., None], loss: type[Loss]) -> Callable[..., None]:
    """``kernel``, compiled with the row of ``loss`` in the place of :func:`loss_row`.

    It is a copy of the kernel with a global of its own. As an argument or in a closure, a compiled function is another
    one in every process, and numba would never find on disk what it has stored there.
    """
    code = loss.row.__code__
    copied = FunctionType(kernel.__code__, {**kernel.__globals__, "loss_row": njit(**PIECE)(loss.row)})
    # numba names the file after the function, and compiles anew if the file of the *kernel* has changed. The digest
    # does the same for the row. What the row of a loss from elsewhere depends on, nobody knows: it is not stored.
    digest = crc32(repr((code.co_code, code.co_consts, code.co_names)).encode())
    copied.__qualname__ = f"{kernel.__name__}-{loss.name}-{digest:08x}"
    compiled: Callable[..., None] = njit(**{**JIT, "cache": loss.row.__module__ == Loss.__module__})(copied)
    return compiled


@njit(**PIECE)
def _weigh(spectrum, pupil, weight, out):  # type: ignore[no-untyped-def]
    """out = weight · spectrum ⊙ conj(pupil)."""
    for c in range(out.size):
        out[c] = spectrum[c] * (weight * np.conj(pupil[c]))


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
    epsilon,
    with_gradient,
    boxes,
    misfits,
    start,
    stop,
):
    """For b in start…stop: misfits[b] = d_b and, if wanted, boxes[b] = weights[b] · P̄ ⊙ F[q ψ_b] on the support box.
    To be compiled :func:`for_loss`.

    The mask is 1 inside the window where a pixel counts; outside the window (the margin) the loss sees nothing.
    """
    real = frames.dtype.type
    box = np.empty(pupils.shape[1:], spectrum.dtype)
    half = np.empty((grid_rows, pupils.shape[2]), spectrum.dtype)
    field = np.empty((frames.shape[1], grid_columns), spectrum.dtype)
    factor = 1.0 / spectrum.size
    eps = real(epsilon)
    window_rows, window_columns = frames.shape[1], frames.shape[2]
    for b in range(start, stop):
        pupil = pupils[pupil_index[b]]
        crop_spectrum(spectrum, pupil, rows[b], columns[b], box)
        box_to_field(box, half, field, margin, factor)
        frame, mask = frames[frame_index[b]], masks[mask_index[b]]
        misfit = 0.0
        for r in range(window_rows):
            row = field[r, margin : margin + window_columns]
            misfit += loss_row(row, frame[r], mask[r], eps)
        misfits[b] = misfit
        if not with_gradient:
            continue
        weight = real(weights[b])
        if weight == 0:  # left out, even if it holds NaN
            boxes[b] = 0
            continue
        clear_margin(field, margin)
        field_to_half(field, half, margin)
        for r in range(box.shape[0]):
            _weigh(half[r], pupil[r], weight, boxes[b, r])


@njit(**PIECE)
def roots(intensity, line):  # type: ignore[no-untyped-def]
    """line = √intensity, as the field of one source would be."""
    for c in range(line.size):
        line[c] = np.sqrt(intensity[c])


@njit(**PIECE)
def factors_of(line, intensity):  # type: ignore[no-untyped-def]
    """intensity = q, from line = q √intensity. Without light there is no field that q could change."""
    zero = intensity.dtype.type(0)
    for c in range(line.size):
        intensity[c] = line[c].real / np.sqrt(intensity[c]) if intensity[c] > zero else zero


@njit(**PIECE)
def scale_window(field, q, margin):  # type: ignore[no-untyped-def]
    """field = q ⊙ field in the measured window."""
    rows, columns = q.shape
    for r in range(rows):
        row, factors = field[r, margin : margin + columns], q[r]
        for c in range(columns):
            row[c] = complex(row[c].real * factors[c], row[c].imag * factors[c])


@njit(**PIECE)
def clear_margin(field, margin):  # type: ignore[no-untyped-def]
    """The loss sees nothing outside the measured window."""
    if margin > 0:
        field[:, :margin] = 0
        field[:, field.shape[1] - margin :] = 0


def sum_gradients(  # type: ignore[no-untyped-def]
    spectrum,
    pupils,
    pupil_index,
    rows,
    columns,
    bounds,
    grid_rows,
    grid_columns,
    margin,
    frames,
    frame_index,
    masks,
    mask_index,
    weights,
    epsilon,
    with_gradient,
    boxes,
    misfits,
    start,
    stop,
):
    """:func:`led_gradients` of frames that are sums: frame b has the sources m = bounds[b] … bounds[b + 1].

    I = Σ_m |ψ_m|², and ∂d/∂ψ̄_m = q ψ_m with one q for all of them: the loss is evaluated once, for the field √I, and
    gives q √I. To be compiled :func:`for_loss`.
    """
    real = frames.dtype.type
    most = 0
    for b in range(start, stop):
        most = max(most, bounds[b + 1] - bounds[b])
    box = np.empty(pupils.shape[1:], spectrum.dtype)
    half = np.empty((grid_rows, pupils.shape[2]), spectrum.dtype)
    fields = np.empty((most, frames.shape[1], grid_columns), spectrum.dtype)
    intensity = np.empty(frames.shape[1:], frames.dtype)
    summed = np.empty(frames.shape[2], spectrum.dtype)
    factor = 1.0 / spectrum.size
    eps = real(epsilon)
    window_rows, window_columns = intensity.shape
    for b in range(start, stop):
        first, last = bounds[b], bounds[b + 1]
        alone = last - first == 1
        intensity[:] = 0
        for m in range(first, last):
            crop_spectrum(spectrum, pupils[pupil_index[m]], rows[m], columns[m], box)
            box_to_field(box, half, fields[m - first], margin, factor)
            if not alone:
                add_intensity(fields[m - first], margin, intensity)
        frame, mask = frames[frame_index[b]], masks[mask_index[b]]
        misfit = 0.0
        for r in range(window_rows):
            if alone:
                line = fields[0, r, margin : margin + window_columns]
            else:
                line = summed
                roots(intensity[r], line)
            misfit += loss_row(line, frame[r], mask[r], eps)
            if not alone:
                factors_of(line, intensity[r])
        misfits[b] = misfit
        if not with_gradient:
            continue
        weight = real(weights[b])
        if weight == 0:  # left out, even if it holds NaN
            boxes[first:last] = 0
            continue
        for m in range(first, last):
            if not alone:
                scale_window(fields[m - first], intensity, margin)
            clear_margin(fields[m - first], margin)
            field_to_half(fields[m - first], half, margin)
            pupil = pupils[pupil_index[m]]
            for r in range(box.shape[0]):
                _weigh(half[r], pupil[r], weight, boxes[m, r])
