"""A small network learns to turn frames into a phase, with a loss that is measured at the frames.

``fouriscope.torch.Microscope`` predicts frames from a phase, and gradients flow back through it; the network never sees
a true phase. It needs ``pip install "fouriscope[torch]"`` and takes less than a minute on two cores:

    python examples/train_through_the_microscope.py

It prints the SNR of the network on a sample that it has not seen, beside that of the solver. The solver needs no
training and is better; the network answers in milliseconds.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

import fouriscope as fs
from fouriscope.torch import Microscope

PHOTONS, BATCH, EPSILON = 2000, 4, 1e-3


def microscope_model() -> fs.ForwardModel:
    optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    leds = fs.LEDArray.square(5, pitch=4e-3, height=70e-3)
    return fs.ForwardModel(optics, leds, frame_shape=(32, 32), object_shape=(96, 96))


def drawn(shape: tuple[int, int], count: int, seed: int) -> torch.Tensor:
    """Samples: discs of any size and phase, smooth at their edge."""
    rng = np.random.default_rng(seed)
    y, x = np.indices(shape) / shape[0]
    phases = np.zeros((count, *shape), np.float32)
    for phase in phases:
        for _ in range(6):
            (cy, cx), radius, height = rng.random(2), rng.uniform(0.05, 0.2), rng.uniform(0.1, 0.5)
            phase += (height / (1 + np.exp((np.hypot(y - cy, x - cx) - radius) * 80))).astype(np.float32)
    return torch.from_numpy(phases)


def noisy(frames: torch.Tensor) -> torch.Tensor:
    """Photon noise."""
    return torch.poisson(PHOTONS * frames) / PHOTONS


def make_network(model: fs.ForwardModel) -> torch.nn.Module:
    """Three convolutions on the frames, enlarged to the object's grid."""

    def convolution(inputs: int, outputs: int) -> torch.nn.Module:
        return torch.nn.Conv2d(inputs, outputs, 5, padding=2, padding_mode="circular")

    return torch.nn.Sequential(
        *(torch.nn.Upsample(model.object_shape, mode="bilinear"), convolution(len(model), 24), torch.nn.ReLU()),
        *(convolution(24, 24), torch.nn.ReLU(), convolution(24, 1)),
    )


def train(network: torch.nn.Module, microscope: Microscope, steps: int) -> list[float]:
    """The squared difference of amplitudes between the frames that it explains and those that it was given."""
    optimizer, losses = torch.optim.Adam(network.parameters(), lr=2e-3), []
    for step in range(steps):
        with torch.no_grad():
            frames = noisy(microscope(drawn(microscope.model.object_shape, BATCH, seed=step)))
        predicted = microscope(network(frames)[:, 0])
        loss = ((predicted + EPSILON).sqrt() - (frames + EPSILON).sqrt()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main(steps: int = 120) -> None:
    torch.manual_seed(0)
    model = microscope_model()
    microscope, network = Microscope(model), make_network(model)
    losses = train(network, microscope, steps)
    print(f"loss: {losses[0]:.5f} at first, {np.mean(losses[-10:]):.5f} in the end")
    truth = drawn(model.object_shape, 1, seed=1000)
    with torch.no_grad():
        frames = noisy(microscope(truth))
        guess = network(frames)[0, 0].numpy()
    data = fs.Acquisition(model.optics, model.illumination, frames[0].numpy(), periodic=True)
    grid = fs.settings.Object(shape=model.object_shape)
    solved = fs.reconstruct(data, loss="poisson", object=grid, iterations=100)
    for name, image in (("network", guess), ("solver with TV", solved.phase)):
        print(f"{name}: {fs.metrics.snr(image, truth[0].numpy()):.1f} dB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
