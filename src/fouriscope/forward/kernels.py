"""Compiled pieces of the forward model, written to be inlined into one loop over LEDs.

The spectrum of a frame occupies a small box (the pupil's disc). Two things follow, and both are exact:

* the box is put into the *corner* of the frame's spectrum instead of around DC. That multiplies the field by a phase
  ramp, which ``abs()`` does not see, and the way back undoes it;
* only the rows and columns of the box are transformed in the first pass of the inverse FFT and in the last pass of the
  forward FFT; all others are known to be zero, or are not wanted.

And only the rows of the measured window are transformed in the other pass: nobody looks at the field in the margin
above and below it, and what comes back from there is zero. So a ``field`` has the rows of the window, and all columns.

Importing this module imports numba and rocket-fft, which take a while: import it where it is used.
"""

from __future__ import annotations

import numpy as np
import rocket_fft  # noqa: F401  (registers the transforms with numba)
from numba import njit
from rocket_fft import c2c

JIT = {"cache": True, "nogil": True, "fastmath": {"contract", "reassoc", "nsz", "arcp"}, "error_model": "numpy"}
# For the pieces of a kernel. Linked instead of inlined, a piece exists twice, once by itself and once in the cached
# kernel, optimised differently; which one runs would depend on whether this process compiled the kernel or loaded it.
PIECE = {**JIT, "cache": False, "inline": "always"}


@njit(**JIT)
def fft2(array, out, forward, factor, workers):  # type: ignore[no-untyped-def]
    """out = factor · FFT(array) (unnormalised, either direction)."""
    c2c(array, out, np.array([0, 1]), forward, factor, workers)


# A loop, not ``target[:] = source``: for that numba compiles the words of an error about shapes, four seconds of them.
@njit(**PIECE)
def copy_row(source, target):  # type: ignore[no-untyped-def]
    for c in range(target.size):
        target[c] = source[c]


@njit(**PIECE)
def _multiply(a, b, out):  # type: ignore[no-untyped-def]
    for c in range(out.size):
        out[c] = a[c] * b[c]


@njit(**PIECE)
def _add(source, target):  # type: ignore[no-untyped-def]
    for c in range(source.size):
        target[c] += source[c]


@njit(**PIECE)
def crop_spectrum(spectrum, pupil, row, column, box):  # type: ignore[no-untyped-def]
    """box = P ⊙ S_i spectrum: the box that starts at (row, column), wrapping around the edges of the FFT layout."""
    rows, columns = spectrum.shape
    height, width = box.shape
    unwrapped = min(width, columns - column)
    for r in range(height):
        source = row + r
        if source >= rows:
            source -= rows
        # Slices of rows, because LLVM vectorises them twice as well as two-dimensional indices.
        _multiply(spectrum[source, column : column + unwrapped], pupil[r, :unwrapped], box[r, :unwrapped])
        if unwrapped < width:
            _multiply(spectrum[source, : width - unwrapped], pupil[r, unwrapped:], box[r, unwrapped:])


@njit(**PIECE)
def box_to_field(box, half, field, margin, factor):  # type: ignore[no-untyped-def]
    """field = the window's rows of factor · F⁻¹(box padded with zeros), unnormalised.

    ``half`` is scratch of shape (all rows, box width); ``margin`` is the number of rows above the window.
    """
    c2c(box, half, np.array([0]), False, factor, 1)
    c2c(half[margin : margin + field.shape[0]], field, np.array([1]), False, 1.0, 1)


@njit(**PIECE)
def field_to_half(field, half, margin):  # type: ignore[no-untyped-def]
    """half = the first columns of F(field, zero above and below), over all rows; ``field`` is used as scratch.

    Its first rows are what :func:`box_to_field` started from: this is the adjoint of that, with factor 1.
    """
    c2c(field, field, np.array([1]), True, 1.0, 1)
    half[:margin] = 0
    half[margin + field.shape[0] :] = 0
    for r in range(field.shape[0]):
        copy_row(field[r, : half.shape[1]], half[r + margin])
    c2c(half, half, np.array([0]), True, 1.0, 1)


