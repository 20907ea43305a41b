"""Whole numbers behind fractions: what the levels of stored numbers say about how they were stored."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.frames import Frames

FloatArray = NDArray[np.float64]

# Powers that people store: counts, HDR's 3/4, roots, and the gamma of screens.
POWERS = (1.0, 3 / 4, 2 / 3, 1 / 2, 1 / 2.2, 1 / 3)

_LEVELS = 256  # the smallest that are looked at
_FEWEST = 16  # levels that are evidence: by chance this many lie on a lattice once in 10²⁰ frames
_RAREST = 4  # neighbouring levels may all be this many counts apart
_NEAR = 0.02  # of a count: if rounding alone moves whole numbers this far, nothing is certain
_LEAST_ERROR = 1e-7  # of a count
_SHARE = 0.1  # of the frames must show it: some were put together from several exposures
_ROUNDINGS = 8  # of the type's precision, for those who computed the power in it
_SAMPLED_FRAMES = 32


class Levels(NamedTuple):
    """stored = (``unit`` · n)^``power`` with whole numbers n; the unit is 0 if each frame has its own."""

    power: float
    unit: float


class LevelCollector:
    """What the levels of one frame after the other show. Frames may have been scaled each by its own factor."""

    def __init__(self) -> None:
        self._found: list[Levels] = []
        self._looked = 0

    def add(self, image: NDArray[Any]) -> None:
        """Look at one frame; pixels that are not finite do not count."""
        precision = float(np.finfo(image.dtype).eps) / 2 if image.dtype.kind == "f" else 0.0
        values = smallest_levels(image, precision)
        if len(values) < _FEWEST:
            return
        self._looked += 1
        levels = find_levels(values, precision, POWERS[:1] if (image < 0).any() else POWERS)
        if levels is not None:
            self._found.append(levels)

    def found(self) -> Levels | None:
        """The power on which all frames agree that show one, if those are more than a few."""
        powers = {levels.power for levels in self._found}
        if len(powers) != 1 or len(self._found) < _SHARE * self._looked:
            return None
        units = np.array([levels.unit for levels in self._found])
        unit = float(units.min())
        # A frame with even counts alone has twice the unit; other ratios are those of other scales.
        shared = np.abs(units / unit - np.rint(units / unit)).max() < 1e-3 and units.max() < 8.5 * unit
        return Levels(powers.pop(), unit if shared else 0.0)


def smallest_levels(image: NDArray[Any], precision: float) -> FloatArray:
    """The up to 256 smallest levels of a frame, without zero and sign; levels that differ by rounding count once."""
    values = np.abs(image, dtype=np.float64).ravel()
    values = values[(values > 0) & (values < np.inf)]
    few = 16 * _LEVELS
    if len(values) > few:  # of many, the smallest by a partition, which is quicker than to sort all
        levels = np.unique(np.partition(values, few)[:few])
        values = levels if len(levels) >= 2 * _LEVELS else values
    levels = np.unique(values)
    distinct = np.diff(levels, prepend=0.0) > 2 * _ROUNDINGS * precision * levels
    return np.asarray(levels[distinct][:_LEVELS])


def find_levels(levels: FloatArray, precision: float = 2.0**-53, powers: tuple[float, ...] = POWERS) -> Levels | None:
    """The first of ``powers`` p with which levels^(1/p) are multiples of one unit; None if there is none for certain.

    ``levels`` are distinct, positive and sorted; ``precision`` is the relative one with which they were stored.

    >>> levels = 0.3 * np.arange(1, 60) ** 0.75
    >>> found = find_levels(levels)
    >>> found.power, round(found.unit**0.75, 12)
    (0.75, 0.3)
    >>> find_levels(np.sort(np.random.default_rng(0).random(200))) is None
    True
    """
    if len(levels) < _FEWEST:
        return None
    for power in powers:
        unit = _unit_of(levels ** (1 / power), _ROUNDINGS * precision / power)
        if unit is not None:
            return Levels(power, unit)
    return None


def levels_of(frames: Frames) -> Levels | None:
    """:func:`find_levels` of up to 32 frames, spread over the stack."""
    collector = LevelCollector()
    count = frames.shape[0]
    for index in np.unique(np.linspace(0, count - 1, min(count, _SAMPLED_FRAMES)).astype(int)).tolist():
        collector.add(frames.frame(index))
    return collector.found()


def _unit_of(values: FloatArray, error: float) -> float | None:
    """The largest u of which all ``values``, known with a relative ``error``, are multiples within their errors."""
    closest = float(np.diff(values).min())
    if not closest > 0:
        return None
    for parts in range(1, _RAREST + 1):
        unit = closest / parts
        near = _LEAST_ERROR + error * values[-1] / unit
        if near > _NEAR:  # too fine a lattice to tell from none
            return None
        known = values[: _FEWEST // 2]
        while True:  # a unit that is known from small numbers is good enough for some larger ones, and so on
            whole = np.rint(known / unit)
            if whole[0] < 1:
                break
            unit = float(known @ whole / (whole @ whole))
            if np.abs(known / unit - whole).max() > near:
                break
            if len(known) == len(values):
                return unit
            known = values[: 2 * len(known)]
    return None
