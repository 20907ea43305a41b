"""How good the pictures are: the demo problem with and without a prior, online and with all frames, and the automatic
strength of TV beside the best one."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.microscope import leds, optics
from benchmarks.report import bar, table
from fouriscope.acquisition import Acquisition
from fouriscope.forward import ForwardModel
from fouriscope.priors import BM3D, TV
from fouriscope.reconstruction import reconstruct
from fouriscope.run import Result
from fouriscope.simulation import Camera, simulate

ITERATIONS = 600
# The automatic strength was chosen on these: image, phase range in rad, SNR in dB over the stack.
PROBLEMS = (("camera", 0.3, 40.0), ("camera", 1.0, 40.0), ("camera", 0.3, 30.0), ("coins", 0.3, 40.0))
LOSSES: tuple[Literal["intensity", "amplitude", "poisson"], ...] = ("intensity", "amplitude", "poisson")
FACTORS = (0.1, 0.3, 3.0, 10.0)


def phase(name: str, shape: tuple[int, int], phase_range: float) -> NDArray[Any]:
    from skimage import data
    from skimage.transform import resize

    image = np.asarray(getattr(data, name)(), np.float64)
    size = min(image.shape)
    image = resize(image[:size, :size], shape, anti_aliasing=True)
    return np.asarray((image - image.min()) / np.ptp(image) * phase_range, np.float32)


def main() -> None:
    model = ForwardModel(optics(), leds(), (100, 100))
    _demo_problem(model)
    _strengths(model)
    _losses(model)


def _demo_problem(model: ForwardModel) -> None:
    data = simulate(model, phase("camera", model.object_shape, 0.3), snr_db=40, noise="stack", seed=0)
    results = {
        "NoReg-Online (60)": reconstruct(data, prior=None, loss="intensity", iterations=ITERATIONS, seed=0),
        "TV-Online (60)": reconstruct(data, prior="tv", loss="intensity", iterations=ITERATIONS, seed=0),
        "TV-Full (293)": reconstruct(data, prior="tv", batch=None, loss="intensity", iterations=ITERATIONS, seed=0),
        "BM3D-Online (60)": reconstruct(
            data, prior=BM3D(profile="fast"), loss="intensity", iterations=ITERATIONS, seed=0
        ),
        "… matching in every call": reconstruct(
            data, prior=BM3D(profile="fast", rematch_every=1), loss="intensity", iterations=ITERATIONS, seed=0
        ),
    }
    rows = []
    for name, result in results.items():
        snr = result.history["snr"]
        milliseconds = 1e3 * result.history.last.seconds / len(snr)
        rows.append(
            [name, f"{snr[-1]:.2f}", f"{result.history.last.snr_raw:.2f}", f"{snr.max():.2f}", f"{milliseconds:.1f}"]
        )
    header = ("method", "SNR / dB", "raw SNR / dB", "SNR at best iteration / dB", "ms per iteration")
    table(f"Cameraman, phase in [0, 0.3] rad, 40 dB over the stack, {ITERATIONS} iterations", header, rows)
    noreg, online, full, bm3d, cold = (_final(result) for result in results.values())
    table(
        "at convergence",
        ("what", "dB", "bar", ""),
        [
            ["TV-Online over NoReg-Online", f"{online - noreg:.2f}", *bar("TV gain", online - noreg, 3, at_least=True)],
            ["TV-Full over TV-Online", f"{full - online:.2f}", *bar("online below full", full - online, 0.3)],
            ["BM3D-Online over TV-Online", f"{bm3d - online:.2f}", "", ""],
            ["BM3D-Online, kept matches", f"{bm3d - cold:.2f}", *bar("kept matches lose", cold - bm3d, 0.05)],
        ],
    )


def _strengths(model: ForwardModel) -> None:
    rows = []
    for name, phase_range, snr_db in PROBLEMS:
        data = simulate(model, phase(name, model.object_shape, phase_range), snr_db=snr_db, noise="stack", seed=0)
        automatic = reconstruct(data, prior="tv", loss="intensity", iterations=ITERATIONS // 2, seed=0)
        strength = automatic.history.last.strength
        scan = [_final(_with_strength(data, factor * strength)) for factor in FACTORS]
        best = max(scan)
        label = f"{name}, [0, {phase_range:g}] rad, {snr_db:g} dB"
        rows.append(
            [
                label,
                f"{strength:.1e}",
                f"{_final(automatic):.2f}",
                *(f"{value:.2f}" for value in scan),
                *bar(f"automatic strength, {label}", best - _final(automatic), 1),
            ]
        )
    header = ("problem", "automatic λ", "SNR / dB", *(f"at {factor:g} λ" for factor in FACTORS), "below the best", "")
    table("Automatic strength of TV", header, rows)


def _losses(model: ForwardModel) -> None:
    truth = phase("camera", model.object_shape, 0.3)
    worlds = {
        "white, 40 dB over the stack": simulate(model, truth, snr_db=40, noise="stack", seed=0),
        "white, 40 dB in each frame": simulate(model, truth, snr_db=40, noise="frame", seed=0),
        "photons, 2000 electrons, 2 read": simulate(
            model, truth, camera=Camera(2000, read_noise=2, offset=100), seed=0
        ),
    }
    rows = [
        [
            name,
            *(_final_and_speed(reconstruct(data, prior="tv", loss=loss, iterations=200, seed=0)) for loss in LOSSES),
        ]
        for name, data in worlds.items()
    ]
    title = "TV-Online, 200 iterations: SNR / dB by noise and loss, and the iteration that came within 1 dB of it"
    table(title, ("noise", *LOSSES), rows)


def _with_strength(data: Acquisition, strength: float) -> Result:
    return reconstruct(data, prior=TV(strength=strength), loss="intensity", iterations=ITERATIONS // 2, seed=0)


def _final_and_speed(result: Result) -> str:
    snr = result.history["snr"]
    return f"{snr[-1]:.2f} ({int(np.argmax(snr >= snr[-1] - 1)) + 1})"


def _final(result: Result) -> float:
    return float(result.history["snr"][-1])
