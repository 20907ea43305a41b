"""A blood smear measured by others: how well each method predicts LEDs that it has not seen, beside EPRY."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import bar, table
from fouriscope.acquisition import Acquisition
from fouriscope.alignment import align
from fouriscope.calibration import Calibration, Calibrator, LEDGains, ZernikePupil
from fouriscope.fidelity import AllLEDs, DataFidelity, StratifiedSampler
from fouriscope.forward import ForwardModel
from fouriscope.optics import Pupil, automatic_margin
from fouriscope.priors import BM3D, TV, NoPrior, Prior
from fouriscope.solvers import EPRY, Iterations, PnP
from fouriscope.tuning.holdout import hold_out

DATA = Path(os.environ.get("FOURISCOPE_DATA", Path(__file__).parents[2] / "shared" / "data"))
ACQUISITION = DATA / "fpm" / "uconn_bloodsmear_green"
BATCH, PASSES = 60, 50
ZOOM = 4  # object pixels a frame pixel: enough for the field of NA 0.52
DECAYS = (0.0, 0.1, 0.3, 1.0)


def main() -> None:
    if not ACQUISITION.is_dir():
        print(f"skipped: no data in {ACQUISITION} (FOURISCOPE_DATA says where to look)")
        return
    data = aligned()
    margin = automatic_margin(data.frame_shape)
    held = hold_out(_model(data, margin).geometry, np.arange(len(data)), None, np.random.default_rng(0))
    seen = replace(data, weights=np.where(np.isin(np.arange(len(data)), held), 0.0, 1.0))
    bright = _model(data, margin).geometry.bright_field[held]
    print(f"{len(held)} of {len(data)} LEDs held out, {int(bright.sum())} of them in bright field\n")
    rows: list[tuple[str, NDArray[np.float64], NDArray[np.float64]]] = []
    for decay in DECAYS:
        rows.append((f"EPRY, pupil recovered, decay {decay:g}", *epry(seen, margin, held, decay)))
    for name, prior in (("NoReg", NoPrior), ("TV", TV), ("BM3D", BM3D)):
        rows.append((f"{name}-Online", *online(seen, margin, held, prior, [ZernikePupil()])))
        rows.append((f"{name}-Online, gains too", *online(seen, margin, held, prior, [ZernikePupil(), LEDGains()])))
    best = min(float(scores.mean()) for name, scores, _ in rows if name.startswith("EPRY"))
    lines = []
    for name, scores, fitted in rows:
        score = float(scores.mean())
        judged = name.startswith(("TV", "BM3D"))
        cells = bar(f"blood smear, {name}: held-out misfit beside EPRY's best", score / best, 1) if judged else ["", ""]
        dark = float(scores[~bright].mean())
        lines.append(
            [name, f"{score:.5f}", f"{dark:.5f}", f"{float(fitted.mean()):.5f}", f"{score / best:.3f}", *cells]
        )
    header = ("method", "held-out misfit", "dark field alone", "misfit of the others", "beside EPRY's best", "bar", "")
    table(f"Blood smear, {PASSES} passes, amplitude loss, margin {margin}", header, lines)


def aligned() -> Acquisition:
    """The acquisition as ``fouriscope import`` describes it, focus and array found from its frames."""
    from rich.console import Console

    from fouriscope.cli.importing import run_import
    from fouriscope.run.assemble import build_acquisition
    from fouriscope.run.config import load_config

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "acquisition.toml"
        run_import(ACQUISITION, out, sets=[], force=False, console=Console(quiet=True))
        data = build_acquisition(load_config(out), out.parent)
    return align(data, circles=False, tell=lambda line: print(line, flush=True)).acquisition


def online(
    data: Acquisition,
    margin: int,
    held: NDArray[np.int64],
    prior: Callable[[], Prior],
    calibrators: list[Calibrator],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Misfits of held-out and of other LEDs after PnP with minibatches, each prior with its automatic strength."""
    fidelity = DataFidelity.of(data, _model(data, margin), loss="amplitude")
    population = np.flatnonzero(fidelity.weights > 0)
    sampler = StratifiedSampler(population, BATCH, fidelity.model.geometry.bright_field)
    solver = PnP(fidelity, sampler, [prior(), prior()], seed=0)
    solver.calibration = Calibration(calibrators)
    solver.solve(Iterations(round(PASSES * len(population) / BATCH)))
    return fidelity.misfits(solver.x, held), fidelity.misfits(solver.x, population)


def epry(
    data: Acquisition, margin: int, held: NDArray[np.int64], decay: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same after EPRY, with the pupil that it found as the model's: bins between, where LEDs move it, are
    interpolated. Where C on its own bins predicts better, as EPRY itself uses it, that counts."""
    fidelity = DataFidelity.of(data, _model(data, margin), loss="amplitude")
    population = np.flatnonzero(fidelity.weights > 0)
    solver = EPRY(fidelity, AllLEDs(population), pupil_step=1.0, decay=decay, order="random", seed=0)
    solver.solve(Iterations(PASSES))
    known = fidelity.model.pupil
    moved = DataFidelity.of(data, _model(data, margin), loss="amplitude")
    moved.use(moved.model.revised(pupil=Pupil(known.zernike, known.defocus, array=solver.pupil)))
    state = solver.state().arrays
    still: list[Any] = []
    for leds in (held, population):
        # A sweep with steps of 0 changes nothing, and tells the misfit of each LED.
        still.append(solver._sweep(state["spectrum"].copy(), state["correction"].copy(), leds, (0.0, 0.0, 0.0))[0])
    interpolated = [moved.misfits(solver.x, leds) for leds in (held, population)]
    better = min((still, interpolated), key=lambda pair: float(pair[0].mean()))
    return better[0], better[1]


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
