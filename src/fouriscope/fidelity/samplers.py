"""Samplers: which LEDs an iteration sees.

Every sampler is unbiased: the expectation of the weighted mean over its minibatches is the mean over all its LEDs. So
the online method approaches the same solution as the method that uses all frames.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.checks import door_class, require_at_least
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity.decks import EpochSampler, StratifiedSampler, WarmUp
from fouriscope.fidelity.minibatch import Minibatch, Sampler, plain_minibatch


@door_class
class AllLEDs(Sampler):
    """Every LED of ``population`` in every iteration: the paper's "Full".

    Parameters
    ----------
    population
        Numbers of the LEDs.

    Examples
    --------
    >>> AllLEDs(np.arange(49))
    AllLEDs: 49 of 49 LEDs per iteration
    """

    name = "all"

    def __init__(self, population: NDArray[np.int64]) -> None:
        self.population = population

    def draw(self, rng: np.random.Generator) -> Minibatch:
        return plain_minibatch(self.population)

    @property
    def is_fixed(self) -> bool:
        return True


@door_class
class FixedSubset(AllLEDs):
    """``batch`` LEDs of ``population``, drawn once with ``rng`` and kept: the paper's "Batch" methods.

    Parameters
    ----------
    population
        Numbers of the LEDs.
    batch
        LEDs of the subset.
    rng
        Draws the subset.

    Examples
    --------
    >>> FixedSubset(np.arange(49), 3, np.random.default_rng(0)).population.shape
    (3,)
    """

    name = "fixed"

    def __init__(self, population: NDArray[np.int64], batch: int, rng: np.random.Generator) -> None:
        if not 1 <= batch <= len(population):
            raise InvalidInputError(f"batch must be from 1 to {len(population)}, the number of LEDs, got {batch}")
        super().__init__(np.sort(rng.choice(population, batch, replace=False)))

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        return {"subset": self.population}

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.population = arrays["subset"]


@door_class
class UniformSampler(Sampler):
    """``batch`` LEDs of ``population``, drawn independently, with replacement: the mathematics of the paper.

    Parameters
    ----------
    population
        Numbers of the LEDs.
    batch
        LEDs per iteration.

    Examples
    --------
    >>> UniformSampler(np.arange(1), 10).draw(np.random.default_rng(0))  # the only LED, ten times
    Minibatch: 1 LEDs, weights from 10 to 10
    """

    name = "uniform"

    def __init__(self, population: NDArray[np.int64], batch: int) -> None:
        require_at_least("batch", batch, 1)
        self.population, self.batch = population, batch

    def draw(self, rng: np.random.Generator) -> Minibatch:
        drawn = rng.choice(self.population, self.batch, replace=True)
        # An LED drawn twice is computed once and counts twice.
        leds, counts = np.unique(drawn, return_counts=True)
        return Minibatch(leds, counts.astype(np.float64), self.batch)


SAMPLERS = ("all", "fixed", "uniform", "epochs", "stratified", "warm-up")


def make_sampler(
    name: str,
    *,
    population: NDArray[np.int64],
    batch: int,
    bright_field: NDArray[np.bool_],
    rng: np.random.Generator,
) -> Sampler:
    """The sampler called ``name`` over the LEDs of ``population``.

    Parameters
    ----------
    name
        "stratified", "epochs", "uniform", "fixed", "all" or "warm-up".
    population
        Numbers of the LEDs to draw from.
    batch
        LEDs per minibatch.
    bright_field
        Whether each LED is bright field, for "stratified" and "warm-up".
    rng
        Draws the subset of "fixed".
    """
    if name not in SAMPLERS:
        raise InvalidInputError(f"sampler must be one of {', '.join(SAMPLERS)}, got {name!r}")
    if name == "all":
        return AllLEDs(population)
    if not 1 <= batch <= len(population):
        raise InvalidInputError(
            f"batch must lie in 1…{len(population)} (the number of measurements), got {batch}; "
            "use sampler 'all' to use everything"
        )
    if name == "fixed":
        return FixedSubset(population, batch, rng)
    if name == "uniform":
        return UniformSampler(population, batch)
    if name == "epochs":
        return EpochSampler(population, batch)
    kind = WarmUp if name == "warm-up" else StratifiedSampler
    return kind(population, batch, bright_field)
