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
from numpy.typing import NDArray

from fouriscope.run.phase_background import ORDER, background

RealArray = NDArray[Any]

_TURN = 2 * np.pi


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

    See :func:`fouriscope.run.phase_background.background` for what is subtracted.

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
