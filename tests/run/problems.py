"""Small configurations and acquisitions on disk."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from fouriscope.forward import ForwardModel
from fouriscope.run import RunConfig
from fouriscope.run.config import parse_config
from tests.conftest import LEDS, OPTICS
from tests.solvers.problems import shapes

DOCUMENT: dict[str, Any] = {
    "frames": {"path": "frames.npy", "truth": "truth.npy"},
    "microscope": {"wavelength": 513e-9, "na": 0.2, "magnification": 8.1485, "camera_pixel": 6.5e-6},
    "illumination": {"kind": "square", "shape": [7, 7], "pitch": 4e-3, "height": 70e-3},
    "object": {"margin": 0},
    "solver": {"batch": 12},
    "stop": {"iterations": 20},
    "verdict": {"enabled": False},  # it takes longer than such a run; tests/run/test_verdict.py asks for it
}


def document(**sections: dict[str, Any]) -> dict[str, Any]:
    """The configuration above with some keys changed; a key of value None is left out."""
    changed = copy.deepcopy(DOCUMENT)
    for section, values in sections.items():
        merged = changed.get(section, {}) | values
        changed[section] = {key: value for key, value in merged.items() if value is not None}
    return changed


def config(**sections: dict[str, Any]) -> RunConfig:
    return parse_config(document(**sections), where="test")


def write_acquisition(folder: Path, *, seed: int = 0, **sections: dict[str, Any]) -> Path:
    """frames.npy, truth.npy and config.toml of a small problem; returns the path of the configuration."""
    model = ForwardModel(OPTICS, LEDS, (24, 24))
    truth = shapes(model.object_shape, 0.3).astype(np.float32)
    frames = model.intensity(truth)
    frames += np.random.default_rng(seed).normal(0.0, 0.01, frames.shape).astype(np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "frames.npy", frames)
    np.save(folder / "truth.npy", truth)
    path = folder / "config.toml"
    path.write_text(tomli_w.dumps(document(**sections)), encoding="utf-8")
    return path
