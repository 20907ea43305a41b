"""The LEDs of an iteration, and what draws them."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class Minibatch:
    """LEDs of an iteration: the estimate of the mean is Σ_b weights[b] · d_{leds[b]} / size.

    Attributes
    ----------
    leds, weights
        Numbers of the LEDs, and how much each counts.
    size
        How many were drawn; one that was drawn twice is in ``leds`` once and has the weight 2.

    Examples
    --------
    >>> from fouriscope.fidelity import EpochSampler
    >>> EpochSampler(np.arange(9), batch=4).draw(np.random.default_rng(0))
    Minibatch: 4 LEDs, weights from 1 to 1
    """

    leds: NDArray[np.int64]
    weights: NDArray[np.float64]
    size: int

    def __repr__(self) -> str:
        weights = f", weights from {self.weights.min():.3g} to {self.weights.max():.3g}" if len(self.leds) else ""
        return f"Minibatch: {len(self.leds)} LEDs{weights}"


def plain_minibatch(leds: NDArray[np.int64]) -> Minibatch:
    """Each of ``leds`` once."""
    return Minibatch(leds, np.ones(len(leds)), len(leds))


class Sampler(ABC):
    """Draws minibatches; its state is a dictionary of arrays, so that a run can be continued exactly."""

    name: ClassVar[str]
    population: NDArray[np.int64]

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Minibatch:
        """The LEDs of the next iteration."""

    def peek(self, rng: np.random.Generator, draws: int = 1) -> list[Minibatch]:
        """What the next ``draws`` calls of :meth:`draw` would give, without changing the sampler or ``rng``.

        It draws from copies of both, which takes some tenths of a millisecond: worth it where frames come from disk.
        """
        copied, ahead = copy.deepcopy((self, rng))
        return [copied.draw(ahead) for _ in range(draws)]

    def __repr__(self) -> str:
        drawn = getattr(self, "batch", None) or len(self.population)
        return f"{type(self).__name__}: {drawn} of {len(self.population)} LEDs per iteration"

    @property
    def is_fixed(self) -> bool:
        """True if every draw is the same, so that misfits of different iterations can be compared."""
        return False

    @property
    def takes_all(self) -> bool:
        """True if every draw holds all measurements there are, so that the choice of them adds no noise."""
        return self.is_fixed

    @property
    def warms_up(self) -> bool:
        """True before the draws become what they will be in the end."""
        return False

    def settled(self) -> Sampler:
        """What it draws when nothing is to be made up for: itself, unless it lets late measurements catch up."""
        return self

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        del arrays
