"""fpm-rs, as a rival. It needs Python 3.12 or later, so it runs in an interpreter of its own.

``FPM_RS_PYTHON`` names that interpreter:

    python3.13 -m venv fpm_rs && fpm_rs/bin/pip install --pre fpm-rs
    FPM_RS_PYTHON=fpm_rs/bin/python python -m benchmarks hostile
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition

# Frames from the axis outwards; brightness and background free, as nobody knows them. Directions between bins are
# interpolated in its own way.
PROGRAM = """
import sys
import numpy as np, fpm_rs

given = np.load(sys.argv[1])
optics = fpm_rs.Optics(*map(float, given["optics"]), defocus_distance=float(given["defocus"]))
vectors = 2 * np.pi / float(given["optics"][0]) * given["na"][:, ::-1]
light = fpm_rs.Illumination(fpm_rs.KVectorList(np.ascontiguousarray(vectors)))
frames = given["frames"]
problem = fpm_rs.ReconstructionProblem(frames, fpm_rs.compile_model(optics, light, frames.shape[1:]))
engine = fpm_rs.Epry(iterations=50, recover_frame_gains=True, recover_background=True)
np.save(sys.argv[2], np.asarray(engine.run(problem).object))
"""


def why_not() -> str | None:
    """The reason why it cannot be run here, or None."""
    python = os.environ.get("FPM_RS_PYTHON")
    if not python:
        return "FPM_RS_PYTHON does not name an interpreter (Python 3.12 or later) that has it"
    ended = subprocess.run([python, "-c", "import fpm_rs"], env=_environment(), capture_output=True, check=False)
    return f"{python} cannot import fpm_rs" if ended.returncode else None


def reconstruct(data: Acquisition, gains: NDArray[np.float64] | None = None) -> NDArray[Any]:
    """The complex field in the frames' window."""
    na = data.illumination.directions(data.patch_center)
    outwards = np.argsort(np.hypot(*na.T), kind="stable")
    frames = np.stack([np.asarray(data.frames.frame(int(led)), np.float64) for led in outwards])
    if gains is not None:
        frames = frames / gains[outwards, None, None]
    optics = data.optics
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npy"
        np.savez(
            given,
            frames=np.maximum(frames, 0),
            na=na[outwards],
            optics=[optics.wavelength, optics.na, optics.magnification, optics.camera_pixel],
            defocus=data.pupil.defocus,
        )
        command = [os.environ["FPM_RS_PYTHON"], "-c", PROGRAM, str(given), str(found)]
        ended = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)
        if ended.returncode:
            raise ValueError(f"fpm-rs failed: {ended.stderr.strip().splitlines()[-1]}")
        return np.asarray(np.load(found))


def _environment() -> dict[str, str]:
    """Ours, without the places where our own packages are."""
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
