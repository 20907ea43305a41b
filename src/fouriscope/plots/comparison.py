"""Images side by side on one colour scale, with a close-up of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fouriscope.errors import InvalidInputError
from fouriscope.metrics import remove_constant, snr_both
from fouriscope.plots.images import (
    RealArray,
    checked_image,
    colour_limits,
    micrometres,
    panel_width,
    scale_bar,
    show_image,
)
from fouriscope.plots.page import ACCENT, colour_bar, finished, frame, header, new_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANEL_WIDTH = 2.8  # in inches
# Apart from each other in grey too, and for eyes that do not tell red from green.
CLOSE_UP_COLOURS = (ACCENT, "#56b4e9")


@dataclass(frozen=True, eq=False)
class Panel:
    """One image of a comparison.

    Parameters
    ----------
    title, image
        The heading, and what is shown below it.
    caption
        A quiet second line, for example the SNR.
    own_scale
        Whether this image is stretched on its own, such as a camera frame beside phases. The caption then says so.

    Examples
    --------
    >>> import numpy as np
    >>> Panel("Truth", np.zeros((4, 4))).own_scale
    False
    """

    title: str
    image: npt.NDArray[Any]
    caption: str = ""
    own_scale: bool = False


def snr_panel(title: str, estimate: npt.ArrayLike, truth: npt.ArrayLike) -> Panel:
    """A panel whose caption is the SNR, shifted by the constant that no camera can see so that it shares the scale.

    Parameters
    ----------
    title
        The title of the panel.
    estimate, truth
        Two real images of one shape.

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.array([[0.0, 3.0], [4.0, 0.0]])
    >>> snr_panel("TV-Online", truth + [[1.1, 1.0], [0.9, 1.0]], truth).caption
    'SNR 31.0 dB  (raw 7.9 dB)'
    """
    score = snr_both(estimate, truth)
    caption = f"SNR {score.aligned:.1f} dB  (raw {score.raw:.1f} dB)".replace("-", "−")
    return Panel(title, remove_constant(estimate, truth), caption)


def comparison_figure(
    panels: Sequence[Panel],
    *,
    pixel: float | None = None,
    zoom: tuple[int, int, int] | None = None,
    title: str = "",
    cmap: str = "gray",
    colour_label: str = "phase (rad)",
    limits: tuple[float, float] | None = None,
) -> Figure:
    """A row of images on one colour scale and, with ``zoom``, a second row that shows a small square of each.

    All panels show the same field, so they are drawn at the same physical size whatever their number of pixels.

    Parameters
    ----------
    panels
        The images, from left to right.
    pixel
        Size in metres of a pixel of the finest panel; draws a scale bar.
    zoom
        (row, column, size) of the square, its corner and side, in pixels of the finest panel.
    title
        A line above everything.
    cmap
        The colour map of all panels.
    colour_label
        What the shared scale measures, with its unit.
    limits
        (lowest, highest) value of the shared scale; otherwise the central 99.8 % of the values.

    Examples
    --------
    >>> import numpy as np
    >>> phase = np.add.outer(np.linspace(0, 1, 50), np.linspace(0, 1, 50))
    >>> frame = Panel("Camera frame", phase[::5, ::5] ** 2, own_scale=True)
    >>> figure = comparison_figure([frame, Panel("Truth", phase)], pixel=0.16e-6, zoom=(10, 10, 12))
    >>> len(figure.axes)  # two rows of two panels
    4
    """
    if not panels:
        raise InvalidInputError("comparison_figure needs at least one panel, but the sequence is empty")
    images = [checked_image(panel.image, f"panel {panel.title!r}") for panel in panels]
    field = _common_field(images, panels)
    if zoom is not None:
        check_zoom(zoom, field)

    return draw_rows(
        [panels], [images], field, () if zoom is None else (zoom,), pixel, title, cmap, colour_label, limits
    )


def draw_rows(
    rows: Sequence[Sequence[Panel]],
    images: Sequence[Sequence[RealArray]],
    field: tuple[int, int],
    zooms: Sequence[tuple[int, int, int]],
    pixel: float | None,
    title: str,
    cmap: str,
    colour_label: str,
    limits: tuple[float, float] | None,
) -> Figure:
    """Rows of ``images``, which are those of the panels, each with its close-ups side by side beneath it."""
    from matplotlib.patches import Rectangle

    pixel_um = micrometres(pixel)
    pairs = [list(zip(*row, strict=True)) for row in zip(rows, images, strict=True)]
    shared = [image for row in pairs for panel, image in row if not panel.own_scale]
    scale = (limits or colour_limits(shared)) if shared else (0.0, 1.0)
    width = panel_width(PANEL_WIDTH, field)
    heights = [width * field[0] / field[1], *([width / len(zooms)] if zooms else [])]
    lines, columns, across = len(heights), len(rows[0]), len(zooms) or 1
    figure = new_page(columns * (width + 0.2) + 0.7, len(rows) * (sum(heights) + 0.16 * lines + 0.45), title)
    grid = figure.add_gridspec(len(rows) * lines, columns * across, height_ratios=heights * len(rows))
    bar = None
    for row, column in np.ndindex(len(rows), columns):
        panel, image = pairs[row][column]
        axes = figure.add_subplot(grid[row * lines, column * across : (column + 1) * across])
        panel_limits = colour_limits([image]) if panel.own_scale else scale
        drawn = show_image(axes, image, cmap, panel_limits, field)
        header(axes, panel.title, _caption(panel))
        views = [axes]
        for place, ((top, left, size), colour) in enumerate(zip(zooms, CLOSE_UP_COLOURS, strict=False)):
            axes.add_patch(Rectangle((left, top), size, size, fill=False, edgecolor=colour, linewidth=1.4))
            close_up = figure.add_subplot(grid[row * lines + 1, column * across + place])
            show_image(close_up, image, cmap, panel_limits, field)
            close_up.set(xlim=(left, left + size), ylim=(top + size, top), box_aspect=1)
            frame(close_up, colour, 1.2)
            views.append(close_up)
        if row == column == 0:
            for view in views:
                scale_bar(view, pixel_um)
        if row == 0:
            last, bar = axes, bar if panel.own_scale else drawn
    if bar is not None:
        colour_bar(last, bar, colour_label)
    return finished(figure)


def _common_field(images: Sequence[RealArray], panels: Sequence[Panel]) -> tuple[int, int]:
    finest = max(images, key=lambda image: image.size)
    rows, columns = finest.shape
    for image, panel in zip(images, panels, strict=True):
        # A coarser image may miss the exact proportion by the rounding of its own pixels.
        if abs(image.shape[0] - rows * image.shape[1] / columns) > max(1.0, rows / columns):
            raise InvalidInputError(
                f"all panels must show the same field, but panel {panel.title!r} has shape {image.shape}, not in "
                f"the proportion of {finest.shape}; crop the images to the same field"
            )
    return int(rows), int(columns)


def check_zoom(zoom: tuple[int, int, int], field: tuple[int, int]) -> None:
    """Raise if the square (row, column, size) is not inside the field.

    Parameters
    ----------
    zoom
        (row, column, size) in pixels.
    field
        (rows, columns) of the image.
    """
    row, column, size = zoom
    if size < 1 or row < 0 or column < 0 or row + size > field[0] or column + size > field[1]:
        raise InvalidInputError(
            f"zoom must be (row, column, size) of a square inside the image of shape {field}, but it is {zoom}"
        )


def _caption(panel: Panel) -> str:
    if not panel.own_scale:
        return panel.caption
    return f"{panel.caption} · own scale" if panel.caption else "own scale"
