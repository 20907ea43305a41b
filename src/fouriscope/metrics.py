"""How close is an estimate to the truth, and how fine is the detail that two estimates share?

**The gauge.** An intensity camera cannot see a constant phase: d(x + c) = d(x) for every constant c. A perfect
reconstruction may therefore differ from the truth by any constant, and a score that counts it measures the starting
point and not the algorithm. ``align=True``, the default throughout, removes the best constant before it compares;
``align=False`` gives the raw score. :func:`snr_both` reports the two side by side.

All scores are computed in float64, whatever comes in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fouriscope.errors import InvalidInputError

__all__ = [
    "SNR",
    "RingCorrelation",
    "field_nrmse",
    "fourier_ring_correlation",
    "frc_resolution",
    "phase_difference",
    "psnr",
    "remove_constant",
    "snr",
    "snr_both",
    "ssim",
    "wrap",
]

RealArray: TypeAlias = npt.NDArray[np.float64]
ComplexArray: TypeAlias = npt.NDArray[np.complex128]


class SNR(NamedTuple):
    """The two signal-to-noise ratios of one reconstruction, in dB."""

    aligned: float
    """After the best constant was removed: the score of the algorithm."""
    raw: float
    """As the arrays are: also counts the constant, which no camera can see."""


@dataclass(frozen=True, eq=False)
class RingCorrelation:
    """A Fourier ring correlation curve, one entry for each ring; the first ring is zero frequency."""

    frequency: RealArray
    """Centre of the ring, in cycles per metre (cycles per pixel when ``pixel`` was left at 1)."""
    correlation: RealArray
    """Between −1 and 1; 0 where either image has nothing but rounding errors in the ring."""
    count: npt.NDArray[np.int64]
    """Fourier samples in the ring, both Hermitian halves."""


# ---------------------------------------------------------------------------------------------------------------------
# Images: real arrays


def remove_constant(estimate: npt.ArrayLike, truth: npt.ArrayLike) -> RealArray:
    """Shift ``estimate`` by the constant that brings it closest to ``truth``.

    The least-squares constant is the mean of the difference: c = mean(truth − estimate).

    >>> remove_constant([5.0, 6.0, 7.0], [0.0, 1.0, 2.0])
    array([0., 1., 2.])
    """
    estimate, truth = _real_pair(estimate, truth)
    return np.asarray(estimate + np.mean(truth - estimate), dtype=np.float64)


def snr(estimate: npt.ArrayLike, truth: npt.ArrayLike, *, align: bool = True) -> float:
    """Signal-to-noise ratio in dB: 20 log₁₀( ‖truth‖ / ‖truth − estimate‖ ).

    With ``align=True`` the best constant is removed from the *difference*, because a constant phase cannot be observed.
    The numerator stays ‖truth‖ with its mean, as in the literature, so the value depends on where the truth puts its
    zero: compare scores only for the same truth. Equal arrays give ``inf``.

    >>> truth = np.array([0.0, 3.0, 4.0])
    >>> round(snr([0.1, 3.0, 3.9], truth), 2)
    30.97
    >>> snr(truth + 7.0, truth)
    inf
    >>> round(snr(truth + 7.0, truth, align=False), 2)
    -7.69
    """
    estimate, truth = _real_pair(estimate, truth)
    signal = _norm(truth)
    if signal == 0.0:
        raise InvalidInputError(
            "snr needs a truth with a signal, but every value of the truth is 0; pass the reference image as `truth`"
        )
    if align and float(np.ptp(truth)) == 0.0:
        raise InvalidInputError(
            f"snr with align=True needs a truth that varies, but every value is {truth.flat[0]:g}, and the constant is "
            "what the alignment removes; pass another truth, or align=False"
        )
    return _decibel(signal, _norm(_difference(estimate, truth, align)))


def snr_both(estimate: npt.ArrayLike, truth: npt.ArrayLike) -> SNR:
    """The aligned and the raw :func:`snr`, to be reported together.

    >>> both = snr_both([1.1, 4.0, 4.9], [0.0, 3.0, 4.0])
    >>> f"{both.aligned:.1f} dB (raw {both.raw:.1f} dB)"
    '31.0 dB (raw 9.2 dB)'
    """
    return SNR(aligned=snr(estimate, truth), raw=snr(estimate, truth, align=False))


def psnr(
    estimate: npt.ArrayLike, truth: npt.ArrayLike, *, data_range: float | None = None, align: bool = True
) -> float:
    """Peak signal-to-noise ratio in dB: 20 log₁₀( data_range / RMSE ).

    ``data_range`` is max(truth) − min(truth) unless given. Unlike :func:`snr`, with ``align=True`` the value does not
    depend on where the truth puts its zero.

    >>> round(psnr([0.0, 0.5, 0.9], [0.0, 0.5, 1.0], align=False), 2)
    24.77
    """
    estimate, truth = _real_pair(estimate, truth)
    peak = _data_range(truth, data_range, "psnr")
    return _decibel(peak, math.sqrt(float(np.mean(_difference(estimate, truth, align) ** 2))))


def ssim(
    estimate: npt.ArrayLike, truth: npt.ArrayLike, *, data_range: float | None = None, align: bool = True
) -> float:
    """Structural similarity (Wang et al. 2004), 1 for equal images.

    With the parameters of the original paper: Gaussian weights of 1.5 pixels in an 11 × 11 window, K₁ = 0.01,
    K₂ = 0.03. ``data_range`` is max(truth) − min(truth) unless given.

    >>> truth = np.add.outer(np.arange(16.0), np.arange(16.0))
    >>> round(ssim(truth + 3.0, truth), 6)
    1.0
    """
    from skimage.metrics import structural_similarity

    estimate, truth = _real_pair(estimate, truth)
    window = 11
    if truth.ndim != 2 or min(truth.shape) < window:
        raise InvalidInputError(
            f"ssim compares 2-D images of at least {window} × {window} pixels, but the shape is {truth.shape}; "
            "pass one larger 2-D image at a time"
        )
    peak = _data_range(truth, data_range, "ssim")
    if align:
        estimate = remove_constant(estimate, truth)
    return float(
        structural_similarity(
            truth, estimate, data_range=peak, gaussian_weights=True, sigma=1.5, use_sample_covariance=False
        )
    )


# ---------------------------------------------------------------------------------------------------------------------
# Fields and wrapped phases


def field_nrmse(estimate: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Relative error of a complex field after the best complex scale: min over c of ‖truth − c·estimate‖ / ‖truth‖.

    The scale c = ⟨estimate, truth⟩ / ‖estimate‖² takes away the constant phase and the unknown brightness, neither of
    which belongs to the sample. 0 is perfect; 1 means that the fields have nothing in common.

    >>> field = np.exp(1j * np.array([0.0, 0.3, 0.9]))
    >>> field_nrmse(2j * field, field) < 1e-12
    True
    """
    fitted, reference = _checked_pair(estimate, truth)
    reference_norm = float(np.linalg.norm(reference))
    if reference_norm == 0.0:
        raise InvalidInputError(
            "field_nrmse needs a truth that is not 0 everywhere; pass the reference field as `truth`"
        )
    fitted_norm = float(np.linalg.norm(fitted))
    if fitted_norm == 0.0:
        return 1.0
    # Unit norms first: the inner product of very faint or very bright fields would under- or overflow.
    direction, target = fitted.ravel() / fitted_norm, reference.ravel() / reference_norm
    return float(np.linalg.norm(target - np.vdot(direction, target) * direction))


