"""Object models: how far a step may go in a pixel, and where amplitudes end."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition, ArrayFrames
from fouriscope.errors import DivergenceError
from fouriscope.fidelity import AllLEDs, DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import BRIGHTEST, DARKEST, ComplexObject, ObjectModel, PhaseObject, WaveObject
from fouriscope.priors import NoPrior
from fouriscope.solvers import Iterations, PnP
from fouriscope.solvers.denoising import Denoising
from tests.conftest import LEDS, OPTICS
from tests.solvers.problems import shapes


def test_the_gradient_is_shortened_by_the_intensity_of_bright_pixels() -> None:
    x = np.zeros((2, 2, 2))
    x[1] = [[math.log(0.5), 0.0], [0.7, -1.0]]
    gradient = np.arange(8.0).reshape(2, 2, 2) + 1
    factor = np.array([[0.25, 1.0], [1.0, math.exp(-2)]])
    np.testing.assert_allclose(ComplexObject().tempered(x, gradient), gradient * factor)
    single = gradient.astype(np.float32)
    assert ComplexObject().tempered(x.astype(np.float32), single).dtype == np.float32
    np.testing.assert_array_equal(PhaseObject().tempered(x[0], gradient[0]), gradient[0])


def test_the_curvature_of_a_pixel_grows_with_its_intensity() -> None:
    """Why: along one pixel's phase, d″ at a bright pixel is |o|² times that at a clear one."""
    model = ForwardModel(OPTICS, LEDS, (24, 24), object="complex", dtype=np.float64)
    clear = np.zeros(model.x_shape)
    bright = clear.copy()
    bright[1, 20, 20] = -math.log(3.0)

    def curvature(x: NDArray[Any]) -> float:
        fidelity = DataFidelity.of(Acquisition(OPTICS, LEDS, ArrayFrames(model.intensity(x))), model)
        step = np.zeros(model.x_shape)
        step[0, 20, 20] = 1e-3
        return (fidelity.value(x + step) + fidelity.value(x - step) - 2 * fidelity.value(x)) / 1e-6

    assert curvature(bright) == pytest.approx(9 * curvature(clear), rel=0.15)


def test_a_bright_object_needs_no_smaller_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times the amplitude of the bright field, and the step that a clear object allows."""
    model = ForwardModel(OPTICS, LEDS, (24, 24), object="complex")
    truth = np.stack([shapes(model.object_shape, 0.3), np.full(model.object_shape, -math.log(3.0))]).astype(np.float32)
    flat = np.zeros_like(truth)
    flat[1] = truth[1]

    def solved(x: NDArray[np.float32], start: NDArray[np.float32], step: float | Literal["auto"]) -> PnP:
        data = Acquisition(OPTICS, LEDS, ArrayFrames(model.intensity(x)), periodic=True)
        everybody = AllLEDs(np.arange(len(LEDS)))
        fidelity = DataFidelity.of(data, model, loss="amplitude")
        solver = PnP(fidelity, everybody, [NoPrior(), NoPrior()], start=start, step=step, seed=0)
        solver.solve(Iterations(60))
        return solver

    step = solved(np.stack([truth[0], 0 * truth[1]]), 0 * flat, "auto").step_size
    misfits = solved(truth, flat, step).history["misfit"]
    assert misfits[-1] < 0.02 * misfits[0]
    monkeypatch.setattr(ComplexObject, "tempered", ObjectModel.tempered)
    with pytest.raises(DivergenceError):
        solved(truth, flat, step)


def test_amplitudes_stay_within_what_a_sample_can_have() -> None:
    model = ForwardModel(OPTICS, LEDS, (24, 24), object="complex")
    clear = model.intensity(np.zeros(model.x_shape, np.float32))
    fidelity = DataFidelity.of(Acquisition(OPTICS, LEDS, ArrayFrames(clear)), model)
    image = np.zeros(model.x_shape, np.float32)
    image[0] = 900.0  # a phase has no limits
    image[1, 0, :2] = 24_000.0, -50.0
    bounded = Denoising(fidelity, [NoPrior(), NoPrior()])(image, 1.0)
    np.testing.assert_allclose(np.exp(-bounded[1, 0, :2]), [DARKEST, BRIGHTEST], rtol=1e-5)
    np.testing.assert_array_equal(bounded[0], image[0])


@pytest.mark.parametrize("model", [PhaseObject(), ComplexObject(), WaveObject()], ids=lambda model: model.name)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_phase_alone_is_that_of_both(model: ObjectModel, dtype: Any) -> None:
    x = np.random.default_rng(0).normal(0.3, 0.5, model.x_shape((9, 7))).astype(dtype)
    np.testing.assert_array_equal(model.phase(x), model.phase_and_absorption(x)[0])
