"""A process that compiles the kernels and one that loads them from the cache compute the same, to the last bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import hashlib
import numpy as np
import fouriscope as fs
from fouriscope.fidelity import AllLEDs
from fouriscope.solvers import EPRY
from numba.core import event

messages = []


class Watch(event.Listener):
    def on_start(self, seen):
        name = seen.data["dispatcher"].py_func.__qualname__
        messages.extend([name] if "raise_with_shape_context" in name else [])

    def on_end(self, seen):
        pass


event.register("numba:compile", Watch())
optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
model = fs.ForwardModel(optics, fs.LEDArray.square(7, pitch=4e-3, height=70e-3), (24, 20))
rng = np.random.default_rng(0)
x = rng.normal(0, 0.3, model.x_shape).astype(np.float32)
frames = rng.random((49, 24, 20)).astype(np.float32)
for loss in ("intensity", "amplitude", "poisson"):
    value, gradient = fs.DataFidelity(model, frames, loss=loss).gradient(x)
    print(loss, value, hashlib.sha256(gradient.tobytes()).hexdigest())
solver = EPRY(fs.DataFidelity(model, frames), AllLEDs(np.arange(49)), pupil_step=1.0, start=x)
misfit = solver.step().misfit
print("epry", misfit, *(hashlib.sha256(array.tobytes()).hexdigest() for array in solver.state().arrays.values()))
for prior in (fs.TV(), fs.BM3D(), fs.SmallCNN()):
    print(prior.name, hashlib.sha256(prior.denoise(x, 0.3).tobytes()).hexdigest())
print("messages", messages)
"""


@pytest.mark.slow
def test_compiled_and_cached_code_agree(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}

    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    compiled = run()
    assert compiled.count("\n") == 8
    assert "messages []" in compiled, "a slice assigned to a slice: its error message takes seconds to compile"
    stored = set(tmp_path.rglob("*.nbc"))
    assert sum(path.name.startswith("kernels.led_gradients") for path in stored) == 3  # one for each loss
    assert run() == compiled
    assert set(tmp_path.rglob("*.nbc")) == stored, "the second process compiled what the first had stored"
