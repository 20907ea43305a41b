"""The same microscope on every engine: each loss, object, margin, mask, gain and sum that the compiled loops know."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.fidelity import DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.optics import Sources
from tests.conftest import ABERRATED, LEDS, OPTICS, TURNED_LEDS, array_pupil

has_torch = find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not has_torch, reason='torch is not installed: pip install "fouriscope[torch]"')
OTHERS = ["scipy", pytest.param("torch", marks=needs_torch)]


def other_devices() -> list[Any]:
    """Devices of torch beside the CPU, as parameters that are skipped where this machine has none."""
    there = dict.fromkeys(("cuda", "mps"), False)
    if has_torch:
        import torch

        there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return [
        pytest.param(name, marks=pytest.mark.skipif(not is_there, reason=f"this machine has no {name} device"))
        for name, is_there in there.items()
    ]


CURVED = replace(OPTICS, wave_curvature=300.0)
FINE = {"object_shape": (120, 120)}  # room for sources beside the LEDs
# name → (arguments of ForwardModel, of DataFidelity)
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({"frame_shape": (24, 20)}, {}),
    "aberrated": ({"frame_shape": (18, 29), "pupil": ABERRATED, "illumination": TURNED_LEDS}, {}),
    "array pupil": ({"frame_shape": (22, 27), "pupil": array_pupil((22, 27))}, {}),
    "margin": ({"frame_shape": (21, 16), "margin": 3}, {}),
    "complex": ({"frame_shape": (20, 24), "object": "complex"}, {}),
    "wave": ({"frame_shape": (20, 24), "object": "wave", "margin": 2}, {}),
    "curved wave": ({"frame_shape": (20, 24), "object": "wave", "margin": 2, "optics": CURVED}, {}),
    "curved complex": ({"frame_shape": (20, 24), "object": "complex", "optics": CURVED}, {}),
    "curved phase": ({"frame_shape": (20, 24), "optics": CURVED}, {}),
    "gains": ({"frame_shape": (20, 20), "gains": np.linspace(0.5, 2.0, 49)}, {}),
    "mask": ({"frame_shape": (20, 24)}, {"mask": "common"}),
    "masks": ({"frame_shape": (20, 24), "margin": 2}, {"mask": "own"}),
    "weights": ({"frame_shape": (20, 24)}, {"weights": "some"}),
    "sums": ({"frame_shape": (20, 24), **FINE}, {"sums": True}),
    "sums, margin, mask": ({"frame_shape": (20, 24), **FINE, "margin": 2}, {"sums": True, "mask": "own"}),
    "colours": ({"frame_shape": (20, 24), **FINE, "pupil": ABERRATED}, {"sums": True, "colours": True}),
}


def model_of(case: str, engine: str, dtype: Any = np.float32, **options: Any) -> ForwardModel:
    """The model of a case on an engine."""
    arguments, more = CASES[case]
    model = ForwardModel(**{"optics": OPTICS, "illumination": LEDS, **arguments, **options}, dtype=dtype, engine=engine)
    if not more.get("sums"):
        return model
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 4, len(model))
    na = np.repeat(model.geometry.na, counts, axis=0) + rng.normal(0, 0.02, (counts.sum(), 2))
    scales = rng.uniform(0.95, 1.05, len(na)) if more.get("colours") else np.ones(0)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return model.revised(sources=Sources(na, rng.uniform(0.2, 1.0, len(na)), offsets, scales))


def an_x(model: ForwardModel, seed: int = 0) -> NDArray[Any]:
    return np.random.default_rng(seed).normal(0.0, 0.4, model.x_shape).astype(model.dtype)


def frames_of(case: str, dtype: Any = np.float32) -> NDArray[Any]:
    """Frames of another object with noise, so that some pixels are negative; the same for every engine."""
    model = model_of(case, "numba", dtype)
    frames = model.intensity(an_x(model, 1))
    frames += np.random.default_rng(2).normal(0.0, 0.05, frames.shape).astype(frames.dtype)
    return frames


def fidelity_of(
    case: str, engine: str, loss: Any = "intensity", dtype: Any = np.float32, **options: Any
) -> DataFidelity:
    """The fidelity of a case on an engine."""
    model, frames, more = model_of(case, engine, dtype, **options), frames_of(case, dtype), CASES[case][1]
    rng = np.random.default_rng(4)
    choices: dict[str, Any] = {}
    if more.get("mask"):
        choices["mask"] = rng.random(frames.shape if more["mask"] == "own" else frames.shape[1:]) < 0.8
        frames[np.broadcast_to(~choices["mask"], frames.shape)] = np.nan
    if more.get("weights"):
        choices["weights"] = rng.uniform(0.1, 2.0, len(frames))
        choices["weights"][7] = 0
        frames[7] = np.nan
    return DataFidelity(model, frames, loss=loss, **choices)


def difference(a: NDArray[Any], b: NDArray[Any]) -> float:
    """The largest difference, beside the largest value."""
    return float(np.abs(np.asarray(a, np.complex128) - b).max() / np.abs(b).max())
