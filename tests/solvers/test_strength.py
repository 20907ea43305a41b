"""The temperature of the noise against its closed form, and the strength it leads to against a scan of strengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fouriscope.fidelity import DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.metrics import snr
from fouriscope.priors import TV
from fouriscope.solvers import Iterations
from fouriscope.solvers.strength import noise_temperature
from tests.conftest import LEDS, OPTICS
from tests.solvers.problems import make_solver, noisy, phase_problem, shapes

EVERYTHING = np.arange(49)
SIGMA = 0.02


def temperature(fidelity: DataFidelity, population: Any = EVERYTHING, *, seeds: int = 4) -> float:
    x = shapes(fidelity.model.object_shape, 0.3)
    return float(
        np.mean([noise_temperature(fidelity, x, population, np.random.default_rng(seed)) for seed in range(seeds)])
    )


@pytest.fixture(scope="module")
def fidelity() -> DataFidelity:
    return phase_problem((32, 32), sigma=SIGMA)


def test_closed_form_for_white_noise(fidelity: DataFidelity) -> None:
    """T = 2σ²/J."""
    assert temperature(fidelity) == pytest.approx(2 * SIGMA**2 / 49, rel=0.15)


@pytest.mark.parametrize("factor", [0.25, 2.0])
def test_grows_with_the_variance(fidelity: DataFidelity, factor: float) -> None:
    other = phase_problem((32, 32), sigma=factor * SIGMA)
    assert temperature(other) / temperature(fidelity) == pytest.approx(factor**2, rel=0.15)


def test_falls_with_the_number_of_measurements(fidelity: DataFidelity) -> None:
    """Half of the LEDs: twice the temperature, because the fidelity is a mean."""
    half = np.flatnonzero(fidelity.model.geometry.bright_field)[::2]
    assert temperature(fidelity, half) == pytest.approx(2 * SIGMA**2 / len(half), rel=0.2)


def test_only_some_leds_are_probed_and_the_rest_accounted_for(
    fidelity: DataFidelity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fouriscope.solvers.strength.LEDS_PROBED", 16)
    assert temperature(fidelity, seeds=12) == pytest.approx(2 * SIGMA**2 / 49, rel=0.2)


def test_masked_pixels_may_hold_anything(fidelity: DataFidelity) -> None:
    frames = np.array([fidelity.frames.frame(led) for led in range(49)])
    mask = np.ones((32, 32), bool)
    mask[5, 9] = mask[20, 3] = False
    frames[:, 5, 9], frames[:, 20, 3] = np.nan, 1e4
    masked = DataFidelity(fidelity.model, frames, mask=mask)
    assert temperature(masked) == pytest.approx(temperature(fidelity), rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.01, 0.04])
def test_automatic_tv_is_within_a_decibel_of_the_best_of_a_scan(sigma: float) -> None:
    model = ForwardModel(OPTICS, LEDS, (32, 32))
    truth = shapes(model.object_shape, 0.3)
    fidelity = noisy(model, truth, sigma=sigma)

    def reached(prior: TV) -> tuple[float, float]:
        solver = make_solver(fidelity, "FISTA, all", prior)
        history = solver.solve(Iterations(150))
        return snr(solver.x, truth), history.last.strength

    automatic, strength = reached(TV())
    scan = [reached(TV(strength * factor))[0] for factor in (0.05, 0.15, 0.4, 1.0, 2.5, 7.0, 20.0)]
    assert automatic > max(scan) - 1.0
    assert max(scan) > min(scan) + 3.0, "the strength must matter, or this test shows nothing"