@njit(**JIT)
def add_boxes(boxes, rows, columns, count, spectrum, start, stop):  # type: ignore[no-untyped-def]
    """spectrum += Σ_b S_bᵀ boxes[b], for the spectrum's rows start…stop only, always in the order of b.

    Threads share the *rows*, not the LEDs: every sum has one order, so the result does not depend on their number.
    """
    total_rows, total_columns = spectrum.shape
    height, width = boxes.shape[1], boxes.shape[2]
    for b in range(count):
        column = columns[b]
        unwrapped = min(width, total_columns - column)
        for r in range(height):
            target = rows[b] + r
            if target >= total_rows:
                target -= total_rows
            if target < start or target >= stop:
                continue
            _add(boxes[b, r, :unwrapped], spectrum[target, column : column + unwrapped])
            if unwrapped < width:
                _add(boxes[b, r, unwrapped:], spectrum[target, : width - unwrapped])


@njit(**PIECE)
def _add_squares(pupil, weight, out):  # type: ignore[no-untyped-def]
    for c in range(out.size):
        out[c] += weight * (pupil[c].real * pupil[c].real + pupil[c].imag * pupil[c].imag)


@njit(**JIT)
def add_coverage(pupils, pupil_index, rows, columns, weights, coverage, start, stop):  # type: ignore[no-untyped-def]
    """coverage += Σ_b weights[b] S_bᵀ |P_b|², for its rows start…stop only, always in the order of b."""
    total_rows, total_columns = coverage.shape
    height, width = pupils.shape[1], pupils.shape[2]
    for b in range(rows.size):
        pupil, column = pupils[pupil_index[b]], columns[b]
        weight = coverage.dtype.type(weights[b])
        unwrapped = min(width, total_columns - column)
        for r in range(height):
            target = rows[b] + r
            if target >= total_rows:
                target -= total_rows
            if target < start or target >= stop:
                continue
            _add_squares(pupil[r, :unwrapped], weight, coverage[target, column : column + unwrapped])
            if unwrapped < width:
                _add_squares(pupil[r, unwrapped:], weight, coverage[target, : width - unwrapped])


@njit(**JIT)
def intensities(spectrum, pupils, pupil_index, rows, columns, grid_rows, grid_columns, margin, out, start, stop):  # type: ignore[no-untyped-def]
    """out[b] = |H_b o|² inside the measured window, for b in start…stop."""
    box = np.empty(pupils.shape[1:], spectrum.dtype)
    half = np.empty((grid_rows, pupils.shape[2]), spectrum.dtype)
    field = np.empty((out.shape[1], grid_columns), spectrum.dtype)
    factor = 1.0 / spectrum.size
    for b in range(start, stop):
        crop_spectrum(spectrum, pupils[pupil_index[b]], rows[b], columns[b], box)
        box_to_field(box, half, field, margin, factor)
        for r in range(out.shape[1]):
            for c in range(out.shape[2]):
                value = field[r, c + margin]
                out[b, r, c] = value.real * value.real + value.imag * value.imag


@njit(**PIECE)
def add_intensity(field, margin, total):  # type: ignore[no-untyped-def]
    """total += |field|² inside the measured window."""
    columns = total.shape[1]
    for r in range(total.shape[0]):
        row, sums = field[r, margin : margin + columns], total[r]
        for c in range(columns):
            sums[c] += row[c].real * row[c].real + row[c].imag * row[c].imag


