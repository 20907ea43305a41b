"""A blood smear measured by others: how well each method predicts LEDs that it has not seen, beside EPRY."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
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
from fouriscope.tuning import Trial, tune
from fouriscope.tuning.holdout import hold_out

DATA = Path(os.environ.get("FOURISCOPE_DATA", Path(__file__).parents[2] / "shared" / "data"))
ACQUISITION = DATA / "fpm" / "uconn_bloodsmear_green"
BATCH, PASSES = 60, 50
DRAWS = (0, 1, 2)
ZOOM = 4  # object pixels a frame pixel: enough for the field of NA 0.52
DECAYS = (0.0, 0.1, 0.3, 1.0)
PRIORS: dict[str, Callable[..., Prior]] = {"TV": TV, "BM3D": partial(BM3D, profile="fast")}
# The search for a strength: what a lens that is not quite a lens leaves is far above noise, so the steps are wide.
EVALUATIONS, FACTOR = 7, 30.0


def main() -> None:
    if not ACQUISITION.is_dir():
        print(f"skipped: no data in {ACQUISITION} (FOURISCOPE_DATA says where to look)")
        return
    data = aligned()
    margin = automatic_margin(data.frame_shape)
    _draws(data, margin)
    held, seen = held_out(data, margin, 0)
    bright = _model(data, margin).geometry.bright_field[held]
    print(f"{len(held)} of {len(data)} LEDs held out, {int(bright.sum())} of them in bright field\n")
    strengths = {name: tuned(seen, margin, prior()) for name, prior in PRIORS.items()}
    scores = {f"EPRY, pupil recovered, decay {decay:g}": epry(seen, margin, held, decay) for decay in DECAYS}
    scores["NoReg-Online"] = online(seen, margin, held, NoPrior)
    scores["NoReg-Online, gains too"] = online(seen, margin, held, NoPrior, [ZernikePupil(), LEDGains()])
    for name, prior in PRIORS.items():
        scores[f"{name}-Online, automatic strength"] = online(seen, margin, held, prior)
        scores[f"{name}-Online, tuned strength"] = online(seen, margin, held, partial(prior, strength=strengths[name]))
    best = min(float(found.mean()) for name, (found, _) in scores.items() if name.startswith("EPRY"))
    rows = []
    for name, (found, fitted) in scores.items():
        ratio = float(found.mean()) / best
        judged = name.startswith(tuple(PRIORS))
        cells = bar(f"blood smear, {name}: held-out misfit beside EPRY's best", ratio, 1) if judged else ["", ""]
        numbers = (found.mean(), found[~bright].mean(), fitted.mean())
        rows.append([name, *(f"{number:.2f}" for number in numbers), f"{ratio:.3f}", *cells])
    header = ("method", "held-out misfit", "dark field alone", "misfit of the others", "beside EPRY's best", "bar", "")
    table(f"Blood smear, {PASSES} passes, amplitude loss, margin {margin}", header, rows)


def _draws(data: Acquisition, margin: int) -> None:
    """Which LEDs are held out decides much: three draws, without the search for a strength."""
    rows = []
    for draw in DRAWS:
        held, seen = held_out(data, margin, draw)
        theirs = float(epry(seen, margin, held, 0.3)[0].mean())
        ours = [float(online(seen, margin, held, prior)[0].mean()) for prior in (NoPrior, TV)]
        cells = bar(f"blood smear, draw {draw}, TV-Online: held-out misfit beside EPRY's", ours[1] / theirs, 1)
        rows.append(
            [f"draw {draw}", *(f"{number:.1f}" for number in (theirs, *ours)), f"{ours[1] / theirs:.2f}", *cells]
        )
    header = ("held out", "EPRY, decay 0.3", "NoReg-Online", "TV-Online", "TV beside EPRY", "bar", "")
    table(f"Blood smear, held-out misfit by draw, {PASSES} passes, automatic strength", header, rows)


def held_out(data: Acquisition, margin: int, draw: int) -> tuple[NDArray[np.int64], Acquisition]:
    """Some LEDs, and the acquisition in which they have weight 0."""
    everything = np.arange(len(data))
    held = hold_out(_model(data, margin).geometry, everything, None, np.random.default_rng(draw))
    return held, replace(data, weights=np.where(np.isin(everything, held), 0.0, 1.0))


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
    calibrators: Sequence[Calibrator] = (),
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Misfits of held-out and of other LEDs after PnP with minibatches; the pupil's Zernike coefficients are free."""
    fidelity = DataFidelity.of(data, _model(data, margin), loss="amplitude")
    population = np.flatnonzero(fidelity.weights > 0)
    sampler = StratifiedSampler(population, BATCH, fidelity.model.geometry.bright_field)
    solver = PnP(fidelity, sampler, [prior(), prior()], acceleration=False, seed=0)
    solver.calibration = Calibration(calibrators or [ZernikePupil()])
    solver.solve(Iterations(round(PASSES * len(population) / BATCH)))
    return fidelity.misfits(solver.x, held), fidelity.misfits(solver.x, population)


def tuned(data: Acquisition, margin: int, prior: Prior) -> float:
    """The strength that predicts best some LEDs of ``data`` that `tune` holds out itself: those held out here are
    unknown to it, as they have weight 0."""
    found = tune(
        data,
        prior=prior,
        criterion="held-out",
        evaluations=EVALUATIONS,
        factor=FACTOR,
        batch=BATCH,
        iterations=round(PASSES / 2 * len(data) / BATCH),
        loss="amplitude",
        object="complex",
        object_shape=_model(data, margin).object_shape,
        margin=margin,
        calibrate="zernike",
        acceleration=False,
    )
    trials = ", ".join(f"{trial.value:.1e}: {-trial.score:.2f}" for trial in sorted(found.trials, key=_value))
    print(f"{prior.name}: strength {found.value:.1e} (misfits of LEDs held out by the search: {trials})\n", flush=True)
    return found.value


def _value(trial: Trial) -> float:
    return trial.value


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
