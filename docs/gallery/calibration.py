# %% [markdown]
# # Calibration, before and after
#
# This lens has aberrations, and the brightness of the LEDs varies by 10 %. The description knows about neither.
#
# The first run trusts the description. The second refines Zernike coefficients of the pupil and the gain of each LED while
# it reconstructs.

# %%
from skimage.data import camera
from skimage.transform import resize

import fouriscope as fs

optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
leds = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
lens = fs.ForwardModel(optics, leds, frame_shape=(64, 64), pupil=fs.Pupil({5: 0.5, 7: -0.4, 8: 0.3}))
phase = 0.8 * resize(camera() / 255, lens.object_shape)
measured = fs.simulate(lens, phase, snr_db=40, noise="frame", led_intensity_error=0.1, seed=0)

data = fs.Acquisition(optics, leds, measured.frames, periodic=True)  # what the description says: a perfect lens
options = {"loss": "amplitude", "batch": 20, "iterations": 100, "seed": 0}
before = fs.reconstruct(data, **options)
after = fs.reconstruct(data, calibrate=["zernike", "gains"], **options)

# %%
panels = [
    fs.plots.snr_panel("before", before.phase, phase),
    fs.plots.snr_panel("after", after.phase, phase),
    fs.plots.Panel("truth", phase),
]
fs.plots.comparison_figure(panels, pixel=lens.object_pixel[0], zoom=(70, 90, 60))

# %% [markdown]
# The coefficients that were found, in radians. The true ones are 0.5, −0.4 and 0.3 for modes 5, 7 and 8, and 0 for all others.

# %%
for mode, coefficient in after.geometry.zernike.items():
    if abs(coefficient) > 0.03:
        print(f"mode {mode}: {coefficient:+.2f}")

# %%
import matplotlib.pyplot as plt
import numpy as np

figure, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
for side, pupil, name in zip(axes, (before.pupil, after.pupil), ("assumed pupil", "recovered pupil"), strict=True):
    shown = np.where(np.abs(pupil) > 0, np.angle(pupil), np.nan)
    image = side.imshow(shown, cmap="twilight", vmin=-np.pi, vmax=np.pi)
    side.set(title=name, xticks=[], yticks=[])
_ = figure.colorbar(image, ax=axes, label="phase (rad)")

# %% [markdown]
# [Alignment and calibration](../calibration.md) says what can be found, and when not to look for it.
