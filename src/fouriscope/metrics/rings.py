"""Resolution: how fine is the detail that two images share, ring by ring of spatial frequency."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fouriscope.checks import door
from fouriscope.errors import InvalidInputError
from fouriscope.metrics._checks import RealArray, complex_pair


@dataclass(frozen=True, eq=False)
class RingCorrelation:
    """A Fourier ring correlation curve, one entry for each ring; the first ring is zero frequency."""

    frequency: RealArray
    """Centre of the ring, in cycles per metre (cycles per pixel when ``pixel`` was left at 1)."""
    correlation: RealArray
    """Between −1 and 1; 0 where either image has nothing but rounding errors in the ring."""
    count: npt.NDArray[np.int64]
    """Fourier samples in the ring, both Hermitian halves."""


@door
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

    Parameters
    ----------
    a, b
        2-D images of one shape, real or complex. Between complex fields the constant phase is removed first.
    pixel
        Size of a pixel in metres, or (row, column) sizes.
    window
        ``"hann"`` removes the mean and tapers the edges. Use it when the images are not periodic, otherwise
        the cross that their edges draw through the spectrum counts as agreement.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=(2, 64, 64))
    >>> curve = fourier_ring_correlation(noise[0], noise[0], pixel=0.2e-6)
    >>> bool(np.allclose(curve.correlation, 1.0)), f"{curve.frequency[-1]:.3g} per metre"
    (True, '2.5e+06 per metre')
    >>> bool(abs(fourier_ring_correlation(*noise).correlation[5:].mean()) < 0.05)
    True
    """
    first, second = complex_pair(a, b, names=("a", "b"))
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


@door
def frc_resolution(frc: RingCorrelation, threshold: Literal["1/7", "half-bit"] = "1/7") -> float:
    """The finest period that two images share, in metres: 1 / f where the curve first falls below the threshold.

    ``"1/7"`` is the usual constant. ``"half-bit"`` (van Heel and Schatz 2005) asks for half a bit of information in
    each Fourier sample and is stricter in rings of few samples n: (0.2071 + 1.9102/√n) / (1.2071 + 0.9102/√n).

    Between rings the crossing is interpolated linearly. A curve that never falls is limited by the pixel: the period of
    its last ring is returned. A curve that starts below the threshold shares nothing: ``inf``.

    Parameters
    ----------
    frc
        A curve of :func:`fourier_ring_correlation`.
    threshold
        ``"1/7"`` or ``"half-bit"``.

    Examples
    --------
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


def _pixel_sizes(pixel: float | tuple[float, float]) -> tuple[float, float]:
    sizes = np.atleast_1d(np.asarray(pixel, dtype=np.float64))
    if sizes.shape not in ((1,), (2,)) or not np.all(np.isfinite(sizes) & (sizes > 0)):
        raise InvalidInputError(f"pixel must be a positive size in metres or (row, column) sizes, but it is {pixel!r}")
    return float(sizes[0]), float(sizes[-1])
