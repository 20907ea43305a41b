"""Light of more than one wavelength, as the few that a frame needs (docs/sources.md).

A source of another wavelength λ' has the same direction. In spatial frequencies its shift and its pupil are larger by
λ/λ'. The object is the same for all of them: no dispersion within the bandwidth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.optics.objective import Optics
from fouriscope.optics.sources import Sources

FloatArray = NDArray[np.float64]

# One wavelength stands for a part of the bandwidth that moves the pupil's edge by no more than this, in units of NA: in
# dark field, and in bright field, where the direct light interferes with what the edge lets in.
PART, PART_BRIGHT = 0.07, 0.04
MOST_MODES = 8
# A Gaussian of this many points within this many standard deviations: filters and LEDs end somewhere.
_POINTS, _ENDS = 101, 2.5
_SIGMAS_IN_FWHM = 2 * math.sqrt(2 * math.log(2))


def wavelength_modes(optics: Optics, count: int) -> tuple[FloatArray, FloatArray]:
    """(wavelengths, weights) of ``count`` modes, or of fewer if the spectrum has fewer lines; the weights add up to 1.

    The spectrum is cut into equal shares of its light, and each mode is the mean wavelength of one. As the wavelength
    changes, frequencies of the object enter and leave the pupil one by one. So a frame changes in steps, whose mean
    equal shares approximate to 1/count. (Gauss quadrature is made for polynomials; here its eight modes are no better
    than three equal shares.)

    >>> optics = Optics(513e-9, 0.2, 8.1485, 6.5e-6, bandwidth=20e-9)
    >>> wavelengths, weights = wavelength_modes(optics, 2)
    >>> (wavelengths * 1e9).round(1).tolist(), weights.round(6).tolist()
    ([506.4, 519.6], [0.5, 0.5])
    """
    lines, weights = _lines(optics)
    if count >= len(lines):
        return lines, weights
    ends = np.cumsum(weights)
    # The light of each line that falls into each share; a line across a border belongs to both.
    borders = np.arange(count + 1) / count
    inside = np.minimum(ends, borders[1:, None]) - np.maximum(ends - weights, borders[:-1, None])
    shares = np.maximum(inside, 0.0)
    totals = shares.sum(axis=1)
    return np.asarray(shares @ lines / totals), np.asarray(totals / totals.sum())


def coloured_sources(sources: Sources, optics: Optics, count: int | None = None) -> Sources:
    """Each source as ``count`` sources of different wavelengths, or as many as its frame needs.

    Between two wavelengths Δλ apart, the pupil's edge moves over the object's frequencies k by |k|Δλ in units of NA.
    The highest frequency that a source sees is (|na| + NA)/λ. There a mode may stand for a move of :data:`PART`, or of
    :data:`PART_BRIGHT` if direct light passes.
    """
    if not has_bandwidth(optics):
        return sources
    sizes = np.hypot(sources.na[:, 0], sources.na[:, 1])
    largest = np.where(optics.passes(sizes), PART_BRIGHT, PART) * optics.na
    needed = np.clip(np.ceil((sizes + optics.na) * _width(optics) / largest), 1, MOST_MODES).astype(int)
    if count is not None:
        needed[:] = count
    modes = {number: wavelength_modes(optics, number) for number in np.unique(needed).tolist()}
    counts = np.array([len(modes[number][0]) for number in needed.tolist()])
    colours = np.concatenate([modes[number][0] for number in needed.tolist()])
    shares = np.concatenate([modes[number][1] for number in needed.tolist()])
    ends = np.concatenate([[0], np.cumsum(counts)])
    return Sources(
        np.repeat(sources.na, counts, axis=0),
        np.repeat(sources.weights, counts) * shares,
        ends[sources.offsets],
        optics.wavelength / colours,
    )


def has_bandwidth(optics: Optics) -> bool:
    """Whether the light has more than one wavelength."""
    return optics.bandwidth > 0 or len(optics.spectrum) > 0


def _lines(optics: Optics) -> tuple[FloatArray, FloatArray]:
    """The spectrum as many lines, with weights that add up to 1."""
    if optics.spectrum:
        wavelengths, weights = np.array(optics.spectrum, np.float64).T
    else:
        steps = np.linspace(-_ENDS, _ENDS, _POINTS)
        wavelengths = optics.wavelength + steps * optics.bandwidth / _SIGMAS_IN_FWHM
        weights = np.exp(-(steps**2) / 2)
    lit = weights > 0
    return wavelengths[lit], weights[lit] / weights.sum()


def _width(optics: Optics) -> float:
    """Full width at half maximum divided by λ; for a spectrum, that of a Gaussian with its standard deviation."""
    if not optics.spectrum:
        return optics.bandwidth / optics.wavelength
    lines, weights = _lines(optics)
    return _SIGMAS_IN_FWHM * math.sqrt(float(weights @ (lines - weights @ lines) ** 2)) / optics.wavelength


def require_spectrum(spectrum: Sequence[Sequence[float]], wavelength: float) -> tuple[tuple[float, float], ...]:
    """Pairs (wavelength, weight), in the order of wavelengths, or say what is wrong with them."""
    try:
        pairs = np.array(spectrum, np.float64).reshape(len(spectrum), 2)
    except (TypeError, ValueError):
        raise InvalidInputError(f"spectrum must be pairs (wavelength in metres, weight), got {spectrum!r}") from None
    if not len(pairs):
        return ()
    wavelengths, weights = pairs.T
    if not (np.isfinite(pairs).all() and (weights >= 0).all() and weights.any()):
        raise InvalidInputError("the weights of a spectrum must be finite, at least 0, and not all 0")
    if not (wavelengths.min() > 0.5 * wavelength and wavelengths.max() < 2 * wavelength):
        raise InvalidInputError(
            f"wavelengths of a spectrum must lie between half and twice wavelength = {wavelength:g} m, got "
            f"{wavelengths.min():g} to {wavelengths.max():g}; they are in metres: 513 nm is 513e-9"
        )
    if len(np.unique(wavelengths)) != len(wavelengths):
        raise InvalidInputError("a spectrum must name each wavelength once")
    return tuple((float(line), float(weight)) for line, weight in pairs[np.argsort(wavelengths)])
