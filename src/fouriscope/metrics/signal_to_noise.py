"""Scores of real images against the truth: SNR, PSNR and SSIM, without the constant that no camera can see."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fouriscope.checks import door
from fouriscope.errors import InvalidInputError
from fouriscope.metrics._checks import RealArray, real_pair


class SNR(NamedTuple):
    """The two signal-to-noise ratios of one reconstruction, in dB."""

    aligned: float
    """After the best constant was removed: the score of the algorithm."""
    raw: float
    """As the arrays are: also counts the constant, which no camera can see."""


def remove_constant(estimate: npt.ArrayLike, truth: npt.ArrayLike) -> RealArray:
    """Shift ``estimate`` by the constant that brings it closest to ``truth``.

    The least-squares constant is the mean of the difference: c = mean(truth − estimate).

    Parameters
    ----------
    estimate, truth
        Two real arrays of one shape.

    Examples
    --------
    >>> remove_constant([5.0, 6.0, 7.0], [0.0, 1.0, 2.0])
    array([0., 1., 2.])
    """
    estimate, truth = real_pair(estimate, truth)
    return np.asarray(estimate + np.mean(truth - estimate), dtype=np.float64)


@door
def snr(estimate: npt.ArrayLike, truth: npt.ArrayLike, *, align: bool = True) -> float:
    """Signal-to-noise ratio in dB: 20 log₁₀( ‖truth‖ / ‖truth − estimate‖ ).

    With ``align=True`` the best constant is removed from the *difference*, because a constant phase cannot be observed.
    The numerator stays ‖truth‖ with its mean, as in the literature, so the value depends on where the truth puts its
    zero: compare scores only for the same truth. Equal arrays give ``inf``.

    Parameters
    ----------
    estimate, truth
        Two real arrays of one shape.
    align
        Whether to remove the best constant first.

    Examples
    --------
    >>> truth = np.array([0.0, 3.0, 4.0])
    >>> round(snr([0.1, 3.0, 3.9], truth), 2)
    30.97
    >>> snr(truth + 7.0, truth)
    inf
    >>> round(snr(truth + 7.0, truth, align=False), 2)
    -7.69
    """
    estimate, truth = real_pair(estimate, truth)
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

    Parameters
    ----------
    estimate, truth
        Two real arrays of one shape.

    Examples
    --------
    >>> both = snr_both([1.1, 4.0, 4.9], [0.0, 3.0, 4.0])
    >>> f"{both.aligned:.1f} dB (raw {both.raw:.1f} dB)"
    '31.0 dB (raw 9.2 dB)'
    """
    return SNR(aligned=snr(estimate, truth), raw=snr(estimate, truth, align=False))


@door
def psnr(
    estimate: npt.ArrayLike, truth: npt.ArrayLike, *, data_range: float | None = None, align: bool = True
) -> float:
    """Peak signal-to-noise ratio in dB: 20 log₁₀( data_range / RMSE ).

    ``data_range`` is max(truth) − min(truth) unless given. Unlike :func:`snr`, with ``align=True`` the value does not
    depend on where the truth puts its zero.

    Parameters
    ----------
    estimate, truth
        Two real arrays of one shape.
    data_range
        The range of possible values.
    align
        Whether to remove the best constant first.

    Examples
    --------
    >>> round(psnr([0.0, 0.5, 0.9], [0.0, 0.5, 1.0], align=False), 2)
    24.77
    """
    estimate, truth = real_pair(estimate, truth)
    peak = _data_range(truth, data_range, "psnr")
    return _decibel(peak, math.sqrt(float(np.mean(_difference(estimate, truth, align) ** 2))))


@door
def ssim(
    estimate: npt.ArrayLike, truth: npt.ArrayLike, *, data_range: float | None = None, align: bool = True
) -> float:
    """Structural similarity (Wang et al. 2004), 1 for equal images.

    With the parameters of the original paper: Gaussian weights of 1.5 pixels in an 11 × 11 window, K₁ = 0.01,
    K₂ = 0.03. ``data_range`` is max(truth) − min(truth) unless given.

    Parameters
    ----------
    estimate, truth
        Two real images of one shape.
    data_range
        The range of possible values.
    align
        Whether to remove the best constant first.

    Examples
    --------
    >>> truth = np.add.outer(np.arange(16.0), np.arange(16.0))
    >>> round(ssim(truth + 3.0, truth), 6)
    1.0
    """
    from skimage.metrics import structural_similarity

    estimate, truth = real_pair(estimate, truth)
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


def _decibel(signal: float, noise: float) -> float:
    return math.inf if noise == 0.0 else 20 * (math.log10(signal) - math.log10(noise))


def _norm(image: npt.NDArray[np.float64]) -> float:
    """‖image‖ without BLAS, whose threads cost more than the sum if the cores are busy with a solver."""
    return math.sqrt(float(np.sum(np.square(image))))


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
