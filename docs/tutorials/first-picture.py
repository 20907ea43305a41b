# %% [markdown]
# # First picture in five minutes
#
# From an empty folder to a high-resolution phase image, in four commands. You need Python 3.11 or newer, and no microscope.
#
# **Install.** Either install the package, or clone the repository and run `make demo`, which installs everything into `.venv`.
#
#     pip install fouriscope
#
# **What you are about to see.** An LED-array microscope takes one frame per LED. Every LED lights the sample at a different
# angle. Each frame is blurred, but frames taken at steep angles hold fine detail. Fourier ptychography puts them together
# into one sharp image of the *phase*: how much the sample delays the light.
#
# ## 1. Get frames
#
# This command simulates a small acquisition. It writes the frames and a `config.toml` that describes them.

# %%
# !fouriscope simulate data --frame 64 --radius 6 --snr 50

# %% [markdown]
# One frame as the camera sees it, 64 × 64 pixels:

# %%
import matplotlib.pyplot as plt

import fouriscope as fs

data = fs.load("data/config.toml")
figure, axes = plt.subplots(figsize=(3, 3))
axes.imshow(data.frames[57], cmap="gray")
_ = axes.set(xticks=[], yticks=[])
# %% [markdown]
# ## 2. Ask what to expect
#
# `info` says what these optics can resolve, and whether the frames fit their description.

# %%
# !fouriscope info data/config.toml

# %% [markdown]
# *Synthetic NA* is the aperture that all LEDs make together. *Neighbour overlap* should be above 60 % or so. The
# [glossary](../glossary.md) explains the other words.
#
# ## 3. Reconstruct

# %%
# !fouriscope reconstruct data/config.toml

# %% [markdown]
# You set nothing by hand. Step size, prior strength and image size were found from the frames.
#
# ## 4. Look
#
# The run folder holds the phase as an OME-TIFF for Fiji and napari, and a figure that sums up the run.

# %%
from PIL import Image

Image.open("data/run/result/figure.png")

# %% [markdown]
# `fouriscope view data/run` opens the same run in your browser, with zoom, profiles and every LED.
#
# ## Next
#
# * [My own microscope](../from-my-microscope-to-a-picture.md): the same with your frames.
# * [My own NumPy stack](numpy-stack.md): the same in Python.
# * [Results](../results.md): every file of a run, and how to open it.
