"""How many passes over the frames, and CPU-seconds, until the picture is good: defaults beside losses chosen by hand,
for several kinds of noise."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.defaults_problems import tasks
from benchmarks.microscope import leds, optics
from benchmarks.paper import IMAGES
from benchmarks.quality import phase
from benchmarks.report import bar, table
from fouriscope import settings
from fouriscope.acquisition import Acquisition
from fouriscope.forward import ForwardModel
from fouriscope.priors import BM3D
from fouriscope.reconstruction import reconstruct
from fouriscope.reproduction.experiment import Experiment, model_of
from fouriscope.reproduction.images import load_images
from fouriscope.reproduction.protocol import PAPER_PHASE_RANGE, Protocol
from fouriscope.run import Result
from fouriscope.simulation import Camera, simulate

LEVELS = (22.0, 23.0, 24.0)
PASSES_BARS = (7.0, 9.0, 16.0)
BM3D_LEVEL, BM3D_BAR = 24.5, 0.25
# The paper's six images: BM3D at the end, and in which share of the seconds.
SIX_BAR, SHARE_BAR = 26.6, 0.25
BY_HAND = ("intensity", "amplitude", "poisson")
BELOW_BAR = 0.2
# Momentum must not gather the noise of small minibatches: the last of these passes may be no worse than the one before.
FEW, MOMENTUM_PASSES = 20, (4, 10, 30)


@dataclass(frozen=True)
class Noisy:
    """The demo problem with some noise."""

    image: str = "camera"
    phase_range: float = 0.3
    snr_db: float | None = None
    camera: Camera | None = None
    noise: Literal["stack", "frame"] = "stack"

    def acquire(self, model: ForwardModel) -> Acquisition:
        truth = phase(self.image, model.object_shape, self.phase_range)
        return simulate(model, truth, snr_db=self.snr_db, camera=self.camera, noise=self.noise, seed=0)


PROBLEMS = {
    "white, 40 dB": Noisy(snr_db=40.0),
    "white, 40 dB, coins": Noisy("coins", snr_db=40.0),
    "white, 40 dB, 1 rad": Noisy(phase_range=1.0, snr_db=40.0),
    "white, 30 dB": Noisy(snr_db=30.0),
    "white, 40 dB in each frame": Noisy(snr_db=40.0, noise="frame"),
    "2,000 electrons, 2 read": Noisy(camera=Camera(photons=2000, read_noise=2, offset=100)),
    "2,000 electrons, 2 read, black level 0": Noisy(camera=Camera(photons=2000, read_noise=2)),
    "200 electrons, 2 read": Noisy(camera=Camera(photons=200, read_noise=2, offset=100)),
}


def main() -> None:
    model = ForwardModel(optics(), leds(), (100, 100))
    _passes(model)
    _bm3d(model)
    _six_images()
    _losses(model)
    _momentum()


def _passes(model: ForwardModel) -> None:
    data = PROBLEMS["white, 40 dB"].acquire(model)
    rows: list[list[str]] = []
    for name, options in (
        ("default: loss from the noise", {"iterations": 320}),
        ("intensity loss, 60 frames per iteration", {"loss": "intensity", "iterations": 400}),
    ):
        result, seconds = _timed(data, **options)
        reached = [passes_to(result, level, len(data)) for level in LEVELS]
        cells = [f"{passes:.1f}" if math.isfinite(passes) else "never" for passes in reached]
        if not rows:
            judged = zip(LEVELS, reached, PASSES_BARS, strict=True)
            verdicts = [bar(f"passes to {level:g} dB", passes, limit)[1] for level, passes, limit in judged]
            cells = [f"{cell} ({verdict})" for cell, verdict in zip(cells, verdicts, strict=True)]
        rows.append([name, *cells, f"{result.history['snr'].max():.2f}", f"{seconds:.1f}"])
    header = ("", *(f"{level:g} dB, bar {limit:g}" for level, limit in zip(LEVELS, PASSES_BARS, strict=True)))
    title = "Cameraman, 0.3 rad, 40 dB over the stack, TV: passes over 293 frames until an SNR is reached"
    table(title, (*header, "best / dB", "CPU-s in all"), rows)


def _bm3d(model: ForwardModel) -> None:
    data = PROBLEMS["white, 40 dB"].acquire(model)
    prior = BM3D(profile="fast")
    reconstruct(data, prior=prior, iterations=2, seed=0)  # compiles
    six = settings.PnP(steps_per_denoising=6)
    former = reconstruct(data, prior=prior, method=six, loss="intensity", batch=60, iterations=100, seed=0)
    now = reconstruct(data, prior=prior, method=six, iterations=70, seed=0)
    seconds = [_seconds_to(result, BM3D_LEVEL) for result in (former, now)]
    rows = [
        [
            "intensity loss",
            f"{seconds[0]:.1f}",
            f"{former.history['snr'].max():.2f}",
            "",
            "",
        ],
        [
            "loss from the noise",
            f"{seconds[1]:.1f}",
            f"{now.history['snr'].max():.2f}",
            *bar("BM3D: seconds beside the former", seconds[1] / seconds[0], BM3D_BAR),
        ],
    ]
    table(
        f"BM3D, six steps per denoising: seconds to {BM3D_LEVEL:g} dB",
        ("", "s", "best / dB", "bar on the ratio", ""),
        rows,
    )


def _six_images() -> None:
    """The end beside the bar, and seconds to where the run with the paper's loss ends."""
    if not IMAGES.is_dir():
        print(f"{IMAGES} is not there: the paper's six images are left out\n")
        return
    protocol, six, prior = Protocol(), settings.PnP(steps_per_denoising=6), BM3D(profile="fast")
    images = load_images(IMAGES, model_of(protocol).object_shape, protocol.images)
    experiment = Experiment(protocol, images, PAPER_PHASE_RANGE, Path())  # nothing is kept
    rows, ends, ratios = [], [], []
    for image in images:
        data = experiment.acquisition(image)
        former = reconstruct(data, prior=prior, method=six, loss="intensity", batch=60, iterations=67, seed=0)
        now = reconstruct(data, prior=prior, method=six, iterations=70, seed=0)
        seconds = [_seconds_to(result, _end(former)) for result in (former, now)]
        ends.append((_end(former), _end(now)))
        ratios.append(seconds[1] / seconds[0])
        rows.append([image.name, *(f"{end:.2f}" for end in ends[-1]), *(f"{one:.1f}" for one in seconds), "", ""])
    before, after = np.mean(ends, axis=0)
    end = bar("six images: dB at the end, on average", float(after), SIX_BAR, at_least=True)
    share = bar("six images: share of the seconds", float(np.mean(ratios)), SHARE_BAR)
    rows.append(["average", f"{before:.2f}", f"{after:.2f}", "", f"{np.mean(ratios):.2f} of them", *end])
    rows.append(["", "", "", "", "", *share])
    header = ("image", "intensity / dB", "default / dB", "s to its end", "s to the same", "bar", "")
    table("The paper's six images, BM3D, six steps per denoising, automatic strength", header, rows)


