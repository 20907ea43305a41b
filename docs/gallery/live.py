# %% [markdown]
# # While frames arrive
#
# This reconstruction begins with the first frame. Each new frame joins the next iteration, and the estimate improves while
# the microscope still takes frames.

# %%
import matplotlib.pyplot as plt
from skimage.data import camera
from skimage.transform import resize

import fouriscope as fs

optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
leds = fs.LEDArray.spiral(9, pitch=4e-3, height=70e-3)
model = fs.ForwardModel(optics, leds, frame_shape=(48, 48))
phase = 0.5 * resize(camera() / 255, model.object_shape)
microscope = fs.simulate(model, phase, snr_db=40, seed=0)  # stands in for yours

# %%
live = fs.stream(optics, leds, (48, 48), periodic=True, batch=20, seed=0)
snr, shown = [], {}
for led in range(len(leds)):
    live.add(microscope.frames.frame(led), led)
    live.advance(iterations=2)
    snr.append(fs.metrics.snr_both(live.x, phase).aligned)
    if led + 1 in (10, 40, 81):
        shown[f"after {led + 1} frames"] = live.x.copy()
live.advance(iterations=60)
print(live.outlook().sentence)

# %%
panels = [fs.plots.snr_panel(name, estimate, phase) for name, estimate in shown.items()]
panels.append(fs.plots.snr_panel("60 iterations later", live.x, phase))
fs.plots.comparison_figure(panels, pixel=model.object_pixel[0])

# %%
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.plot(range(1, len(snr) + 1), snr)
_ = axes.set(xlabel="frames that have arrived", ylabel="SNR (dB)")

# %% [markdown]
# With files instead of arrays, `fouriscope watch FOLDER` does the same: [live reconstruction](../live.md).
