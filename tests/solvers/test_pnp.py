"""PnP-ISTA, FISTA and SGD against something known independently of them; the contract is in test_contract.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.errors import DivergenceError, InvalidInputError
from fouriscope.fidelity import AllLEDs, DataFidelity, FixedSubset, Minibatch
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray
from fouriscope.priors import L1, TV, Box, NoPrior, Prior, as_prior
from fouriscope.priors.from_callable import CallablePrior
from fouriscope.solvers import History, Iterations, PnP, Record, Solver
from fouriscope.solvers.safeguard import Safeguard
from tests.conftest import LEDS, OPTICS
from tests.solvers.problems import (
    dense_hessian,
    largest_curvature,
    make_solver,
    noisy,
    phase_problem,
    shapes,
    tiny_problem,
    zeros,
)


@pytest.fixture(scope="module")
def fidelity() -> DataFidelity:
    return phase_problem()


# ---------------------------------------------------------------------------------------------------------------------
# Against mathematics


def test_ista_never_climbs(fidelity: DataFidelity) -> None:
    """q = 1 and γ ≤ 1/L: d + λ TV falls in every iteration."""
    strength = 2e-3
    prior = TV(strength, accuracy=1e-4)
    solver = make_solver(fidelity, "ISTA, all", prior, step=0.9 / largest_curvature(fidelity))
    objective: list[float] = []

    def note(current: Solver, record: Record) -> None:
        objective.append(fidelity.value(current.x) + strength * prior.objective(current.x))

    solver.solve(Iterations(60), [note])
    assert np.all(np.diff(objective) <= 1e-9 * objective[0])
    assert objective[-1] < 0.5 * objective[0]


@pytest.mark.slow
def test_the_fixed_point_depends_neither_on_the_step_nor_on_the_method() -> None:
    """Because σ = √(γλ): all of them minimise d + λ TV."""
    model = ForwardModel(OPTICS, LEDArray.square(5, pitch=4e-3, height=70e-3), (16, 16), dtype=np.float64)
    fidelity = noisy(model, shapes(model.object_shape, 1.0), sigma=0.02)
    longest = 1 / largest_curvature(fidelity)
    estimates = []
    for method, step, iterations in (
        ("FISTA, all", 0.9 * longest, 400),
        ("FISTA, all", 0.4 * longest, 600),
        ("ISTA, all", 0.9 * longest, 1200),
    ):
        solver = make_solver(fidelity, method, TV(0.05, accuracy=1e-4), step=step)
        solver.solve(Iterations(iterations))
        assert solver.history.last.residual < 1e-4
        estimates.append(solver.x - solver.x.mean())
    for other in estimates[1:]:
        np.testing.assert_allclose(other, estimates[0], atol=1e-3 * np.ptp(estimates[0]))
    # … and it is not simply the start.
    assert np.ptp(estimates[0]) > 0.3


def test_weak_phase_converges_to_the_least_squares_solution() -> None:
    """For 1e-4 rad d is quadratic, and its minimiser on the observable components is −H⁺ ∇d(0)."""
    fidelity = tiny_problem(height=1e-4, sigma=2e-6)
    start = zeros(fidelity)
    hessian = dense_hessian(fidelity, start)
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-6 * np.abs(hessian).max())
    values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    observable = vectors[:, values > 0.02 * values[-1]]
    right = -(observable.T @ fidelity.gradient(start).gradient.ravel())
    expected = right / values[values > 0.02 * values[-1]]
    solver = make_solver(fidelity, "FISTA, all")
    solver.solve(Iterations(500))
    found = observable.T @ solver.x.ravel()
    assert np.linalg.norm(expected) > 1e-4
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


def test_a_prior_strong_enough_pins_the_image(fidelity: DataFidelity) -> None:
    steepest = float(np.abs(fidelity.gradient(zeros(fidelity)).gradient).max())
    pinned = make_solver(fidelity, "FISTA, all", L1(1.01 * steepest))
    history = pinned.solve(Iterations(5))
    np.testing.assert_array_equal(pinned.x, 0)
    assert history.last.residual == 0, "0 at a fixed point, also at a flat one"
    loose = make_solver(fidelity, "FISTA, all", L1(0.9 * steepest))
    loose.solve(Iterations(5))
    assert np.any(loose.x)


def test_bounds_hold_exactly(fidelity: DataFidelity) -> None:
    solver = make_solver(fidelity, "SGD, stratified", Box(0.0, 0.1))
    solver.solve(Iterations(20))
    assert solver.x.min() == 0.0
    assert solver.x.max() == 0.1


def test_without_a_prior_a_step_is_a_gradient_step(fidelity: DataFidelity) -> None:
    solver = make_solver(fidelity, "ISTA, all", NoPrior(), step=2.0)
    solver.solve(Iterations(1))
    np.testing.assert_array_equal(solver.x, -2.0 * fidelity.gradient(zeros(fidelity)).gradient)


def test_momentum_is_the_papers(fidelity: DataFidelity) -> None:
    """x² = s¹ − γ∇d(s¹) with s¹ = x¹ (q₀ = 1), s² = x² + (q₁ − 1)/q₂ (x² − x¹)."""
    solver = make_solver(fidelity, "FISTA, all", step=2.0)
    s = x = zeros(fidelity)
    q = 1.0
    for _ in range(4):
        following = s - 2.0 * fidelity.gradient(s).gradient
        q_next = (1 + math.sqrt(1 + 4 * q * q)) / 2
        s = following + (q - 1) / q_next * (following - x)
        x, q = following, q_next
    solver.solve(Iterations(4))
    np.testing.assert_allclose(solver.x, x, rtol=0, atol=1e-12)


def test_a_plain_function_is_called_with_sigma(fidelity: DataFidelity) -> None:
    sigmas: list[float] = []

    def denoiser(image: NDArray[Any], sigma: float) -> NDArray[Any]:
        sigmas.append(sigma)
        return image

    solver = make_solver(fidelity, "SGD, epochs", CallablePrior(denoiser, strength=0.25), step=4.0)
    solver.solve(Iterations(3))
    np.testing.assert_allclose(sigmas, math.sqrt(4.0 * 0.25))
    sigmas.clear()
    automatic = make_solver(fidelity, "SGD, epochs", as_prior(denoiser))
    history = automatic.solve(Iterations(3))
    assert all(sigma > 0 for sigma in sigmas)
    np.testing.assert_allclose(sigmas, np.sqrt(history["step"] * history["strength"]))


def test_each_image_of_a_complex_object_has_its_own_prior() -> None:
    model = ForwardModel(OPTICS, LEDS, (24, 24), object="complex", dtype=np.float64)
    truth = np.stack([shapes(model.object_shape, 0.3), shapes(model.object_shape, 0.2)[::-1]])
    fidelity = noisy(model, truth)
    sigmas: dict[str, list[float]] = {"phase": [], "absorption": []}

    def spy(name: str) -> CallablePrior:
        def denoiser(image: NDArray[Any], sigma: float) -> NDArray[Any]:
            sigmas[name].append(sigma)
            return image

        return CallablePrior(denoiser, strength={"phase": 1e-4, "absorption": 4e-4}[name])

    everything = AllLEDs(np.arange(len(fidelity)))
    solver = PnP(fidelity, everything, [spy("phase"), spy("absorption")], step=2.0)
    solver.solve(Iterations(2))
    np.testing.assert_allclose(sigmas["phase"], math.sqrt(2e-4))
    np.testing.assert_allclose(sigmas["absorption"], math.sqrt(8e-4))
    bounded = PnP(fidelity, everything, [NoPrior(), Box(0.0)])
    bounded.solve(Iterations(40))
    assert bounded.x[0].min() < 0 <= bounded.x[1].min()
    assert fidelity.value(bounded.x) < 0.2 * fidelity.value(np.zeros(model.x_shape))


# ---------------------------------------------------------------------------------------------------------------------
# Steps that are too long


def test_a_subset_diverges_at_the_step_that_suits_them_all() -> None:
    """60 of the paper's 293 LEDs, among them 17 of the 37 bright-field ones that hold nearly all the curvature."""
    model = ForwardModel(OPTICS, LEDArray.disc(pitch=4e-3, height=70e-3, radius=9.5), (40, 40))
    fidelity = noisy(model, shapes(model.object_shape, 1.0))
    subset = FixedSubset(np.arange(len(model)), 60, np.random.default_rng(327))
    assert np.count_nonzero(model.geometry.bright_field[subset.population]) == 17
    suits_all = 1 / largest_curvature(fidelity)
    with pytest.raises(DivergenceError, match=r'step=.*use step="auto" or a smaller number'):
        PnP(fidelity, subset, [NoPrior()], step=suits_all).solve(Iterations(300))
    automatic = PnP(fidelity, subset, [NoPrior()])
    automatic.solve(Iterations(100))
    assert automatic.step_size < suits_all
    assert fidelity.value(automatic.x, subset.population) < 0.03 * fidelity.value(zeros(fidelity), subset.population)


