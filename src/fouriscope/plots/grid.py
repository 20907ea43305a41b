"""Images in rows and columns on one colour scale, each with the same close-ups beneath it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fouriscope.errors import InvalidInputError
from fouriscope.plots.comparison import COLOUR_BAR_SPACE, PANEL_GAP, PANEL_HEADER, Panel, check_zoom, outline
from fouriscope.plots.images import checked_image, colour_limits, micrometres, panel_width, scale_bar, show_image
from fouriscope.plots.page import ACCENT, MARGIN, TITLE_HEIGHT, Page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GRID_PANEL_WIDTH = 3.4
CLOSE_UP_GAP = 0.08
ROW_GAP = 0.1
# Apart from each other in grey too, and for eyes that do not tell red from green.
CLOSE_UP_COLOURS = (ACCENT, "#56b4e9")


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

    Args:
        rows: The panels, row by row; all rows of one length, all images of one shape.
        pixel: Size of a pixel in metres; draws a scale bar into the first image and its close-ups.
        zooms: Up to two squares (row, column, size) in pixels, shown side by side beneath every image.
        title: A line above everything.
        cmap: The colour map of all panels.
        colour_label: What the scale measures, with its unit.
        limits: (lowest, highest) value of the scale; otherwise the central 99.8 % of the values.

    >>> import numpy as np
    >>> phase = np.add.outer(np.linspace(0, 1, 50), np.linspace(0, 1, 50))
    >>> batch, online = [Panel("Batch", phase)] * 3, [Panel("Online", phase)] * 3
    >>> figure = grid_figure([batch, online], pixel=0.16e-6, zooms=[(0, 0, 10), (30, 20, 12)])
    >>> len(figure.axes)  # six images with two close-ups each, and the colour bar
    19
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
        raise InvalidInputError(f"all panels of a grid show one field in one shape, but they have {sorted(shapes)}")
    field: tuple[int, int] = next(iter(shapes))
    for zoom in zooms:
        check_zoom(zoom, field)
    scale = limits or colour_limits([image for row in images for image in row])
    pixel_um = micrometres(pixel)

    width = panel_width(GRID_PANEL_WIDTH, field)
    height = width * field[0] / field[1]
    side = (width - CLOSE_UP_GAP) / 2
    row_height = PANEL_HEADER + height + (CLOSE_UP_GAP + side if zooms else 0.0) + ROW_GAP
    columns = len(rows[0])
    page = Page(
        width=2 * MARGIN + columns * width + (columns - 1) * PANEL_GAP + COLOUR_BAR_SPACE,
        height=2 * MARGIN + (TITLE_HEIGHT if title else 0) + len(rows) * row_height - ROW_GAP,
    )
    first = MARGIN + (TITLE_HEIGHT if title else 0) + PANEL_HEADER
    if title:
        page.text(MARGIN, MARGIN + 0.02, title, size=13, weight="bold", width=page.width - 2 * MARGIN)
    for number, (panels, pictures) in enumerate(zip(rows, images, strict=True)):
        top = first + number * row_height
        for column, (panel, image) in enumerate(zip(panels, pictures, strict=True)):
            left = MARGIN + column * (width + PANEL_GAP)
            axes = page.axes(left, top, width, height)
            drawn = show_image(axes, image, cmap, scale, field)
            page.header(left, top, width, panel.title, panel.caption)
            barred = number == 0 and column == 0 and pixel_um is not None
            if barred and pixel_um is not None:
                scale_bar(axes, (0.0, 0.0, field[1], field[0]), pixel_um, width)
            for place, (zoom, colour) in enumerate(zip(zooms, CLOSE_UP_COLOURS, strict=False)):
                outline(axes, zoom, colour)
                row, corner, size = zoom
                close_up = page.axes(
                    left + place * (side + CLOSE_UP_GAP), top + height + CLOSE_UP_GAP, side, side, frame=colour
                )
                show_image(close_up, image, cmap, scale, field)
                close_up.set(xlim=(corner, corner + size), ylim=(row + size, row))
                if barred and pixel_um is not None:
                    scale_bar(close_up, (corner, row, size, size), pixel_um, side)
    page.colour_bar(drawn, MARGIN + columns * (width + PANEL_GAP) - PANEL_GAP + 0.12, first, height, colour_label)
    return page.figure
