"""Figures for people: a comparison of images, curves of convergence, and the one page that a run shows of itself.

Every function returns a :class:`matplotlib.figure.Figure` on an Agg canvas. pyplot is never imported and no global
setting changes, so figures can be drawn on a server, in a thread, or beside a session that plots on its own.

Images are gray by default, which is perceptually uniform; any map of matplotlib can be given, and a uniform one such as
``"viridis"`` is advised: maps like ``"jet"`` draw edges where the phase has none.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fouriscope.errors import InvalidInputError
from fouriscope.metrics import remove_constant, snr_both

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Panel", "comparison_figure", "convergence_figure", "result_figure", "save_figure", "snr_panel"]

RealArray: TypeAlias = npt.NDArray[np.float64]

INK = "#1f2430"
QUIET_INK = "#6b7280"
HAIRLINE = "#d6d9de"
ACCENT = "#e69f00"
INVALID_PIXEL = "#d55e00"
# Okabe and Ito: told apart with every kind of colour vision. Their yellow is left out, it vanishes on white.
CURVE_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", INK)
CURVE_STYLES = ("-", "--", ":", "-.")

# All layout is in inches: text has a size in inches too, so nothing overlaps whatever the number of panels.
PANEL_WIDTH = 2.8
PANEL_GAP = 0.16
PANEL_HEADER = 0.5
ZOOM_GAP = 0.16
MARGIN = 0.25
TITLE_HEIGHT = 0.36
COLOUR_BAR_WIDTH = 0.1
COLOUR_BAR_SPACE = 0.95


@dataclass(frozen=True, eq=False)
class Panel:
    """One image of a comparison.

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

    >>> phase = np.add.outer(np.linspace(0, 1, 50), np.linspace(0, 1, 50))
    >>> frame = Panel("Camera frame", phase[::5, ::5] ** 2, own_scale=True)
    >>> figure = comparison_figure([frame, Panel("Truth", phase)], pixel=0.16e-6, zoom=(10, 10, 12))
    >>> len(figure.axes)  # two rows of two panels, and the colour bar
    5
    """
    if not panels:
        raise InvalidInputError("comparison_figure needs at least one panel, but the sequence is empty")
    images = [_image(panel.image, f"panel {panel.title!r}") for panel in panels]
    field = _common_field(images, panels)
    rows, columns = field
    pixel_um = _micrometres(pixel)
    _check_zoom(zoom, field)

    shared = [image for image, panel in zip(images, panels, strict=True) if not panel.own_scale]
    shared_limits = (limits or _limits(shared)) if shared else None
    width = _panel_width(PANEL_WIDTH, field)
    height = width * rows / columns
    zoom_height = 0.0 if zoom is None else ZOOM_GAP + width
    page = _Page(
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
        panel_limits = _limits([image]) if panel.own_scale or shared_limits is None else shared_limits
        axes = page.axes(left, top, width, height)
        mappable = _show(axes, image, cmap, panel_limits, field)
        page.header(left, top, width, panel.title, _caption(panel))
        if not panel.own_scale:
            drawn = mappable
        if number == 0 and pixel_um is not None:
            _scale_bar(axes, (0.0, 0.0, columns, rows), pixel_um, width)
        if zoom is not None:
            _outline(axes, zoom)
            row, column, size = zoom
            close_up = page.axes(left, top + height + ZOOM_GAP, width, width, frame=ACCENT)
            _show(close_up, image, cmap, panel_limits, field)
            close_up.set(xlim=(column, column + size), ylim=(row + size, row))
            if number == 0 and pixel_um is not None:
                _scale_bar(close_up, (column, row, size, size), pixel_um, width)
    if drawn is not None:
        right_edge = MARGIN + len(panels) * (width + PANEL_GAP) - PANEL_GAP
        page.colour_bar(drawn, right_edge + 0.12, top, height, colour_label)
    return page.figure


def convergence_figure(
    curves: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]],
    *,
    xlabel: str = "iteration",
    ylabel: str = "SNR (dB)",
    log_y: bool = False,
    title: str = "",
) -> Figure:
    """Curves over iterations or seconds, each labelled at its end in its own colour.

    Values that cannot be drawn (NaN, infinite, and on a logarithmic axis those ≤ 0) leave a gap.

    >>> steps = np.arange(1, 50)
    >>> figure = convergence_figure({"BM3D-Online": (steps, 20 - 15 / steps), "TV-Online": (steps, 19 - 15 / steps)})
    >>> [line.get_label() for line in figure.axes[0].get_lines()]
    ['BM3D-Online', 'TV-Online']
    """
    if not curves:
        raise InvalidInputError("convergence_figure needs at least one curve, but the mapping is empty")
    labels_width = _labels_width(curves)
    top = MARGIN + (TITLE_HEIGHT if title else 0)
    plot_width, plot_height, left, bottom = 5.6, 3.5, 0.85, 0.65
    page = _Page(left + plot_width + labels_width + MARGIN, top + plot_height + bottom)
    if title:
        page.text(left, MARGIN, title, size=13, weight="bold", width=plot_width + labels_width)
    _draw_curves(page.axes(left, top, plot_width, plot_height), curves, xlabel, ylabel, log_y, plot_height)
    return page.figure


def result_figure(
    phase: npt.ArrayLike,
    amplitude: npt.ArrayLike | None = None,
    history: Mapping[str, npt.ArrayLike] | None = None,
    *,
    pixel: float | None = None,
    title: str = "",
    cmap: str = "gray",
) -> Figure:
    """One page about one run: phase, amplitude if there is one, the spectrum of the object, and the misfit.

    Args:
        phase: The phase in radians.
        amplitude: The amplitude, for complex objects.
        history: Positive series that share one logarithmic axis, such as ``{"misfit": [...]}``. A series named
            ``"iteration"`` is not drawn but gives the horizontal axis; without it the values count from 1.
        pixel: Size of a pixel in metres; draws the scale bar and gives the spectrum its unit.
        title: A line above everything.
        cmap: The colour map of phase and amplitude.

    >>> figure = result_figure(np.eye(16), history={"misfit": [3.0, 1.0, 0.5]}, pixel=0.16e-6)
    >>> len(figure.axes)  # phase, spectrum, their colour bars, and the misfit
    5
    """
    phase_image = _image(phase, "phase")
    amplitude_image = None if amplitude is None else _image(amplitude, "amplitude")
    if amplitude_image is not None and amplitude_image.shape != phase_image.shape:
        raise InvalidInputError(
            f"phase and amplitude must have one shape, but phase has {phase_image.shape} and amplitude has "
            f"{amplitude_image.shape}"
        )
    pixel_um = _micrometres(pixel)
    curves = _history_curves(history or {})

    rows, columns = field = (int(phase_image.shape[0]), int(phase_image.shape[1]))
    width = _panel_width(3.6, field)
    height = width * rows / columns
    # Three cells stand in a row; with the amplitude there are four, two by two.
    cells_across = 3 if amplitude_image is None else 2
    cell_width, cell_height = width + 1.15, 0.42 + height + 0.62
    first_top = MARGIN + (TITLE_HEIGHT if title else 0)
    end_labels = len(curves) > 1
    page = _Page(
        width=MARGIN + cells_across * cell_width + (_labels_width(curves) - 0.6 if end_labels else 0),
        height=first_top + (1 if amplitude_image is None else 2) * cell_height + 0.05,
    )
    if title:
        page.text(MARGIN, MARGIN + 0.02, title, size=13, weight="bold", width=page.width - 2 * MARGIN)

    def corner(number: int) -> tuple[float, float]:
        down, across = divmod(number, cells_across)
        return MARGIN + across * cell_width, first_top + down * cell_height + 0.42

    def show(
        number: int, name: str, image: RealArray, colours: str, label: str, size: tuple[float, float] = (width, height)
    ) -> Axes:
        left, top = corner(number)
        axes = page.axes(left, top, *size)
        page.header(left, top, width, name, "")
        mappable = _show(axes, image, colours, _limits([image]), field)
        page.colour_bar(mappable, left + size[0] + 0.1, top, size[1], label)
        return axes

    phase_axes = show(0, "Phase", phase_image, cmap, "phase (rad)")
    if pixel_um is not None:
        _scale_bar(phase_axes, (0.0, 0.0, columns, rows), pixel_um, width)
    if amplitude_image is not None:
        show(1, "Amplitude", amplitude_image, cmap, "amplitude")
    image_count = 1 if amplitude_image is None else 2
    spectrum = _log_spectrum(phase_image, amplitude_image)
    # Both axes of a spectrum end at the same frequency: only in a square is the disc of the pupil round.
    square = (min(width, height), min(width, height))
    spectrum_axes = show(
        image_count, "Spectrum of the object", spectrum, "inferno", "log₁₀ of magnitude / highest", square
    )
    _frequency_ticks(spectrum_axes, field, pixel_um)

    left, top = corner(image_count + 1)
    left += 0.4  # the numbers of its axis stand where an image has its edge
    page.header(left, top, width, "Misfit", "")
    curve_axes = page.axes(left, top, width, height)
    if curves:
        _draw_curves(curve_axes, curves, "iteration", "", True, height, label_ends=end_labels)
    else:
        curve_axes.set(xticks=[], yticks=[])
        page.text(left + 0.15, top + 0.15, "no history yet", size=9, ink=QUIET_INK, width=width - 0.3)
    return page.figure


def save_figure(figure: Figure, path: str | os.PathLike[str], *, dpi: float = 200) -> Path:
    """Write ``figure`` to ``path``; the ending chooses the format (.png, .pdf, .svg, …).

    The file appears complete or not at all: it is written beside its place and renamed. A folder that is being watched
    never shows half a figure.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_figure(convergence_figure({"SNR": ([1, 2], [3, 4])}), Path(folder) / "snr.png").name
    'snr.png'
    """
    path = Path(path)
    file_format = path.suffix.lower().removeprefix(".")
    supported = figure.canvas.get_supported_filetypes()
    if file_format not in supported:
        raise InvalidInputError(
            f"the name of a figure must end in a format that matplotlib writes, but it is {path.name!r}; "
            f"use one of .{', .'.join(sorted(supported))}"
        )
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        try:
            with temporary.open("xb") as stream:
                figure.savefig(stream, format=file_format, dpi=dpi, facecolor="white")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"cannot write the figure {path}: {error.strerror or error}; name a file in an existing, writable folder"
        ) from error
    return path


# ---------------------------------------------------------------------------------------------------------------------
# The page: everything is placed in inches from the top left corner


class _Page:
    """A white figure on which axes and text are placed in inches, measured from the top left corner."""

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        self.figure = Figure(figsize=(width, height), dpi=150, facecolor="white")
        FigureCanvasAgg(self.figure)

    def axes(self, left: float, top: float, width: float, height: float, frame: str | None = None) -> Axes:
        place = (left / self.width, 1 - (top + height) / self.height, width / self.width, height / self.height)
        axes = self.figure.add_axes(place)
        for spine in axes.spines.values():
            spine.set(color=frame or HAIRLINE, linewidth=1.2 if frame else 0.6)
        return axes

    def text(
        self, left: float, top: float, words: str, *, size: float, width: float, weight: str = "normal", ink: str = INK
    ) -> None:
        """A line of text that becomes smaller, and at last shorter, rather than run into its neighbour."""
        text = self.figure.text(
            left / self.width, 1 - top / self.height, words, fontsize=size, fontweight=weight, color=ink, va="top"
        )
        room = width * self.figure.dpi
        needed = text.get_window_extent().width
        if needed > room:
            text.set_fontsize(max(6.5, size * room / needed * 0.98))
        while text.get_window_extent().width > room and len(words) > 1:
            words = words[:-1]
            text.set_text(words.rstrip() + "…")

    def header(self, left: float, axes_top: float, width: float, title: str, caption: str) -> None:
        title_top = axes_top - (0.42 if caption else 0.24)
        self.text(left, title_top, title, size=10.5, weight="bold", width=width)
        if caption:
            self.text(left, axes_top - 0.215, caption, size=8.5, ink=QUIET_INK, width=width)

    def colour_bar(self, mappable: Any, left: float, top: float, height: float, label: str) -> None:
        from matplotlib.ticker import MaxNLocator

        bar_axes = self.axes(left, top, COLOUR_BAR_WIDTH, height)
        bar = self.figure.colorbar(mappable, cax=bar_axes, ticks=MaxNLocator(6, steps=[1, 2, 5, 10]))
        bar.outline.set(edgecolor=HAIRLINE, linewidth=0.6)
        bar.set_label(label, fontsize=8.5, color=INK)
        bar_axes.tick_params(labelsize=8, labelcolor=INK, color=HAIRLINE, width=0.6, length=2.5)


def _show(axes: Axes, image: RealArray, cmap: str, limits: tuple[float, float], field: tuple[int, int]) -> Any:
    """Draw ``image`` over the whole field; coordinates are pixels of the field, whatever the image's own pixels."""
    import matplotlib

    rows, columns = field
    try:
        colours = matplotlib.colormaps[cmap].with_extremes(bad=INVALID_PIXEL)
    except KeyError:
        raise InvalidInputError(
            f"cmap must name a colour map of matplotlib, such as 'gray' or 'viridis', but it is {cmap!r}"
        ) from None
    axes.set(xticks=[], yticks=[])
    return axes.imshow(image, cmap=colours, vmin=limits[0], vmax=limits[1], extent=(0, columns, rows, 0), aspect="auto")