def test_what_was_seen_of_the_curvature_is_part_of_the_state(fidelity: DataFidelity) -> None:
    """A step that the next iteration would shorten is also shortened by a run that starts from the state."""
    straight, resumed = make_solver(fidelity), make_solver(fidelity)
    straight.solve(Iterations(4))
    suitable = straight.step_size
    straight.step_size *= 50
    resumed.load_state(straight.state())
    resumed.history = History(list(straight.history))
    straight.solve(Iterations(5))
    resumed.solve(Iterations(5))
    assert straight.step_size < 20 * suitable, "shortened"
    assert resumed.step_size == straight.step_size
    np.testing.assert_array_equal(resumed.x, straight.x)


def test_the_safeguard_compares_like_with_like() -> None:
    """After bright-field frames that fit, dark-field frames of noise look bad; on their own they are as always."""
    model = ForwardModel(OPTICS, LEDS, (24, 24), dtype=np.float64)
    bright = model.geometry.bright_field
    fitted = shapes(model.object_shape, 0.3)
    frames = model.intensity(fitted)
    frames += np.random.default_rng(0).normal(0, np.where(bright, 1e-3, 5e-2)[:, None, None], frames.shape)
    fidelity = DataFidelity(model, frames)
    batches = [Minibatch(leds, np.ones(len(leds)), len(leds)) for leds in map(np.flatnonzero, (bright, ~bright))]
    safeguard = Safeguard(fidelity)

    def accepts(x: NDArray[Any], batch: Minibatch) -> bool:
        return safeguard.accepts(*fidelity.gradient(x, batch), x, batch)

    assert all(accepts(fitted, batches[0]) for _ in range(5))
    assert safeguard.best < 0.01
    assert all(accepts(fitted, batches[1]) for _ in range(20))
    assert safeguard.trend / safeguard.empty_trend > 0.5, "the trend alone would have raised an alarm"
    assert not accepts(8 * fitted, batches[0])
    np.testing.assert_array_equal(safeguard.retreat(), fitted)


