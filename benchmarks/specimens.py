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

FRAME, ITERATIONS, PHASE = 48, 200, 0.3
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
            history = reconstruct(data, prior=prior(), loss="intensity", iterations=ITERATIONS, seed=0).history
            found[name].append((float(history["snr"][-1]), 1e3 * history.last.seconds / ITERATIONS))
    means = {name: np.mean(values, axis=0) for name, values in found.items()}
    rows = []
    for name, values in found.items():
        snr, milliseconds = means[name] - (means[RIVAL][0], 0)
        cells_of = bar(f"{name} over {RIVAL} on cells / dB", snr, BETTER, at_least=True) if "CNN" in name else ["", ""]
        rows.append([name, *(f"{value:.2f}" for value, _ in values), f"{snr:+.2f}", *cells_of, f"{milliseconds:.0f}"])
    header = ["prior", *(f"{db:g} dB, cells {seed}" for seed, db in PROBLEMS), f"over {RIVAL}", "bar", "", "ms"]
    table(f"SNR / dB on held-out cells after {ITERATIONS} iterations, ms per iteration", header, rows)


if __name__ == "__main__":
    main()
