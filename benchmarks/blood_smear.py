"""A blood smear measured by others: how well each method predicts LEDs that it has not seen, beside EPRY."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import bar, table
from fouriscope.acquisition import Acquisition
from fouriscope.alignment import align
from fouriscope.calibration import Calibration, LEDGains, ZernikePupil
from fouriscope.fidelity import AllLEDs, DataFidelity, StratifiedSampler
from fouriscope.forward import ForwardModel
from fouriscope.optics import automatic_margin
from fouriscope.priors import BM3D, TV, NoPrior, Prior
from fouriscope.run.assemble import build_solver
from fouriscope.run.recipe import completed
from fouriscope.run.rehearsal import rehearsed
from fouriscope.settings import ReconstructionConfig
from fouriscope.settings.methods import Spectral
from fouriscope.solvers import EPRY, Iterations, PnP
from fouriscope.solvers.start import SWEEPS
from fouriscope.tuning.holdout import hold_out

DATA = Path(os.environ.get("FOURISCOPE_DATA", Path(__file__).parents[2] / "shared" / "data"))
ACQUISITION = DATA / "fpm" / "uconn_bloodsmear_green"
BATCH, PASSES = 60, 60
DRAWS = (0, 1, 2)
ZOOM = 4  # object pixels per frame pixel: enough for the field of NA 0.52
DECAYS = (0.03, 0.1, 0.3, 1.0)
PRIORS: dict[str, Callable[[], Prior]] = {"NoReg": NoPrior, "TV": TV, "BM3D": partial(BM3D, profile="fast")}
RECIPE = "recipe for measured frames"
BARS = {"TV": 1.0, "BM3D": 1.0, RECIPE: 0.7}
# LEDs nearer than this to the edge of the pupil, in bins, are not held out: a fraction of a bin decides whether their
# direct light passes, and that one pixel of the pupil decides their misfit.
EDGE = 1.0


def main() -> None:
    if not ACQUISITION.is_dir():
        print(f"skipped: no data in {ACQUISITION} (FOURISCOPE_DATA says where to look)")
        return
    data = aligned()
    margin = automatic_margin(data.frame_shape)
    scores: dict[str, list[tuple[NDArray[np.float64], NDArray[np.float64]]]] = {}
    for draw in DRAWS:
        held, seen = held_out(data, margin, draw)
        for decay in DECAYS:
            scores.setdefault(f"EPRY, decay {decay:g}", []).append(epry(seen, margin, held, decay))
        for name, prior in PRIORS.items():
            scores.setdefault(f"{name}-Online", []).append(online(seen, margin, held, prior))
        scores.setdefault(f"{RECIPE}, {PASSES // 3} passes", []).append(recipe(seen, held))
    best = min(_mean(found) for name, found in scores.items() if name.startswith("EPRY"))
    rows = []
    for name, found in scores.items():
        ratio = _mean(found) / best
        limit = next((limit for judged, limit in BARS.items() if name.startswith(judged)), None)
        what = f"blood smear, {name}: held-out misfit beside EPRY's best"
        cells = ["", ""] if limit is None else bar(what, ratio, limit)
        means = (f"{held.mean():.2f}" for held, _ in found)
        others = float(np.mean([fitted.mean() for _, fitted in found]))
        rows.append([name, *means, f"{_mean(found):.2f}", f"{others:.2f}", f"{ratio:.3f}", *cells])
    draws = (f"draw {draw}" for draw in DRAWS)
    header = ("method", *draws, "mean", "misfit of the others", "beside EPRY's best", "bar", "")
    title = f"Blood smear, held-out misfit, {PASSES} passes, amplitude loss, margin {margin}, brightness fitted"
    table(title, header, rows)


def _mean(found: list[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> float:
    """Over all draws of held-out LEDs: which ones are drawn decides much."""
    return float(np.mean([held.mean() for held, _ in found]))


def held_out(data: Acquisition, margin: int, draw: int) -> tuple[NDArray[np.int64], Acquisition]:
    """Some LEDs, and the acquisition in which they have weight 0."""
    geometry = _model(data, margin).geometry
    bin_na = max(geometry.frequency_step) * geometry.optics.wavelength
    clear = np.flatnonzero(np.abs(geometry.illumination_na - geometry.optics.na) > EDGE * bin_na)
    held = hold_out(geometry, clear, None, np.random.default_rng(draw))
    return held, replace(data, weights=np.where(np.isin(np.arange(len(data)), held), 0.0, 1.0))


def aligned() -> Acquisition:
    """The acquisition as ``fouriscope import`` describes it, focus and array found from its frames."""

    from fouriscope.cli.importing import run_import
    from fouriscope.run.assemble import build_acquisition
    from fouriscope.run.config import load_config

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "acquisition.toml"
        run_import(ACQUISITION, out, quiet=True)
        data = build_acquisition(load_config(out), out.parent)
    return align(data, circles=False, tell=lambda line: print(line, flush=True)).acquisition


def online(
    data: Acquisition, margin: int, held: NDArray[np.int64], prior: Callable[[], Prior]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Misfits of held-out and of other LEDs after PnP with minibatches: from a few
    sweeps of EPRY, with automatic strength, Zernike coefficients and gains free."""
    fidelity = DataFidelity.of(data, _model(data, margin), loss="amplitude")
    population = np.flatnonzero(fidelity.weights > 0)
    sampler = StratifiedSampler(population, BATCH, fidelity.model.geometry.bright_field)
    solver = PnP(fidelity, sampler, [prior(), prior()], acceleration=False, start="epry", seed=0)
    solver.calibration = Calibration([ZernikePupil(), LEDGains()])
    solver.solve(Iterations(round(PASSES * len(population) / BATCH)))
    return tuple(misfits(data, fidelity.model, solver.x, leds) for leds in (held, population))  # type: ignore[return-value]


