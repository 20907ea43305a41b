"""Small problems that the solver tests share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.fidelity import DataFidelity, make_sampler
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray
from fouriscope.priors import NoPrior, Prior
from fouriscope.solvers import ADMM, RED, Descent, PnP
from fouriscope.solvers.step_size import curvature
from tests.conftest import LEDS, OPTICS


@dataclass(frozen=True)
class Method:
    """A solver, what it sees, and how many minibatches an iteration of it takes."""

    solver: type[Descent]
    sampler: str
    options: dict[str, Any] = field(default_factory=dict)
    gradients: int = 1


# A new method is added here and inherits the contract of test_contract.py.
METHODS = {
    "ISTA, all": Method(PnP, "all", {"acceleration": False}),
    "FISTA, all": Method(PnP, "all"),
    "FISTA, fixed subset": Method(PnP, "fixed"),
    "SGD, stratified": Method(PnP, "stratified"),
    "SGD, epochs": Method(PnP, "epochs"),
    "SGD, uniform": Method(PnP, "uniform", {"acceleration": False}),
    "SGD, three steps a denoising": Method(PnP, "stratified", {"steps_per_denoising": 3}, gradients=3),
    "ADMM, all": Method(ADMM, "all", {"data_steps": 5}, gradients=5),
    "ADMM, stratified": Method(ADMM, "stratified", {"data_steps": 3}, gradients=3),
    "RED, all": Method(RED, "all"),
    "RED, stratified": Method(RED, "stratified"),
}


def shapes(shape: tuple[int, int], height: float) -> NDArray[np.float64]:
    """A disc and half a bar over it: edges, flat parts, no symmetry. Between 0 and 1.5 ``height``."""
    y, x = np.indices(shape) / np.array(shape)[:, None, None] - 0.5
    picture: NDArray[np.float64] = height * ((np.hypot(y - 0.1, x + 0.05) < 0.25) + 0.5 * (np.abs(x - 0.2) < 0.08))
    return picture


def noisy(model: ForwardModel, x: NDArray[Any], *, sigma: float = 0.01, seed: int = 0, **options: Any) -> DataFidelity:
    """The fidelity of simulated frames with white noise of standard deviation ``sigma``."""
    frames = model.intensity(x.astype(model.dtype))
    frames += np.random.default_rng(seed).normal(0.0, sigma, frames.shape).astype(model.dtype)
    return DataFidelity(model, frames, **options)


def phase_problem(frame: tuple[int, int] = (24, 24), *, height: float = 0.3, **options: Any) -> DataFidelity:
    """49 LEDs and a phase object of the given height in radians."""
    model = ForwardModel(OPTICS, LEDS, frame, dtype=options.pop("dtype", np.float64))
    return noisy(model, shapes(model.object_shape, height), **options)


def tiny_problem(frame: tuple[int, int] = (8, 10), *, height: float, **options: Any) -> DataFidelity:
    """Nine LEDs and some 600 unknowns, so that a Hessian can be written down in full."""
    model = ForwardModel(OPTICS, LEDArray.square(3, pitch=8e-3, height=70e-3), frame, dtype=np.float64)
    return noisy(model, shapes(model.object_shape, height), **options)


def dense_hessian(fidelity: DataFidelity, x: NDArray[Any], displacement: float = 1e-4) -> NDArray[np.float64]:
    """∇²d(x), column by column, from central differences of the gradient."""
    hessian = np.empty((x.size, x.size))
    for column in range(x.size):
        shift = np.zeros(x.shape)
        shift.flat[column] = displacement
        difference = fidelity.gradient(x + shift).gradient - fidelity.gradient(x - shift).gradient
        hessian[:, column] = difference.ravel() / (2 * displacement)
    return hessian


def make_solver(
    fidelity: DataFidelity,
    method: str = "FISTA, all",
    prior: Prior | None = None,
    *,
    batch: int = 12,
    seed: int = 0,
    **options: Any,
) -> Descent:
    """A solver by the name of its method, without a prior unless one is given; ``options`` go before the method's."""
    chosen = METHODS[method]
    sampler = make_sampler(
        chosen.sampler,
        population=np.arange(len(fidelity)),
        batch=batch,
        bright_field=fidelity.model.geometry.bright_field,
        rng=np.random.default_rng((seed, 1)),
    )
    priors = [prior if prior is not None else NoPrior()]
    return chosen.solver(fidelity, sampler, priors, **{**chosen.options, "seed": seed, **options})


def zeros(fidelity: DataFidelity) -> NDArray[Any]:
    return np.zeros(fidelity.model.x_shape, fidelity.model.dtype)


def largest_curvature(fidelity: DataFidelity) -> float:
    """L of the data fidelity over all LEDs, at a flat object."""
    return curvature(fidelity, zeros(fidelity), None, np.random.default_rng(0), iterations=30)
