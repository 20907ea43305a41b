"""`fouriscope simulate --hostile`: files that describe a microscope as its user would, with the truth beside them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import tifffile
from rich.console import Console

from fouriscope.cli.simulate import run_hostile
from fouriscope.run import load_config
from fouriscope.run.microscope import build_illumination, build_optics
from fouriscope.simulation import HostileMicroscope


def test_frames_description_and_truth(tmp_path: Path) -> None:
    seed, out = 4, tmp_path / "set"
    run_hostile(out, seed, Console(quiet=True))
    microscope = HostileMicroscope.draw(seed)
    acquisition, truth = microscope.acquire(seed)

    config = load_config(out / "config.toml")
    counts = tifffile.imread(out / "frames.tif")
    assert counts.dtype == (np.uint8 if microscope.camera is not None and microscope.camera.bits == 8 else np.uint16)
    frame = (counts[7] - np.float32(config.frames.offset)) / np.float32(config.frames.gain)
    np.testing.assert_allclose(acquisition.frames.frame(7), frame, rtol=1e-5, atol=1e-6)
    described = build_illumination(config.illumination, out).directions()
    np.testing.assert_array_equal(described, microscope.described.directions())
    assert build_optics(config.microscope) == microscope.optics

    amplitude, phase = tifffile.imread(out / "truth.tif")
    np.testing.assert_allclose(amplitude * np.exp(1j * phase), truth.object, atol=1e-5)
    told = json.loads((out / "truth.json").read_text())
    np.testing.assert_array_equal(told["na"], truth.geometry.na)
    assert told["faults"]["exposure_ratio"] == microscope.exposure_ratio
