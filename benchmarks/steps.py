"""Several gradient steps per denoising: what it saves, and what it costs in quality."""

from __future__ import annotations

import numpy as np

from benchmarks.quality import phase
from benchmarks.report import table
from fouriscope import settings
from fouriscope.paper import paper_model
from fouriscope.priors import BM3D
from fouriscope.reconstruction import reconstruct
from fouriscope.run import Result
from fouriscope.simulation import simulate

GRADIENTS = 420
STEPS = (1, 2, 3, 6, 10)


def main() -> None:
    model = paper_model()
    for name in ("camera", "coins"):
        data = simulate(model, phase(name, model.object_shape, 0.3), snr_db=40, noise="stack", seed=0)
        prior = BM3D(profile="fast")
        reconstruct(data, prior=prior, iterations=2, seed=0)  # compiles, and warms the caches of the processor
        results = {
            f"online, {steps}": reconstruct(
                data,
                prior=prior,
                loss="intensity",
                iterations=GRADIENTS // steps,
                method=settings.PnP(steps_per_denoising=steps),
                seed=0,
            )
            for steps in STEPS
        }
        results["full, 1"] = reconstruct(data, prior=prior, loss="intensity", batch=None, iterations=GRADIENTS, seed=0)
        level = results["full, 1"].history.last.snr - 0.25
        rows = []
        for label, result in results.items():
            history = result.history
            rows.append(
                [
                    label,
                    f"{history.last.snr:.2f}",
                    f"{1e3 * history.last.seconds / GRADIENTS:.1f}",
                    _reached(result, level),
                    f"{_seconds_to(result, level) / _seconds_to(results['full, 1'], level):.2f}",
                ]
            )
        header = (
            "frames, steps per denoising",
            "SNR / dB",
            "ms per gradient",
            f"s to {level:.2f} dB",
            "share of full's",
        )
        table(f"BM3D, {name}, phase in [0, 0.3] rad, automatic strength, {GRADIENTS} gradients", header, rows)


def _seconds_to(result: Result, level: float) -> float:
    reached = np.flatnonzero(result.history["snr"] >= level)
    return float(result.history["seconds"][reached[0]]) if len(reached) else float("inf")


def _reached(result: Result, level: float) -> str:
    seconds = _seconds_to(result, level)
    return f"{seconds:.1f}" if np.isfinite(seconds) else "never"
