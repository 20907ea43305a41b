"""Images side by side on one colour scale, with a close-up of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
from fouriscope.plots.page import ACCENT, MARGIN, TITLE_HEIGHT, Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# In inches, like everything on the page.
PANEL_WIDTH = 2.8
PANEL_GAP = 0.16
PANEL_HEADER = 0.5
ZOOM_GAP = 0.16
COLOUR_BAR_SPACE = 0.95


@dataclass(frozen=True, eq=False)
class Panel:
    """One image of a comparison.

    >>> import numpy as np
    >>> Panel("Truth", np.zeros((4, 4))).own_scale
    False
    """

    title: str
    image: npt.NDArray[Any]
    caption: str = ""
    """A quiet second line, for example the SNR."""
    own_scale: bool = False
    """Stretch this image on its own, such as a camera frame beside phases; the caption then says so."""


def snr_panel(title: str, estimate: npt.ArrayLike, truth: npt.ArrayLike) -> Panel:
    """A panel whose caption is the SNR, shifted by the constant that no camera can see so that it shares the scale.

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

    Args:
        panels: The images, from left to right.
        pixel: Size in metres of a pixel of the finest panel; draws a scale bar.
        zoom: (row, column, size) of the square, its corner and side, in pixels of the finest panel.
        title: A line above everything.
        cmap: The colour map of all panels.
        colour_label: What the shared scale measures, with its unit.
        limits: (lowest, highest) value of the shared scale; otherwise the central 99.8 % of the values.

    >>> import numpy as np
    >>> phase = np.add.outer(np.linspace(0, 1, 50), np.linspace(0, 1, 50))
    >>> frame = Panel("Camera frame", phase[::5, ::5] ** 2, own_scale=True)
    >>> figure = comparison_figure([frame, Panel("Truth", phase)], pixel=0.16e-6, zoom=(10, 10, 12))
    >>> len(figure.axes)  # two rows of two panels, and the colour bar
    5
    """
    if not panels:
        raise InvalidInputError("comparison_figure needs at least one panel, but the sequence is empty")
    images = [checked_image(panel.image, f"panel {panel.title!r}") for panel in panels]
    field = _common_field(images, panels)
    rows, columns = field
    pixel_um = micrometres(pixel)
    if zoom is not None:
        check_zoom(zoom, field)

    shared = [image for image, panel in zip(images, panels, strict=True) if not panel.own_scale]
    shared_limits = (limits or colour_limits(shared)) if shared else None
    width = panel_width(PANEL_WIDTH, field)
    height = width * rows / columns
    zoom_height = 0.0 if zoom is None else ZOOM_GAP + width
    page = Page(
        width=2 * MARGIN + len(panels) * width + (len(panels) - 1) * PANEL_GAP + (COLOUR_BAR_SPACE if shared else 0),
        height=2 * MARGIN + (TITLE_HEIGHT if title else 0) + PANEL_HEADER + height + zoom_height,
    )
    top = MARGIN
    if title:
        page.text(MARGIN, top + 0.02, title, size=13, weight="bold", width=page.width - 2 * MARGIN)
        top += TITLE_HEIGHT
    top += PANEL_HEADER

    drawn = None
    for number, (panel, image) in enumerate(zip(panels, images, strict=True)):
        left = MARGIN + number * (width + PANEL_GAP)
        panel_limits = colour_limits([image]) if panel.own_scale or shared_limits is None else shared_limits
        axes = page.axes(left, top, width, height)
        mappable = show_image(axes, image, cmap, panel_limits, field)
        page.header(left, top, width, panel.title, _caption(panel))
        if not panel.own_scale:
            drawn = mappable
        if number == 0 and pixel_um is not None:
            scale_bar(axes, (0.0, 0.0, columns, rows), pixel_um, width)
        if zoom is not None:
            outline(axes, zoom)
            row, column, size = zoom
            close_up = page.axes(left, top + height + ZOOM_GAP, width, width, frame=ACCENT)
            show_image(close_up, image, cmap, panel_limits, field)
            close_up.set(xlim=(column, column + size), ylim=(row + size, row))
            if number == 0 and pixel_um is not None:
                scale_bar(close_up, (column, row, size, size), pixel_um, width)
    if drawn is not None:
        right_edge = MARGIN + len(panels) * (width + PANEL_GAP) - PANEL_GAP
        page.colour_bar(drawn, right_edge + 0.12, top, height, colour_label)
    return page.figure


def _common_field(images: Sequence[RealArray], panels: Sequence[Panel]) -> tuple[int, int]:
    finest = max(images, key=lambda image: image.size)
    rows, columns = finest.shape
    for image, panel in zip(images, panels, strict=True):
        # A coarser image may miss the exact proportion by the rounding of its own pixels.
        if abs(image.shape[0] - rows * image.shape[1] / columns) > max(1.0, rows / columns):
            raise InvalidInputError(
                f"all panels must show one field, but panel {panel.title!r} has shape {image.shape}, which is not in "
                f"the proportion of {finest.shape}; crop the images to the same field"
            )
    return int(rows), int(columns)


def check_zoom(zoom: tuple[int, int, int], field: tuple[int, int]) -> None:
    """Raise if the square (row, column, size) is not inside the field."""
    row, column, size = zoom
    if size < 1 or row < 0 or column < 0 or row + size > field[0] or column + size > field[1]:
        raise InvalidInputError(
            f"zoom must be (row, column, size) of a square inside the image of shape {field}, but it is {zoom}"
        )


def _caption(panel: Panel) -> str:
    if not panel.own_scale:
        return panel.caption
    return f"{panel.caption} · own scale" if panel.caption else "own scale"


def outline(axes: Axes, zoom: tuple[int, int, int], colour: str = ACCENT) -> None:
    """The square of a close-up, drawn into the image it comes from."""
    from matplotlib.patches import Rectangle

    row, column, size = zoom
    axes.add_patch(Rectangle((column, row), size, size, fill=False, edgecolor=colour, linewidth=1.4))
