"""Train the small denoiser further, on drawn specimens and on what a solver shows to it, and write its weights.

    python tools/train_on_specimens.py --out src/fouriscope/priors/weights/specimens.safetensors

It starts from the shipped weights, needs torch (``pip install "fouriscope[learned]"``) and takes less than half an hour
on one core. Seeds are explicit, but where a machine is slow the number of steps follows the clock (``--minutes``).

All patches are of specimens (``training_specimens.py``), half of them with white noise. The others have the errors of
*real iterations*: solvers run on simulated frames of specimens with the shipped network as their prior, and of the
images that reach it the truth is subtracted. What is left is not white: what few frames see, what the step has not
reached, what the network itself has left there. It is laid over other specimens, with a standard deviation of σ. (To
show the network the images themselves, with the σ that they come with, teaches it to remove several σ, and inside a
solver it is then worse: docs/priors.md.)
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fouriscope.forward import ForwardModel
from fouriscope.paper import paper_leds, paper_optics
from fouriscope.priors import SmallCNN
from fouriscope.reconstruction import reconstruct
from fouriscope.simulation import simulate
from train_denoiser import BATCH, PATCH, Network, psnr_of, save
from training_images import Array, dead_leaves
from training_specimens import specimen

VERSION = 1
SIGMAS = (0.2 / 255, 40 / 255)
"""The noise levels of patches with white noise, log-uniform, for images in [0, 1]. A solver's are small ones."""
SPECIMENS, LEAVES, PROBLEMS = 70, 30, 12
FRAME = 36
KEPT_AT = (4, 8, 15, 30, 60, 119)
"""Iterations whose images are kept."""


class Watching(SmallCNN):
    """The shipped network, which remembers what it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Array] = []

    def denoise_next(self, image: Any, sigma: float) -> Any:
        self.seen.append(image)
        return super().denoise_next(image, sigma)


def real_errors(rng: np.random.Generator, count: int) -> list[Array]:
    """What is wrong with the images that reach the denoiser, in runs on ``count`` specimens of various contrasts and
    noises; of standard deviation 1."""
    model = ForwardModel(paper_optics(), paper_leds(), (FRAME, FRAME))
    found = []
    for k in range(count):
        truth = specimen(rng, 256)[: model.object_shape[0], : model.object_shape[1]]
        height, snr_db = np.exp(rng.uniform(np.log(0.15), np.log(1.5))), rng.uniform(30, 46)
        data = simulate(model, height * truth, snr_db=snr_db, noise="stack", seed=int(rng.integers(2**31)))
        prior = Watching()
        reconstruct(data, prior=prior, loss="intensity", iterations=KEPT_AT[-1] + 1, seed=k)
        for at in KEPT_AT:
            error = prior.seen[at] - height * truth
            found.append((error - error.mean()) / error.std())  # the mean of a phase is free
    return found


class Patches:
    """Random patches, half of them with the errors of real iterations."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.drawn = [specimen(rng) for _ in range(SPECIMENS)] + [dead_leaves(rng) for _ in range(LEAVES)]
        self.errors = real_errors(rng, PROBLEMS)

    def one(self) -> tuple[Array, Array, float]:
        """A clean patch, the patch to be denoised, and σ."""
        rng = self.rng
        image, sigma = self.drawn[rng.integers(len(self.drawn))], float(np.exp(rng.uniform(*np.log(SIGMAS))))
        clean = self._turned(image - image.mean())
        noise = rng.normal(0, 1, clean.shape)
        if rng.random() < 0.5:
            share = rng.uniform(0, 1)  # of the variance; the rest is white
            noise = (
                np.sqrt(share) * self._turned(self.errors[rng.integers(len(self.errors))]) + np.sqrt(1 - share) * noise
            )
        return clean.astype(np.float32), (clean + sigma * noise).astype(np.float32), sigma

    def _turned(self, image: Array) -> Array:
        """A random patch, turned, mirrored, and maybe its negative."""
        rng = self.rng
        row, column = (rng.integers(length - PATCH + 1) for length in image.shape)
        patch = rng.choice([-1.0, 1.0]) * image[row : row + PATCH, column : column + PATCH]
        return np.rot90(patch if rng.random() < 0.5 else patch[::-1], rng.integers(4))

    def batch(self) -> tuple[Tensor, Tensor, Tensor]:
        clean, noisy, sigma = zip(*(self.one() for _ in range(BATCH)), strict=True)
        images = [torch.from_numpy(np.stack(patches)[:, None]) for patches in (clean, noisy)]
        return images[0], images[1], torch.tensor(sigma, dtype=torch.float32)


def shipped() -> Network:
    """The network with the weights that are in the package."""
    layers = SmallCNN().network().layers
    network = Network(layers[0].shape[0], len(layers))
    with torch.no_grad():
        for layer, weights in zip(network.layers, layers, strict=True):
            layer.weight.copy_(torch.from_numpy(weights))
    return network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="where the weights go (.safetensors)")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--minutes", type=float, default=20, help="of training: a slow machine does fewer steps")
    parser.add_argument("--rate", type=float, default=5e-4, help="the largest learning rate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    start = time.perf_counter()
    patches, test = Patches(rng), specimen(np.random.default_rng(options.seed + 1))
    seconds = time.perf_counter() - start
    print(f"{len(patches.drawn)} images, {len(patches.errors)} errors of real iterations, {seconds:.0f} s", flush=True)
    network = shipped().to(memory_format=torch.channels_last)
    average = torch.optim.swa_utils.AveragedModel(
        network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.998)
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=options.rate, weight_decay=0)
    about = {
        "script": f"tools/train_on_specimens.py version {VERSION}",
        "network": f"{len(network.layers)} layers, 32 channels, bias-free, residual, phases 2x2 and sigma",
        "images": f"{SPECIMENS} drawn specimens, {LEAVES} drawn images, iterations on {PROBLEMS} more; from small_cnn",
        "image_licences": "drawn; those of small_cnn, from which it starts, in tools/train_denoiser.py",
        "licence": "BSD-3-Clause",
        "sigma_range": json.dumps([round(sigma, 6) for sigma in SIGMAS]),
        "seed": str(options.seed),
        "torch": torch.__version__,
    }
    start, step, done = time.perf_counter(), 0, 0.0
    while done < 1:
        for group in optimizer.param_groups:
            group["lr"] = options.rate * min(1, 20 * done + 0.05) * (0.01 + 0.495 * (1 + np.cos(np.pi * done)))
        clean, noisy, sigma = patches.batch()
        error = (noisy - network(noisy, sigma) - clean).abs().mean(dim=(1, 2, 3))
        loss = (error / sigma**0.7).mean()  # all noise levels count about the same
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        average.update_parameters(network)
        if not torch.isfinite(loss):
            raise SystemExit(f"the loss is {loss.item()} at step {step}: a lower --rate may help")
        step += 1
        seconds = time.perf_counter() - start
        done = max(step / options.steps, seconds / (60 * options.minutes))
        if step % 250 == 0 or done >= 1:
            scores = " ".join(f"{psnr_of(average.module, test, level / 255):.2f}" for level in (1, 2, 10, 25))
            print(f"step {step}: loss {loss.item():.4f}, PSNR at 1, 2, 10, 25: {scores}, {seconds:.0f} s", flush=True)
            save(average.module, options.out, {**about, "steps": str(step), "held_out_psnr": scores})


if __name__ == "__main__":
    main()
