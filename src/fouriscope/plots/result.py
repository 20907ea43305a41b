"""The one page that a run shows of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fouriscope.errors import InvalidInputError
from fouriscope.plots.curves import draw_curves, end_labels_width
from fouriscope.plots.images import (
    RealArray,
    checked_image,
    colour_limits,
    micrometres,
    panel_width,
    round_length,
    scale_bar,
    show_image,
)
from fouriscope.plots.page import INK, MARGIN, QUIET_INK, TITLE_HEIGHT, Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    phase_image = checked_image(phase, "phase")
    amplitude_image = None if amplitude is None else checked_image(amplitude, "amplitude")
    if amplitude_image is not None and amplitude_image.shape != phase_image.shape:
        raise InvalidInputError(
            f"phase and amplitude must have one shape, but phase has {phase_image.shape} and amplitude has "
            f"{amplitude_image.shape}"
        )
    pixel_um = micrometres(pixel)
    curves = _history_curves(history or {})

    rows, columns = field = (int(phase_image.shape[0]), int(phase_image.shape[1]))
    width = panel_width(3.6, field)
    height = width * rows / columns
    # Three cells stand in a row; with the amplitude there are four, two by two.
    cells_across = 3 if amplitude_image is None else 2
    cell_width, cell_height = width + 1.15, 0.42 + height + 0.62
    first_top = MARGIN + (TITLE_HEIGHT if title else 0)
    end_labels = len(curves) > 1
    page = Page(
        width=MARGIN + cells_across * cell_width + (end_labels_width(curves) - 0.6 if end_labels else 0),
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
        mappable = show_image(axes, image, colours, colour_limits([image]), field)
        page.colour_bar(mappable, left + size[0] + 0.1, top, size[1], label)
        return axes

    phase_axes = show(0, "Phase", phase_image, cmap, "phase (rad)")
    if pixel_um is not None:
        scale_bar(phase_axes, (0.0, 0.0, columns, rows), pixel_um, width)
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
        draw_curves(curve_axes, curves, "iteration", "", True, height, label_ends=end_labels)
    else:
        curve_axes.set(xticks=[], yticks=[])
        page.text(left + 0.15, top + 0.15, "no history yet", size=9, ink=QUIET_INK, width=width - 0.3)
    return page.figure


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


def _log_spectrum(phase: RealArray, amplitude: RealArray | None) -> RealArray:
    field = np.exp(1j * np.nan_to_num(phase)).astype(np.complex64)
    if amplitude is not None:
        field *= np.nan_to_num(amplitude).astype(np.float32)
    magnitude = np.abs(np.fft.fftshift(np.fft.fft2(field))).astype(np.float64)
    highest = magnitude.max() or 1.0
    # Single precision carries seven digits: what lies lower is rounding.
    return np.asarray(np.log10(np.maximum(magnitude / highest, 1e-7)), dtype=np.float64)


def _frequency_ticks(axes: Axes, field: tuple[int, int], pixel_um: float | None) -> None:
    """Ticks at round frequencies on the bottom of a centred spectrum."""
    _, columns = field
    nyquist = 0.5 if pixel_um is None else 0.5 / pixel_um
    step = round_length(0.8 * nyquist)
    values = np.array([-step, 0.0, step])
    # Zero frequency is the pixel columns // 2, and its centre lies half a pixel further.
    axes.set_xticks(
        columns // 2 + 0.5 + values / (2 * nyquist) * columns, [f"{value:g}".replace("-", "−") for value in values]
    )
    axes.tick_params(labelsize=8, labelcolor=INK, color=QUIET_INK, width=0.6, length=2.5)
    unit = "cycles per pixel" if pixel_um is None else "cycles per µm"
    axes.set_xlabel(f"spatial frequency ({unit})", fontsize=8.5, color=INK)