def _outline(axes: Axes, zoom: tuple[int, int, int]) -> None:
    from matplotlib.patches import Rectangle

    row, column, size = zoom
    axes.add_patch(Rectangle((column, row), size, size, fill=False, edgecolor=ACCENT, linewidth=1.4))


def _scale_bar(axes: Axes, view: tuple[float, float, float, float], pixel_um: float, width_inches: float) -> None:
    """A bar of a round length (1, 2 or 5 times a power of ten) in the lower left corner of ``view``.

    ``view`` is (left, top, width, height) in pixels of the field.
    """
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke

    left, top, width, height = view
    length_um = _round_length(0.3 * width * pixel_um)
    inch = width / width_inches
    x, y = left + 0.12 * inch, top + height - 0.15 * inch
    axes.add_patch(
        Rectangle((x, y), length_um / pixel_um, 0.04 * inch, facecolor="white", edgecolor="black", linewidth=0.5)
    )
    label = axes.text(x, y - 0.05 * inch, _length_label(length_um), color="white", fontsize=8.5, fontweight="bold")
    label.set_path_effects([withStroke(linewidth=1.6, foreground="black")])


def _round_length(longest: float) -> float:
    decade = 10.0 ** math.floor(math.log10(longest))
    return max(step * decade for step in (1, 2, 5) if step * decade <= longest * (1 + 1e-9))


