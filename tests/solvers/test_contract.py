"""What every method promises, whatever it does inside: a new one is added to ``METHODS`` and inherits these checks."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.acquisition import ArrayFrames
from fouriscope.errors import DivergenceError, InvalidInputError
from fouriscope.fidelity import DataFidelity, Minibatch
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray
from fouriscope.priors import TV, Box
from fouriscope.priors.from_callable import CallablePrior
from fouriscope.solvers import Descent, History, Iterations, Record, Solver
from tests.conftest import OPTICS
from tests.solvers.problems import METHODS, largest_curvature, make_solver, noisy, phase_problem, shapes, zeros

FIXED = [name for name, method in METHODS.items() if method.sampler in ("all", "fixed")]
RANDOM = [name for name in METHODS if name not in FIXED]


@pytest.fixture(scope="module")
def fidelity() -> DataFidelity:
    return phase_problem()


@pytest.mark.parametrize("method", METHODS)
class TestContract:
    def test_misfit_falls(self, fidelity: DataFidelity, method: str) -> None:
        solver = make_solver(fidelity, method)
        history = solver.solve(Iterations(40))
        seen = solver.sampler.population
        assert fidelity.value(solver.x, seen) < 0.25 * fidelity.value(zeros(fidelity), seen)
        assert np.all(np.isfinite(history["misfit"]))
        assert len(history) == 40

    def test_same_seed_same_result_to_the_last_bit(self, fidelity: DataFidelity, method: str) -> None:
        first, second = (make_solver(fidelity, method, TV(), seed=3) for _ in range(2))
        first.solve(Iterations(15))
        second.solve(Iterations(15))
        np.testing.assert_array_equal(first.x, second.x)
        np.testing.assert_array_equal(first.history["misfit"], second.history["misfit"])

    def test_a_prior_used_before_gives_the_same_result(self, fidelity: DataFidelity, method: str) -> None:
        prior = TV(2e-5)
        first = make_solver(fidelity, method, prior)
        first.solve(Iterations(8))
        second = make_solver(fidelity, method, prior)
        second.solve(Iterations(8))
        np.testing.assert_array_equal(first.x, second.x)

    @pytest.mark.slow
    @pytest.mark.parametrize("stopped_at", [2, 27])
    def test_state_continues_to_the_last_bit(self, fidelity: DataFidelity, method: str, stopped_at: int) -> None:
        straight = make_solver(fidelity, method, TV(), seed=1)
        straight.solve(Iterations(stopped_at))
        state, records = straight.state(), list(straight.history)
        assert any(name.startswith("prior0.") for name in state.arrays), "the warm dual of TV must be part of the state"
        straight.solve(Iterations(stopped_at + 9))
        resumed = make_solver(fidelity, method, TV(), seed=99)
        resumed.load_state(state)
        resumed.history = History(records)
        resumed.solve(Iterations(stopped_at + 9))
        np.testing.assert_array_equal(resumed.x, straight.x)
        for column in ("misfit", "residual", "step", "strength", "frames_seen"):
            np.testing.assert_array_equal(resumed.history[column], straight.history[column])

    def test_a_state_is_arrays_and_json_and_stays_as_it_was(self, fidelity: DataFidelity, method: str) -> None:
        solver = make_solver(fidelity, method, TV(), seed=1)
        solver.solve(Iterations(4))
        state = solver.state()
        arrays = {name: array.copy() for name, array in state.arrays.items()}
        values = json.dumps(state.values)
        solver.solve(Iterations(8))
        assert json.dumps(state.values) == values
        for name, array in arrays.items():
            np.testing.assert_array_equal(state.arrays[name], array, err_msg=name)
        np.testing.assert_array_equal(make_solver(fidelity, method, TV()).state().arrays["x"], 0)

    def test_inputs_are_not_modified(self, fidelity: DataFidelity, method: str) -> None:
        frames = np.array([fidelity.frames.frame(led) for led in range(len(fidelity))])
        start = shapes(fidelity.model.object_shape, 0.1)
        before = start.copy()
        solver = make_solver(fidelity, method, TV(2e-5), start=start, truth=start)
        solver.solve(Iterations(5))
        np.testing.assert_array_equal(start, before)
        np.testing.assert_array_equal([fidelity.frames.frame(led) for led in range(len(fidelity))], frames)
        assert not np.shares_memory(solver.x, start)

    def test_single_precision_stays_single(self, method: str) -> None:
        fidelity = phase_problem((16, 16), dtype=np.float32)
        solver = make_solver(fidelity, method, TV())
        solver.solve(Iterations(3))
        real = [name for name, array in solver.state().arrays.items() if array.dtype.kind == "f"]
        assert "x" in real
        assert {str(solver.state().arrays[name].dtype) for name in real} == {"float32"}

    def test_frames_are_counted(self, fidelity: DataFidelity, method: str) -> None:
        solver = make_solver(fidelity, method, batch=12)
        history = solver.solve(Iterations(3))
        sampler, gradients = METHODS[method].sampler, 3 * METHODS[method].gradients
        if sampler == "uniform":  # an LED drawn twice is computed once
            assert 0 < history.last.frames_seen <= 12 * gradients
        else:
            assert history.last.frames_seen == gradients * (len(fidelity) if sampler == "all" else 12)

    def test_the_denoiser_is_called_once_an_iteration(self, fidelity: DataFidelity, method: str) -> None:
        sigmas: list[float] = []

        def denoiser(image: NDArray[Any], sigma: float) -> NDArray[Any]:
            sigmas.append(sigma)
            return image

        make_solver(fidelity, method, CallablePrior(denoiser, strength=1e-6)).solve(Iterations(4))
        assert len(sigmas) == 4
        assert min(sigmas) > 0

    def test_what_is_reported_of_the_truth_gets_better(self, fidelity: DataFidelity, method: str) -> None:
        truth = shapes(fidelity.model.object_shape, 0.3)
        history = make_solver(fidelity, method, TV(), truth=truth).solve(Iterations(15))
        assert history.last.snr > history["snr"][0] + 2
        assert math.isnan(make_solver(fidelity, method, TV()).solve(Iterations(1)).last.snr)

    def test_the_truth_does_not_help(self, fidelity: DataFidelity, method: str) -> None:
        truth = shapes(fidelity.model.object_shape, 0.3)
        told, not_told = make_solver(fidelity, method, TV(), truth=truth), make_solver(fidelity, method, TV())
        told.solve(Iterations(4))
        not_told.solve(Iterations(4))
        np.testing.assert_array_equal(told.x, not_told.x)

    @pytest.mark.slow
    def test_an_automatic_run_recovers_from_a_step_fifty_times_too_long(self, method: str) -> None:
        fidelity = phase_problem(height=0.6)
        solver = make_solver(fidelity, method)
        finite: list[bool] = []

        def check(current: Solver, record: Record) -> None:
            finite.append(bool(np.all(np.isfinite(current.x))))

        solver.solve(Iterations(80), [lengthen_once, check])
        assert all(finite)
        seen = solver.sampler.population
        assert fidelity.value(solver.x, seen) < 0.5 * fidelity.value(zeros(fidelity), seen)

    def test_a_hopeless_step_is_said_and_no_nan_returned(self, fidelity: DataFidelity, method: str) -> None:
        solver = make_solver(fidelity, method, step=1e30)
        with pytest.raises(DivergenceError, match=r'diverged after .*use step="auto" or a smaller number'):
            solver.solve(Iterations(50))
        assert np.all(np.isfinite(solver.x))

    @pytest.mark.parametrize("step", ["auto", 1.0])
    def test_a_frame_of_nan_is_noticed(self, fidelity: DataFidelity, method: str, step: Any) -> None:
        frames = np.array([fidelity.frames.frame(led) for led in range(len(fidelity))])
        frames[:, 3, 4] = np.nan
        solver = make_solver(DataFidelity(fidelity.model, ArrayFrames(frames)), method, step=step)
        with pytest.raises((DivergenceError, InvalidInputError)):
            solver.solve(Iterations(5))
        assert np.all(np.isfinite(solver.x))


def lengthen_once(solver: Solver, record: Record) -> None:
    assert isinstance(solver, Descent)
    if record.iteration == 1:
        solver.step_size *= 50


@pytest.mark.parametrize("method", [name for name in METHODS if not name.startswith("RED")])
def test_bounds_hold_exactly(fidelity: DataFidelity, method: str) -> None:
    """The estimate is what the prior returned. (RED only pulls towards it.)"""
    solver = make_solver(fidelity, method, Box(0.0, 0.1))
    solver.solve(Iterations(20))
    assert solver.x.min() == 0.0
    assert solver.x.max() == 0.1


@pytest.mark.parametrize("method", RANDOM)
def test_going_astray_leaves_a_trace_in_the_state(method: str) -> None:
    """Minibatches have no watched curvature: a step too long is noticed by its misfit, and halved."""
    fidelity = phase_problem(height=0.6)
    solver = make_solver(fidelity, method)
    solver.solve(Iterations(30), [lengthen_once])
    assert solver.state().values["retreats"] > 0
    resumed = make_solver(fidelity, method)
    resumed.load_state(solver.state())
    assert resumed.step_size == solver.step_size


def drawn(solver: Descent, count: int, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    seen: list[list[int]] = []
    original = solver.fidelity.gradient

    def spy(x: NDArray[Any], leds: Any = None, observer: Any = None) -> Any:
        assert isinstance(leds, Minibatch)
        seen.append(leds.leds.tolist())
        return original(x, leds, observer)

    with monkeypatch.context() as patch:
        patch.setattr(solver.fidelity, "gradient", spy)
        solver.solve(Iterations(count))
    return seen


@pytest.mark.parametrize("method", [*RANDOM, "FISTA, fixed subset"])
def test_another_seed_sees_other_measurements(
    fidelity: DataFidelity, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [drawn(make_solver(fidelity, method, seed=seed, step=1.0), 4, monkeypatch) for seed in (0, 0, 1)]
    assert len(runs[0]) == 4 * METHODS[method].gradients
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


@pytest.mark.parametrize("method", [name for name in RANDOM if METHODS[name].gradients > 1])
def test_each_step_of_an_iteration_sees_a_minibatch_of_its_own(
    fidelity: DataFidelity, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gradients = METHODS[method].gradients
    first = drawn(make_solver(fidelity, method, step=1.0), 1, monkeypatch)
    assert len(first) == gradients
    assert not set(first[0]) & set(first[1]), "dealt from one deck, without replacement"


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 2, 10])
@pytest.mark.parametrize("method", RANDOM)
def test_the_smallest_minibatches_raise_no_false_alarm(method: str, batch: int) -> None:
    """Their misfits differ by orders of magnitude (the LED on the axis, a dark-field LED): that is no divergence."""
    model = ForwardModel(OPTICS, LEDArray.disc(pitch=4e-3, height=70e-3, radius=5.2), (24, 24))
    fidelity = noisy(model, shapes(model.object_shape, 0.3))
    solver = make_solver(fidelity, method, batch=batch)
    solver.solve(Iterations(60))
    assert np.all(np.isfinite(solver.x))
    assert fidelity.value(solver.x) < 1.5 * fidelity.value(zeros(fidelity))
    assert solver.step_size > 1e-3 / largest_curvature(fidelity)
