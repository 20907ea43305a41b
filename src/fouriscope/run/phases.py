"""A phase as found, wrapped, unwrapped and flattened: images of one field.

The field o = a·e^{iφ} determines φ only up to whole turns. Three images of it are useful:

* *as found*: the φ that the solver holds. A solver that moves φ itself (PnP, ADMM, RED) can go beyond ±π, and may have
  left a jump of 2π where it started on the wrong side; EPRY, which holds o, gives angle(o).
* *wrapped*: in (−π, π], what o itself shows.
* *unwrapped*: without jumps, as far as neighbouring pixels differ by less than half a turn.

All three differ by whole turns, pixel by pixel, so each of them gives the same o. A fourth is for viewing:

* *flattened*: unwrapped, and without the ramp and the curvature of its background.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError

RealArray = NDArray[Any]

_TURN = 2 * np.pi

# Order of the background that is subtracted: ramp and curvature.
ORDER = 2
SAMPLES = 256
ROUNDS_OF_EACH = 15
# Tukey's biweight: 95 % as efficient as least squares where all is noise; σ of normal noise over the median of |r|.
BIWEIGHT = 4.685
MAD_TO_SIGMA = 1.4826


def wrap(phase: RealArray) -> RealArray:
    """The phase in (−π, π]; values that lie there already stay as they are, to the last bit.

    Examples
    --------
    >>> wrap(np.array([0.5, np.pi, -np.pi, 4.0])).round(3).tolist()
    [0.5, 3.142, 3.142, -2.283]
    """
    half_turn = phase.dtype.type(np.pi)  # of the phase's own precision, so that angle(−1) stays what it is
    turns = np.ceil((phase.astype(np.float64) - half_turn) / _TURN)
    wrapped = np.minimum((phase - _TURN * turns).astype(phase.dtype), half_turn)
    return np.asarray(np.where(wrapped <= -half_turn, half_turn, wrapped))


def unwrap(phase: RealArray) -> RealArray:
    """The phase without jumps: ``phase`` plus a whole number of turns in each pixel.

    The turns are found by :func:`skimage.restoration.unwrap_phase`, which joins pixels in the order of how reliable
    their neighbourhood is (Herráez et al. 2002), from angle(o) alone: where a solver left jumps in a phase, they are
    wrong, not information. The result is as good as its assumption, that neighbours differ by less than π: noise, a
    steep edge or a vortex (a zero of o) break it, and leave a line of jumps somewhere.

    The most common number of added turns is 0, so a phase that needs no unwrapping is returned bit for bit. Pixels that
    are not finite are left out and stay.

    If there are jumps, it takes about 140 bytes per pixel while it runs, more than any other step of writing a result.

    Examples
    --------
    >>> ramp = np.linspace(0, 20, 50) * np.ones((50, 1))
    >>> bool(np.allclose(unwrap(wrap(ramp)) - unwrap(wrap(ramp))[0, 0], ramp))
    True
    """
    if is_continuous(phase):
        return phase.copy()
    return np.asarray(phase + (_TURN * turns_to_unwrap(phase)).astype(phase.dtype))


def turns_to_unwrap(phase: RealArray) -> NDArray[np.float64]:
    """How many whole turns each pixel of ``phase`` lacks; the most common number is 0."""
    from skimage.restoration import unwrap_phase

    known = np.isfinite(phase)
    wrapped = np.where(known, wrap(np.where(known, phase, 0)), 0).astype(np.float64)
    # Equally reliable pixels are joined in an order that is not always the same, which moves the jumps that must
    # remain. A trace of fixed noise, far below what any phase means, leaves no two equal.
    wrapped += np.random.default_rng(0).uniform(-1e-9, 1e-9, wrapped.shape)
    found = unwrap_phase(wrapped if known.all() else np.ma.masked_array(wrapped, ~known), rng=0)
    turns = np.where(known, np.rint((np.ma.getdata(found) - np.where(known, phase, 0)) / _TURN), 0)
    numbers, counts = np.unique(turns[known], return_counts=True)
    turns[known] -= numbers[counts.argmax()] if len(numbers) else 0
    return np.asarray(turns, np.float64)


def is_continuous(phase: RealArray) -> bool:
    """Whether all neighbours differ by less than π: then nothing needs to be unwrapped, on whatever path (Itoh)."""
    return all(bool((np.abs(np.diff(phase, axis=axis)) < np.pi).all()) for axis in (0, 1))


def nearest_turn(phase: RealArray, guide: RealArray) -> RealArray:
    """``phase`` plus the whole turns that bring each pixel within π of ``guide``.

    >>> nearest_turn(np.array([0.1, -3.0]), np.array([6.0, 3.0])).round(3).tolist()
    [6.383, 3.283]
    """
    return np.asarray((phase + _TURN * np.rint((guide - phase) / _TURN)).astype(phase.dtype))


def flattened(phase: RealArray, amplitude: RealArray | None = None, *, order: int = ORDER) -> RealArray:
    """The phase unwrapped, without its slow background: the empty field is at 0, and what stands out from it is left.

    Frames hardly show a phase that changes slowly over the field. A ramp only moves the LEDs, and curvature of the
    illumination or of the slide looks like a sample. So the slow part of a result is uncertain, and hides what is of
    interest. The flattened phase is for viewing: to measure a phase, use the one as found.

    See :func:`background` for what is subtracted.

    Examples
    --------
    >>> y, x = np.linspace(-1, 1, 64)[:, None], np.linspace(-1, 1, 80)
    >>> cell = 1.5 * (np.hypot(y, x - 0.2) < 0.3)
    >>> found = wrap(cell + 2 * x + 3 * x * y - 2 * y**2)
    >>> bool(np.allclose(flattened(found), cell, atol=1e-6))
    True
    """
    continuous = unwrap(phase)
    return np.asarray((continuous - background(continuous, amplitude, order=order)).astype(phase.dtype))


def background(phase: RealArray, amplitude: RealArray | None = None, *, order: int = ORDER) -> NDArray[np.float64]:
    r"""The polynomial b(y, x) of degree ``order`` that a continuous ``phase`` follows where it is empty.

    Cells on an empty slide must not pull it up, so it is not a plain least-squares fit: b minimises Σ w ρ(φ − b), first
    with ρ(r) = \|r\|, then with Tukey's biweight, which ignores pixels that are further than 4.7 σ away, σ by the
    median of all \|r\|. Both use reweighted least squares. So the background may be the smaller part of the frame only
    if nothing else follows a polynomial in a larger part.

    w = ``amplitude``², if it is given, because the phase of a dark pixel means nothing. Pixels that are not finite are
    left out. In large images some 256 × 256 pixels are used.

    Examples
    --------
    >>> y, x = np.indices((30, 40))
    >>> bool(np.allclose(background(0.01 * x * y + 0.1 * x), 0.01 * x * y + 0.1 * x))
    True
    """
    if order < 0:
        raise InvalidInputError(f"the order of a polynomial must be at least 0, got {order}")
    places = [np.linspace(-1, 1, size) if size > 1 else np.zeros(size) for size in phase.shape]
    some = tuple(slice(None, None, -(-size // SAMPLES)) for size in phase.shape)
    values = phase[some].astype(np.float64)
    weights = np.ones_like(values) if amplitude is None else amplitude[some].astype(np.float64) ** 2
    known = np.isfinite(values) & np.isfinite(weights) & (weights > 0)
    coefficients = np.zeros((order + 1, order + 1))
    if known.any():
        terms = [(i, j) for i in range(order + 1) for j in range(order + 1 - i)]
        down, across = (legendre.legvander(place[part], order) for place, part in zip(places, some, strict=True))
        columns = np.stack([np.outer(down[:, i], across[:, j])[known] for i, j in terms], axis=1).astype(np.float64)
        coefficients[tuple(np.transpose(terms))] = _robust_fit(columns, values[known], weights[known])
    return np.asarray(legendre.leggrid2d(places[0], places[1], coefficients), np.float64)


def _robust_fit(
    columns: NDArray[np.float64], values: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """c that minimises Σ w ρ(values − columns · c): see :func:`background`."""
    least = max(1e-6 * float(np.ptp(values)), 1e-9)
    found: NDArray[Any] = np.zeros(columns.shape[1])
    trusted = weights
    for number in range(2 * ROUNDS_OF_EACH):
        weighted = columns * trusted[:, None]
        # Legendre polynomials are nearly orthogonal, so that the normal equations are good enough; a fit that is not
        # determined (a single row, say) has a solution too.
        previous, found = found, np.linalg.lstsq(weighted.T @ columns, weighted.T @ values, rcond=None)[0]
        distance = np.abs(values - columns @ found)
        typical = max(float(np.median(distance)), least)
        if number < ROUNDS_OF_EACH:
            trusted = weights / np.maximum(distance / typical, 0.1)
        else:
            trusted = weights * np.maximum(1 - (distance / (BIWEIGHT * MAD_TO_SIGMA * typical)) ** 2, 0) ** 2
            if float(np.abs(found - previous).max()) < least:
                break
    return found
