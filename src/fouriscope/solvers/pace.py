"""Whether an estimate still travels, or only trembles with the noise of minibatches: how long steps may stay long."""

from __future__ import annotations

from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fouriscope.forward.objects import RealArray
from fouriscope.reductions import dot

Window: TypeAlias = EllipsisType | tuple[slice, ...]

# A look covers so many iterations, and at least one pass over the frames: the memory of a momentum of 0.8 is shorter.
LOOK = 20
# The cosine between the ways of two looks. It is −1/2 where the estimate only trembles about one place. Above this
# number a look still moves it by more than half of the trembling.
TRAVELLING = -0.35
# Above this cosine the way that two looks have in common is longer than the trembling in each.
STRIDING = 0.25
# Then a step has half its length after so many passes: the noise of minibatches averages out.
PASSES_TO_FADE = 5.0


class Pace:
    """Steps over minibatches keep their length while the estimate travels, and then become shorter for good.

    The misfit cannot tell: slow parts of an object hardly change it, and the noise of minibatches hides them. The way
    of the estimate can. Let D_k be its way during look k. Noise alone gives D_k = n_k − n_{k−1}, so that two ways have
    the cosine −1/2. A common direction d in both makes it (d² − n²)/(d² + 2n²).

    Two arrays of the size of x are kept.

    Parameters
    ----------
    window
        The part of x whose way counts. What lies beyond the frames travels for long, and matters little.

    Examples
    --------
    >>> rng, pace, place = np.random.default_rng(0), Pace(), np.zeros((2, 32, 32))
    >>> pace.begin_at(place)
    >>> for k in range(1, 101):
    ...     pace.note(place + 0.1 * k + rng.normal(size=place.shape), 0.5)
    >>> pace.fading
    1.0
    >>> for _ in range(100):
    ...     pace.note(place + rng.normal(size=place.shape), 0.5)
    >>> pace.fading > 2
    True
    """

    def __init__(self, window: Window = ...) -> None:
        self.window = window
        self._at: RealArray | None = None
        self._way: RealArray | None = None
        self._iterations, self._passes = 0, 0.0
        self._arrived, self._faded = False, 0.0
        self._cosine: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether two looks have been compared since the way began."""
        return self._arrived or self._cosine is not None

    @property
    def has_arrived(self) -> bool:
        """Whether the estimate only trembles."""
        return self._arrived

    @property
    def strides(self) -> bool:
        """Whether the estimate travels farther in a look than it trembles."""
        return not self._arrived and self._cosine is not None and self._cosine > STRIDING

    @property
    def heads_on(self) -> bool:
        """Whether the estimate still travels in the direction of the look before."""
        return not self._arrived and self._cosine is not None and self._cosine > 0

    @property
    def fading(self) -> float:
        """What the length of a step is divided by."""
        return 1 + self._faded / PASSES_TO_FADE

    def begin_at(self, x: RealArray) -> None:
        """The estimate was put somewhere else, or what it is fitted to has changed: the way begins here."""
        self._at, self._way, self._cosine = x, None, None
        self._iterations, self._passes = 0, 0.0

    def note(self, x: RealArray, passes: float) -> None:
        """An iteration that saw ``passes`` of the frames has led to ``x``."""
        assert self._at is not None, "begin_at comes first"
        self._iterations, self._passes = self._iterations + 1, self._passes + passes
        if self._arrived:
            self._faded += passes
        elif self._iterations >= LOOK and self._passes >= 1 - 1e-9:
            way = x - self._at
            if self._way is not None:
                self._cosine = _cosine(way[self.window], self._way[self.window])
                self._arrived = self._cosine < TRAVELLING
            self._at, self._way = x, way
            self._iterations, self._passes = 0, 0.0

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that is needed to continue exactly."""
        kept = {"at": self._at, "way": self._way}
        return {name: array for name, array in kept.items() if array is not None}

    def state_values(self) -> dict[str, Any]:
        return {
            "iterations": self._iterations,
            "passes": self._passes,
            "arrived": self._arrived,
            "faded": self._faded,
            "cosine": self._cosine,
        }

    def load(self, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        """Take back what the two above gave."""
        self._at, self._way = arrays.get("at", self._at), arrays.get("way")
        self._iterations, self._passes = int(values["iterations"]), float(values["passes"])
        self._arrived, self._faded = bool(values["arrived"]), float(values["faded"])
        self._cosine = values.get("cosine")

    def fade_from(self, passes: float) -> None:
        """Steps fade already, and have done so for ``passes``."""
        self._arrived, self._faded = True, passes


def _cosine(first: RealArray, second: RealArray) -> float:
    first, second = np.ascontiguousarray(first), np.ascontiguousarray(second)
    lengths = dot(first, first) * dot(second, second)
    return dot(first, second) / float(np.sqrt(lengths)) if lengths > 0 else -1.0
