"""A process that takes turns: for each line on stdin, the CPU seconds of one gradient or one pass on stdout.

It is run by its path with an earlier or the present ``src`` on PYTHONPATH, so it knows only what both have.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from fouriscope.fidelity import DataFidelity, StratifiedSampler
from fouriscope.paper import paper_model
from fouriscope.priors import TV
from fouriscope.solvers import PnP

BATCH = 60


def calls() -> dict[str, Callable[[], object]]:
    model = paper_model()
    x = np.random.default_rng(0).normal(0.0, 0.3, model.x_shape).astype(np.float32)
    fidelity = DataFidelity(model, model.intensity(np.float32(0.9) * x))
    leds = np.random.default_rng(1).permutation(len(model))
    sampler = StratifiedSampler(np.arange(len(model)), BATCH, model.geometry.bright_field)
    solver = PnP(fidelity, sampler, [TV(strength=1e-6)], step=1e-3, seed=0)
    return {
        f"gradient of {BATCH}": lambda: fidelity.gradient(x, leds[:BATCH]),
        f"gradient of {len(model)}": lambda: fidelity.gradient(x, leds),
        "pass": lambda: [solver.step() for _ in range(len(model) // BATCH)],
    }


def main() -> None:
    prepared = calls()
    for call in prepared.values():
        call()
    print("ready", flush=True)
    for line in sys.stdin:
        call = prepared[line.strip()]
        start = time.process_time()
        call()
        print(time.process_time() - start, flush=True)


if __name__ == "__main__":
    main()
