"""Stopping rules, alone and composed."""

from __future__ import annotations

import math

import pytest

from fouriscope.errors import InvalidInputError
from fouriscope.solvers import History, Iterations, Record, Residual, Seconds, Settled, StopRule
from tests.solvers.problems import make_solver, phase_problem


def history(count: int, *, seconds: float = 1.0, residual: float | list[float] = 0.5) -> History:
    """``count`` iterations of ``seconds`` each."""
    residuals = residual if isinstance(residual, list) else [residual] * count
    return History([Record(k + 1, 10, seconds * (k + 1), 1.0, residuals[k], 1.0, 0.0) for k in range(count)])


def test_iterations() -> None:
    assert Iterations(3)(history(2)) is None
    assert Iterations(3)(history(3)) == "3 iterations"
    assert Iterations(3)(history(4)) == "3 iterations"
    assert Iterations(0)(history(0)) == "0 iterations"


def test_seconds_are_those_of_the_solver() -> None:
    assert Seconds(3)(history(0)) is None
    assert Seconds(3)(history(2)) is None
    assert Seconds(3)(history(3)) == "3 s"


def test_residual_is_averaged_over_a_window() -> None:
    assert Residual(0.1, window=3)(history(2, residual=0.0)) is None, "too few to judge"
    assert Residual(0.1, window=3)(history(4, residual=[9.0, 0.0, 0.05, 0.2])) is not None
    assert Residual(0.1, window=3)(history(4, residual=[0.0, 0.0, 0.0, 0.4])) is None, "one lucky value is not enough"
    assert Residual(0.1, window=1)(history(2, residual=[9.0, 0.1])) == "residual 0.1 ≤ 0.1"


def averaged(count: int, change: float) -> History:
    """A mean of ``count`` estimates that changes by ``change`` per iteration, after 30 iterations without a mean."""
    before = [Record(k + 1, 10, 1.0, 1.0, 0.05, 1.0, 0.0) for k in range(30)]
    return History(before + [Record(31 + k, 10, 1.0, 1.0, change, 1.0, 0.0, averaged=k + 1) for k in range(count)])


def test_settled_wants_a_mean_of_many_estimates_that_changes_little() -> None:
    rule = Settled(tolerance=1e-3, least=60)
    assert rule(History()) is None
    assert rule(history(100, residual=0.0)) is None, "there is no mean"
    assert rule(averaged(59, 5e-4)) is None
    assert rule(averaged(60, 5e-4)) == "settled: the mean of the last 60 estimates changes by 0.05 % per iteration"
    assert rule(averaged(60, 2e-3)) is None
    with pytest.raises(InvalidInputError, match="positive"):
        Settled(tolerance=0)


def test_or_stops_at_the_first_and_at_the_last() -> None:
    either, both = Iterations(3) | Seconds(20), Iterations(3) & Seconds(20)
    assert either(history(2, seconds=5)) is None
    assert either(history(3, seconds=5)) == "3 iterations"
    assert either(history(2, seconds=10)) == "20 s"
    assert both(history(3, seconds=5)) is None
    assert both(history(2, seconds=10)) is None
    assert both(history(4, seconds=5)) == "3 iterations and 20 s"


def test_compositions_compose() -> None:
    rule = (Iterations(5) & Seconds(100)) | Residual(0.1, window=1)
    assert rule(history(6)) is None
    assert rule(history(6, seconds=50)) == "5 iterations and 100 s"
    assert rule(history(1, residual=0.05)) == "residual 0.05 ≤ 0.1"


@pytest.mark.parametrize(
    ("rule", "done"),
    [
        (Iterations(4), 0.5),
        (Iterations(1), 1.0),
        (Seconds(8), 0.25),
        (Iterations(4) | Seconds(8), 0.5),
        (Iterations(4) & Seconds(8), 0.25),
        (Residual(0.1) | Iterations(4), 0.5),
        (Residual(0.1), None),
    ],
)
def test_fraction_done(rule: StopRule, done: float | None) -> None:
    assert rule.fraction_done(history(2)) == done


def test_fraction_done_before_the_first_iteration() -> None:
    assert Iterations(4).fraction_done(history(0)) == 0.0
    assert Seconds(4).fraction_done(history(0)) == 0.0
    assert Iterations(0).fraction_done(history(0)) == 1.0


def test_wrong_limits() -> None:
    with pytest.raises(InvalidInputError, match="must not be negative, got -1"):
        Iterations(-1)
    for limit in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidInputError, match="limit must be "):
            Seconds(limit)
        with pytest.raises(InvalidInputError, match="tolerance must be "):
            Residual(limit)
    with pytest.raises(InvalidInputError, match="at least one iteration, got 0"):
        Residual(0.1, window=0)


def test_a_solver_obeys() -> None:
    fidelity = phase_problem()
    solver = make_solver(fidelity, "ISTA, all")
    assert len(solver.solve(Iterations(0))) == 0
    assert solver.stop_reason == "0 iterations"
    solver.solve(Residual(0.2, window=2) | Iterations(60))
    assert solver.stop_reason is not None
    assert solver.stop_reason.startswith("residual")
    assert solver.history["residual"][-2:].mean() <= 0.2 < solver.history["residual"][-3:-1].mean()
    done = len(solver.history)
    solver.solve(Seconds(1e-9))
    assert len(solver.history) == done
    solver.solve(Iterations(done + 2))
    assert len(solver.history) == done + 2
