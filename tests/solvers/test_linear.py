"""Every method on a problem with a closed form: quadratic data fidelity, quadratic prior.

d(x) = ½ Σ h (x − a)² with h the mean over the LEDs, r(x) = ½ Σ x²: the minimiser of d + λr is h a/(h + λ) in each
pixel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.fidelity import AllLEDs, DataFidelity, Minibatch
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray
from fouriscope.priors import Prior
from fouriscope.solvers import ADMM, RED, Descent, Iterations, PnP
from tests.conftest import OPTICS
from tests.solvers.problems import METHODS, make_solver

STRENGTH = 0.3


class Quadratic(DataFidelity):
    """d_j(x) = ½ Σ h_j (x − a)²: each LED weighs the pixels in its own way."""

    def __init__(self) -> None:
        model = ForwardModel(OPTICS, LEDArray.square(3, pitch=8e-3, height=70e-3), (8, 10), dtype=np.float64)
        super().__init__(model, np.ones((len(model), *model.frame_shape)))
        rng = np.random.default_rng(0)
        self.a = rng.normal(0.0, 1.0, model.object_shape)
        self.h_of_led = rng.uniform(0.1, 1.0, (len(model), *model.object_shape))
        self.h = self.h_of_led.mean(axis=0)

    def _evaluate(
        self, x: NDArray[Any], batch: Minibatch, *, with_gradient: bool, observer: Any = None
    ) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
        h, weights = self.h_of_led[batch.leds], self._total_weights(batch) / batch.size
        misfits = 0.5 * np.sum(h * (x - self.a) ** 2, axis=(1, 2))
        return misfits, np.tensordot(weights, h, axes=1) * (x - self.a) if with_gradient else None


class Shrink(Prior):
    """r(x) = ½ ‖x‖², whose proximal operator is z/(1 + σ²)."""

    name = "shrink"
    has_objective = True

    def _denoise(self, image: Any, sigma: float) -> Any:
        return image / (1 + sigma**2)

    def _objective(self, image: Any) -> float:
        return 0.5 * float(np.sum(image**2))


@pytest.fixture(scope="module")
def problem() -> Quadratic:
    return Quadratic()


def converged(kind: type[Descent], problem: Quadratic, iterations: int = 400, **options: Any) -> Descent:
    solver = kind(problem, AllLEDs(np.arange(len(problem))), [Shrink(STRENGTH)], **options)
    history = solver.solve(Iterations(iterations))
    assert history.last.residual < 1e-8
    return solver


def minimiser(problem: Quadratic, strength: float = STRENGTH) -> NDArray[np.float64]:
    best: NDArray[np.float64] = problem.h * problem.a / (problem.h + strength)
    return best


def assert_same(x: NDArray[Any], expected: NDArray[Any], tolerance: float = 1e-6) -> None:
    np.testing.assert_allclose(x, expected, rtol=0, atol=tolerance * float(np.abs(expected).max()))


def test_the_double_is_what_it_says(problem: Quadratic) -> None:
    x, v = (np.random.default_rng(seed).normal(size=problem.a.shape) for seed in (1, 2))
    value, gradient = problem.gradient(x)
    assert value == pytest.approx(0.5 * np.sum(problem.h * (x - problem.a) ** 2))
    assert value == pytest.approx(problem.misfits(x).mean())
    assert value == pytest.approx(problem.value(x))
    slope = (problem.value(x + 1e-5 * v) - problem.value(x - 1e-5 * v)) / 2e-5
    assert np.sum(gradient * v) == pytest.approx(slope)
    # … and the three solutions below are three: no method can pass for another.
    assert np.abs(minimiser(problem) - problem.a).max() > 0.3


@pytest.mark.parametrize("step", ["auto", 0.5])
@pytest.mark.parametrize("acceleration", [False, True])
def test_pnp_reaches_the_minimiser(problem: Quadratic, acceleration: bool, step: Any) -> None:
    solver = converged(PnP, problem, acceleration=acceleration, step=step)
    assert_same(solver.x, minimiser(problem))


@pytest.mark.parametrize("data_steps", [1, 2, 5])
@pytest.mark.parametrize("acceleration", [False, True])
def test_admm_reaches_the_minimiser_however_few_its_inner_steps(
    problem: Quadratic, acceleration: bool, data_steps: int
) -> None:
    solver = converged(ADMM, problem, acceleration=acceleration, data_steps=data_steps)
    assert_same(solver.x, minimiser(problem))


@pytest.mark.parametrize("weight", [0.1, 0.25, 2.0])
@pytest.mark.parametrize("acceleration", [False, True])
def test_red_balances_the_gradient_with_what_the_denoiser_changes(
    problem: Quadratic, acceleration: bool, weight: float
) -> None:
    """h(x − a) + τ(x − x/(1 + σ²)) = 0 with τσ² = λ: a prior weaker by 1 + σ² = 1 + λ/τ, and so the more, the smaller
    the weight."""
    solver = converged(RED, problem, acceleration=acceleration, denoiser_weight=weight, step=1.2)
    tau = weight / 1.2
    assert_same(solver.x, minimiser(problem, STRENGTH / (1 + STRENGTH / tau)))
    assert np.abs(solver.x - minimiser(problem)).max() > 0.01


@pytest.mark.parametrize("steps", [2, 3, 8])
def test_several_steps_a_denoising_reach_their_own_fixed_point(problem: Quadratic, steps: int) -> None:
    """m gradient steps take x to a + ρ(x − a), ρ = (1 − γh)^m; the prior of weight mγλ takes that back to x."""
    step = 1.1
    solver = converged(PnP, problem, acceleration=False, steps_per_denoising=steps, step=step)
    rho = (1 - step * problem.h) ** steps
    assert_same(solver.x, problem.a * (1 - rho) / (1 - rho + steps * step * STRENGTH))


def test_several_short_steps_a_denoising_reach_the_minimiser(problem: Quadratic) -> None:
    """Because the weight of the prior adds up with the steps; the distance falls as γ."""
    distances = []
    for step in (0.4, 0.1, 0.025):
        solver = converged(PnP, problem, 100 + int(10 / step), acceleration=False, steps_per_denoising=4, step=step)
        distances.append(np.abs(solver.x - minimiser(problem)).max())
    np.testing.assert_allclose(distances[1:], np.array(distances[:-1]) / 4, rtol=0.3)
    assert distances[-1] < 0.02


@pytest.mark.parametrize("steps", [2, 3, 8])
def test_momentum_leaves_the_balance_of_prior_and_data(problem: Quadratic, steps: int) -> None:
    """The displacement that the momentum carries on is in σ: with short steps the minimiser is reached all the same."""
    distances = []
    for step in (0.05, 0.02):
        solver = PnP(
            problem, AllLEDs(np.arange(len(problem))), [Shrink(STRENGTH)], steps_per_denoising=steps, step=step
        )
        solver.solve(Iterations(round(300 / steps)))
        distances.append(np.abs(solver.x - minimiser(problem)).max())
    weaker = np.abs(minimiser(problem, STRENGTH / steps) - minimiser(problem)).max()
    assert distances[1] < 0.6 * distances[0]
    assert distances[1] < 0.3 * weaker, "with λ times the plain sum of the steps it would be the minimiser for λ/m"


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.sampler == "stratified"])
def test_minibatches_stay_around_the_solution_of_them_all(problem: Quadratic, method: str) -> None:
    chosen = METHODS[method]
    options: dict[str, Any] = {"acceleration": False, "step": 0.5}
    everything = converged(chosen.solver, problem, **{**chosen.options, **options})
    online = make_solver(problem, method, Shrink(STRENGTH), batch=6, **options)
    estimates: list[NDArray[Any]] = []
    online.solve(Iterations(300), [lambda solver, record: estimates.append(solver.x)])
    assert_same(np.mean(estimates[100:], axis=0), everything.x, tolerance=0.02)
    assert np.abs(online.x - everything.x).max() > 1e-4, "a minibatch is not everything"
