# needs: torch
# %% [markdown]
# # A network trained through the microscope
#
# A small network learns to turn frames into a phase. Its loss is measured at the frames, so it never sees a true phase.
#
# `fouriscope.torch.Microscope` predicts frames from a phase, and gradients flow back through it, as through any other layer.
# You need `pip install "fouriscope[torch]"`. Training takes less than a minute on two cores.

# %%
import numpy as np
import torch

import fouriscope as fs
from fouriscope.torch import Microscope

optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
leds = fs.LEDArray.square(5, pitch=4e-3, height=70e-3)
model = fs.ForwardModel(optics, leds, frame_shape=(32, 32), object_shape=(96, 96))
microscope = Microscope(model)
microscope

# %% [markdown]
# Samples to learn from are drawn: discs of any size and phase, smooth at their edge. Their frames have photon noise.

# %%
PHOTONS = 2000


def drawn(count, seed):
    rng = np.random.default_rng(seed)
    y, x = np.indices(model.object_shape) / model.object_shape[0]
    phases = np.zeros((count, *model.object_shape), np.float32)
    for phase in phases:
        for _ in range(6):
            (cy, cx), radius, height = rng.random(2), rng.uniform(0.05, 0.2), rng.uniform(0.1, 0.5)
            phase += (height / (1 + np.exp((np.hypot(y - cy, x - cx) - radius) * 80))).astype(np.float32)
    return torch.from_numpy(phases)


def noisy(frames):
    return torch.poisson(PHOTONS * frames) / PHOTONS


# %% [markdown]
# The network: three convolutions on the frames, enlarged to the grid of the object.


# %%
def convolution(inputs, outputs):
    return torch.nn.Conv2d(inputs, outputs, 5, padding=2, padding_mode="circular")


torch.set_num_threads(1)  # several would wait for each other where the machine has other work
torch.manual_seed(0)
network = torch.nn.Sequential(
    torch.nn.Upsample(model.object_shape, mode="bilinear"),
    convolution(len(model), 24),
    torch.nn.ReLU(),
    convolution(24, 24),
    torch.nn.ReLU(),
    convolution(24, 1),
)

# %% [markdown]
# The loss compares amplitudes: those of the frames that the network was given, and of the frames that its phase explains.

# %%
optimizer, losses = torch.optim.Adam(network.parameters(), lr=2e-3), []
for step in range(120):
    with torch.no_grad():
        frames = noisy(microscope(drawn(4, seed=step)))
    predicted = microscope(network(frames)[:, 0])
    loss = ((predicted + 1e-3).sqrt() - (frames + 1e-3).sqrt()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"loss: {losses[0]:.5f} at first, {np.mean(losses[-10:]):.5f} in the end")

# %% [markdown]
# On a sample that it has not seen, beside the solver with TV:

# %%
truth = drawn(1, seed=1000)
with torch.no_grad():
    frames = noisy(microscope(truth))
    guess = network(frames)[0, 0].numpy()
data = fs.Acquisition(optics, leds, frames[0].numpy(), periodic=True)
grid = fs.settings.Object(shape=model.object_shape)
solved = fs.reconstruct(data, loss="poisson", object=grid, iterations=100)
panels = [
    fs.plots.snr_panel("network", guess, truth[0].numpy()),
    fs.plots.snr_panel("solver with TV", solved.phase, truth[0].numpy()),
    fs.plots.Panel("truth", truth[0].numpy()),
]
fs.plots.comparison_figure(panels, pixel=model.object_pixel[0])

# %% [markdown]
# The solver needs no training, and is better. The network answers in milliseconds, and is a start for more:
# [engines](../engines.md#for-users-of-torch) says what else there is for users of torch and deepinv.
