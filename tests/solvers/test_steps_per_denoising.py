"""Several gradient steps a denoising: the formula by hand, what is counted, and how "auto" chooses."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import AllLEDs, DataFidelity
from fouriscope.priors import TV, CallablePrior, NoPrior, Prior
from fouriscope.solvers import History, Iterations, PnP
from fouriscope.solvers import pnp as module
from fouriscope.solvers.pnp import ITERATIONS_TIMED, STEPS_AT_MOST
from tests.solvers.problems import phase_problem, tiny_problem, zeros

CHOSEN_AFTER = ITERATIONS_TIMED[1]


@pytest.fixture(scope="module")
def fidelity() -> DataFidelity:
    return phase_problem((16, 16))


def make(fidelity: DataFidelity, prior: Prior, steps: Any = 1, **options: Any) -> PnP:
    everything = AllLEDs(np.arange(len(fidelity)))
    return PnP(fidelity, everything, [prior], steps_per_denoising=steps, **options)


def smooth(image: NDArray[Any], sigma: float) -> NDArray[Any]:
    """Any denoiser that does something: a step of diffusion."""
    neighbours = [np.roll(image, shift, axis) for shift in (1, -1) for axis in (0, 1)]
    return np.asarray(image + sigma * (np.mean(neighbours, axis=0) - image))


# ---------------------------------------------------------------------------------------------------------------------
# The formula


@pytest.mark.parametrize("acceleration", [False, True])
def test_one_step_a_denoising_is_the_plain_formula(fidelity: DataFidelity, acceleration: bool) -> None:
    solver = make(fidelity, TV(1e-3), step=2.0, acceleration=acceleration)
    solver.solve(Iterations(5))
    denoiser, q = TV(1e-3), 1.0
    s = x = zeros(fidelity)
    for _ in range(5):
        following = denoiser.denoise(s - 2.0 * fidelity.gradient(s).gradient, math.sqrt(2.0 * 1e-3))
        q_next = (1 + math.sqrt(1 + 4 * q * q)) / 2 if acceleration else 1.0
        s = following + (q - 1) / q_next * (following - x)
        x, q = following, q_next
    np.testing.assert_allclose(solver.x, x, rtol=0, atol=1e-12)


@pytest.mark.parametrize("acceleration", [False, True])
def test_three_steps_a_denoising_by_hand(fidelity: DataFidelity, acceleration: bool) -> None:
    """A third of the denoiser's displacement enters the momentum, and σ² makes up for it."""
    solver = make(fidelity, TV(1e-3), 3, step=2.0, acceleration=acceleration)
    history = solver.solve(Iterations(4))
    denoiser, q = TV(1e-3), 1.0
    s = x = zeros(fidelity)
    misfits = []
    for step in range(12):
        misfit, gradient = fidelity.gradient(s)
        misfits.append(misfit)
        z = s - 2.0 * gradient
        q_next = (1 + math.sqrt(1 + 4 * q * q)) / 2 if acceleration else 1.0
        beta = (q - 1) / q_next
        sigma = math.sqrt(2.0 * 1e-3 * 3 / (1 - beta * 2 / 3))
        following = denoiser.denoise(z, sigma) if step % 3 == 2 else z
        s = following + beta * ((z - x) + (following - z) / 3)
        x, q = following, q_next
    np.testing.assert_allclose(solver.x, x, rtol=0, atol=1e-12)
    np.testing.assert_allclose(history["misfit"], np.reshape(misfits, (4, 3)).mean(axis=1))


def test_what_is_counted(fidelity: DataFidelity) -> None:
    sigmas: list[float] = []

    def counting(image: NDArray[Any], sigma: float) -> NDArray[Any]:
        sigmas.append(sigma)
        return image

    solver = make(fidelity, CallablePrior(counting, strength=0.01), 4, step=1.0, acceleration=False)
    history = solver.solve(Iterations(5))
    np.testing.assert_allclose(sigmas, [math.sqrt(4 * 0.01)] * 5)
    np.testing.assert_array_equal(history["frames_seen"], 4 * len(fidelity) * np.arange(1, 6))


@pytest.mark.parametrize("steps", [0, -1, 2.5, "many", None])
def test_impossible_numbers_of_steps(fidelity: DataFidelity, steps: Any) -> None:
    with pytest.raises(InvalidInputError, match="steps_per_denoising must be a whole number"):
        make(fidelity, NoPrior(), steps)


# ---------------------------------------------------------------------------------------------------------------------
# The choice


@dataclass
class Clock:
    """Stands in for ``time``: a gradient and a denoising take as long as they say, on any machine."""

    gradient: float
    denoising: float
    now: float = 0.0

    def perf_counter(self) -> float:
        return self.now