def wrap(phase: npt.ArrayLike) -> RealArray:
    """Phase modulo 2π, in (−π, π].

    >>> wrap([0.0, np.pi, -np.pi, 2 * np.pi]) / np.pi
    array([0., 1., 1., 0.])
    """
    phase = _real(phase, "phase")
    wrapped = np.pi - np.mod(np.pi - phase, 2 * np.pi)
    # np.mod rounds to 2π itself when its argument lies a rounding error below 0.
    return np.asarray(np.where(wrapped <= -np.pi, np.pi, wrapped), dtype=np.float64)


def phase_difference(a: npt.ArrayLike, b: npt.ArrayLike) -> RealArray:
    """a − b for phases known only modulo 2π, with the best constant phase removed, in (−π, π].

    Best in the sense of the fields: c = arg Σ e^{i(a − b)} minimises ‖e^{ia} − e^{i(b + c)}‖. Jumps of 2π in either
    phase and a constant between them leave no trace:

    >>> unwrapped = np.array([0.0, 2.0, 4.0, 6.0])
    >>> bool(np.allclose(phase_difference(wrap(unwrapped + 1.0), unwrapped), 0.0))
    True
    """
    a, b = _real_pair(a, b, names=("a", "b"))
    difference = a - b
    constant = np.angle(np.sum(np.exp(1j * difference)))
    return wrap(difference - constant)


# ---------------------------------------------------------------------------------------------------------------------
# Resolution


