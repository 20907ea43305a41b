"""The curvature against a Hessian that is written down in full."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray
from fouriscope.solvers import Iterations
from fouriscope.solvers.step_size import curvature, hessian_product
from tests.conftest import OPTICS, random_x, small_model
from tests.solvers.problems import dense_hessian, make_solver, noisy, phase_problem, shapes, tiny_problem

LOSSES = ["intensity", "amplitude", "poisson"]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("height", [0.0, 0.5])
def test_curvature_is_the_largest_eigenvalue(loss: str, height: float) -> None:
    fidelity = tiny_problem(height=0.5, loss=loss)
    x = shapes(fidelity.model.object_shape, height)
    largest = float(np.linalg.eigvalsh(dense_hessian(fidelity, x))[-1])
    for seed in range(3):
        estimate = curvature(fidelity, x, None, np.random.default_rng(seed))
        assert 0.9 * largest < estimate < 1.03 * largest
    assert curvature(fidelity, x, None, np.random.default_rng(0), iterations=40) == pytest.approx(largest, rel=0.02)


@pytest.mark.parametrize("loss", LOSSES)
def test_hessian_product_is_that_of_the_matrix(loss: str) -> None:
    fidelity = tiny_problem(height=0.3, loss=loss)
    x = shapes(fidelity.model.object_shape, 0.2)
    v = np.random.default_rng(0).standard_normal(x.shape)
    expected = (dense_hessian(fidelity, x) @ v.ravel()).reshape(x.shape)
    found = hessian_product(fidelity, x, v, None, probe=1e-4)
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("object_model", ["phase", "complex"])
def test_hessian_is_symmetric(object_model: str) -> None:
    """⟨u, H v⟩ = ⟨H u, v⟩, with a complex, asymmetric pupil and frames that are not square."""
    model = small_model("aberrated", object="complex" if object_model == "complex" else "phase")
    x = 0.2 * random_x(model)
    fidelity = noisy(model, x)
    rng = np.random.default_rng(5)
    u, v = rng.standard_normal((2, *model.x_shape))
    one = np.vdot(u, hessian_product(fidelity, x, v, None, probe=1e-4))
    other = np.vdot(hessian_product(fidelity, x, u, None, probe=1e-4), v)
    scale = np.linalg.norm(u) * np.linalg.norm(hessian_product(fidelity, x, v, None, probe=1e-4))
    assert abs(one - other) < 1e-6 * scale


def test_hessian_product_is_linear_in_the_length_of_v() -> None:
    fidelity = tiny_problem(height=0.3)
    x = shapes(fidelity.model.object_shape, 0.2)
    v = np.random.default_rng(0).standard_normal(x.shape)
    np.testing.assert_allclose(
        hessian_product(fidelity, x, 1e6 * v, None), 1e6 * hessian_product(fidelity, x, v, None), rtol=1e-9
    )


def test_single_precision_sees_the_same_curvature() -> None:
    estimates = []
    for dtype in (np.float32, np.float64):
        fidelity = phase_problem(dtype=dtype)
        x = np.zeros(fidelity.model.x_shape, dtype)
        estimates.append(curvature(fidelity, x, None, np.random.default_rng(0)))
    assert estimates[0] == pytest.approx(estimates[1], rel=0.02)


@pytest.mark.parametrize("loss", ["intensity", "poisson"])  # the amplitude has a kink where a dark-field frame is dark
def test_the_automatic_step_is_one_over_the_curvature(loss: str) -> None:
    fidelity = phase_problem(loss=loss)
    solver = make_solver(fidelity, "ISTA, all")
    solver.solve(Iterations(1))
    x = np.zeros(fidelity.model.x_shape)
    expected = curvature(fidelity, x, None, np.random.default_rng(1), iterations=30)
    assert 0.95 / expected < solver.step_size < 1.15 / expected


def test_a_bright_spot_in_a_dark_field_is_not_an_infinite_curvature() -> None:
    """The eigenvector gathers in the spot, where a displacement of 0.02 rad rms would be some units of absorption."""
    leds = LEDArray.square(3, pitch=8e-3, height=70e-3)
    model = ForwardModel(OPTICS, leds, (48, 48), object="complex", dtype=np.float64)
    x = np.zeros(model.x_shape)
    x[1] = 4.0
    x[1, 40:44, 50:54] = -1.5
    fidelity = noisy(model, np.zeros(model.x_shape))
    v = np.random.default_rng(1).standard_normal(x.shape)
    largest = 0.0
    for _ in range(15):  # a power iteration, with displacements that are small in every pixel
        v /= np.linalg.norm(v)
        w = hessian_product(fidelity, x, v, None, probe=1e-6)
        largest, v = float(np.vdot(v, w)), w
    assert curvature(fidelity, x, None, np.random.default_rng(0)) == pytest.approx(largest, rel=0.05)


def test_products_that_are_not_finite_end_the_search_and_are_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    fidelity = tiny_problem(height=0.3)
    x = shapes(fidelity.model.object_shape, 0.3)
    products = iter(range(8))

    def product(*arguments: Any) -> NDArray[Any]:
        return hessian_product(*arguments) * (np.nan if next(products) > 3 else 1.0)

    expected = curvature(fidelity, x, None, np.random.default_rng(0), iterations=4)
    monkeypatch.setattr("fouriscope.solvers.step_size.hessian_product", product)
    assert curvature(fidelity, x, None, np.random.default_rng(0)) == expected
    products = iter([9])
    assert np.isnan(curvature(fidelity, x, None, np.random.default_rng(0)))