def _length_label(length_um: float) -> str:
    if length_um >= 1000:
        return f"{length_um / 1000:g} mm"
    return f"{length_um:g} µm" if length_um >= 1 else f"{length_um * 1000:g} nm"


def _frequency_ticks(axes: Axes, field: tuple[int, int], pixel_um: float | None) -> None:
    """Ticks at round frequencies on the bottom of a centred spectrum."""
    _, columns = field
    nyquist = 0.5 if pixel_um is None else 0.5 / pixel_um
    step = _round_length(0.8 * nyquist)
    values = np.array([-step, 0.0, step])
    # Zero frequency is the pixel columns // 2, and its centre lies half a pixel further.
    axes.set_xticks(
        columns // 2 + 0.5 + values / (2 * nyquist) * columns, [f"{value:g}".replace("-", "−") for value in values]
    )
    axes.tick_params(labelsize=8, labelcolor=INK, color=QUIET_INK, width=0.6, length=2.5)
    unit = "cycles per pixel" if pixel_um is None else "cycles per µm"
    axes.set_xlabel(f"spatial frequency ({unit})", fontsize=8.5, color=INK)


# ---------------------------------------------------------------------------------------------------------------------
# Curves


class _Curve(NamedTuple):
    name: str
    x: RealArray
    y: RealArray


