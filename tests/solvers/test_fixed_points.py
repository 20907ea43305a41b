"""Where the methods lead on the real, nonlinear problem: each fixed point against its own equation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import DataFidelity
from fouriscope.priors import TV
from fouriscope.reductions import distance, norm
from fouriscope.solvers import ADMM, RED, Descent, Iterations
from tests.solvers.problems import largest_curvature, make_solver, phase_problem, zeros

STRENGTH = 1e-2


@pytest.fixture(scope="module")
def fidelity() -> DataFidelity:
    return phase_problem((12, 12))


@pytest.fixture(scope="module")
def step(fidelity: DataFidelity) -> float:
    return 0.9 / largest_curvature(fidelity)


def prior(accuracy: float = 1e-4) -> TV:
    return TV(STRENGTH, accuracy=accuracy, max_iterations=20_000)


def solved(fidelity: DataFidelity, method: str, iterations: int, **options: Any) -> Descent:
    solver = make_solver(fidelity, method, prior(), **options)
    history = solver.solve(Iterations(iterations))
    assert history.last.residual < 3e-4, "not converged"
    return solver


@pytest.fixture(scope="module")
def minimiser(fidelity: DataFidelity, step: float) -> NDArray[Any]:
    return solved(fidelity, "FISTA, all", 150, step=step).x


@pytest.mark.parametrize("options", [{}, {"data_steps": 2, "step": "auto"}, {"acceleration": False}], ids=str)
def test_admm_finds_the_minimiser_that_fista_finds(
    fidelity: DataFidelity, step: float, minimiser: NDArray[Any], options: dict[str, Any]
) -> None:
    admm = solved(fidelity, "ADMM, all", 90, **{"step": step, **options})
    assert distance(admm.x, minimiser) < 2e-3 * norm(minimiser)

    def objective(x: NDArray[Any]) -> float:
        return fidelity.value(x) + STRENGTH * prior().objective(x)

    assert objective(admm.x) == pytest.approx(objective(minimiser), rel=1e-4)
    assert objective(minimiser) < 0.5 * objective(zeros(fidelity)), "and it is not simply the start"


def test_admm_with_momentum_settles_down_beside_a_strong_prior() -> None:
    """Without its restarts the momentum keeps z and u swinging: a residual of 0.1, for ever."""
    fidelity = phase_problem((16, 16), height=0.6)
    admm = make_solver(fidelity, "ADMM, all", TV(1e-3))
    history = admm.solve(Iterations(120))
    assert np.all(history["residual"][-20:] < 0.01)


def test_at_a_fixed_point_of_admm_both_copies_agree(fidelity: DataFidelity, step: float) -> None:
    """v = z and u = −ρ∇d(z)."""
    admm = solved(fidelity, "ADMM, all", 70, step=step, acceleration=False)
    assert isinstance(admm, ADMM)
    arrays = admm.state().arrays
    scale = norm(admm.x)
    assert distance(arrays["own.v"], admm.x) < 1e-3 * scale
    dual = -admm.data_steps * step * fidelity.gradient(admm.x).gradient
    assert distance(arrays["own.u"], dual) < 1e-2 * norm(dual)


def test_red_solves_its_own_equation(fidelity: DataFidelity, step: float, minimiser: NDArray[Any]) -> None:
    """∇d(x) + τ(x − denoise_σ(x)) = 0 with τ = weight/γ and σ = √(λ/τ), and thus not the one of FISTA. The larger the
    weight, the smaller σ and the closer the two: τ(x − denoise_σ(x)) → λ∇r."""
    away = []
    for weight in (0.25, 1.0):
        tau = weight / step

        def left(x: NDArray[Any], tau: float = tau) -> float:
            gradient, denoised = fidelity.gradient(x).gradient, prior(1e-6).denoise(x, math.sqrt(STRENGTH / tau))
            return norm(gradient + tau * (x - denoised)) / norm(gradient)

        red = solved(fidelity, "RED, all", 120, step=step, denoiser_weight=weight)
        assert left(red.x) < 1e-3
        assert left(minimiser) > 0.05
        away.append(distance(red.x, minimiser))
    assert away[1] < 0.5 * away[0]


@pytest.mark.parametrize("data_steps", [0, -1, 2.5, "auto"])
def test_admm_refuses_impossible_inner_steps(fidelity: DataFidelity, data_steps: Any) -> None:
    with pytest.raises(InvalidInputError, match="data_steps must be a whole number"):
        make_solver(fidelity, "ADMM, all", data_steps=data_steps)


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf])
def test_red_refuses_an_impossible_weight(fidelity: DataFidelity, weight: float) -> None:
    with pytest.raises(InvalidInputError, match=r"denoiser_weight must be a (positive|finite) number"):
        make_solver(fidelity, "RED, all", denoiser_weight=weight)


def test_one_iteration_of_admm_is_its_formula(fidelity: DataFidelity) -> None:
    solver = make_solver(fidelity, "ADMM, all", TV(1e-3), step=2.0, data_steps=2, acceleration=False)
    solver.solve(Iterations(3))
    denoiser, rho = TV(1e-3), 2 * 2.0
    v = z = u = zeros(fidelity)
    for _ in range(3):
        for _ in range(2):
            v = v - (fidelity.gradient(v).gradient + (v - (z - u)) / rho) / (1 / 2.0 + 1 / rho)
        z = denoiser.denoise(v + u, math.sqrt(rho * 1e-3))
        u = u + v - z
    np.testing.assert_allclose(solver.x, z, rtol=0, atol=1e-12)


def test_one_iteration_of_red_is_its_formula(fidelity: DataFidelity) -> None:
    solver = make_solver(fidelity, "RED, all", TV(1e-3), step=2.0, denoiser_weight=0.5)
    assert isinstance(solver, RED)
    solver.solve(Iterations(4))
    denoiser, tau, q = TV(1e-3), 0.5 / 2.0, 1.0
    s = x = zeros(fidelity)
    for _ in range(4):
        change = fidelity.gradient(s).gradient + tau * (s - denoiser.denoise(s, math.sqrt(1e-3 / tau)))
        following, q_next = s - change / (1 / 2.0 + tau), (1 + math.sqrt(1 + 4 * q * q)) / 2
        s = following + (q - 1) / q_next * (following - x)
        x, q = following, q_next
    np.testing.assert_allclose(solver.x, x, rtol=0, atol=1e-12)
