"""One sweep of EPRY in plain NumPy with SciPy's FFTs: the arguments of the compiled ``sweep_sums``, after the array
form of the loss. A frame of one source is a sum of one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.fidelity.array_losses import Pixels, amplitude_pixels
from fouriscope.forward.plain_kernels import boxes_to_fields, crop, fields_to_boxes, in_window, squared, windows

Array = NDArray[Any]


def sweep_sums(
    pixels: Pixels,
    spectrum: Array,
    correction: Array,
    pupils: Array,
    pupil_index: Array,
    rows: Array,
    columns: Array,
    bounds: Array,
    shares: Array,
    grid_rows: int,
    grid_columns: int,
    margin: int,
    frames: Array,
    frame_index: Array,
    masks: Array,
    mask_index: Array,
    epsilon: float,
    is_projection: bool,
    object_step: float,
    pupil_step: float,
    largest_lever: float,
    damping: float,
    misfits: Array,
    lights: Array,
) -> None:
    """Update ``spectrum`` (O) and ``correction`` (C) in place, frame after frame (see the compiled twin)."""
    grid, real, shape = (grid_rows, grid_columns), frames.dtype.type, pupils.shape[1:]
    back = -(spectrum.size / (grid_rows * grid_columns))
    for b, (first, last) in enumerate(pairwise(bounds.tolist())):
        part = slice(first, last)
        pupil = pupils[pupil_index[part]]
        corrected = correction * pupil
        light = crop(spectrum, shape, rows[part], columns[part])
        fields = boxes_to_fields(light * corrected, grid, 1.0 / spectrum.size)
        intensity = squared(in_window(fields, margin)).sum(axis=0)
        frame, mask = frames[frame_index[b]], masks[mask_index[b]]
        projected = None if is_projection else amplitude_pixels(np, intensity.copy(), frame, real(0))[1]
        d, q = pixels(np, intensity, frame, real(epsilon))  # may overwrite the intensity
        q = q if projected is None else projected
        misfits[b] = np.sum(d * mask, dtype=np.float64)
        lights[b] = np.sum(np.maximum(frame, 0) * mask, dtype=np.float64) / max(mask.sum(dtype=np.float64), 1.0)
        whole = np.zeros(grid, frames.dtype)
        in_window(whole, margin)[...] = q * mask
        changes = fields_to_boxes(fields * whole, shape)
        # O before its update pulls C, so C goes first.
        if pupil_step > 0 and largest_lever > 0:
            for k, lever in enumerate(light * pupil):
                step = back * pupil_step * shares[first + k]
                correction += _pulled(lever, changes[k], step, largest_lever, damping)
        for k, lever in enumerate(corrected):
            largest = float(squared(lever).max())
            if largest > 0:
                pull = _pulled(lever, changes[k], back * object_step * shares[first + k], largest, damping)
                for place, inside in windows(spectrum.shape, shape, rows[first + k], columns[first + k]):
                    spectrum[place] += pull[inside]


def _pulled(lever: Array, change: Array, step: float, largest: float, damping: float) -> Array:
    """step · |lever|/max|lever| · conj(lever)/(|lever|² + damping · max|lever|²) ⊙ change."""
    here, real = squared(lever), lever.real.dtype.type
    weight = real(step / np.sqrt(largest)) * np.sqrt(here) / (here + real(damping * largest))
    return np.asarray(weight * (np.conj(lever) * change))