def _draw_curves(
    axes: Axes,
    curves: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]],
    xlabel: str,
    ylabel: str,
    log_y: bool,
    height_inches: float,
    label_ends: bool = True,
) -> None:
    from matplotlib.ticker import MaxNLocator

    checked = [_curve(name, x, y, log_y) for name, (x, y) in curves.items()]
    if log_y:
        axes.set_yscale("log")
    ends = []
    for number, curve in enumerate(checked):
        colour = CURVE_COLOURS[number % len(CURVE_COLOURS)]
        style = CURVE_STYLES[number // len(CURVE_COLOURS) % len(CURVE_STYLES)]
        alone = np.count_nonzero(np.isfinite(curve.y)) == 1
        axes.plot(
            curve.x,
            curve.y,
            style,
            color=colour,
            linewidth=1.7,
            label=curve.name,
            solid_capstyle="round",
            marker="o" if alone else "",
            markersize=4,
        )
        ends.append((float(curve.y[np.isfinite(curve.y)][-1]), curve.name, colour))
    axes.margins(x=0.0 if max(curve.x.size for curve in checked) > 1 else 0.05, y=0.06)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set(color=QUIET_INK, linewidth=0.8)
    axes.grid(axis="y", color=HAIRLINE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.tick_params(which="both", labelsize=9, labelcolor=INK, color=QUIET_INK, width=0.6)
    axes.set_xlabel(xlabel, fontsize=10, color=INK)
    axes.set_ylabel(ylabel, fontsize=10, color=INK)
    if label_ends:
        axes.get_ylim()  # matplotlib scales lazily: without this the labels would be placed on the axis of no data
        heights = [_height_on_axis(axes, value) for value, _, _ in ends]
        for place, (_, name, colour) in zip(_spread(heights, 0.165 / height_inches), ends, strict=True):
            axes.text(1.02, place, name, transform=axes.transAxes, color=colour, fontsize=9.5, va="center")


def _labels_width(curves: Mapping[str, object]) -> float:
    """Room in inches for the names at the ends of the curves."""
    return 0.3 + 0.09 * max(len(name) for name in curves)


def _curve(name: str, x: npt.ArrayLike, y: npt.ArrayLike, log_y: bool) -> _Curve:
    horizontal, vertical = np.asarray(x, dtype=np.float64), np.array(y, dtype=np.float64)
    if horizontal.ndim != 1 or horizontal.shape != vertical.shape:
        raise InvalidInputError(
            f"curve {name!r} needs x and y of one length, but x has shape {horizontal.shape} and y has {vertical.shape}"
        )
    drawable = np.isfinite(horizontal) & np.isfinite(vertical) & ((vertical > 0) | (not log_y))
    if not drawable.any():
        wanted = "finite and positive" if log_y else "finite"
        raise InvalidInputError(
            f"curve {name!r} has no value to draw: none of its {vertical.size} values is {wanted}; leave the curve out"
        )
    vertical[~drawable] = np.nan
    return _Curve(name, horizontal, vertical)


def _height_on_axis(axes: Axes, value: float) -> float:
    _, pixel_y = axes.transData.transform((0, value))
    return float(axes.transAxes.inverted().transform((0, pixel_y))[1])


def _spread(heights: Sequence[float], least: float) -> list[float]:
    """Move labels apart until neighbours are ``least`` away, keeping their order and, on average, their place."""
    order = np.argsort(heights, kind="stable")
    sorted_heights = np.asarray(heights, dtype=np.float64)[order]
    groups: list[list[float]] = []  # labels that touch, as [their mean height, their number]
    for height in sorted_heights:
        groups.append([float(height), 1])
        while len(groups) > 1 and groups[-1][0] - groups[-2][0] < least * (groups[-1][1] + groups[-2][1]) / 2:
            upper, lower = groups.pop(), groups.pop()
            number = upper[1] + lower[1]
            groups.append([(upper[0] * upper[1] + lower[0] * lower[1]) / number, number])
    placed = [mean + least * (index - (number - 1) / 2) for mean, number in groups for index in range(int(number))]
    result = np.empty(len(placed))
    result[order] = placed
    return [float(place) for place in result]


def _history_curves(history: Mapping[str, npt.ArrayLike]) -> dict[str, tuple[npt.ArrayLike, npt.ArrayLike]]:
    iterations = history.get("iteration")
    curves: dict[str, tuple[npt.ArrayLike, npt.ArrayLike]] = {}
    for name, values in history.items():
        series = np.asarray(values, dtype=np.float64)
        # A run that diverged or has just begun still deserves its page: what cannot be drawn is left out.
        if name == "iteration" or not np.any(np.isfinite(series) & (series > 0)):
            continue
        curves[name] = (np.arange(1, series.size + 1) if iterations is None else iterations, series)
    return curves


# ---------------------------------------------------------------------------------------------------------------------
# Images


def _image(values: npt.ArrayLike, name: str) -> RealArray:
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


def _panel_width(widest: float, field: tuple[int, int]) -> float:
    """Narrower for upright fields, which would otherwise grow taller than a page."""
    rows, columns = field
    return min(widest, 1.6 * widest * columns / rows)


def _check_zoom(zoom: tuple[int, int, int] | None, field: tuple[int, int]) -> None:
    if zoom is None:
        return
    row, column, size = zoom
    if size < 1 or row < 0 or column < 0 or row + size > field[0] or column + size > field[1]:
        raise InvalidInputError(
            f"zoom must be (row, column, size) of a square inside the image of shape {field}, but it is {zoom}"
        )


def _micrometres(pixel: float | None) -> float | None:
    if pixel is None:
        return None
    if not (math.isfinite(pixel) and pixel > 0):
        raise InvalidInputError(f"pixel must be a positive size in metres, or None, but it is {pixel!r}")
    return pixel * 1e6


def _limits(images: Sequence[RealArray]) -> tuple[float, float]:
    """The central 99.8 % of the values: a few outliers must not turn the image gray."""
    low, high = np.nanpercentile(np.concatenate([image.ravel() for image in images]), [0.1, 99.9])
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        return float(low) - 0.5, float(high) + 0.5
    return float(low), float(high)


def _caption(panel: Panel) -> str:
    if not panel.own_scale:
        return panel.caption
    return f"{panel.caption} · own scale" if panel.caption else "own scale"


def _log_spectrum(phase: RealArray, amplitude: RealArray | None) -> RealArray:
    field = np.exp(1j * np.nan_to_num(phase)).astype(np.complex64)
    if amplitude is not None:
        field *= np.nan_to_num(amplitude).astype(np.float32)
    magnitude = np.abs(np.fft.fftshift(np.fft.fft2(field))).astype(np.float64)
    highest = magnitude.max() or 1.0
    # Single precision carries seven digits: what lies lower is rounding.
    return np.asarray(np.log10(np.maximum(magnitude / highest, 1e-7)), dtype=np.float64)
