"""The loop over LEDs in plain NumPy with SciPy's FFTs: the arguments are those of :mod:`fouriscope.fidelity.kernels`,
after the array form of the loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.fidelity.array_losses import Pixels
from fouriscope.forward.plain_kernels import (
    boxes_to_fields,
    crop,
    fields_to_boxes,
    in_window,
    parts,
    squared,
    together,
)

Array = NDArray[Any]


def led_gradients(
    pixels: Pixels,
    spectrum: Array,
    pupils: Array,
    pupil_index: Array,
    rows: Array,
    columns: Array,
    grid_rows: int,
    grid_columns: int,
    margin: int,
    frames: Array,
    frame_index: Array,
    masks: Array,
    mask_index: Array,
    weights: Array,
    epsilon: float,
    with_gradient: bool,
    boxes: Array,
    misfits: Array,
    start: int,
    stop: int,
) -> None:
    """For b in start…stop: misfits[b] = d_b and, if wanted, boxes[b] = weights[b] · P̄ ⊙ F[q ψ_b] on the support box."""
    bounds = np.arange(len(rows) + 1)
    place: tuple[Any, ...] = (spectrum, pupils, pupil_index, rows, columns, bounds, grid_rows, grid_columns, margin)
    data: tuple[Any, ...] = (frames, frame_index, masks, mask_index, weights, epsilon, with_gradient, boxes, misfits)
    sum_gradients(pixels, *(*place, *data, start, stop))


def sum_gradients(
    pixels: Pixels,
    spectrum: Array,
    pupils: Array,
    pupil_index: Array,
    rows: Array,
    columns: Array,
    bounds: Array,
    grid_rows: int,
    grid_columns: int,
    margin: int,
    frames: Array,
    frame_index: Array,
    masks: Array,
    mask_index: Array,
    weights: Array,
    epsilon: float,
    with_gradient: bool,
    boxes: Array,
    misfits: Array,
    start: int,
    stop: int,
) -> None:
    """:func:`led_gradients` of frames that are sums: frame b has the sources m = bounds[b] … bounds[b + 1]."""
    grid = (grid_rows, grid_columns)
    factor, real = 1.0 / spectrum.size, frames.dtype.type
    eps = real(epsilon)
    for part in _frames_together(bounds, start, stop, together(grid, spectrum.dtype)):
        sources = slice(int(bounds[part.start]), int(bounds[part.stop]))
        pupil = pupils[pupil_index[sources]]
        cropped = crop(spectrum, pupils.shape[1:], rows[sources], columns[sources])
        cropped *= pupil
        fields = boxes_to_fields(cropped, grid, factor)
        counts, first = np.diff(bounds[part.start : part.stop + 1]), bounds[part] - sources.start
        alone = len(counts) == len(fields)
        intensity = squared(in_window(fields, margin))
        if not alone:
            intensity = np.add.reduceat(intensity, first, axis=0)
        mask = masks[mask_index[part]]
        d, q = pixels(np, intensity, frames[frame_index[part]], eps)
        misfits[part] = np.sum(d * mask, axis=(1, 2), dtype=np.float64)
        if not with_gradient:
            continue
        q *= mask
        weight = np.asarray(weights[part], frames.dtype)
        q *= weight[:, None, None]
        q[weight == 0] = 0  # left out, even if it holds NaN
        if margin:
            whole = np.zeros((len(q), *grid), q.dtype)
            in_window(whole, margin)[...] = q
            q = whole
        fields *= q if alone else np.repeat(q, counts, axis=0)
        np.multiply(fields_to_boxes(fields, pupils.shape[1:]), np.conj(pupil), out=boxes[sources])
        for b in np.flatnonzero(weight == 0) + part.start:
            boxes[bounds[b] : bounds[b + 1]] = 0


def _frames_together(bounds: Array, start: int, stop: int, size: int) -> Iterator[slice]:
    """start…stop in slices of at most ``size`` sources, or of one frame if that has more."""
    if bounds[stop] - bounds[start] == stop - start:
        yield from parts(start, stop, size)
        return
    first = start
    while first < stop:
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + size, side="right")) - 1)
        yield slice(first, min(last, stop))
        first = last
