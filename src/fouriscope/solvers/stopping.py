"""When to stop. Rules combine: ``Iterations(200) | Seconds(60)`` stops at whichever comes first, ``&`` at the later."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError
from fouriscope.solvers.history import History


class StopRule(ABC):
    """Decides after each iteration, from the history alone, so that a resumed run stops where the first would have."""

    @abstractmethod
    def __call__(self, history: History) -> str | None:
        """The reason to stop, or None to continue."""

    def fraction_done(self, history: History) -> float | None:
        """How far along the run is, from 0 to 1, where that can be said."""
        return None

    def __or__(self, other: StopRule) -> StopRule:
        return AnyOf(self, other)

    def __and__(self, other: StopRule) -> StopRule:
        return AllOf(self, other)


@door_class
@dataclass(frozen=True)
class Iterations(StopRule):
    """Stop after ``count`` iterations.

    Parameters
    ----------
    count
        Number of iterations.

    Examples
    --------
    >>> Iterations(200) | Seconds(60)
    (Iterations(count=200) | Seconds(limit=60))
    """

    count: int

    def __post_init__(self) -> None:
        if self.count < 0:
            raise InvalidInputError(f"count, the number of iterations, must not be negative, got {self.count}")

    def __call__(self, history: History) -> str | None:
        return f"{self.count} iterations" if len(history) >= self.count else None

    def fraction_done(self, history: History) -> float | None:
        return min(1.0, len(history) / self.count) if self.count else 1.0


@door_class
@dataclass(frozen=True)
class Seconds(StopRule):
    """Stop after ``limit`` seconds in the solver; callbacks are not counted.

    Parameters
    ----------
    limit
        Seconds.

    Examples
    --------
    >>> Seconds(60) & Iterations(20)  # a minute, but at least twenty iterations
    (Seconds(limit=60) & Iterations(count=20))
    """

    limit: float

    def __post_init__(self) -> None:
        if not self.limit > 0:
            raise InvalidInputError(f"the time limit must be positive, got {self.limit} s")

    def __call__(self, history: History) -> str | None:
        return f"{self.limit:g} s" if len(history) and history.last.seconds >= self.limit else None

    def fraction_done(self, history: History) -> float | None:
        return min(1.0, history.last.seconds / self.limit) if len(history) else 0.0


@door_class
@dataclass(frozen=True)
class Residual(StopRule):
    """Stop when the fixed-point residual, averaged over ``window`` iterations, has fallen to ``tolerance``.

    Minibatches make the residual noisy, so the average over a window is used.

    Parameters
    ----------
    tolerance
        The residual at which to stop.
    window
        Iterations over which the residual is averaged.

    Examples
    --------
    >>> Residual(1e-4) | Iterations(500)
    (Residual(tolerance=0.0001, window=10) | Iterations(count=500))
    """

    tolerance: float
    window: int = 10

    def __post_init__(self) -> None:
        if not self.tolerance > 0:
            raise InvalidInputError(f"the residual's tolerance must be positive, got {self.tolerance}")
        if self.window < 1:
            raise InvalidInputError(f"the residual's window must hold at least one iteration, got {self.window}")

    def __call__(self, history: History) -> str | None:
        if len(history) < self.window:
            return None
        recent = [record.residual for record in history.records[-self.window :]]
        mean = sum(recent) / len(recent)
        return f"residual {mean:.2g} ≤ {self.tolerance:g}" if mean <= self.tolerance else None


@door_class
@dataclass(frozen=True)
class Settled(StopRule):
    """Stop when the mean of the estimates over minibatches has settled.

    An estimate over minibatches never comes to rest. When it only trembles (:class:`~fouriscope.solvers.pace.Pace`),
    its solver gives the mean of all estimates from then on, whose noise falls as one over their number. The run ends
    when this mean holds enough of them and changes little.

    Parameters
    ----------
    tolerance
        The relative change of the mean per iteration, averaged over ten, at which to stop.
    least
        How many estimates the mean must hold: three looks of 20. Before that, slow parts may still travel unseen.

    Examples
    --------
    >>> Settled() | Iterations(300)
    (Settled(tolerance=0.001, least=60) | Iterations(count=300))
    """

    tolerance: float = 1e-3
    least: int = 60

    def __post_init__(self) -> None:
        if not self.tolerance > 0:
            raise InvalidInputError(f"the tolerance must be positive, got {self.tolerance}")

    def __call__(self, history: History) -> str | None:
        if not len(history) or not history.last.averaged >= self.least:  # NaN if there is no mean
            return None
        recent = [record.residual for record in history.records[-10:]]
        change = sum(recent) / len(recent)
        if change > self.tolerance:
            return None
        return (
            f"settled: the mean of the last {history.last.averaged:.0f} estimates changes by {100 * change:.2g} % per "
            "iteration"
        )


class AnyOf(StopRule):
    """Stops as soon as one of its rules does.

    Parameters
    ----------
    *rules
        Stop rules. ``a | b`` is the same as ``AnyOf(a, b)``.
    """

    def __init__(self, *rules: StopRule) -> None:
        self.rules = rules

    def __repr__(self) -> str:
        return f"({' | '.join(map(repr, self.rules))})"

    def __call__(self, history: History) -> str | None:
        return next((reason for rule in self.rules if (reason := rule(history)) is not None), None)

    def fraction_done(self, history: History) -> float | None:
        return max((f for rule in self.rules if (f := rule.fraction_done(history)) is not None), default=None)


class AllOf(StopRule):
    """Stops when all of its rules do.

    Parameters
    ----------
    *rules
        Stop rules. ``a & b`` is the same as ``AllOf(a, b)``.
    """

    def __init__(self, *rules: StopRule) -> None:
        self.rules = rules

    def __repr__(self) -> str:
        return f"({' & '.join(map(repr, self.rules))})"

    def __call__(self, history: History) -> str | None:
        reasons = [rule(history) for rule in self.rules]
        return " and ".join(r for r in reasons if r) if all(reasons) else None

    def fraction_done(self, history: History) -> float | None:
        return min((f for rule in self.rules if (f := rule.fraction_done(history)) is not None), default=None)
