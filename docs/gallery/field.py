# %% [markdown]
# # The whole field, in tiles
#
# Frames larger than one reconstruction handles well are cut into tiles. Each tile has its own angles and its own pupil. Then
# all are put together.

# %%
# !fouriscope simulate data --frame 160 --radius 3 --field

# %%
from PIL import Image

import fouriscope as fs

result = fs.reconstruct_field("data/config.toml", "field", tile=96, workers=1, iterations=40)
print("failed tiles:", result.failed or "none")

# %% [markdown]
# The phase of the stitched field, and below it how well each tile went.

# %%
Image.open("field/result/figure.png")

# %% [markdown]
# From a terminal: `fouriscope field data/config.toml`. [The whole field](../field.md) says what a tile is, how tiles become one
# image, and how to use a cluster.
