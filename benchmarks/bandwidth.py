"""LEDs with a size and a bandwidth: what a model of points of one wavelength makes of their frames, and what ours does.

Frames are simulated from 9 × 9 points of each die in 11 wavelengths, which neither model knows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.die import ELECTRONS, FRAME, METHODS, OBJECT, error, truth
from benchmarks.microscope import leds, optics
from benchmarks.microscope import sample as sample_x
from benchmarks.report import bar, table
from benchmarks.timing import interleaved
from fouriscope.fidelity import DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.paper import PAPER_BANDWIDTH
from fouriscope.simulation import Camera, simulate

DIE, LIMIT = 0.3e-3, 1.3


def main() -> None:
    o = truth()
    wide, large = replace(optics(), bandwidth=PAPER_BANDWIDTH), replace(leds(), die=DIE)
    camera = Camera(ELECTRONS, offset=100)
    model = ForwardModel(optics(), leds(), FRAME, object="complex", object_shape=OBJECT)
    ideal = simulate(model, o, camera=camera, seed=0)
    full = ForwardModel(wide, large, FRAME, object="complex", object_shape=OBJECT)
    real = simulate(full, o, camera=camera, seed=0)
    models = {
        "as points of one wavelength": (optics(), leds()),
        "with the die": (optics(), large),
        "with the die and the bandwidth": (wide, large),
    }
    rows = []
    for name in METHODS:
        best = error(ideal, o, name)
        rows.append([name, "ideal LEDs", f"{best:.3f}", "", "", ""])
        for what, (microscope, lights) in models.items():
            found = error(replace(real, optics=microscope, illumination=lights), o, name)
            limit = ["", ""]
            if what == list(models)[-1]:
                limit = bar(f"{name}, 20 nm and dies of 0.3 mm", found / best, LIMIT)
            rows.append([name, what, f"{found:.3f}", f"{found / best:.2f}", *limit])
    title = f"NRMSE of the field, {len(leds())} LEDs of 0.3 mm and 20 nm, frames of 64², {ELECTRONS} electrons"
    table(title, ("method", "frames and model", "NRMSE", "beside ideal", "bar", ""), rows)
    frames, x = np.asarray(real.frames, np.float32), sample_x(full.x_shape)
    calls = {}
    for what, one in (("points", model), ("ours", full)):
        fidelity = DataFidelity(one, frames)
        calls[what] = lambda fidelity=fidelity: fidelity.gradient(x)
    seconds = interleaved(calls, 20)
    row = [str(len(full.sources)), *(f"{1e3 * seconds[what]:.1f}" for what in calls)]
    ratio = f"{seconds['ours'] / seconds['points']:.2f}"
    table("A gradient over all frames", ("sources", "points / ms", "ours / ms", "ratio"), [[*row, ratio]])


if __name__ == "__main__":
    main()
