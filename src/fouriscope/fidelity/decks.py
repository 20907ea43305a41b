"""Samplers that deal from shuffled decks: every LED comes once before any comes again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.checks import door_class, require_at_least
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity.minibatch import Minibatch, Sampler, plain_minibatch


class Deck:
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
        self._deck = Deck(population)

    def draw(self, rng: np.random.Generator) -> Minibatch:
        return plain_minibatch(self._deck.deal(self.batch, rng))

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
        self._decks = [Deck(stratum) for stratum in strata]
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


@door_class
class WarmUp(StratifiedSampler):
    """Stratified minibatches for the first ``passes`` over ``population``, and every LED in every iteration afterwards.

    Small minibatches find most of the object in a few passes, but keep their noise. All frames together end without it,
    and show the curvature to a method that can use it. A method that knows better prolongs the warm-up.

    Parameters
    ----------
    population
        Numbers of the LEDs.
    batch
        LEDs per iteration at first.
    bright_field
        One bool for each LED of the model: ``model.geometry.bright_field``.
    passes
        How long minibatches are drawn, unless :meth:`prolong` is called.

    Examples
    --------
    >>> sampler, rng = WarmUp(np.arange(9), 3, np.arange(9) < 2, passes=1), np.random.default_rng(0)
    >>> [len(sampler.draw(rng).leds) for _ in range(5)], sampler.is_fixed
    ([3, 3, 3, 9, 9], True)
    """

    name = "warm-up"

    def __init__(
        self, population: NDArray[np.int64], batch: int, bright_field: NDArray[np.bool_], passes: float = 5.0
    ) -> None:
        if not passes > 0:
            raise InvalidInputError(f"passes must be positive, got {passes!r}")
        super().__init__(population, batch, bright_field)
        self._left = math.ceil(passes * len(population) / batch)

    def draw(self, rng: np.random.Generator) -> Minibatch:
        if self.is_fixed:
            return plain_minibatch(self.population)
        self._left -= 1
        return super().draw(rng)

    @property
    def is_fixed(self) -> bool:
        return self._left <= 0

    @property
    def warms_up(self) -> bool:
        return not self.is_fixed

    def prolong(self) -> None:
        """Let the warm-up go on beyond the next draw, if it still lasts."""
        if self.warms_up:
            self._left = max(self._left, 2)

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        return super().state_arrays() | {"left": np.array(self._left)}

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        super().load_state_arrays(arrays)
        self._left = int(arrays["left"])
