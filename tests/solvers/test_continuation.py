"""The margin, filled with what may lie there."""

from __future__ import annotations

import numpy as np

from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray
from fouriscope.solvers.continuation import continued
from tests.conftest import OPTICS

MODEL = ForwardModel(OPTICS, LEDArray.square(5, pitch=4e-3, height=70e-3), (20, 26), object="wave", margin=6)
WINDOW = (slice(None), *MODEL.geometry.object_window)


def test_the_window_stays_as_it_is_and_the_margin_does_not_count() -> None:
    rng = np.random.default_rng(0)
    one, other = (rng.normal(size=MODEL.x_shape).astype(MODEL.dtype) for _ in range(2))
    other[WINDOW] = one[WINDOW]
    found = continued(MODEL, one)
    np.testing.assert_array_equal(found[WINDOW], one[WINDOW])
    np.testing.assert_array_equal(found, continued(MODEL, other))
    assert (found.shape, found.dtype) == (one.shape, one.dtype)


def test_slow_structure_goes_on_and_fine_structure_fades() -> None:
    y, x = np.indices(MODEL.object_shape)
    scale = MODEL.object_shape[0] / MODEL.geometry.grid_shape[0]
    slow = np.cos(2 * np.pi * y / MODEL.object_shape[0])
    fine = np.cos(2 * np.pi * x / (2 * scale))
    margin = np.ones(MODEL.object_shape, bool)
    margin[MODEL.geometry.object_window] = False
    found = continued(MODEL, np.stack([slow, fine]).astype(MODEL.dtype))
    assert np.abs(found[0])[margin].max() > 0.5
    assert np.abs(found[1])[margin].std() < 0.3 * np.abs(fine)[margin].std()
