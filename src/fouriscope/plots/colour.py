"""The page of a colour reconstruction: what the eye would see, and the phase of each wavelength."""

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
IMAGE_WIDTH = 4.0
COLOUR_BAR_SPACE = 1.0


def colour_figure(
    rgb: npt.ArrayLike, phases: Mapping[str, npt.ArrayLike], *, pixel: float | None = None, title: str = ""
) -> Figure:
    """One page about one field in colours: the picture, and beside it the phase of each channel.

    Parameters
    ----------
    rgb
        The picture, (rows, columns, 3) of 8 bits.
    phases
        The phase of each channel in radians, by its name.
    pixel
        Size of a pixel in metres; draws the scale bar.
    title
        A line above everything.

    Examples
    --------
    >>> figure = colour_figure(np.zeros((8, 8, 3), np.uint8), {"red": np.eye(8), "blue": np.eye(8)}, pixel=1e-6)
    >>> len(figure.axes)  # the picture and two phases
    3
    """
    picture = np.asarray(rgb)
    rows, columns = picture.shape[:2]
    width = panel_width(IMAGE_WIDTH, (rows, columns))
    count = 1 + len(phases)
    figure = new_page(count * (width + COLOUR_BAR_SPACE), width * rows / columns + 0.5, title)
    panels = figure.add_gridspec(1, count).subplots(squeeze=False)[0]
    panels[0].imshow(picture, interpolation="nearest")
    panels[0].set_axis_off()
    header(panels[0], "Transmitted light")
    scale_bar(panels[0], micrometres(pixel))
    for axes, (name, phase) in zip(panels[1:], phases.items(), strict=True):
        image = checked_image(phase, name)
        drawn = show_image(axes, image, "gray", colour_limits([image]), (rows, columns))
        header(axes, f"Phase, {name}")
        colour_bar(axes, drawn, "phase (rad)")
    return finished(figure)
