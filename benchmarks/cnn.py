"""The small network beside TV and BM3D on images it has not seen: PSNR, time, and the end of a reconstruction.

TV gets the strength that is best for each image and noise, found by a search that knows the clean image: it cannot do
better. BM3D and the network get σ and nothing else.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.bm3d import FOLDER, noisy_version, psnr
from benchmarks.microscope import leds, optics
from benchmarks.quality import phase
from benchmarks.report import bar, table
from benchmarks.timing import Call, interleaved
from fouriscope.forward import ForwardModel
from fouriscope.parallel import thread_count
from fouriscope.priors import BM3D, TV, Prior, SmallCNN
from fouriscope.reconstruction import reconstruct
from fouriscope.simulation import simulate

Image = npt.NDArray[np.floating[Any]]

SIGMAS = (10, 25, 50)
METHODS = ("TV, best strength", "BM3D fast", "BM3D", "CNN")
PAPER = ("cameraman", "house", "jet", "lenna", "pepper", "woman_blonde", "woman_darkhair")
PHOTOGRAPHS = ("camera", "coins", "moon", "brick", "grass", "page")
PROBLEMS = (("camera", 0.3, 40.0), ("coins", 0.3, 40.0))
ITERATIONS = 300


def unseen_images() -> dict[str, dict[str, Image]]:
    """Return sets of images in [0, 1], none of which the network was trained on."""
    from skimage import data
    from skimage.io import imread

    files = {name: FOLDER / f"{name}.png" for name in PAPER}
    found = {name: imread(file) / 255.0 for name, file in files.items() if file.exists()}
    sets = {"standard images": found} if found else {}
    return sets | {"scikit-image": {name: getattr(data, name)() / 255.0 for name in PHOTOGRAPHS}}


def best_tv(noisy: Image, clean: Image, sigma: float) -> float:
    """Return the PSNR of TV at the best weight, to some 0.01 dB."""
    from scipy.optimize import minimize_scalar

    prior = TV()

    def loss(log_weight: float) -> float:
        return -psnr(prior.denoise(noisy, float(np.sqrt(np.exp(log_weight)))), clean)

    limits = tuple(np.log(sigma * np.array([0.05, 3.0])))
    return float(-minimize_scalar(loss, bounds=limits, method="bounded", options={"xatol": 0.05}).fun)


def decibels() -> None:
    networks: dict[str, Prior] = {"BM3D fast": BM3D(profile="fast"), "BM3D": BM3D(), "CNN": SmallCNN()}
    for title, images in unseen_images().items():
        rows = []
        averages = []
        for sigma in SIGMAS:
            scores = []
            for clean in images.values():
                noisy = noisy_version(clean, sigma)
                own = [psnr(prior.denoise(noisy, sigma / 255), clean) for prior in networks.values()]
                scores.append([best_tv(noisy, clean, sigma / 255), *own])
            rows += [
                [f"{name}, {sigma}", *(f"{value:.2f}" for value in score), f"{score[3] - score[0]:+.2f}", "", ""]
                for name, score in zip(images, scores, strict=True)
            ]
            mean = np.mean(scores, axis=0)
            gain = float(mean[3] - mean[0])
            reached = bar(f"CNN over the best TV at {sigma}, {title}", gain, 0, at_least=True)
            averages.append([f"average, {sigma}", *(f"{value:.2f}" for value in mean), f"{gain:+.2f}", *reached])
        table(
            f"PSNR / dB after denoising, {title}, by σ·255",
            ["image, σ", *METHODS, "CNN − TV", "bar", ""],
            [*rows, *averages],
        )


def times() -> None:
    images = unseen_images()
    clean = next(iter(next(iter(images.values())).values()))[:500, :500]
    noisy = noisy_version(clean, 25)
    calls: dict[str, Call] = {
        "TV, first call": lambda: TV().denoise(noisy, float(np.sqrt(0.7 * 25 / 255))),
        "BM3D fast": partial(BM3D(profile="fast").denoise, noisy, 25 / 255),
        "BM3D": partial(BM3D().denoise, noisy, 25 / 255),
        "CNN": partial(SmallCNN().denoise, noisy, 25 / 255),
    }
    seconds = interleaved(calls, 10)
    rows = [[name, f"{1e3 * value:.0f}", "", ""] for name, value in seconds.items()]
    rows[-1][2:] = bar("CNN, seconds at 500²", seconds["CNN"], 0.2)
    shape = " × ".join(map(str, clean.shape))
    table(f"Time of a call, {shape}, σ = 25/255, {thread_count()} threads", ["method", "ms", "bar / s", ""], rows)


def reconstructions() -> None:
    model = ForwardModel(optics(), leds(), (100, 100))
    priors: dict[str, Prior] = {"TV": TV(), "BM3D fast": BM3D(profile="fast"), "CNN": SmallCNN()}
    rows = []
    for name, phase_range, snr_db in PROBLEMS:
        data = simulate(model, phase(name, model.object_shape, phase_range), snr_db=snr_db, noise="stack", seed=0)
        for label, prior in priors.items():
            history = reconstruct(data, prior=prior, loss="intensity", iterations=ITERATIONS, seed=0).history
            milliseconds = 1e3 * history.last.seconds / ITERATIONS
            best = f"{history['snr'].max():.2f}"
            rows.append([f"{name}, {snr_db:g} dB, {label}", f"{history['snr'][-1]:.2f}", best, f"{milliseconds:.0f}"])
    header = ["problem and prior", "SNR / dB", "SNR at best iteration / dB", "ms per iteration"]
    table(f"Reconstruction, automatic strength, minibatches of 60, {ITERATIONS} iterations", header, rows)


def main() -> None:
    decibels()
    times()
    reconstructions()


if __name__ == "__main__":
    main()