def recipe(data: Acquisition, held: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same after what `fouriscope import` proposes now, with what its rehearsal finds, in a third of the passes,
    sweeps of its start included."""
    population = np.flatnonzero(data.frame_weights > 0)
    method = Spectral(start="epry", loss="amplitude")
    passes = PASSES // 3 - 2 * SWEEPS  # the start sweeps twice as often where it finds the pupil, too
    iterations = round(passes * len(population) / method.batch_of(len(population)))
    config = rehearsed(data, ReconstructionConfig.model_validate(completed({}, measured=True)))
    solver = build_solver(data, config)
    solver.solve(Iterations(iterations))
    return tuple(misfits(data, solver.fidelity.model, solver.x, leds) for leds in (held, population))  # type: ignore[return-value]


def epry(
    data: Acquisition, margin: int, held: NDArray[np.int64], decay: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same after EPRY, with the pupil that it found as the model's."""
    fidelity = DataFidelity.of(data, _model(data, margin), loss="amplitude")
    population = np.flatnonzero(fidelity.weights > 0)
    solver = EPRY(fidelity, AllLEDs(population), pupil_step=1.0, decay=decay, order="random", seed=0)
    solver.solve(Iterations(PASSES))
    return tuple(misfits(data, solver.model, solver.x, leds) for leds in (held, population))  # type: ignore[return-value]


def misfits(data: Acquisition, model: ForwardModel, x: NDArray[Any], leds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Σ (√y − s √I)² of each frame with the best brightness s²: that of an LED that was never seen is unknown."""
    found = []
    for led in leds:
        amplitude = np.sqrt(np.maximum(np.asarray(data.frames.frame(int(led)), np.float64), 0))
        predicted = np.sqrt(np.asarray(model.intensity(x, [int(led)])[0], np.float64))
        scale = np.sum(amplitude * predicted) / np.sum(predicted**2)
        found.append(float(np.sum((amplitude - scale * predicted) ** 2)))
    return np.array(found)


def _model(data: Acquisition, margin: int) -> ForwardModel:
    rows, columns = (ZOOM * (size + 2 * margin) for size in data.frame_shape)
    return ForwardModel(
        data.optics,
        data.illumination,
        data.frame_shape,
        pupil=data.pupil,
        object="complex",
        object_shape=(rows, columns),
        margin=margin,
        patch_center=data.patch_center,
    )


if __name__ == "__main__":
    main()
