"""A wave is the complex object itself: linear, on the smallest grid, and back to phase and absorption."""

from __future__ import annotations

import numpy as np
import pytest

from fouriscope.fidelity import DataFidelity
from fouriscope.forward import ForwardModel, check_gradient
from fouriscope.forward.objects import WaveObject
from fouriscope.optics import LEDArray
from tests.conftest import OPTICS

LEDS = LEDArray.square(7, pitch=4e-3, height=70e-3)


@pytest.mark.parametrize("loss", ["amplitude", "intensity", "poisson"])
def test_its_gradient_is_the_derivative(loss: str) -> None:
    model = ForwardModel(OPTICS, LEDS, (24, 24), object="wave", dtype=np.float64)
    rng = np.random.default_rng(0)
    x = rng.normal(0, 0.1, model.x_shape)
    frames = model.intensity(x) * rng.uniform(0.8, 1.2, (49, 24, 24))
    fidelity = DataFidelity(model, frames, loss=loss)
    assert check_gradient(fidelity.value, lambda at: fidelity.gradient(at).gradient, x).error < 1e-6


def test_its_grid_holds_the_field_and_no_more() -> None:
    wave, whole = (ForwardModel(OPTICS, LEDS, (24, 24), object=name) for name in ("wave", "complex"))
    assert wave.object_shape[0] < whole.object_shape[0]
    reach = wave.synthetic_na / wave.optics.wavelength / wave.geometry.frequency_step[0]
    assert 2 * reach + 3 <= wave.object_shape[0] < 2 * reach + 3 + 24


def test_phase_and_absorption_there_and_back() -> None:
    rng = np.random.default_rng(0)
    phase, absorption = rng.uniform(-1, 1, (8, 8)), rng.uniform(0, 2, (8, 8))
    wave = WaveObject()
    shown = wave.phase_and_absorption(wave.of_transmittance(np.exp(1j * phase - absorption)))
    assert np.ptp(shown[0] - phase) < 1e-12, "up to one constant"
    np.testing.assert_allclose(shown[1], absorption, atol=1e-12)


def test_flat_is_zero() -> None:
    model = ForwardModel(OPTICS, LEDS, (24, 24), object="wave")
    bright = model.geometry.bright_field
    frames = model.intensity(np.zeros(model.x_shape, np.float32))
    np.testing.assert_allclose(frames[bright], 1, rtol=1e-5)
    np.testing.assert_allclose(frames[~bright], 0, atol=1e-10)