def fourier_ring_correlation(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    pixel: float | tuple[float, float] = 1.0,
    window: Literal["hann"] | None = None,
) -> RingCorrelation:
    """Correlation of two images, ring by ring of spatial frequency.

    FRC(f) = Re Σ A·B* / √( Σ|A|² · Σ|B|² ), the sums over the Fourier samples of the ring f. Two reconstructions from
    independent halves of the frames agree up to the resolution of the microscope; beyond it the curve falls to 0.

    The rings lie in physical frequency and are as wide as the coarser of the two frequency steps, so images and pixels
    need not be square; they end at the lower of the two Nyquist frequencies.

    Args:
        a, b: 2-D images of one shape, real or complex. Between complex fields the constant phase is removed first.
        pixel: Size of a pixel in metres, or (row, column) sizes.
        window: ``"hann"`` removes the mean and tapers the edges. Use it when the images are not periodic, otherwise
            the cross that their edges draw through the spectrum counts as agreement.

    >>> noise = np.random.default_rng(0).normal(size=(2, 64, 64))
    >>> curve = fourier_ring_correlation(noise[0], noise[0], pixel=0.2e-6)
    >>> bool(np.allclose(curve.correlation, 1.0)), f"{curve.frequency[-1]:.3g} per metre"
    (True, '2.5e+06 per metre')
    >>> bool(abs(fourier_ring_correlation(*noise).correlation[5:].mean()) < 0.05)
    True
    """
    first, second = _checked_pair(a, b, names=("a", "b"))
    if first.ndim != 2 or min(first.shape) < 4:
        raise InvalidInputError(
            f"fourier_ring_correlation compares 2-D images of at least 4 × 4 pixels, but the shape is {first.shape}; "
            "pass one 2-D image at a time"
        )
    pixel_sizes = _pixel_sizes(pixel)
    if window not in (None, "hann"):
        raise InvalidInputError(f"window must be None or 'hann', but it is {window!r}")
    if window == "hann":
        rows, columns = first.shape
        # np.hanning(n + 2) without its two zeros: no pixel is thrown away.
        taper = np.outer(np.hanning(rows + 2)[1:-1], np.hanning(columns + 2)[1:-1])
        first, second = (first - first.mean()) * taper, (second - second.mean()) * taper

    spectrum_a, spectrum_b = np.fft.fft2(first), np.fft.fft2(second)
    cross = spectrum_a * np.conj(spectrum_b)
    if np.iscomplexobj(a) or np.iscomplexobj(b):
        cross = cross * np.exp(-1j * np.angle(np.sum(cross)))

    row_frequency, column_frequency = (
        np.fft.fftfreq(n, size) for n, size in zip(first.shape, pixel_sizes, strict=True)
    )
    step = max(1.0 / (n * size) for n, size in zip(first.shape, pixel_sizes, strict=True))
    nyquist = min(0.5 / size for size in pixel_sizes)
    ring = np.rint(np.hypot(row_frequency[:, np.newaxis], column_frequency[np.newaxis, :]) / step).astype(np.intp)
    rings = math.floor(nyquist / step * (1 + 1e-12)) + 1

    def ring_sum(values: RealArray) -> RealArray:
        sums: RealArray = np.bincount(ring.ravel(), weights=values.ravel(), minlength=rings).astype(np.float64)
        return sums[:rings]

    count = np.bincount(ring.ravel(), minlength=rings)[:rings].astype(np.int64)
    power_a, power_b = np.abs(spectrum_a) ** 2, np.abs(spectrum_b) ** 2
    ring_power_a, ring_power_b = ring_sum(power_a), ring_sum(power_b)
    # The rounding errors of the FFT are alike in alike images: without this floor they would count as resolution.
    floor = (16 * np.finfo(np.float64).eps) ** 2
    has_signal = (ring_power_a > floor * count * power_a.mean()) & (ring_power_b > floor * count * power_b.mean())
    correlation = np.zeros(rings)
    np.divide(ring_sum(cross.real), np.sqrt(ring_power_a) * np.sqrt(ring_power_b), out=correlation, where=has_signal)
    return RingCorrelation(step * np.arange(rings), np.clip(correlation, -1.0, 1.0), count)


