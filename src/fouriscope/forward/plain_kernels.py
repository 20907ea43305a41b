"""What :mod:`fouriscope.forward.kernels` compiles, in plain NumPy with SciPy's FFTs: the same names and arguments.

It is the engine "scipy", for machines without numba, and what the compiled loops are compared with. As there, a box
lies in the corner of a frame's spectrum, and the FFTs along columns know of the box's columns alone. SciPy and NumPy
release the GIL, so threads share the slices here too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Shape = tuple[int, int]

# Fields that are computed together: enough that Python's part is small, few enough that they stay in the cache.
TOGETHER_BYTES = 2**20


def together(grid: Shape, dtype: np.dtype[Any]) -> int:
    """How many fields on ``grid`` are computed at a time."""
    return max(1, TOGETHER_BYTES // (grid[0] * grid[1] * dtype.itemsize))


def parts(start: int, stop: int, size: int) -> Iterator[slice]:
    """start…stop in slices of at most ``size``."""
    for first in range(start, stop, size):
        yield slice(first, min(first + size, stop))


def fft2(array: Array, out: Array, forward: bool, factor: float, workers: int) -> None:
    """out = factor · FFT(array) (unnormalised, either direction)."""
    from scipy import fft

    if forward:
        out[...] = fft.fft2(array, workers=workers)
    else:
        out[...] = fft.ifft2(array, norm="forward", workers=workers)
    if factor != 1:
        out *= out.real.dtype.type(factor)


def windows(shape: Shape, box: Shape, row: int, column: int) -> Iterator[tuple[tuple[slice, slice], ...]]:
    """The pieces of a box that starts at (row, column): (place in the spectrum, place in the box), around its edges."""
    for rows, box_rows in _runs(shape[0], box[0], int(row)):
        for columns, box_columns in _runs(shape[1], box[1], int(column)):
            yield (rows, columns), (box_rows, box_columns)


def _runs(total: int, length: int, first: int) -> list[tuple[slice, slice]]:
    unwrapped = min(length, total - first)
    runs = [(slice(first, first + unwrapped), slice(0, unwrapped))]
    if unwrapped < length:
        runs.append((slice(0, length - unwrapped), slice(unwrapped, length)))
    return runs


def crop(spectrum: Array, box: Shape, rows: Array, columns: Array) -> Array:
    """S_b spectrum of each b: the boxes that start at (rows[b], columns[b])."""
    out = np.empty((len(rows), *box), spectrum.dtype)
    for b, (row, column) in enumerate(zip(rows, columns, strict=True)):
        for place, inside in windows(spectrum.shape, box, row, column):
            out[b][inside] = spectrum[place]
    return out


def boxes_to_fields(boxes: Array, grid: Shape, factor: float) -> Array:
    """factor · F⁻¹(boxes padded with zeros), unnormalised."""
    from scipy import fft

    boxes = boxes * boxes.real.dtype.type(factor)
    half = fft.ifft(boxes, n=grid[0], axis=-2, norm="forward")
    return np.asarray(fft.ifft(half, n=grid[1], axis=-1, norm="forward"))


def fields_to_boxes(fields: Array, box: Shape) -> Array:
    """The corner of F(fields): the adjoint of :func:`boxes_to_fields` with factor 1. ``fields`` is used up."""
    from scipy import fft

    half = fft.fft(fields, axis=-1, overwrite_x=True)[..., : box[1]]
    return np.asarray(fft.fft(half, axis=-2)[..., : box[0], :])


def add_boxes(boxes: Array, rows: Array, columns: Array, count: int, spectrum: Array, start: int, stop: int) -> None:
    """spectrum += Σ_b S_bᵀ boxes[b], for the spectrum's rows start…stop only, always in the order of b."""
    for b in range(count):
        _add(boxes[b], int(rows[b]), int(columns[b]), spectrum, start, stop)


def _add(box: Array, row: int, column: int, total: Array, start: int, stop: int) -> None:
    for (rows, columns), (box_rows, box_columns) in windows(total.shape, box.shape, row, column):
        first, last = max(rows.start, start), min(rows.stop, stop)
        if first < last:
            shift = box_rows.start - rows.start
            total[first:last, columns] += box[first + shift : last + shift, box_columns]


