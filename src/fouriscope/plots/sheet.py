"""The contact sheet of an acquisition: every frame at the place of its LED, and how bright it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from fouriscope.errors import InvalidInputError
from fouriscope.plots.curves import open_axes
from fouriscope.plots.images import RealArray
from fouriscope.plots.page import ACCENT, HAIRLINE, INK, finished, frame, header, new_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAD = "#d55e00"
_THUMBNAIL = 48  # pixels
_CANVAS = 2400  # pixels along the longer side, at most


class FrameSource(Protocol):
    """Anything with ``shape`` and ``frame(i)``."""

    @property
    def shape(self) -> tuple[int, int, int]: ...

    def frame(self, index: int) -> npt.NDArray[Any]: ...


def contact_sheet(
    frames: FrameSource,
    directions: npt.ArrayLike,
    na: float,
    brightness: npt.ArrayLike,
    rejected: Mapping[int, str] | None = None,
    *,
    title: str = "",
) -> Figure:
    """Every frame at its direction (na_y down, na_x to the right, as rows and columns run), and its brightness.

    Bright-field frames share one grey scale; a dark-field frame has its own, up to its 99.8th percentile, because they
    differ by orders of magnitude. The circle is the objective's ``na``: inside it is bright field. A frame on the
    wrong side of the circle, or unlike its neighbours, is an LED in the wrong place.

    Parameters
    ----------
    frames
        Anything with ``shape`` and ``frame(i)``.
    directions
        (frames, 2) directions (na_y, na_x).
    na
        NA of the objective.
    brightness
        One number per frame.
    rejected
        Frames that are left out, with the reason.
    title
        A line above everything; by default the number of frames.

    Examples
    --------
    >>> from fouriscope.acquisition import ArrayFrames
    >>> stack = ArrayFrames(np.random.default_rng(0).random((3, 8, 8)))
    >>> figure = contact_sheet(stack, [(0, 0), (0, 0.1), (0.1, 0)], 0.05, [1.0, 0.1, 0.2])
    >>> len(figure.axes)
    2
    """
    places, level = np.asarray(directions, np.float64), np.asarray(brightness, np.float64)
    count = frames.shape[0]
    if places.shape != (count, 2) or level.shape != (count,):
        raise InvalidInputError(
            f"each of {count} frames needs a direction and a brightness, got shapes {places.shape} and {level.shape}"
        )
    bad = dict(rejected or {})
    bright = np.hypot(places[:, 0], places[:, 1]) <= na * (1 + 1e-9)
    side = _side(places)
    reach = float(np.abs(places).max()) + side
    reach = max(reach, 1.1 * na)
    bright_count = int(bright.sum())
    heading = title or f"{count} frames: {bright_count} bright field, {count - bright_count} dark field"
    heading += f", {len(bad)} rejected" if bad else ""
    figure = new_page(11.4, 7.2, heading)
    frames_axes, level_axes = figure.subplots(1, 2, width_ratios=(6.4, 3.4))
    _draw_frames(frames_axes, frames, places, bright, side, reach)
    _draw_marks(frames_axes, places, na, side, reach, bad)
    _draw_brightness(level_axes, level, bright, bad)
    header(frames_axes, "", "each frame at its LED's direction")
    header(level_axes, "", "mean of each frame, in the order of the LEDs")
    return finished(figure)


def _side(places: RealArray) -> float:
    """Side of a thumbnail in NA such that neighbours do not overlap: a low percentile of the nearest distances."""
    if len(places) < 2:
        return 0.1
    apart = np.abs(places[:, None] - places[None, :]).max(axis=2)
    np.fill_diagonal(apart, np.inf)
    nearest = apart.min(axis=1)
    distinct = nearest[nearest > 1e-9]
    return 0.92 * float(np.percentile(distinct, 5)) if len(distinct) else 0.1


def _draw_frames(
    axes: Axes, frames: FrameSource, places: RealArray, bright: npt.NDArray[np.bool_], side: float, reach: float
) -> None:
    pixels = int(np.clip(_THUMBNAIL * 2 * reach / side, 200, _CANVAS))
    size = max(2, round(side / (2 * reach) * pixels))
    canvas = np.full((pixels, pixels), np.nan, np.float32)
    thumbnails = [_thumbnail(frames.frame(index), size) for index in range(len(places))]
    lit = [image for image, is_bright in zip(thumbnails, bright, strict=True) if is_bright]
    common = float(np.nanpercentile(np.stack(lit), 99.8)) if lit else 1.0
    for image, (y, x), is_bright in zip(thumbnails, places, bright, strict=True):
        floor = 0.0 if is_bright else float(np.nanmin(image))
        scale = common if is_bright else float(np.nanpercentile(image, 99.8)) - floor
        row, column = (round((value + reach) / (2 * reach) * pixels - size / 2) for value in (y, x))
        row, column = (int(np.clip(start, 0, pixels - size)) for start in (row, column))
        shown = np.clip((image - floor) / scale, 0, 1) if scale > 0 else np.zeros_like(image)
        canvas[row : row + size, column : column + size] = shown
    axes.imshow(canvas, cmap="gray", vmin=0, vmax=1, extent=(-reach, reach, reach, -reach), interpolation="nearest")


def _thumbnail(frame: npt.NDArray[Any], size: int) -> npt.NDArray[np.float32]:
    """The central square of a frame, averaged over blocks (or repeated) to size × size."""
    image = np.asarray(frame, np.float32)
    edge = min(image.shape)
    row, column = ((length - edge) // 2 for length in image.shape)
    image = image[row : row + edge, column : column + edge]
    if edge >= size:
        block = edge // size
        blocks = image[: block * size, : block * size].reshape(size, block, size, block)
        return np.asarray(blocks.mean(axis=(1, 3)))
    chosen = np.arange(size) * edge // size
    return image[np.ix_(chosen, chosen)]


def _draw_marks(axes: Axes, places: RealArray, na: float, side: float, reach: float, bad: Mapping[int, str]) -> None:
    from matplotlib.patches import Circle, Rectangle
    from matplotlib.patheffects import withStroke

    axes.add_patch(Circle((0, 0), na, fill=False, edgecolor=ACCENT, linewidth=1.8))
    for index in bad:
        y, x = places[index]
        axes.add_patch(
            Rectangle((x - side / 2, y - side / 2), side, side, fill=False, edgecolor=BAD, linewidth=1.4, hatch="//")
        )
    label = axes.annotate(
        f"NA {na:g}", (0, -na), xytext=(0, 3), textcoords="offset points", color=ACCENT, fontsize=9.5, ha="center"
    )
    label.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
    axes.set(xlim=(-reach, reach), ylim=(reach, -reach))
    frame(axes)
    axes.set_xlabel("na_x, along columns", fontsize=9.5, color=INK)
    axes.set_ylabel("na_y, along rows", fontsize=9.5, color=INK)
    axes.tick_params(labelsize=8.5, labelcolor=INK, color=HAIRLINE, width=0.6)


def _draw_brightness(axes: Axes, level: RealArray, bright: npt.NDArray[np.bool_], bad: Mapping[int, str]) -> None:
    order = np.arange(len(level))
    groups = (("bright field", bright, ACCENT, "o"), ("dark field", ~bright, "#0072b2", "o"))
    for name, group, colour, marker in groups:
        if group.any():
            axes.plot(order[group], level[group], marker, color=colour, markersize=3, label=name)
    if bad:
        chosen = np.array(list(bad))
        axes.plot(chosen, level[chosen], "x", color=BAD, markersize=7, label="rejected")
    if (level > 0).all() and level.max() > 5 * level.min():
        axes.set_yscale("log")
    open_axes(axes, "frame", "")
    axes.legend(loc="upper right", fontsize=8.5, frameon=False, labelcolor=INK)
