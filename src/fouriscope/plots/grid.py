"""Images in rows and columns on one colour scale, each with the same close-ups beneath it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fouriscope.errors import InvalidInputError
from fouriscope.plots.comparison import CLOSE_UP_COLOURS, Panel, check_zoom, draw_rows
from fouriscope.plots.images import checked_image

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def grid_figure(
    rows: Sequence[Sequence[Panel]],
    *,
    pixel: float | None = None,
    zooms: Sequence[tuple[int, int, int]] = (),
    title: str = "",
    cmap: str = "gray",
    colour_label: str = "phase (rad)",
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Rows of images of one field on one colour scale, so that any two of them can be compared.

    Parameters
    ----------
    rows
        The panels, row by row; all rows of one length, all images of one shape.
    pixel
        Size of a pixel in metres; draws a scale bar into the first image and its close-ups.
    zooms
        Up to two squares (row, column, size) in pixels, shown side by side beneath every image.
    title
        A line above everything.
    cmap
        The colour map of all panels.
    colour_label
        What the scale measures, with its unit.
    limits
        (lowest, highest) value of the scale; otherwise the central 99.8 % of the values.

    Examples
    --------
    >>> import numpy as np
    >>> phase = np.add.outer(np.linspace(0, 1, 50), np.linspace(0, 1, 50))
    >>> batch, online = [Panel("Batch", phase)] * 3, [Panel("Online", phase)] * 3
    >>> figure = grid_figure([batch, online], pixel=0.16e-6, zooms=[(0, 0, 10), (30, 20, 12)])
    >>> len(figure.axes)  # six images with two close-ups each
    18
    """
    if not rows or not rows[0] or len({len(row) for row in rows}) != 1:
        raise InvalidInputError(
            f"grid_figure needs rows of panels, all of one length, but they hold {[len(row) for row in rows]}"
        )
    if len(zooms) > len(CLOSE_UP_COLOURS):
        raise InvalidInputError(f"there is room for {len(CLOSE_UP_COLOURS)} close-ups, but {len(zooms)} were given")
    images = [[checked_image(panel.image, f"panel {panel.title!r}") for panel in row] for row in rows]
    shapes = {image.shape for row in images for image in row}
    if len(shapes) != 1:
        raise InvalidInputError(f"all panels of a grid must have the same shape, but they have {sorted(shapes)}")
    field: tuple[int, int] = next(iter(shapes))
    for zoom in zooms:
        check_zoom(zoom, field)
    return draw_rows(rows, images, field, zooms, pixel, title, cmap, colour_label, limits)
