"""The page of a whole field: its images, and how well each tile went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fouriscope.plots.comparison import PANEL_HEADER
from fouriscope.plots.images import checked_image, colour_limits, micrometres, panel_width, scale_bar, show_image
from fouriscope.plots.page import MARGIN, TITLE_HEIGHT, Page

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
    pixel: float | None = None,
    title: str = "",
    cmap: str = "gray",
) -> Figure:
    """One page about one field: phase, amplitude if there is one, and beneath them maps with one value a tile.

    Args:
        phase: The phase in radians; NaN, where no tile is, has a warning colour.
        amplitude: The amplitude, for complex objects.
        maps: Small images by their names, such as ``{"misfit": …}``; maps without a finite value are left out.
        pixel: Size of a pixel of ``phase`` in metres; draws the scale bar.
        title: A line above everything.
        cmap: The colour map of phase and amplitude.

    >>> figure = field_figure(np.eye(32), maps={"misfit": [[1.0, 2.0], [np.nan, 3.0]]}, pixel=1e-6)
    >>> len(figure.axes)  # phase and misfit, each with its colour bar
    4
    """
    images = [("Phase", checked_image(phase, "phase"), "phase (rad)")]
    if amplitude is not None:
        images.append(("Amplitude", checked_image(amplitude, "amplitude"), "amplitude"))
    small = {name: np.asarray(values, np.float64) for name, values in (maps or {}).items()}
    small = {name: values for name, values in small.items() if np.isfinite(values).any()}
    rows, columns = images[0][1].shape
    width = panel_width(IMAGE_WIDTH, (rows, columns))
    height = width * rows / columns
    map_height = MAP_WIDTH * rows / columns
    page = Page(
        width=2 * MARGIN + max(len(images) * (width + COLOUR_BAR_SPACE), len(small) * (MAP_WIDTH + COLOUR_BAR_SPACE)),
        height=2 * MARGIN
        + (TITLE_HEIGHT if title else 0)
        + PANEL_HEADER
        + height
        + (PANEL_HEADER + map_height if small else 0),
    )
    top = MARGIN + (TITLE_HEIGHT if title else 0) + PANEL_HEADER
    if title:
        page.text(MARGIN, MARGIN + 0.02, title, size=13, weight="bold", width=page.width - 2 * MARGIN)
    pixel_um = micrometres(pixel)
    for place, (name, image, label) in enumerate(images):
        left = MARGIN + place * (width + COLOUR_BAR_SPACE)
        axes = page.axes(left, top, width, height)
        drawn = show_image(axes, image, cmap, colour_limits([image]), (rows, columns))
        page.header(left, top, width, name, "")
        page.colour_bar(drawn, left + width + 0.08, top, height, label)
        if place == 0 and pixel_um is not None:
            scale_bar(axes, (0.0, 0.0, columns, rows), pixel_um, width)
    top += height + PANEL_HEADER
    for place, (name, values) in enumerate(small.items()):
        left = MARGIN + place * (MAP_WIDTH + COLOUR_BAR_SPACE)
        axes = page.axes(left, top, MAP_WIDTH, map_height)
        drawn = show_image(axes, checked_image(values, name), "viridis", colour_limits([values]), (rows, columns))
        page.header(left, top, MAP_WIDTH, f"{name.capitalize()} of each tile", "")
        page.colour_bar(drawn, left + MAP_WIDTH + 0.08, top, map_height, name)
    return page.figure
