"""Curves over iterations or seconds, each labelled at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from fouriscope.errors import InvalidInputError
from fouriscope.plots.images import RealArray
from fouriscope.plots.page import ACCENT, HAIRLINE, INK, QUIET_INK, finished, new_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito: told apart with every kind of colour vision. Their yellow is left out, it vanishes on white.
CURVE_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", INK)
CURVE_STYLES = ("-", "--", ":", "-.")
LABEL_HEIGHT = 0.07  # of a line of text, on an axis of 2.4 inches, which is the lowest one


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

    Parameters
    ----------
    curves
        (x, y) of each curve, by its name.
    xlabel, ylabel
        Names of the axes.
    log_y
        Whether the vertical axis is logarithmic.
    title
        A line above everything.

    Examples
    --------
    >>> steps = np.arange(1, 50)
    >>> figure = convergence_figure({"BM3D-Online": (steps, 20 - 15 / steps), "TV-Online": (steps, 19 - 15 / steps)})
    >>> [line.get_label() for line in figure.axes[0].get_lines()]
    ['BM3D-Online', 'TV-Online']
    """
    if not curves:
        raise InvalidInputError("convergence_figure needs at least one curve, but the mapping is empty")
    figure = new_page(8, 4.3, title)
    draw_curves(figure.add_subplot(), curves, xlabel, ylabel, log_y)
    return finished(figure)


def tuning_figure(
    values: npt.ArrayLike, scores: npt.ArrayLike, chosen: float, *, xlabel: str, ylabel: str, title: str = ""
) -> Figure:
    """A score over the values that were tried, on a logarithmic axis, with the chosen one marked.

    Parameters
    ----------
    values, scores
        The values that were tried, and the score of each.
    chosen
        The value to mark.
    xlabel, ylabel
        Names of the axes.
    title
        A line above everything.

    Examples
    --------
    >>> figure = tuning_figure([1e-8, 1e-7, 1e-6], [22.0, 24.0, 21.0], 1e-7, xlabel="λ", ylabel="SNR (dB)")
    >>> figure.axes[0].get_xscale()
    'log'
    """
    curve = _curve(xlabel, values, scores, log_y=False)
    figure = new_page(6.3, 4, title)
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.axvline(chosen, color=ACCENT, linewidth=1.4)
    axes.plot(curve.x, curve.y, "o-", color=CURVE_COLOURS[0], linewidth=1.5, markersize=4.5)
    open_axes(axes, f"{xlabel}   (chosen: {chosen:.3g})", ylabel)
    return finished(figure)


def draw_curves(
    axes: Axes,
    curves: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]],
    xlabel: str,
    ylabel: str,
    log_y: bool,
    label_ends: bool = True,
) -> None:
    """Draw ``curves`` on ``axes``, with their names at their ends."""
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
    open_axes(axes, xlabel, ylabel)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    if label_ends:
        axes.get_ylim()  # matplotlib scales lazily: without this the labels would be placed on the axis of no data
        heights = [_height_on_axis(axes, value) for value, _, _ in ends]
        for place, (_, name, colour) in zip(_spread(heights), ends, strict=True):
            axes.text(1.02, place, name, transform=axes.transAxes, color=colour, fontsize=9.5, va="center")


def open_axes(axes: Axes, xlabel: str, ylabel: str) -> None:
    """Axes for points and curves: two sides, quiet lines across, and what is measured."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=QUIET_INK, linewidth=0.8)
    axes.grid(axis="y", color=HAIRLINE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", labelsize=9, labelcolor=INK, color=QUIET_INK, width=0.6)
    axes.set_xlabel(xlabel, fontsize=10, color=INK)
    axes.set_ylabel(ylabel, fontsize=10, color=INK)


class _Curve(NamedTuple):
    name: str
    x: RealArray
    y: RealArray


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


def _spread(heights: Sequence[float]) -> list[float]:
    """Move labels apart, as little as can be (in squares), until all are LABEL_HEIGHT away from each other."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(heights, kind="stable")
    steps = LABEL_HEIGHT * np.arange(len(order))
    placed = np.empty(len(order))
    placed[order] = isotonic_regression(np.asarray(heights)[order] - steps).x + steps
    return [float(place) for place in placed]
