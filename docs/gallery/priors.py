# %% [markdown]
# # Priors side by side
#
# The same frames, reconstructed with no prior, total variation, BM3D and a small network. Each prior finds its own strength
# from the noise.
#
# All four runs take 120 iterations of 30 frames. Without a prior, the noise of the frames stays in the image.

# %%
from skimage.data import camera
from skimage.transform import resize

import fouriscope as fs

optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
leds = fs.LEDArray.disc(pitch=4e-3, height=70e-3, radius=7)
model = fs.ForwardModel(optics, leds, frame_shape=(64, 64))
phase = 0.3 * resize(camera() / 255, model.object_shape)  # radians
data = fs.simulate(model, phase, snr_db=35, noise="stack", seed=0)

# %%
priors = {"no prior": None, "total variation": fs.TV(), "BM3D": fs.BM3D(profile="fast"), "small CNN": fs.SmallCNN()}
found = {name: fs.reconstruct(data, prior=prior, batch=30, iterations=120, seed=0) for name, prior in priors.items()}

# %% [markdown]
# The SNR is measured against the true phase. It leaves out the constant phase, which no camera can see; the raw SNR includes
# it, and is low for that reason.

# %%
panels = [fs.plots.snr_panel(name, result.phase, phase) for name, result in found.items()]
fs.plots.comparison_figure(panels, pixel=model.object_pixel[0], zoom=(70, 90, 60))

# %% [markdown]
# [Priors and their strength](../priors.md) explains how each works, and what sets its strength.
