"""Patterns that laboratories use: dark field several LEDs at a time, half circles for differential phase contrast,
annuli. Each is an array (frames, LEDs) of zeros and ones for :class:`~fouriscope.Multiplexed`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriscope.checks import door
from fouriscope.errors import InvalidInputError
from fouriscope.optics._points import FloatArray, require_count
from fouriscope.optics.illumination import Illumination
from fouriscope.optics.objective import Optics

NAMES = "random-8 (dark field eight at a time), half-circles, half-circles-8 (and dark field eight at a time), annuli-5"


@door
def random_patterns(leds: Illumination, optics: Optics, together: int, *, seed: int = 0) -> FloatArray:
    """Bright-field LEDs one by one, in their order, then the dark-field ones ``together`` at a time, drawn at random.

    Each LED shines in one frame. Dark field is faint, and its frames are most of an acquisition, so adding LEDs there
    costs no dynamic range. Only the object can tell the LEDs of one frame apart, so they are drawn from everywhere. No
    frame has more than one LED too few.

    Parameters
    ----------
    leds, optics
        Where the LEDs are, and the objective, which decides which of them are bright field.
    together
        Dark-field LEDs per frame.
    seed
        Seed of the random draw.

    Examples
    --------
    >>> from fouriscope.paper import paper_leds, paper_optics
    >>> patterns = random_patterns(paper_leds(), paper_optics(), together=8)
    >>> patterns.shape, int(patterns[-1].sum())
    ((69, 293), 8)
    """
    bright = _bright(leds, optics)
    return np.concatenate([_one_by_one(bright), _together(np.flatnonzero(~bright), len(leds), together, seed)])


@door
def half_circles(leds: Illumination, optics: Optics, together: int | None = None, *, seed: int = 0) -> FloatArray:
    """The bright field in four half circles, down, up, right and left: differential phase contrast (DPC).

    LEDs on the line between two halves belong to neither. With ``together``, dark field follows as in
    :func:`random_patterns`.

    Parameters
    ----------
    leds, optics
        Where the LEDs are, and the objective, which decides which of them are bright field.
    together
        Dark-field LEDs per frame; None leaves the dark field out.
    seed
        Seed of the random draw of dark-field LEDs.

    Examples
    --------
    >>> from fouriscope.paper import paper_leds, paper_optics
    >>> half_circles(paper_leds(), paper_optics()).sum(axis=1).tolist()
    [15.0, 15.0, 15.0, 15.0]
    """
    bright, na = _bright(leds, optics), leds.directions()
    clear = 1e-6 * optics.na
    halves = [bright & (side * na[:, axis] > clear) for axis in (0, 1) for side in (1, -1)]
    patterns = np.array([half for half in halves if half.any()], np.float64).reshape(-1, len(leds))
    if not len(patterns):
        raise InvalidInputError("half circles need LEDs inside the pupil on both sides of the axis, but there are none")
    if together is None:
        return patterns
    return np.concatenate([patterns, _together(np.flatnonzero(~bright), len(leds), together, seed)])


@door
def annuli(leds: Illumination, rings: int) -> FloatArray:
    """All LEDs in ``rings`` annuli around the axis, of equal widths in NA; rings without LEDs are left out.

    Parameters
    ----------
    leds
        Where the LEDs are.
    rings
        Number of annuli.

    Examples
    --------
    >>> from fouriscope.paper import paper_leds
    >>> annuli(paper_leds(), 3).sum(axis=1).tolist()
    [21.0, 88.0, 184.0]
    """
    if require_count("rings", rings) < 1:
        raise InvalidInputError(f"rings must be at least 1, got {rings}")
    sizes = np.hypot(*leds.directions().T)
    ring = np.minimum((sizes / (sizes.max() or 1.0) * rings).astype(int), rings - 1)
    return np.array([ring == one for one in np.unique(ring)], np.float64)


def named_patterns(name: str, leds: Illumination, optics: Optics, seed: int) -> FloatArray:
    """The patterns of a name such as "random-8", "half-circles" or "annuli-5"."""
    kind, _, number = name.rpartition("-") if name[-1:].isdigit() else (name, "", "")
    count = int(number) if number else None
    if kind == "random" and count:
        return random_patterns(leds, optics, count, seed=seed)
    if kind == "half-circles":
        return half_circles(leds, optics, count, seed=seed)
    if kind == "annuli" and count:
        return annuli(leds, count)
    raise InvalidInputError(f"unknown patterns {name!r}; known are {NAMES}, each with any number, or a file")


def _bright(leds: Illumination, optics: Optics) -> NDArray[np.bool_]:
    return optics.passes(np.hypot(*leds.directions().T))


def _one_by_one(chosen: NDArray[np.bool_]) -> FloatArray:
    return np.asarray(np.eye(len(chosen))[chosen])


def _together(leds: NDArray[np.int64], count: int, together: int, seed: int) -> FloatArray:
    """``leds`` of ``count``, in random groups of ``together`` or one less."""
    if require_count("together", together) < 1:
        raise InvalidInputError(f"together must be at least 1, got {together}")
    groups = np.array_split(np.random.default_rng(seed).permutation(leds), -(-len(leds) // together) or 1)
    patterns = np.zeros((len(groups), count))
    for pattern, group in zip(patterns, groups, strict=True):
        pattern[group] = 1
    return patterns[patterns.any(axis=1)]