@njit(**JIT)
def summed_intensities(  # type: ignore[no-untyped-def]
    spectrum, pupils, pupil_index, rows, columns, bounds, grid_rows, grid_columns, margin, out, start, stop
):
    """out[b] = Σ_m |√w_m H_m o|² over the sources m = bounds[b] … bounds[b + 1], for b in start…stop."""
    box = np.empty(pupils.shape[1:], spectrum.dtype)
    half = np.empty((grid_rows, pupils.shape[2]), spectrum.dtype)
    field = np.empty((out.shape[1], grid_columns), spectrum.dtype)
    factor = 1.0 / spectrum.size
    for b in range(start, stop):
        out[b] = 0
        for m in range(bounds[b], bounds[b + 1]):
            crop_spectrum(spectrum, pupils[pupil_index[m]], rows[m], columns[m], box)
            box_to_field(box, half, field, margin, factor)
            add_intensity(field, margin, out[b])


@njit(inline="always")
def cos_sin(angle):  # type: ignore[no-untyped-def]
    """Cosine and sine in plain arithmetic, which LLVM can vectorise (calls to libm it cannot): error below 1e-7.

    The angle is reduced to [-π/4, π/4] in double precision, so large phases lose nothing; there the Taylor series
    is exact to single precision.
    """
    quarter_turns = np.floor(angle * (2.0 / np.pi) + 0.5)
    t = np.float32(angle - quarter_turns * (np.pi / 2.0))
    t2 = t * t
    s = t * (
        np.float32(1.0)
        + t2
        * (
            np.float32(-1.0 / 6.0)
            + t2 * (np.float32(1.0 / 120.0) + t2 * (np.float32(-1.0 / 5040.0) + t2 * np.float32(1.0 / 362880.0)))
        )
    )
    c = np.float32(1.0) + t2 * (
        np.float32(-0.5)
        + t2
        * (
            np.float32(1.0 / 24.0)
            + t2 * (np.float32(-1.0 / 720.0) + t2 * (np.float32(1.0 / 40320.0) + t2 * np.float32(-1.0 / 3628800.0)))
        )
    )
    quadrant = np.int64(quarter_turns) & 3
    swap = (quadrant & 1) == 1
    cosine = s if swap else c
    sine = c if swap else s
    cosine = -cosine if quadrant == 1 or quadrant == 2 else cosine
    sine = -sine if quadrant >= 2 else sine
    return cosine, sine


@njit(**JIT)
def phase_transmittance_single(phase, out, start, stop):  # type: ignore[no-untyped-def]
    for r in range(start, stop):
        for c in range(phase.shape[1]):
            cosine, sine = cos_sin(phase[r, c])
            out[r, c] = complex(cosine, sine)


@njit(**JIT)
def phase_transmittance_double(phase, out, start, stop):  # type: ignore[no-untyped-def]
    for r in range(start, stop):
        for c in range(phase.shape[1]):
            out[r, c] = complex(np.cos(phase[r, c]), np.sin(phase[r, c]))


@njit(**JIT)
def complex_transmittance(x, out, start, stop):  # type: ignore[no-untyped-def]
    for r in range(start, stop):
        for c in range(x.shape[2]):
            amplitude = np.exp(-x[1, r, c])
            out[r, c] = complex(amplitude * np.cos(x[0, r, c]), amplitude * np.sin(x[0, r, c]))


@njit(**JIT)
def phase_pull_back(transmittance, derivative, gradient, start, stop):  # type: ignore[no-untyped-def]
    """gradient = 2 Im{ō ⊙ ∂d/∂ō}."""
    for r in range(start, stop):
        for c in range(gradient.shape[1]):
            o, w = transmittance[r, c], derivative[r, c]
            gradient[r, c] = 2 * (o.real * w.imag - o.imag * w.real)


@njit(**JIT)
def complex_pull_back(transmittance, derivative, gradient, start, stop):  # type: ignore[no-untyped-def]
    """gradient = (2 Im{ō ⊙ ∂d/∂ō}, −2 Re{ō ⊙ ∂d/∂ō}) for (φ, μ)."""
    for r in range(start, stop):
        for c in range(gradient.shape[2]):
            o, w = transmittance[r, c], derivative[r, c]
            gradient[0, r, c] = 2 * (o.real * w.imag - o.imag * w.real)
            gradient[1, r, c] = -2 * (o.real * w.real + o.imag * w.imag)
