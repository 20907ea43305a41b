"""The small network inside the solver, on drawn cells that it was not trained on, beside TV and BM3D: SNR and time.

The cells are those of :mod:`fouriscope.simulation.samples`, which are drawn by other code than the specimens of
``tools/training_specimens.py``. Every prior finds its strength itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.microscope import leds, optics
from benchmarks.report import bar, table
from fouriscope.forward import ForwardModel
from fouriscope.priors import BM3D, TV, Prior, SmallCNN
from fouriscope.reconstruction import reconstruct
from fouriscope.simulation import simulate
from fouriscope.simulation.samples import sample

FRAME, ITERATIONS, PHASE = 48, 150, 0.3
PROBLEMS = ((5, 40.0), (6, 40.0), (5, 30.0), (6, 30.0))
"""(seed of the cells, SNR of the stack in dB)."""
BETTER, RIVAL = 0.3, "BM3D"


def cells(shape: tuple[int, int], seed: int) -> NDArray[Any]:
    """The phase of drawn cells, between 0 and :data:`PHASE` rad."""
    absorbing = sample("cells", shape, np.random.default_rng(seed))
    phase = np.unwrap(np.unwrap(np.angle(absorbing), axis=0), axis=1)
    return np.asarray(PHASE * (phase - phase.min()) / np.ptp(phase), np.float32)


def main(weights: tuple[Path, ...] = ()) -> None:
    """``weights`` are further files of weights to compare."""
    model = ForwardModel(optics(), leds(), (FRAME, FRAME))
    priors: dict[str, Callable[[], Prior]] = {
        "TV": TV,
        "BM3D fast": lambda: BM3D(profile="fast"),
        RIVAL: BM3D,
        "CNN": SmallCNN,
        **{path.stem: lambda path=path: SmallCNN(weights=str(path)) for path in weights},  # type: ignore[misc]
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in priors}
    for seed, snr_db in PROBLEMS:
        data = simulate(model, cells(model.object_shape, seed), snr_db=snr_db, noise="stack", seed=0)
        for name, prior in priors.items():
            history = reconstruct(data, prior=prior(), iterations=ITERATIONS, seed=0).history
            found[name].append((float(history["snr"][-1]), 1e3 * history.last.seconds / ITERATIONS))
    means = {name: np.mean(values, axis=0) for name, values in found.items()}
    rows = []
    for name, values in found.items():
        (gain, _), share = means[name] - means[RIVAL], means[name][1] / means[RIVAL][1]
        bars = ["", "", "", ""]
        if isinstance(priors[name](), SmallCNN):
            better = bar(f"{name} over {RIVAL} on cells / dB", gain, BETTER, at_least=True)
            bars = [*better, *bar(f"{name} beside {RIVAL} on cells, time", share, 1.0)]
        rows.append([name, *(f"{snr:.2f}" for snr, _ in values), f"{gain:+.2f}", *bars[:2], f"{share:.2f}", *bars[2:]])
    header = ["prior", *(f"{snr_db:g} dB, cells {seed}" for seed, snr_db in PROBLEMS)]
    header += [f"over {RIVAL}", "bar", "", "time", "bar", ""]
    table(f"SNR / dB on held-out cells after {ITERATIONS} iterations, and time beside {RIVAL}", header, rows)


if __name__ == "__main__":
    main()