def add_coverage(
    pupils: Array,
    pupil_index: Array,
    rows: Array,
    columns: Array,
    weights: Array,
    coverage: Array,
    start: int,
    stop: int,
) -> None:
    """coverage += Σ_b weights[b] S_bᵀ |P_b|², for its rows start…stop only, always in the order of b."""
    for b in range(len(rows)):
        seen = squared(pupils[pupil_index[b]]) * coverage.dtype.type(weights[b])
        _add(seen, int(rows[b]), int(columns[b]), coverage, start, stop)


def squared(values: Array) -> Array:
    """|values|²."""
    return np.asarray(values.real * values.real + values.imag * values.imag)


def intensities(
    spectrum: Array,
    pupils: Array,
    pupil_index: Array,
    rows: Array,
    columns: Array,
    grid_rows: int,
    grid_columns: int,
    margin: int,
    out: Array,
    start: int,
    stop: int,
) -> None:
    """out[b] = |H_b o|² inside the measured window, for b in start…stop."""
    grid = (grid_rows, grid_columns)
    for part in parts(start, stop, together(grid, spectrum.dtype)):
        boxes = crop(spectrum, pupils.shape[1:], rows[part], columns[part]) * pupils[pupil_index[part]]
        out[part] = squared(in_window(boxes_to_fields(boxes, grid, 1.0 / spectrum.size), margin))


def in_window(fields: Array, margin: int) -> Array:
    """The measured window of fields on the frame's grid, as a view."""
    return fields[..., margin : fields.shape[-2] - margin, margin : fields.shape[-1] - margin]


def summed_intensities(
    spectrum: Array,
    pupils: Array,
    pupil_index: Array,
    rows: Array,
    columns: Array,
    bounds: Array,
    grid_rows: int,
    grid_columns: int,
    margin: int,
    out: Array,
    start: int,
    stop: int,
) -> None:
    """out[b] = Σ_m |√w_m H_m o|² over the sources m = bounds[b] … bounds[b + 1], for b in start…stop."""
    single = np.empty((1, *out.shape[1:]), out.dtype)
    for b in range(start, stop):
        out[b] = 0
        for m in range(int(bounds[b]), int(bounds[b + 1])):
            one = slice(m, m + 1)
            source = (spectrum, pupils, pupil_index[one], rows[one], columns[one])
            intensities(*source, grid_rows, grid_columns, margin, single, 0, 1)
            out[b] += single[0]


def phase_transmittance_double(phase: Array, out: Array, start: int, stop: int) -> None:
    """out = e^{i phase}."""
    np.cos(phase[start:stop], out=out.real[start:stop])
    np.sin(phase[start:stop], out=out.imag[start:stop])


phase_transmittance_single = phase_transmittance_double


def complex_transmittance(x: Array, out: Array, start: int, stop: int) -> None:
    """out = e^{−μ} e^{iφ} of x = (φ, μ)."""
    phase_transmittance_double(x[0], out, start, stop)
    out[start:stop] *= np.exp(-x[1, start:stop])


def phase_pull_back(transmittance: Array, derivative: Array, gradient: Array, start: int, stop: int) -> None:
    """gradient = 2 Im{ō ⊙ ∂d/∂ō}."""
    o, w = transmittance[start:stop], derivative[start:stop]
    gradient[start:stop] = 2 * (o.real * w.imag - o.imag * w.real)


def complex_pull_back(transmittance: Array, derivative: Array, gradient: Array, start: int, stop: int) -> None:
    """gradient = (2 Im{ō ⊙ ∂d/∂ō}, −2 Re{ō ⊙ ∂d/∂ō}) for (φ, μ)."""
    phase_pull_back(transmittance, derivative, gradient[0], start, stop)
    o, w = transmittance[start:stop], derivative[start:stop]
    gradient[1, start:stop] = -2 * (o.real * w.real + o.imag * w.imag)
