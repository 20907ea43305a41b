"""Pupils in compiled code are those of Pupil.evaluate, and revised models are models."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.forward.pupils import LEDPupils
from fouriscope.optics import Pupil
from tests.conftest import CASES, LEDS, OPTICS, random_x, small_model

HIGH_ORDERS = Pupil({4: 1.0, 5: 0.3, 10: -0.2, 15: 0.3, 22: 0.1, 28: -0.2}, defocus=-165e-6)


def plainly(model: ForwardModel, pupil: Pupil, led: int) -> NDArray[Any]:
    geometry = model.geometry
    box, steps, fraction = geometry.support_box, geometry.frequency_step, geometry.fractions[led]
    rows = (np.arange(box.row0, box.row0 + box.height) - fraction[0]) * steps[0]
    columns = (np.arange(box.col0, box.col0 + box.width) - fraction[1]) * steps[1]
    return pupil.evaluate(rows[:, None], columns[None, :], model.optics, frequency_step=steps)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("case", [*CASES, "high orders, far out of focus"])
def test_compiled_pupils_are_the_plain_ones(case: str, dtype: Any) -> None:
    model = small_model(case if case in CASES else "square")
    pupil = model.pupil if case in CASES else HIGH_ORDERS
    stack, index = LEDPupils(model.geometry, pupil, np.dtype(dtype))(np.arange(len(model)))
    for led in range(len(model)):
        expected = plainly(model, pupil, led)
        np.testing.assert_allclose(stack[index[led]], expected, atol=1e-6 if dtype == np.complex64 else 1e-12)
        np.testing.assert_array_equal(stack[index[led]] == 0, expected == 0)


def test_pupils_on_the_frames_grid_and_back() -> None:
    pupils = small_model("margin").pupils
    values = np.arange(np.prod(pupils.box_shape)).reshape(pupils.box_shape) + 1.0
    on_grid = pupils.on_frame_grid(values)
    assert on_grid.shape == pupils.geometry.grid_shape
    np.testing.assert_array_equal(pupils.from_frame_grid(on_grid), values)
    middle = tuple(size // 2 for size in on_grid.shape)
    box = pupils.geometry.support_box
    assert on_grid[middle] == values[-box.row0, -box.col0], "zero frequency lies at n//2"


def test_gains_multiply_the_intensity() -> None:
    model, gains = small_model(), np.linspace(0.5, 2.0, 49)
    x = random_x(model)
    brighter = model.revised(gains=gains)
    np.testing.assert_allclose(brighter.intensity(x), gains[:, None, None] * model.intensity(x), rtol=1e-10)


def test_a_revised_model_is_the_model_made_anew() -> None:
    model, pupil, moved = small_model(), Pupil({7: 0.4}), LEDS.moved(shift=(0.3e-3, 0.1e-3), turn=0.02)
    x = random_x(model)
    revised = model.revised(pupil=pupil).revised(illumination=moved)
    anew = ForwardModel(OPTICS, moved, (24, 24), pupil=pupil, dtype=np.float64, object_shape=model.object_shape)
    np.testing.assert_array_equal(revised.intensity(x), anew.intensity(x))
    assert model.pupil.is_clear, "the model itself stays"


@pytest.mark.parametrize("gains", [np.ones(48), np.zeros(49), np.full(49, np.nan), -np.ones(49)])
def test_gains_that_are_none(gains: Any) -> None:
    with pytest.raises(InvalidInputError, match="gains must be 49 positive numbers"):
        small_model().revised(gains=gains)


def test_models_travel() -> None:
    """To the workers of a cluster, and into copies: without the lock of their pupils."""
    model = small_model("margin")
    x = random_x(model)
    expected = model.intensity(x, [3, 5])
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(copied.intensity(x, [3, 5]), expected)


def test_piston_is_part_of_the_field() -> None:
    model = small_model()
    turned = model.revised(pupil=Pupil({1: 0.5}))
    x = random_x(model)
    np.testing.assert_allclose(turned.field(x, [0]), np.exp(0.5j) * model.field(x, [0]), atol=1e-10)
