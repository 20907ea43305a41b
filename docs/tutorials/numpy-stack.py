# %% [markdown]
# # My own NumPy stack
#
# You have frames in a NumPy array and know where your LEDs are. This page turns them into a phase image.
#
# ## What you need
#
# | name | what | unit |
# |---|---|---|
# | `stack` | frames, shape (frames, rows, columns) | camera counts |
# | `positions` | place of the LED of each frame, (y, x) from the optical axis | metres |
# | `height` | distance from the LEDs to the sample | metres |
# | wavelength, NA, magnification, camera pixel | from your light source, objective and camera | metres |
#
# Here a simulation stands in for the camera. It writes 16-bit counts with an offset, as most cameras do.

# %%
import numpy as np
from skimage.data import camera
from skimage.transform import resize

import fouriscope as fs

optics = fs.Optics(wavelength=523e-9, na=0.1, magnification=4, camera_pixel=4e-6)
grid = 4e-3 * (np.arange(9) - 4)
positions = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
height = 0.09

wide = fs.ForwardModel(optics, fs.LEDArray.at(positions, height=height), frame_shape=(96, 96))
truth = 1.0 * resize(camera() / 255, wide.object_shape)
intensity = np.asarray(fs.simulate(wide, truth, camera=fs.Camera(photons=5000), seed=0).frames)
stack = np.round(100 + 8000 * intensity[:, 16:80, 16:80]).astype(np.uint16)
print(stack.shape, stack.dtype)

# %% [markdown]
# ## 1. Counts to an acquisition
#
# An acquisition is the frames together with the microscope that took them. fouriscope works in units of the empty bright
# field: 1 is what the camera shows with a bright-field LED and no sample. `from_counts` subtracts what the camera counts
# without light, here 100, and divides by the counts of the empty field. If you do not give these (`bright_field=`), the
# median of the bright-field frames is taken. With exposures of different lengths, add `exposures=`, one per frame.

# %%
leds = fs.LEDArray.at(positions, height=height)
data = fs.Acquisition.from_counts(optics, leds, stack, dark=100)
data

# %% [markdown]
# ## 2. Look at it
#
# Each frame is drawn at the direction of its LED. Frames inside the circle must be bright, frames outside dark.

# %%
data.plot()

# %% [markdown]
# ## 3. Reconstruct
#
# `fs.reconstruct(data)` first aligns the microscope: it looks for the place of the LED array, longer exposures of the dark
# field, and the focus. Here we know them, so `align=()` skips the search. With real frames, leave it out. `progress=True`
# shows how far it is.

# %%
result = fs.reconstruct(data, align=(), iterations=60)
result.plot()

# %% [markdown]
# ## 4. Use the result
#
# The result holds NumPy arrays and the size of a pixel in metres.

# %%
print(result.phase.shape, result.phase.dtype, result.pixel)
folder = result.save("runs/first")  # OME-TIFF, OME-Zarr and a figure

# %% [markdown]
# ## If it does not look right
#
# * **Everything is blurred**: let `fs.reconstruct` align, or call `found = fs.align(data, tell=print)` and read what it says.
# * **(x, y) instead of (y, x)**: swap the columns of `positions`. The sheet of [frames](../gallery/frames.md) shows it.
# * **Counts instead of intensity**: frames must be near 1 in the bright field. `fs.reconstruct` warns if they are not.
#
# [From my microscope to a picture](../from-my-microscope-to-a-picture.md) has a longer list.
