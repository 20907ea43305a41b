# %% [markdown]
# # What the camera sees
#
# This sheet shows every frame at the place of its LED. Inside the circle, an LED's direct light passes the objective: bright
# field. Outside it does not: dark field.
#
# `fouriscope info acquisition.toml --sheet frames.png` draws this sheet from your own frames. Look at it first: most mistakes
# in a description show here.

# %%
from skimage.data import camera
from skimage.transform import resize

import fouriscope as fs

optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
leds = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
model = fs.ForwardModel(optics, leds, frame_shape=(48, 48))
phase = 0.8 * resize(camera() / 255, model.object_shape)
data = fs.simulate(model, phase, snr_db=40, noise="frame", seed=0)

brightness = [frame.mean() for frame in data.frames]
fs.plots.contact_sheet(data.frames, model.geometry.na, optics.na, brightness)

# %% [markdown]
# What the optics can do follows from the description alone.

# %%
print(model.report())
