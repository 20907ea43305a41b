"""The microscope of the paper, which every benchmark looks through, and a sample for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.fidelity import DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray, Optics


def optics() -> Optics:
    return Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)


def leds() -> LEDArray:
    """293 of them."""
    return LEDArray.disc(pitch=4e-3, height=70e-3, radius=9.5)


def sample(shape: tuple[int, ...]) -> NDArray[Any]:
    """A phase that no transform finds easy."""
    return np.random.default_rng(0).normal(0.0, 0.3, shape).astype(np.float32)


def fidelity(model: ForwardModel) -> tuple[DataFidelity, NDArray[Any]]:
    """The data fidelity of frames in memory, and an x somewhat off the one that made them."""
    x = sample(model.x_shape)
    return DataFidelity(model, model.intensity(np.float32(0.9) * x)), x
