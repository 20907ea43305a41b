"""The microscope of the paper, which every benchmark looks through, and a sample for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.fidelity import DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray, Optics
from fouriscope.paper import paper_leds, paper_optics


def optics() -> Optics:
    return paper_optics()


def leds() -> LEDArray:
    """293 of them."""
    return paper_leds()


def sample(shape: tuple[int, ...]) -> NDArray[Any]:
    """A phase that no transform finds easy."""
    return np.random.default_rng(0).normal(0.0, 0.3, shape).astype(np.float32)


def fidelity(model: ForwardModel) -> tuple[DataFidelity, NDArray[Any]]:
    """The data fidelity of frames in memory, and an x somewhat off the one that made them."""
    x = sample(model.x_shape)
    return DataFidelity(model, model.intensity(np.float32(0.9) * x)), x