def _losses(model: ForwardModel) -> None:
    rows = []
    for name, problem in PROBLEMS.items():
        data = problem.acquire(model)
        automatic = _timed(data, iterations=300)[0]
        by_hand = [_timed(data, loss=loss, iterations=300)[0] for loss in BY_HAND]
        best = max(_end(result) for result in by_hand)
        rows.append(
            [
                name,
                f"{_end(automatic):.2f}",
                *(f"{_end(result):.2f}" for result in by_hand),
                *bar(f"automatic loss, {name}: dB below the best by hand", best - _end(automatic), BELOW_BAR),
            ]
        )
    header = ("noise", "automatic, 30 passes", *(f"{loss}, 61 passes" for loss in BY_HAND), "dB below best", "")
    table("SNR / dB after 300 iterations with TV", header, rows)


def _momentum() -> None:
    rows = []
    for name in ("complex", "complex, unknown pupil"):
        task = tasks()[name]
        options: dict[str, Any] = {"method": "pnp", "loss": "amplitude", "start": "flat", "batch": FEW, "seed": 0}
        options["calibrate"] = "zernike" if task.free else ()
        for form in ("complex", "wave"):
            errors = []
            for passes in MOMENTUM_PASSES:
                iterations = round(passes * len(task.data) / FEW)
                result = reconstruct(task.data, object=form, prior="tv", iterations=iterations, **options)
                errors.append(task.error(result))
            judged = bar(f"momentum, {name}, as {form}: 30 passes beside 10", errors[2] / errors[1], 1.0)
            rows.append([f"{name}, as {form}", *(f"{error:.4f}" for error in errors), *judged])
    header = ("problem", *(f"{passes} passes" for passes in MOMENTUM_PASSES), "bar on 30 beside 10", "")
    table(f"NRMSE of fields: pnp with momentum, amplitude loss, minibatches of {FEW}, TV", header, rows)


def _timed(data: Acquisition, **options: Any) -> tuple[Result, float]:
    began = time.process_time()
    result = reconstruct(data, prior="tv", seed=0, **options)
    return result, time.process_time() - began


def passes_to(result: Result, level: float, frames: int) -> float:
    """Passes over all frames when the SNR first reached ``level``; infinite if it never did."""
    return _first(result, level, result.history["frames_seen"] / frames)


def _seconds_to(result: Result, level: float) -> float:
    return _first(result, level, result.history["seconds"])


def _first(result: Result, level: float, clock: NDArray[Any]) -> float:
    reached = np.flatnonzero(result.history["snr"] >= level)
    return float(clock[reached[0]]) if len(reached) else math.inf


def _end(result: Result) -> float:
    return float(result.history.last.snr)


if __name__ == "__main__":
    main()