class Timed(DataFidelity):
    """A data fidelity by that clock."""

    clock: Clock

    def gradient(self, x: Any, leds: Any = None, observer: Any = None) -> Any:
        self.clock.now += self.clock.gradient
        return super().gradient(x, leds, observer)


def timed(monkeypatch: pytest.MonkeyPatch, gradient: float, denoising: float) -> tuple[PnP, Clock]:
    clock = Clock(gradient, denoising)

    def denoiser(image: NDArray[Any], sigma: float) -> NDArray[Any]:
        clock.now += clock.denoising
        return smooth(image, sigma)

    plain = tiny_problem(height=0.3)
    fidelity = Timed(plain.model, plain.frames)
    fidelity.clock = clock
    monkeypatch.setattr(module, "time", clock)
    return make(fidelity, CallablePrior(denoiser, strength=1e-3), "auto", step=1.0), clock


@pytest.mark.parametrize(
    ("denoising", "steps"), [(0.0, 1), (0.3, 1), (1.4, 1), (2.6, 3), (5.0, 5), (1e3, STEPS_AT_MOST)]
)
def test_the_choice_balances_both_costs(monkeypatch: pytest.MonkeyPatch, denoising: float, steps: int) -> None:
    solver, _ = timed(monkeypatch, 1.0, denoising)
    history = solver.solve(Iterations(CHOSEN_AFTER))
    assert history.last.frames_seen == CHOSEN_AFTER * len(solver.fidelity), "one step each until the choice"
    assert solver.steps_per_denoising == steps
    history = solver.solve(Iterations(CHOSEN_AFTER + 2))
    assert history.last.frames_seen == (CHOSEN_AFTER + 2 * steps) * len(solver.fidelity)


def test_neither_the_first_iterations_nor_a_hiccup_count(monkeypatch: pytest.MonkeyPatch) -> None:
    solver, clock = timed(monkeypatch, 1e3, 0.1)  # compiling
    solver.solve(Iterations(ITERATIONS_TIMED[0]))
    clock.gradient, clock.denoising = 1.0, 4.0
    solver.solve(Iterations(CHOSEN_AFTER - 1))
    clock.gradient = 50.0
    solver.solve(Iterations(CHOSEN_AFTER))
    clock.gradient, clock.denoising = 1.0, 1e3
    solver.solve(Iterations(CHOSEN_AFTER + 5))
    assert solver.steps_per_denoising == 4, "and it is made once"


@pytest.mark.parametrize("stopped_at", range(1, CHOSEN_AFTER + 3))
def test_a_resumed_run_makes_or_keeps_the_choice(monkeypatch: pytest.MonkeyPatch, stopped_at: int) -> None:
    """Also where it stops in the middle of measuring, and its first iteration afterwards has to warm up again."""
    straight, _ = timed(monkeypatch, 1.0, 3.0)
    straight.solve(Iterations(stopped_at))
    state, records = straight.state(), list(straight.history)
    straight.solve(Iterations(12))
    resumed, clock = timed(monkeypatch, 40.0, 3.0)
    resumed.load_state(state)
    resumed.history = History(records)
    resumed.solve(Iterations(stopped_at + 1))
    clock.gradient = 1.0
    resumed.solve(Iterations(12))
    assert resumed.steps_per_denoising == straight.steps_per_denoising == 3
    np.testing.assert_array_equal(resumed.x, straight.x)
    np.testing.assert_array_equal(resumed.history["frames_seen"], straight.history["frames_seen"])


def test_a_real_clock_will_do() -> None:
    class Watched(DataFidelity):
        def gradient(self, x: Any, leds: Any = None, observer: Any = None) -> Any:
            began = time.perf_counter()
            found = super().gradient(x, leds, observer)
            taken.append(time.perf_counter() - began)
            return found

    def slow(image: NDArray[Any], sigma: float) -> NDArray[Any]:
        time.sleep(20 * taken[-1])  # much longer than the gradient, however busy the machine is
        return image

    taken: list[float] = []
    plain = tiny_problem(height=0.3)
    plain.gradient(np.zeros(plain.model.x_shape, plain.model.dtype))  # compiles
    fidelity = Watched(plain.model, plain.frames)
    expensive = make(fidelity, CallablePrior(slow, strength=1e-3), "auto")
    expensive.solve(Iterations(CHOSEN_AFTER))
    assert 1 < expensive.steps_per_denoising <= STEPS_AT_MOST
    free = make(phase_problem(), NoPrior(), "auto")
    free.solve(Iterations(CHOSEN_AFTER))
    assert free.steps_per_denoising == 1
