# %% [markdown]
# # The whole field
#
# A camera frame is usually too large for one reconstruction, because angles and aberrations change over it. `fouriscope field`
# cuts it into tiles.
#
# ## 1. An acquisition
#
# Use your own `acquisition.toml`, or simulate a field. These frames are small, so that this page builds quickly.

# %%
# !fouriscope simulate data --frame 160 --radius 3 --field

# %% [markdown]
# ## 2. What will it take?
#
# `--plan` reconstructs a part of one tile, and computes time, memory and disk for the rest.

# %%
# !fouriscope field data/config.toml --tile 96 --workers 1 --plan

# %% [markdown]
# ## 3. Run it
#
# Each worker is a process with one thread. Without `--workers`, one is started per core. You may press Ctrl-C or switch the
# computer off: the same command continues, and keeps the tiles that are done.

# %%
# !fouriscope field data/config.toml --tile 96 --workers 1

# %%
from PIL import Image

Image.open("data/field/result/figure.png")

# %% [markdown]
# ## 4. Open it
#
# `field.ome.zarr` is an image pyramid. napari and other OME-Zarr viewers show it at any zoom. In Python:

# %%
import zarr

levels = zarr.open_group("data/field/result/field.ome.zarr", mode="r")
print({name: levels[name].shape for name in sorted(levels.array_keys())})

# %% [markdown]
# Do not trust slow phase over several tiles. [The whole field](../field.md) says why, and what happens if a worker dies.
# [On a cluster](cluster.md) does the same on many machines.