def frc_resolution(frc: RingCorrelation, threshold: Literal["1/7", "half-bit"] = "1/7") -> float:
    """The finest period that two images share, in metres: 1 / f where the curve first falls below the threshold.

    ``"1/7"`` is the usual constant. ``"half-bit"`` (van Heel and Schatz 2005) asks for half a bit of information in
    each Fourier sample and is stricter in rings of few samples n: (0.2071 + 1.9102/√n) / (1.2071 + 0.9102/√n).

    Between rings the crossing is interpolated linearly. A curve that never falls is limited by the pixel: the period of
    its last ring is returned. A curve that starts below the threshold shares nothing: ``inf``.

    >>> curve = RingCorrelation(np.array([0.0, 1e6, 2e6]), np.array([1.0, 1.0, 0.0]), np.array([1, 8, 12]))
    >>> f"{frc_resolution(curve) * 1e6:.3f} µm"
    '0.538 µm'
    """
    # Zero frequency is one sample that says nothing about resolution.
    frequency, correlation = frc.frequency[1:], frc.correlation[1:]
    if threshold == "1/7":
        limit = np.full(correlation.shape, 1 / 7)
    elif threshold == "half-bit":
        root = np.sqrt(frc.count[1:])
        limit = (0.2071 + 1.9102 / root) / (1.2071 + 0.9102 / root)
    else:
        raise InvalidInputError(f"threshold must be '1/7' or 'half-bit', but it is {threshold!r}")
    if frequency.size == 0:
        raise InvalidInputError("frc_resolution needs a curve of at least two rings; compare larger images")
    margin = correlation - limit
    below = np.flatnonzero(margin < 0)
    if below.size == 0:
        return float(1 / frequency[-1])
    crossing = int(below[0])
    if crossing == 0:
        return math.inf
    before, after = margin[crossing - 1], margin[crossing]
    fraction = before / (before - after)
    return float(1 / (frequency[crossing - 1] + fraction * (frequency[crossing] - frequency[crossing - 1])))


# ---------------------------------------------------------------------------------------------------------------------
# What the functions above ask of their input


def _decibel(signal: float, noise: float) -> float:
    return math.inf if noise == 0.0 else 20 * (math.log10(signal) - math.log10(noise))


def _difference(estimate: RealArray, truth: RealArray, align: bool) -> RealArray:
    difference = truth - estimate
    return difference - difference.mean() if align else difference


def _data_range(truth: RealArray, data_range: float | None, score: str) -> float:
    peak = float(np.ptp(truth)) if data_range is None else float(data_range)
    if data_range is None and peak == 0.0:
        raise InvalidInputError(
            f"{score} takes data_range from the truth, but every value of the truth is {truth.flat[0]:g}; "
            "pass data_range, the distance between the lowest and the highest possible value"
        )
    if not (math.isfinite(peak) and peak > 0):
        raise InvalidInputError(f"data_range must be a positive number, but it is {peak:g}")
    return peak


def _pixel_sizes(pixel: float | tuple[float, float]) -> tuple[float, float]:
    sizes = np.atleast_1d(np.asarray(pixel, dtype=np.float64))
    if sizes.shape not in ((1,), (2,)) or not np.all(np.isfinite(sizes) & (sizes > 0)):
        raise InvalidInputError(f"pixel must be a positive size in metres or (row, column) sizes, but it is {pixel!r}")
    return float(sizes[0]), float(sizes[-1])


def _checked_pair(
    estimate: npt.ArrayLike, truth: npt.ArrayLike, names: tuple[str, str] = ("estimate", "truth")
) -> tuple[ComplexArray, ComplexArray]:
    first, second = _finite(estimate, names[0]), _finite(truth, names[1])
    _require_one_shape(first, second, names)
    return first.astype(np.complex128), second.astype(np.complex128)


def _real_pair(
    estimate: npt.ArrayLike, truth: npt.ArrayLike, names: tuple[str, str] = ("estimate", "truth")
) -> tuple[RealArray, RealArray]:
    first, second = _real(estimate, names[0]), _real(truth, names[1])
    _require_one_shape(first, second, names)
    return first, second


def _require_one_shape(first: npt.NDArray[Any], second: npt.NDArray[Any], names: tuple[str, str]) -> None:
    if first.shape != second.shape:
        raise InvalidInputError(
            f"{names[0]} and {names[1]} must have one shape, but {names[0]} has {first.shape} and {names[1]} has "
            f"{second.shape}; crop or resample one of them"
        )


def _real(values: npt.ArrayLike, name: str) -> RealArray:
    array = _finite(values, name)
    if np.iscomplexobj(array):
        raise InvalidInputError(
            f"{name} must be real, but it is {array.dtype}; pass its phase or amplitude, or use field_nrmse for fields"
        )
    return array.astype(np.float64)


def _finite(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind not in "biufc":
        raise InvalidInputError(f"{name} must be an array of numbers, but its type is {array.dtype}")
    if array.size == 0:
        raise InvalidInputError(f"{name} must hold at least one value, but its shape is {array.shape}")
    bad = array.size - int(np.count_nonzero(np.isfinite(array)))
    if bad:
        raise InvalidInputError(
            f"{name} must be finite, but {bad} of its {array.size} values are NaN or infinite; did the solver diverge, "
            "or does the image need a mask?"
        )
    return array


def _norm(image: npt.NDArray[np.float64]) -> float:
    """‖image‖ without BLAS, whose threads cost more than the sum where the cores are busy with a solver."""
    return math.sqrt(float(np.sum(np.square(image))))
