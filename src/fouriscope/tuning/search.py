"""The best value of a positive parameter on a logarithmic scale, with as few evaluations as possible."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from fouriscope.errors import InvalidInputError
from fouriscope.parallel import thread_count

GOLDEN = (math.sqrt(5) - 1) / 2
# The first look around: a score that changes by tenths of a dB over an octave needs no finer one.
FIRST_FACTOR = 8.0
EXPANSIONS_AT_MOST = 4


@dataclass(frozen=True)
class Trial:
    """One value that was tried, and its score; more is better.

    Attributes
    ----------
    value, score
        The value, and its score.
    """

    value: float
    score: float


def log_search(
    score: Callable[[float], float],
    first: float,
    *,
    factor: float = FIRST_FACTOR,
    tolerance: float = 1.25,
    evaluations: int = 12,
    on_trial: Callable[[Trial], object] | None = None,
) -> list[Trial]:
    """Maximise ``score(value)`` from a ``first`` value outwards; returns all trials in the order of their values.

    A bracket is found by multiplying and dividing by ``factor`` (the first evaluations run side by side) and
    narrowed by golden section on log(value) until its ends are less than ``tolerance`` apart or ``evaluations`` are
    used up. A score that is not finite counts as the worst.

    Parameters
    ----------
    score
        The function to maximise.
    first
        Where the search begins.
    factor
        How far apart the first three values are.
    tolerance
        The search ends when the bracket is narrower than this.
    evaluations
        The largest number of evaluations.
    on_trial
        Called with every :class:`Trial`.

    Examples
    --------
    >>> trials = log_search(lambda value: -(math.log(value / 3) ** 2), 100.0)
    >>> best = max(trials, key=lambda trial: trial.score)
    >>> 2.5 < best.value < 3.5
    True
    """
    if not (math.isfinite(first) and first > 0):
        raise InvalidInputError(f"a search on a logarithmic scale must begin at a positive value, got {first}")
    trials: dict[float, float] = {}

    def note(value: float, result: float) -> None:
        trials[value] = result if math.isfinite(result) else -math.inf
        if on_trial is not None:
            on_trial(Trial(value, trials[value]))

    def evaluate(values: Sequence[float]) -> None:
        with ThreadPoolExecutor(min(len(values), thread_count())) as pool:
            for value, result in zip(values, pool.map(score, values), strict=True):
                note(value, result)

    evaluate([first, first / factor, first * factor])
    for _ in range(EXPANSIONS_AT_MOST):
        best = max(trials, key=lambda value: trials[value])
        if min(trials) < best < max(trials) or len(trials) >= evaluations:
            break
        evaluate([best / factor if best == min(trials) else best * factor])
    _narrow(evaluate, trials, tolerance, evaluations)
    return [Trial(value, trials[value]) for value in sorted(trials)]


def _narrow(
    evaluate: Callable[[Sequence[float]], None], trials: dict[float, float], tolerance: float, evaluations: int
) -> None:
    """Golden section: the next point divides the longer side of the bracket around the best one."""
    while len(trials) < evaluations:
        ordered = sorted(trials)
        place = ordered.index(max(trials, key=lambda value: trials[value]))
        best = ordered[place]
        below = math.log(best / ordered[place - 1]) if place > 0 else 0.0
        above = math.log(ordered[place + 1] / best) if place + 1 < len(ordered) else 0.0
        if max(below, above) < math.log(tolerance):
            return
        # From the best point, 0.38 of the longer side away: the larger of the two new intervals is then 0.62 of it.
        reach = (1 - GOLDEN) * max(below, above)
        evaluate([best * math.exp(reach if above >= below else -reach)])
