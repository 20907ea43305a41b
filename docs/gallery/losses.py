# %% [markdown]
# # Losses and noise
#
# The same object under photon noise, with three losses and with the automatic one. Few photons reach the dark field, and the
# losses differ in how much they trust it.
#
# The camera counts 300 electrons per pixel in the empty bright field and adds 2 electrons of read noise. The plain
# amplitude loss takes read noise for light; `fs.AmplitudeLoss(background)` tells it how much there is.

# %%
from skimage.data import camera
from skimage.transform import resize

import fouriscope as fs

optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
leds = fs.LEDArray.disc(pitch=4e-3, height=70e-3, radius=6)
model = fs.ForwardModel(optics, leds, frame_shape=(64, 64))
phase = 0.8 * resize(camera() / 255, model.object_shape)
data = fs.simulate(model, phase, camera=fs.Camera(photons=300, read_noise=2), seed=0)

# %%
losses = {"auto": "auto", "intensity": fs.IntensityLoss(), "amplitude": fs.AmplitudeLoss(), "poisson": fs.PoissonLoss()}
found = {
    name: fs.reconstruct(data, loss=loss, prior=fs.TV(), start="flat", batch=30, iterations=150, seed=0)
    for name, loss in losses.items()
}
panels = [fs.plots.snr_panel(name, result.phase, phase) for name, result in found.items()]
fs.plots.comparison_figure(panels, pixel=model.object_pixel[0], zoom=(60, 80, 50))

# %% [markdown]
# The automatic loss measures how noisy the camera is. [Solver, step and loss](../solver.md) says how, and which loss suits which
# noise.
