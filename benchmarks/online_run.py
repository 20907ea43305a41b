"""A process of its own for the memory benchmark: 20 minibatch gradients of frames on disk, then its peak memory.

Arguments: the .npy file, how often the LEDs are repeated, the object's side. Prints JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from benchmarks import microscope
from fouriscope.acquisition import open_frames
from fouriscope.fidelity import DataFidelity, EpochSampler
from fouriscope.forward import ForwardModel
from fouriscope.optics import Directions


def peak_bytes() -> int:
    """Peak resident memory of this process.

    Linux carries ``ru_maxrss`` over from the process that started this one, however large that was; VmHWM is our own.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> None:
    path, copies, side = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    directions = Directions(np.tile(microscope.leds().directions(), (copies, 1)))
    model = ForwardModel(microscope.optics(), directions, (100, 100), object_shape=(side, side))
    fidelity = DataFidelity(model, open_frames(path))
    compiled = peak_bytes()
    sampler, rng = EpochSampler(np.arange(len(model)), 60), np.random.default_rng(0)
    x = np.zeros(model.x_shape, model.dtype)
    for _ in range(20):
        x -= np.float32(1e-3) * fidelity.gradient(x, sampler.draw(rng)).gradient
    print(json.dumps({"peak": peak_bytes(), "compiled": compiled, "tables": model.pupils.nbytes, "leds": len(model)}))


if __name__ == "__main__":
    main()
