"""Images on a page: what may be drawn, on which colour scale, and with which scale bar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fouriscope.errors import InvalidInputError
from fouriscope.plots.page import frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RealArray: TypeAlias = npt.NDArray[np.float64]

INVALID_PIXEL = "#d55e00"


def checked_image(values: npt.ArrayLike, name: str) -> RealArray:
    """``values`` as a float64 copy with NaN for what is not finite, or say why ``name`` cannot be drawn."""
    array = np.asarray(values)
    if array.ndim != 2 or array.size == 0 or array.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"{name} must be a real 2-D image, but it has shape {array.shape} and type {array.dtype}; "
            "pass one image, and of a field its phase or amplitude"
        )
    image = array.astype(np.float64)
    # NaN marks masked pixels and is drawn in a warning colour; an image of nothing else has no scale.
    if not np.isfinite(image).any():
        raise InvalidInputError(f"{name} has no finite value to draw; did the solver diverge?")
    image[~np.isfinite(image)] = np.nan
    return image


def micrometres(pixel: float | None) -> float | None:
    """The size of a pixel in micrometres, from metres."""
    if pixel is None:
        return None
    if not (math.isfinite(pixel) and pixel > 0):
        raise InvalidInputError(f"pixel must be a positive size in metres, or None, but it is {pixel!r}")
    return pixel * 1e6


def colour_limits(images: Sequence[RealArray]) -> tuple[float, float]:
    """The central 99.8 % of the values: a few outliers must not turn the image gray."""
    low, high = np.nanpercentile(np.concatenate([image.ravel() for image in images]), [0.1, 99.9])
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        return float(low) - 0.5, float(high) + 0.5
    return float(low), float(high)


def panel_width(widest: float, field: tuple[int, int]) -> float:
    """Narrower for upright fields, which would otherwise grow taller than a page."""
    rows, columns = field
    return min(widest, 1.6 * widest * columns / rows)


def show_image(axes: Axes, image: RealArray, cmap: str, limits: tuple[float, float], field: tuple[int, int]) -> Any:
    """Draw ``image`` over the whole field; coordinates are pixels of the field, whatever the image's own pixels."""
    import matplotlib

    rows, columns = field
    try:
        colours = matplotlib.colormaps[cmap].with_extremes(bad=INVALID_PIXEL)
    except KeyError:
        raise InvalidInputError(
            f"cmap must name a colour map of matplotlib, such as 'gray' or 'viridis', but it is {cmap!r}"
        ) from None
    axes.set(xticks=[], yticks=[], box_aspect=rows / columns, anchor="NW")
    frame(axes)
    # In single precision matplotlib needs half the memory, and no eye sees more.
    shown = np.asarray(image, np.float32)
    return axes.imshow(shown, cmap=colours, vmin=limits[0], vmax=limits[1], extent=(0, columns, rows, 0), aspect="auto")


def scale_bar(axes: Axes, pixel_um: float | None) -> None:
    """A bar of a round length (1, 2 or 5 times a power of ten) in the lower left corner of an image."""
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke

    if pixel_um is None:
        return
    (left, right), (bottom, _) = axes.get_xlim(), axes.get_ylim()
    width = right - left
    length_um = round_length(0.3 * width * pixel_um)
    x, y = left + 0.04 * width, bottom - 0.05 * width
    axes.add_patch(
        Rectangle((x, y), length_um / pixel_um, 0.014 * width, facecolor="white", edgecolor="black", linewidth=0.5)
    )
    label = axes.text(x, y - 0.02 * width, _length_label(length_um), color="white", fontsize=8.5, fontweight="bold")
    label.set_path_effects([withStroke(linewidth=1.6, foreground="black")])


def round_length(longest: float) -> float:
    """The longest of 1, 2 or 5 times a power of ten that is not above ``longest``."""
    decade = 10.0 ** math.floor(math.log10(longest))
    return max(step * decade for step in (1, 2, 5) if step * decade <= longest * (1 + 1e-9))


def _length_label(length_um: float) -> str:
    if length_um >= 1000:
        return f"{length_um / 1000:g} mm"
    return f"{length_um:g} µm" if length_um >= 1 else f"{length_um * 1000:g} nm"
