"""Records, callbacks and the clock."""

from __future__ import annotations

import json
import math
import time

import numpy as np
import pytest

from fouriscope.solvers import Callback, History, Iterations, Record, Solver
from tests.solvers.problems import make_solver, phase_problem

RECORDS = [
    Record(1, 12, 0.5, 2.0, 1.0, 3.0, 0.1, 10.0, 1.0),
    Record(2, 24, 0.75, 1.0, 0.5, 3.0, 0.1, 12.0, 1.5),
]


def test_columns_by_name() -> None:
    history = History(RECORDS)
    np.testing.assert_array_equal(history["misfit"], [2.0, 1.0])
    columns = history.columns()
    assert set(columns) == set(RECORDS[0].__dataclass_fields__)
    np.testing.assert_array_equal(columns["frames_seen"], [12, 24])
    assert history.last == RECORDS[1]
    assert list(history) == RECORDS
    with pytest.raises(KeyError, match="not 'loss'"):
        history["loss"]


def test_a_history_of_its_own() -> None:
    records = list(RECORDS)
    history = History(records)
    history.append(RECORDS[0])
    assert len(records) == 2
    assert len(History()) == 0


@pytest.mark.parametrize("unknown", [math.nan, math.inf])
def test_a_record_as_json_holds_only_what_is_known(unknown: float) -> None:
    record = Record(1, 12, 0.5, 2.0, 1.0, 3.0, 0.0, unknown, math.nan)
    known = record.as_dict()
    assert set(known) == set(RECORDS[0].as_dict()) - {"snr", "snr_raw"}
    again = Record.from_dict(json.loads(json.dumps(known, allow_nan=False)))
    assert again.misfit == record.misfit
    assert math.isnan(again.snr)
    assert Record.from_dict(RECORDS[0].as_dict()) == RECORDS[0]


def test_what_json_cannot_be_a_record() -> None:
    for wrong in ({"iteration": 1, "colour": "red"}, 12, [1]):
        with pytest.raises(TypeError):
            Record.from_dict(wrong)  # type: ignore[arg-type]


def test_a_solver_writes_every_column() -> None:
    truth = np.random.default_rng(0).standard_normal(phase_problem().model.x_shape)
    solver = make_solver(phase_problem(), "SGD, epochs", truth=truth)
    solver.frames_arrived = 49  # of a live reconstruction alone
    history = solver.solve(Iterations(4))
    for name, column in history.columns().items():
        assert column.shape == (4,)
        assert np.all(np.isfinite(column)) == (name != "averaged"), name  # there is no mean after four iterations
    np.testing.assert_array_equal(history["iteration"], [1, 2, 3, 4])
    np.testing.assert_array_equal(history["frames_seen"], [12, 24, 36, 48])
    assert np.all(np.diff(history["seconds"]) > 0)
    assert np.all(history["step"] == solver.step_size)


def test_a_callback_can_stop() -> None:
    called: list[int] = []

    def at_three(solver: Solver, record: Record) -> bool:
        called.append(record.iteration)
        return record.iteration == 3

    always: list[int] = []
    solver = make_solver(phase_problem())
    history = solver.solve(Iterations(9), [at_three, lambda _, record: always.append(record.iteration)])
    assert len(history) == 3
    assert solver.stop_reason == "a callback returned True"
    assert called == always == [1, 2, 3], "all callbacks hear of every iteration, also of the last"
    solver.solve(Iterations(5))
    assert len(history) == 5
    assert solver.stop_reason == "5 iterations"


def test_a_stop_at_the_last_iteration_is_no_interruption() -> None:
    solver = make_solver(phase_problem())
    solver.solve(Iterations(2), [lambda _, record: record.iteration == 2])
    assert solver.stop_reason == "2 iterations"


def test_callbacks_see_the_solver_after_the_iteration() -> None:
    solver = make_solver(phase_problem())
    seen: list[bool] = []

    def look(current: Solver, record: Record) -> None:
        seen.append(current is solver and current.history.last is record and bool(np.any(current.x)))

    solver.solve(Iterations(2), [look])
    assert seen == [True, True]


def test_the_clock_stands_still_during_callbacks() -> None:
    nap = 0.05
    slept = 0.0

    def sleep(solver: Solver, record: Record) -> None:
        nonlocal slept
        began = time.perf_counter()
        time.sleep(nap)
        slept += time.perf_counter() - began

    callbacks: list[Callback] = [sleep]
    began = time.perf_counter()
    history = make_solver(phase_problem()).solve(Iterations(6), callbacks)
    wall = time.perf_counter() - began
    assert slept >= 6 * nap
    assert 0 < history.last.seconds < wall - 0.8 * slept
