"""One sweep of EPRY over frames that are sums, compiled. Importing this module imports numba."""

from __future__ import annotations

import numpy as np

from fouriscope.fidelity.kernels import clear_margin, factors_of, loss_row, roots, scale_window
from fouriscope.forward.kernels import add_intensity, box_to_field, copy_row, crop_spectrum, field_to_half
from fouriscope.solvers._epry_kernels import change_row, light_row, product, pull


def sweep_sums(  # type: ignore[no-untyped-def]
    spectrum,
    correction,
    pupils,
    pupil_index,
    rows,
    columns,
    bounds,
    shares,
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
    """:func:`~fouriscope.solvers._epry_kernels.sweep` of frames with the sources m = bounds[b] … bounds[b + 1].

    All fields of a frame get the same ratio of moduli, √y / √(Σ_m |u_m|²): together they are the nearest ones that
    explain the frame. Each moves O and C by its share of a step, and all see them as the frame before left them. To be
    compiled ``for_loss``.
    """
    real = frames.dtype.type
    shape = pupils.shape[1:]
    most = 0
    for b in range(frame_index.size):
        most = max(most, bounds[b + 1] - bounds[b])
    corrected = np.empty((most, *shape), spectrum.dtype)
    changes = np.empty((most, *shape), spectrum.dtype)
    largest_pupils = np.empty(most, frames.dtype)
    box = np.empty(shape, spectrum.dtype)
    lever = np.empty(shape, spectrum.dtype)
    half = np.empty((grid_rows, shape[1]), spectrum.dtype)
    fields = np.empty((most, frames.shape[1], grid_columns), spectrum.dtype)
    intensity = np.empty(frames.shape[1:], frames.dtype)
    line = np.empty(frames.shape[2], spectrum.dtype)
    factor = 1.0 / spectrum.size
    # The way back: F of F⁻¹ is the number of the grid's pixels, and change_row gives the change with a minus.
    back = real(-(spectrum.size / (grid_rows * grid_columns)))
    eps, delta = real(epsilon), real(damping)
    alpha, beta = real(object_step), real(pupil_step)
    brightest = real(largest_lever)
    total_rows, total_columns = spectrum.shape
    for b in range(frame_index.size):
        first, count = bounds[b], bounds[b + 1] - bounds[b]
        intensity[:] = 0
        for k in range(count):
            m = first + k
            largest_pupils[k] = product(correction, pupils[pupil_index[m]], corrected[k])
            crop_spectrum(spectrum, corrected[k], rows[m], columns[m], box)
            box_to_field(box, half, fields[k], margin, factor)
            add_intensity(fields[k], margin, intensity)
        frame, mask = frames[frame_index[b]], masks[mask_index[b]]
        misfit = light = counted = 0.0
        for r in range(intensity.shape[0]):
            roots(intensity[r], line)
            misfit += loss_row(line, frame[r], mask[r], eps)
            if not is_projection:
                roots(intensity[r], line)
                change_row(line, frame[r], mask[r], real(0))
            factors_of(line, intensity[r])
            light += light_row(frame[r], mask[r])
            counted += mask[r].sum()
        misfits[b] = misfit
        lights[b] = light / max(counted, 1.0)
        for k in range(count):
            scale_window(fields[k], intensity, margin)
            clear_margin(fields[k], margin)
            field_to_half(fields[k], half, margin)
            for r in range(shape[0]):
                copy_row(half[r], changes[k, r])
        # O before its update pulls C, so C goes first.
        if beta > 0 and brightest > 0:
            for k in range(count):
                m = first + k
                step = back * beta * real(shares[m])
                crop_spectrum(spectrum, pupils[pupil_index[m]], rows[m], columns[m], lever)
                for r in range(shape[0]):
                    pull(correction[r], lever[r], changes[k, r], step, brightest, delta)
        for k in range(count):
            if not largest_pupils[k] > 0:
                continue
            m = first + k
            step = back * alpha * real(shares[m])
            unwrapped = min(shape[1], total_columns - columns[m])
            for r in range(shape[0]):
                target = rows[m] + r
                if target >= total_rows:
                    target -= total_rows
                part = spectrum[target, columns[m] : columns[m] + unwrapped]
                pull(part, corrected[k, r, :unwrapped], changes[k, r, :unwrapped], step, largest_pupils[k], delta)
                if unwrapped < shape[1]:
                    part = spectrum[target, : shape[1] - unwrapped]
                    pull(part, corrected[k, r, unwrapped:], changes[k, r, unwrapped:], step, largest_pupils[k], delta)
