"""Where to start: a flat object, a linear deconvolution of the bright-field frames, or a few sweeps of EPRY."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray
from fouriscope.optics.zernike_polynomials import fit_zernike

StartName = Literal["flat", "linear", "epry"]
# A name, an array, or what finds one from the fidelity and the LEDs that are used.
Start: TypeAlias = StartName | RealArray | Callable[[DataFidelity, NDArray[np.int64] | None], RealArray]

# Sweeps of EPRY for a start: the first finds most of the object, the others what lies in the margin.
SWEEPS = 4
# Of the pixels that count: below this, more sweeps than so many times as many are not worth their time.
LEAST_SHARE = 0.1


def starting_point(
    start: Start, fidelity: DataFidelity, population: NDArray[np.int64] | None = None, *, seed: int = 0
) -> RealArray:
    """The first estimate x⁰.

    Parameters
    ----------
    start
        "flat" for zeros, "linear" for :func:`bright_field_deconvolution`, "epry" for :func:`first_sweeps`, or an array.
    fidelity
        Frames and model.
    population
        Numbers of the LEDs whose frames EPRY uses. By default, all.
    seed
        Of the order in which EPRY visits them.
    """
    start = checked_start(start, fidelity.model)
    if isinstance(start, np.ndarray):
        return start
    if start == "flat":
        return np.zeros(fidelity.model.x_shape, fidelity.model.dtype)
    if start == "linear":
        return bright_field_deconvolution(fidelity)
    return first_sweeps(fidelity, population, seed=seed) if start == "epry" else start(fidelity, population)


def checked_start(start: Start, model: ForwardModel) -> Start:
    """``start``, an array as a copy; raises if it is none. Nothing is computed."""
    if isinstance(start, np.ndarray):
        x = model.check_x(start, "start").copy()
        if not np.all(np.isfinite(x)):
            raise InvalidInputError("start, the starting point, holds NaN or infinite values")
        return x
    if not callable(start) and start not in get_args(StartName):
        raise InvalidInputError(
            f"start must be 'flat', 'linear', 'epry' or an array of shape {model.x_shape}, got {start!r}"
        )
    return start


def first_sweeps(
    fidelity: DataFidelity, population: NDArray[np.int64] | None = None, *, modes: Sequence[int] = (), seed: int = 0
) -> RealArray:
    """The object after a few sweeps of EPRY, its phase unwrapped.

    A gradient of the mean over all LEDs moves a frequency that only a few of them see by little; it takes ten passes
    and more until the dark field is explained. EPRY gives each LED its full step, and is near the end after a few, but
    keeps the noise: what a solver with a prior then has to do is what it is good at.

    The phase of EPRY is known within ±π only. Where neighbours differ by more, whole turns are added, because a prior
    would take a jump of 2π for an edge. A wave has no such jumps. Which minimum such an object ends in depends on the
    order of the LEDs, so on ``seed``.

    With ``modes`` EPRY finds the pupil too, in twice as many sweeps, and ``fidelity`` continues with the
    aberrations of these Noll indices that are in it. The rest of what EPRY finds is mostly noise. Where only a share of
    the pixels counts, there are as many more sweeps.
    """
    from skimage.restoration import unwrap_phase

    from fouriscope.fidelity import AllLEDs
    from fouriscope.solvers.epry import EPRY
    from fouriscope.solvers.stopping import Iterations

    leds = AllLEDs(np.flatnonzero(fidelity.weights > 0) if population is None else population)
    beta, count = (1.0, 2 * SWEEPS) if len(modes) else (0.0, SWEEPS)
    count = round(count / _measured_share(fidelity))
    solver = EPRY(fidelity, leds, order="random", decay=0.3, pupil_step=beta, pupil_start=2, seed=seed)
    solver.solve(Iterations(count))
    x = solver.x.copy()
    if len(modes):
        known, geometry = fidelity.model.pupil, fidelity.model.geometry
        places = [
            (np.arange(size) - size // 2) * step / geometry.optics.cutoff
            for size, step in zip(geometry.grid_shape, geometry.frequency_step, strict=True)
        ]
        found = fit_zernike(solver.pupil, places[0], places[1], modes)
        zernike = {j: known.zernike.get(j, 0.0) + found.get(j, 0.0) for j in {*known.zernike, *found}}
        fidelity.use(fidelity.model.revised(pupil=replace(known, zernike=zernike)))
    if fidelity.model.object.name == "wave":
        return x
    phase = fidelity.model.object.images(x)[0]
    if any(np.abs(np.diff(phase, axis=axis)).max() > np.pi for axis in range(2)):
        unwrapped = np.asarray(unwrap_phase(phase, rng=0))
        # Whole turns only: what was measured stays bit for bit.
        phase += (2 * np.pi * np.rint((unwrapped - phase) / (2 * np.pi))).astype(phase.dtype)
        phase -= phase.dtype.type(2 * np.pi * np.rint(np.median(phase) / (2 * np.pi)))
    _mend_zeros(fidelity.model.object.images(x))
    return x


def _measured_share(fidelity: DataFidelity) -> float:
    """The share of pixels that count, where all frames have one mask: of a colour camera a quarter or half. A sweep
    moves the object by that share of what it would."""
    mask = fidelity.mask
    return max(float(np.mean(np.asarray(mask) != 0)), LEAST_SHARE) if mask is not None and len(mask.shape) == 2 else 1.0


def _mend_zeros(images: Sequence[RealArray]) -> None:
    """Where noise drives the field through zero the phase winds around the spot, and no step of a solver undoes that:
    pixels that differ from their neighbours' median by a quarter turn take that median, the absorption too."""
    from scipy.ndimage import median_filter

    medians = [median_filter(image, size=3, mode="wrap") for image in images]
    odd = np.abs(images[0] - medians[0]) > np.pi / 2
    for image, median in zip(images, medians, strict=True):
        image[odd] = median[odd]


