"""The SNR of every iteration is the one that the metrics compute, in less time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fouriscope.errors import InvalidInputError
from fouriscope.metrics import snr_both
from fouriscope.solvers import Iterations
from fouriscope.solvers.truth import TruthScore
from tests.solvers.problems import make_solver, phase_problem

TRUTH = np.random.default_rng(0).normal(0.2, 0.3, (40, 30))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("noise", "constant"), [(0.1, 0.0), (1e-4, 5.0), (10.0, -2.0), (0.0, 1.0)])
def test_it_is_the_snr_of_the_metrics(dtype: Any, noise: float, constant: float) -> None:
    score = TruthScore(TRUTH)
    for seed in range(3):  # one estimate after the other, with the same memory
        estimate = (TRUTH + constant + noise * np.random.default_rng(seed).normal(size=TRUTH.shape)).astype(dtype)
        expected = snr_both(estimate, TRUTH)
        assert score(estimate).raw == pytest.approx(expected.raw, rel=1e-12)
        if noise:
            assert score(estimate).aligned == pytest.approx(expected.aligned, rel=1e-9)
        else:  # rounding is all that is left
            assert score(estimate).aligned > 100


def test_the_truth_itself_is_perfect() -> None:
    assert TruthScore(TRUTH)(TRUTH.copy()) == (math.inf, math.inf)


def test_a_part_of_a_larger_array_will_do() -> None:
    wide = np.pad(TRUTH, 3)
    assert TruthScore(wide[3:-3, 3:-3])(wide[4:-2, 3:-3]) == pytest.approx(snr_both(wide[4:-2, 3:-3], TRUTH))


def test_an_estimate_that_is_not_finite_is_told() -> None:
    estimate = TRUTH.copy()
    estimate[3, 4] = np.nan
    with pytest.raises(InvalidInputError, match="estimate must be finite, but 1 of its 1200 values"):
        TruthScore(TRUTH)(estimate)


def test_every_iteration_reports_it() -> None:
    fidelity = phase_problem()
    truth = np.random.default_rng(1).normal(size=fidelity.model.x_shape)
    solver = make_solver(fidelity, truth=truth)
    history = solver.solve(Iterations(3))
    expected = snr_both(solver.observed(), truth[fidelity.model.geometry.object_window])
    assert (history.last.snr, history.last.snr_raw) == pytest.approx(expected, rel=1e-9)


def test_an_empty_truth_has_no_snr() -> None:
    fidelity = phase_problem()
    solver = make_solver(fidelity, truth=np.ones(fidelity.model.x_shape))
    assert math.isnan(solver.solve(Iterations(1)).last.snr)