class Poison(Prior):
    """A denoiser that makes an amplifier of the object, e^{1e200}."""

    name = "poison"

    def _denoise(self, image: Any, sigma: float) -> Any:
        return image - 1e200


def test_nothing_that_goes_astray_is_returned() -> None:
    model = ForwardModel(OPTICS, LEDS, (24, 24), object="complex", dtype=np.float64)
    fidelity = noisy(model, np.zeros(model.x_shape))
    solver = PnP(fidelity, AllLEDs(np.arange(len(fidelity))), [NoPrior(), Poison(1.0)])
    with pytest.raises(DivergenceError, match="no step size works"):
        solver.solve(Iterations(50))


# ---------------------------------------------------------------------------------------------------------------------
# Wrong input


def test_one_prior_for_each_image(fidelity: DataFidelity) -> None:
    everything = AllLEDs(np.arange(len(fidelity)))
    with pytest.raises(InvalidInputError, match="one prior for each of phase is needed, got 2"):
        PnP(fidelity, everything, [NoPrior(), NoPrior()])
    with pytest.raises(InvalidInputError, match="got 0"):
        PnP(fidelity, everything, [])


def test_two_images_do_not_share_a_prior_object() -> None:
    model = ForwardModel(OPTICS, LEDS, (24, 24), object="complex")
    fidelity = noisy(model, np.zeros(model.x_shape))
    prior = TV()
    with pytest.raises(InvalidInputError, match="its own prior object"):
        PnP(fidelity, AllLEDs(np.arange(len(fidelity))), [prior, prior])


@pytest.mark.parametrize("step", [0.0, -1.0, math.nan, math.inf])
def test_a_step_is_positive(fidelity: DataFidelity, step: float) -> None:
    with pytest.raises(InvalidInputError, match=r"step must be a (positive|finite) number"):
        make_solver(fidelity, step=step)


def test_a_state_of_another_size_is_refused(fidelity: DataFidelity) -> None:
    other = make_solver(phase_problem((16, 16)))
    other.solve(Iterations(1))
    with pytest.raises(InvalidInputError, match="the saved estimate is float64 of shape"):
        make_solver(fidelity).load_state(other.state())


def test_a_start_from_which_no_step_can_be_found() -> None:
    """A hundred e-folds of gain overflow single precision, a hundred of absorption leave no light."""
    model = ForwardModel(OPTICS, LEDS, (24, 24), object="complex")
    fidelity = noisy(model, np.zeros(model.x_shape))
    for absorption in (-100.0, 100.0):
        start = np.stack([np.zeros(model.object_shape), np.full(model.object_shape, absorption)])
        solver = PnP(fidelity, AllLEDs(np.arange(len(model))), [NoPrior(), NoPrior()], start=start)
        with pytest.raises(InvalidInputError, match="no curvature at the starting point"):
            solver.solve(Iterations(1))


def test_snr_is_reported_only_where_there_is_one(fidelity: DataFidelity) -> None:
    truth = shapes(fidelity.model.object_shape, 0.3)
    known = make_solver(fidelity, truth=truth).solve(Iterations(10))
    assert np.all(np.diff(known["snr"]) > 0)
    assert math.isnan(make_solver(fidelity).solve(Iterations(1)).last.snr)
    assert math.isnan(make_solver(fidelity, truth=zeros(fidelity)).solve(Iterations(1)).last.snr)