def bright_field_deconvolution(fidelity: DataFidelity, *, damping: float = 0.01) -> RealArray:
    """The object that explains the bright-field frames to first order.

    For a weak object o ≈ 1 + iφ − μ the spectrum of frame i is linear in those of φ and μ,

        Ŷ_i(k) = p̄₀P(k) · (iΦ − M)(k) + p₀P̄(−k) · (−iΦ − M)(k),    p₀ = P(DC as LED i sees it),

    and all bright-field frames together give a 1 × 1 (phase) or 2 × 2 (phase and absorption) least-squares problem
    for each frequency, damped by ``damping`` times its largest diagonal. What no bright-field frame carries (the
    phase below the gap at the pupil's edge, everything above the band of a frame) stays zero.

    Parameters
    ----------
    fidelity
        Frames and model.
    damping
        Relative to the largest diagonal element.
    """
    model = fidelity.model
    channels = len(model.object.channels)
    shape = model.geometry.grid_shape
    normal = np.zeros((channels, channels, *shape), np.complex128)
    right = np.zeros((channels, *shape), np.complex128)
    for led in np.flatnonzero((model.geometry.direct_light > 0) & (fidelity.weights > 0)):
        transfer = _transfer(model, int(led))[:channels]
        spectrum = np.fft.fft2(_contrast(fidelity, int(led)))
        weight = fidelity.weights[led]
        right += weight * np.conj(transfer) * spectrum
        normal += weight * np.conj(transfer)[:, None] * transfer[None, :]
    diagonal = np.arange(channels)
    peak = float(np.abs(normal[diagonal, diagonal]).max(initial=0.0))
    if not peak:
        return np.zeros(model.x_shape, model.dtype)
    normal[diagonal, diagonal] += damping * peak
    solution = np.linalg.solve(normal.transpose(2, 3, 0, 1), right.transpose(1, 2, 0)[..., None])[..., 0]
    images = np.stack([_resample(model, solution[..., c]) for c in range(channels)])
    return images.reshape(model.x_shape).astype(model.dtype)


def _contrast(fidelity: DataFidelity, led: int) -> NDArray[Any]:
    """Frame / mean − 1 on the grid, zero in the margin."""
    model = fidelity.model
    frame = np.asarray(fidelity.frames.frame(led), np.float64)
    mask = fidelity.mask_of(led)
    mean = frame[mask].mean() if mask.any() else 0.0
    grid = np.zeros(model.geometry.grid_shape)
    if mean > 0:
        grid[model.window] = np.where(mask, frame / mean - 1, 0.0)
    return grid


def _transfer(model: ForwardModel, led: int) -> NDArray[np.complex128]:
    """(2, rows, columns): from Φ and M to the intensity's spectrum of one LED, on the frame grid's FFT layout."""
    geometry = model.geometry
    sources, _ = model.sources.of(np.array([led]))
    stack, index = model.pupils(sources)
    pupils = [_seen_by_object(model, int(source), stack[index[b]]) for b, source in enumerate(sources)]
    light = sum(abs(pupil[0, 0]) ** 2 for pupil in pupils)
    transfer = np.zeros((2, *geometry.grid_shape), np.complex128)
    for pupil in pupils if light else ():
        background = pupil[0, 0]
        mirrored = np.roll(pupil[::-1, ::-1], (1, 1), (0, 1))  # P(−k)
        direct = np.conj(background) * pupil / light
        twin = background * np.conj(mirrored) / light
        transfer += np.stack([1j * (direct - twin), -(direct + twin)])
    return transfer


def _seen_by_object(model: ForwardModel, source: int, box_values: NDArray[Any]) -> NDArray[np.complex128]:
    """The pupil of ``source`` as the object's frequencies k see it: P at frame bin k − c, laid out with k = 0 first."""
    geometry = model.geometry
    box, (rows, columns) = geometry.support_box, geometry.grid_shape
    center_row, center_column = geometry.whole_bins[source]
    pupil = np.zeros(geometry.grid_shape, np.complex128)
    k_rows = np.arange(box.row0, box.row0 + box.height) + center_row
    k_columns = np.arange(box.col0, box.col0 + box.width) + center_column
    inside_rows = np.abs(2 * k_rows) < rows
    inside_columns = np.abs(2 * k_columns) < columns
    target = np.ix_(k_rows[inside_rows] % rows, k_columns[inside_columns] % columns)
    pupil[target] = box_values[np.ix_(inside_rows, inside_columns)]
    return pupil


def _resample(model: ForwardModel, spectrum: NDArray[Any]) -> NDArray[np.float64]:
    """Fourier interpolation of an image from the frame's grid to the object's."""
    rows, columns = model.geometry.grid_shape
    k_rows = np.fft.fftfreq(rows, 1 / rows).astype(int)
    k_columns = np.fft.fftfreq(columns, 1 / columns).astype(int)
    fine = np.zeros(model.object_shape, np.complex128)
    fine[np.ix_(k_rows % model.object_shape[0], k_columns % model.object_shape[1])] = spectrum
    return np.fft.ifft2(fine).real * (fine.size / spectrum.size)
