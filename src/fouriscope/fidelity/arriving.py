"""A sampler whose LEDs arrive while it draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.fidelity.decks import StratifiedSampler
from fouriscope.fidelity.minibatch import Minibatch

# A frame that came late is drawn first until it was seen this often, or as often as the others of its side (bright or
# dark field). An object needs some tens of visits to explain a frame; more would make up for a past in which there was
# little to learn.
CATCH_UP = 20


class ArrivingSampler(StratifiedSampler):
    """Bright and dark field in proportion, of the LEDs that have arrived; those that came late come first.

    Each draw of a side (bright or dark field) begins with LEDs that are *behind*: seen less often than the mean of
    their side, and less than :data:`CATCH_UP` times. They take at most half of the draw; the rest comes from the
    shuffled deck. Within a side all LEDs of a draw have the same weight, and the weight of each side is its number of
    LEDs. So bright-field frames, which hold the curvature, have no more weight than without late ones, and the step
    still fits.

    While some are behind, the minimised mean leans towards them, so that they catch up. When none is, draws are those
    of :class:`~fouriscope.fidelity.StratifiedSampler`, unbiased.

    Parameters
    ----------
    bright_field
        One bool for each LED that may arrive.
    batch
        LEDs of a minibatch; all that have arrived, while they are fewer. None means always all.

    Attributes
    ----------
    visits, checksums
        How often each LED was drawn, and the checksum of its frame: the state of a run says what it has seen.

    Examples
    --------
    >>> sampler = ArrivingSampler(np.array([True, True, False, False]), batch=2)
    >>> sampler.admit([0, 2])
    >>> sampler.population.tolist()
    [0, 2]
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(6):
    ...     batch = sampler.draw(rng)
    >>> sampler.admit([3])
    >>> 3 in sampler.draw(rng).leds
    True
    """

    name = "arriving"

    def __init__(self, bright_field: NDArray[np.bool_], batch: int | None) -> None:
        if batch is not None and batch < 1:
            raise InvalidInputError(f"batch must be a whole number of at least 1, got {batch}")
        self.bright_field, self.wanted_batch = bright_field, batch
        self.visits = np.zeros(len(bright_field), np.int64)
        self.checksums = np.zeros(len(bright_field), np.int64)
        super().__init__(np.zeros(0, np.int64), 0, bright_field)

    def admit(self, leds: list[int] | NDArray[np.integer[Any]], checksums: NDArray[np.int64] | None = None) -> None:
        """The frames of ``leds`` are there now, or are there anew; ``checksums`` are those of all frames."""
        self.visits[leds] = 0
        if checksums is not None:
            self.checksums = checksums
        population = np.union1d(self.population, np.asarray(leds, np.int64))
        going_on = self._going_on()
        self._arrange(population, self._batch_of(population), self.bright_field)
        self._go_on(going_on)

    def draw(self, rng: np.random.Generator) -> Minibatch:
        if not len(self.population):
            raise InvalidInputError("no frame has arrived yet, so none can be drawn")
        leds, weights = [], []
        for deck, share in zip(self._decks, self._shares, strict=True):
            first = self._behind(deck.cards)[: share if share == 1 else share // 2]
            dealt = deck.deal(share - len(first), rng)
            # An LED that is behind and was dealt, too, is computed once and counts twice.
            hand, counts = np.unique(np.concatenate([first, dealt]), return_counts=True)
            leds.append(hand)
            weights.append(counts * (len(deck.cards) / share * self.batch / len(self.population)))
        drawn = np.concatenate(leds)
        self.visits[drawn] += 1
        return Minibatch(drawn, np.concatenate(weights), self.batch)

    @property
    def takes_all(self) -> bool:
        return self.batch >= len(self.population)

    def settled(self) -> StratifiedSampler:
        return StratifiedSampler(self.population, self.batch, self.bright_field)

    def _behind(self, cards: NDArray[np.int64]) -> NDArray[np.int64]:
        """LEDs that have to catch up, those seen least first."""
        seen = self.visits[cards]
        late = seen < min(CATCH_UP, int(seen.mean()))
        return cards[late][np.argsort(seen[late], kind="stable")]

    def _batch_of(self, population: NDArray[np.int64]) -> int:
        return len(population) if self.wanted_batch is None else min(self.wanted_batch, len(population))

    def _going_on(self) -> dict[bool, NDArray[np.int64]]:
        """What is left of the decks, by their side: an arrival must not deal the same LEDs again."""
        return {bool(self.bright_field[deck.cards[0]]): deck.order for deck in self._decks if len(deck.cards)}

    def _go_on(self, left: dict[bool, NDArray[np.int64]]) -> None:
        for deck in self._decks:
            order = left.get(bool(self.bright_field[deck.cards[0]]), deck.order)
            deck.order = order[np.isin(order, deck.cards)]

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        return super().state_arrays() | {"visits": self.visits.copy(), "checksums": self.checksums.copy()}

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """The decks of a run that was stopped, without the LEDs whose frames have not arrived this time."""
        self.visits = arrays["visits"].copy()
        for k, deck in enumerate(self._decks):
            order = arrays.get(f"deck{k}", deck.order)
            deck.order = order[np.isin(order, deck.cards)]
