"""The page of a whole field: its images, and how well each tile went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fouriscope.plots.images import checked_image, colour_limits, micrometres, panel_width, scale_bar, show_image
from fouriscope.plots.page import colour_bar, finished, header, new_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# In inches.
IMAGE_WIDTH = 6.0
MAP_WIDTH = 2.4
COLOUR_BAR_SPACE = 1.1


def field_figure(
    phase: npt.ArrayLike,
    amplitude: npt.ArrayLike | None = None,
    maps: Mapping[str, npt.ArrayLike] | None = None,
    *,
    flattened: bool = False,
    pixel: float | None = None,
    title: str = "",
    cmap: str = "gray",
) -> Figure:
    """One page about one field: phase, amplitude if there is one, and beneath them maps with one value per tile.

    Parameters
    ----------
    phase
        The phase in radians; NaN, where no tile is, has a warning colour.
    amplitude
        The amplitude, for complex objects.
    maps
        Small images by their names, such as ``{"misfit": …}``; maps without a finite value are left out.
    flattened
        Whether ``phase`` is without its slow background; the header then says so.
    pixel
        Size of a pixel of ``phase`` in metres; draws the scale bar.
    title
        A line above everything.
    cmap
        The colour map of phase and amplitude.

    Examples
    --------
    >>> figure = field_figure(np.eye(32), maps={"misfit": [[1.0, 2.0], [np.nan, 3.0]]}, pixel=1e-6)
    >>> len(figure.axes)  # phase and misfit
    2
    """
    name = "Phase, background removed" if flattened else "Phase"
    images = [(name, checked_image(phase, "phase"), "phase (rad)")]
    if amplitude is not None:
        images.append(("Amplitude", checked_image(amplitude, "amplitude"), "amplitude"))
    small = {name: np.asarray(values, np.float64) for name, values in (maps or {}).items()}
    small = {name: values for name, values in small.items() if np.isfinite(values).any()}
    rows, columns = images[0][1].shape
    width = panel_width(IMAGE_WIDTH, (rows, columns))
    heights = [width * rows / columns, *([MAP_WIDTH * rows / columns] if small else [])]
    page_width = max(len(images) * (width + COLOUR_BAR_SPACE), len(small) * (MAP_WIDTH + COLOUR_BAR_SPACE))
    figure = new_page(page_width, sum(heights) + 0.5 * len(heights), title)
    bands = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    above = bands[0].subgridspec(1, len(images)).subplots(squeeze=False)[0]
    for axes, (name, image, label) in zip(above, images, strict=True):
        drawn = show_image(axes, image, cmap, colour_limits([image]), (rows, columns))
        header(axes, name)
        colour_bar(axes, drawn, label)
    scale_bar(above[0], micrometres(pixel))
    for place, (name, values) in enumerate(small.items()):
        axes = figure.add_subplot(bands[1].subgridspec(1, len(small))[place])
        drawn = show_image(axes, checked_image(values, name), "viridis", colour_limits([values]), (rows, columns))
        header(axes, f"{name.capitalize()} of each tile")
        colour_bar(axes, drawn, name)
    return finished(figure)
