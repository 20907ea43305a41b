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
from fouriscope.fidelity.minibatch import Minibatch, Sampler


def _plain(leds: NDArray[np.int64]) -> Minibatch:
    return Minibatch(leds, np.ones(len(leds)), len(leds))


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
        return _plain(self.population)

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


class _Deck:
    """A shuffled deck of LEDs, dealt from the top and shuffled again when it runs out."""

    def __init__(self, cards: NDArray[np.int64]) -> None:
        self.cards = cards
        self.order = cards[:0]

    def load(self, order: NDArray[Any]) -> None:
        """Go on with a deck that was saved; a card that is none would be read from beyond the frames."""
        if order.ndim != 1 or order.dtype != self.cards.dtype or not np.isin(order, self.cards).all():
            raise InvalidInputError("the saved deck of the sampler holds numbers that are not its LEDs")
        self.order = order

    def deal(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        hand = self.order[:count]
        self.order = self.order[count:]
        while len(hand) < count:
            # No LED twice in a hand: those already in it go to the end of the new deck.
            fresh = rng.permutation(self.cards)
            held = np.isin(fresh, hand)
            fresh = np.concatenate([fresh[~held], fresh[held]])
            missing = count - len(hand)
            hand, self.order = np.concatenate([hand, fresh[:missing]]), fresh[missing:]
        return hand


@door_class
class EpochSampler(Sampler):
    """``batch`` LEDs of ``population`` in reshuffled epochs: every LED comes once before any comes again.

    Parameters
    ----------
    population
        Numbers of the LEDs.
    batch
        LEDs per iteration.

    Examples
    --------
    >>> sampler, rng = EpochSampler(np.arange(6), 3), np.random.default_rng(0)
    >>> sorted(int(led) for _ in range(2) for led in sampler.draw(rng).leds)
    [0, 1, 2, 3, 4, 5]
    """

    name = "epochs"

    def __init__(self, population: NDArray[np.int64], batch: int) -> None:
        require_at_least("batch", batch, 1)
        self.population, self.batch = population, batch
        self._deck = _Deck(population)

    def draw(self, rng: np.random.Generator) -> Minibatch:
        return _plain(self._deck.deal(self.batch, rng))

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        return {"deck": self._deck.order}

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._deck.load(arrays["deck"])


@door_class
class StratifiedSampler(Sampler):
    """``batch`` LEDs, bright and dark field each in their own reshuffled epochs, in proportion to their number.

    At a flat start only bright-field LEDs have a gradient, and a plain minibatch may hold none of them. Here each
    holds its share (at least one, unless the batch is 1), and weights N_s/b_s · B/N correct for the rounding of the
    share.

    Parameters
    ----------
    population
        Numbers of the LEDs.
    batch
        LEDs per iteration.
    bright_field
        One bool for each LED of the model: ``model.geometry.bright_field``.

    Examples
    --------
    >>> StratifiedSampler(np.arange(9), 3, np.arange(9) < 2).draw(np.random.default_rng(0))
    Minibatch: 3 LEDs, weights from 0.667 to 1.17
    """

    name = "stratified"

    def __init__(self, population: NDArray[np.int64], batch: int, bright_field: NDArray[np.bool_]) -> None:
        if len(population):  # of frames that arrive there are none at first
            require_at_least("batch", batch, 1)
        if np.ndim(bright_field) != 1:
            raise InvalidInputError(f"bright_field must be one bool for each LED, got shape {np.shape(bright_field)}")
        self._arrange(population, batch, bright_field)

    def _arrange(self, population: NDArray[np.int64], batch: int, bright_field: NDArray[np.bool_]) -> None:
        self.population, self.batch = population, batch
        bright = bright_field[population]
        strata = [stratum for stratum in (population[bright], population[~bright]) if len(stratum)]
        if batch < len(strata):
            strata = [population]
        self._decks = [_Deck(stratum) for stratum in strata]
        self._shares = [batch]
        if len(strata) == 2:
            share = round(batch * len(strata[0]) / len(population))
            share = min(max(share, 1, batch - len(strata[1])), batch - 1, len(strata[0]))
            self._shares = [share, batch - share]

    def draw(self, rng: np.random.Generator) -> Minibatch:
        hands = [deck.deal(share, rng) for deck, share in zip(self._decks, self._shares, strict=True)]
        weights = [
            np.full(share, len(deck.cards) / share * self.batch / len(self.population))
            for deck, share in zip(self._decks, self._shares, strict=True)
        ]
        return Minibatch(np.concatenate(hands), np.concatenate(weights), self.batch)

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        return {f"deck{k}": deck.order for k, deck in enumerate(self._decks)}

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        for k, deck in enumerate(self._decks):
            deck.load(arrays[f"deck{k}"])


SAMPLERS = ("all", "fixed", "uniform", "epochs", "stratified")


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
        "stratified", "epochs", "uniform", "fixed" or "all".
    population
        Numbers of the LEDs to draw from.
    batch
        LEDs per minibatch.
    bright_field
        Whether each LED is bright field, for "stratified".
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
    return StratifiedSampler(population, batch, bright_field)
