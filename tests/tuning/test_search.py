"""The search finds the top of curves whose top is known, with the evaluations it may use."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from fouriscope.errors import InvalidInputError
from fouriscope.tuning import Trial, log_search


def parabola(top: float) -> Callable[[float], float]:
    return lambda value: -(math.log(value / top) ** 2)


def best(trials: list[Trial]) -> float:
    return max(trials, key=lambda trial: trial.score).value


@pytest.mark.parametrize("first", [1e-9, 3e-7, 1e-6, 4e-5, 1e-3])
def test_finds_the_top_from_either_side(first: float) -> None:
    trials = log_search(parabola(1e-6), first, evaluations=20, tolerance=1.1)
    assert 1e-6 / 1.1 < best(trials) < 1.1e-6


def test_a_lopsided_curve() -> None:
    def score(value: float) -> float:
        u = math.log10(value)
        return -(10 ** (u + 6)) - 0.1 * abs(u + 6)  # falls off a cliff above 1e-6, gently below

    exact = max((score(10 ** (-8 + k / 1000)), 10 ** (-8 + k / 1000)) for k in range(4000))[1]
    trials = log_search(score, 1e-6, evaluations=20, tolerance=1.1)
    assert exact / 1.15 < best(trials) < exact * 1.15


def test_trials_come_in_order_and_within_the_limit() -> None:
    seen: list[Trial] = []
    trials = log_search(parabola(2e-6), 1e-6, evaluations=7, tolerance=1.001, on_trial=seen.append)
    assert len(trials) == len(seen) == 7
    assert [trial.value for trial in trials] == sorted(trial.value for trial in seen)


def test_stops_early_when_the_bracket_is_tight_enough() -> None:
    assert len(log_search(parabola(1e-6), 1e-6, factor=1.2, tolerance=1.25, evaluations=50)) == 3


def test_a_score_that_only_rises_ends_at_the_last_expansion() -> None:
    trials = log_search(lambda value: value, 1.0, factor=8, evaluations=30, tolerance=1.5)
    assert best(trials) == pytest.approx(8.0**5)  # the first look and four expansions


def test_values_that_fail_count_as_the_worst() -> None:
    trials = log_search(lambda value: math.nan if value > 2e-6 else parabola(1e-6)(value), 1e-6, evaluations=10)
    assert 0.5e-6 < best(trials) < 2e-6
    assert min(trial.score for trial in trials) == -math.inf


@pytest.mark.parametrize("first", [0.0, -1.0, math.nan, math.inf])
def test_a_first_value_that_has_no_logarithm(first: float) -> None:
    with pytest.raises(InvalidInputError, match="positive"):
        log_search(parabola(1.0), first)
