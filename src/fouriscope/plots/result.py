"""One page that sums up a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fouriscope.errors import InvalidInputError
from fouriscope.plots.aperture import CYCLIC, LEDView, PupilView, draw_leds, draw_pupil
from fouriscope.plots.curves import draw_curves
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
from fouriscope.plots.page import INK, QUIET_INK, colour_bar, finished, frame, header, new_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# In inches.
WIDE_PANEL = 3.6
NARROW_PANEL = 3.0
LEAST_SIDE = 2.4
COLOUR_BAR_SPACE = 1.35
HEADER_AND_TICKS = 1.0


def result_figure(
    phase: npt.ArrayLike,
    amplitude: npt.ArrayLike | None = None,
    history: Mapping[str, npt.ArrayLike] | None = None,
    *,
    pixel: float | None = None,
    title: str = "",
    cmap: str = "gray",
    unwrapped: npt.ArrayLike | None = None,
    flattened: npt.ArrayLike | None = None,
    wrapped: bool = False,
    pupil: PupilView | None = None,
    leds: LEDView | None = None,
    verdict: str = "",
) -> Figure:
    """One page about one run: what was found, the spectrum of it, the misfit, and with which light and pupil.

    Parameters
    ----------
    phase
        The phase in radians.
    amplitude
        The amplitude, for complex objects.
    history
        Positive series that share one logarithmic axis, such as ``{"misfit": [...]}``. A series named
        ``"iteration"`` is not drawn but gives the horizontal axis; without it the values count from 1.
    pixel
        Size of a pixel in metres; draws the scale bar and gives the spectrum its unit.
    title
        A line above everything.
    cmap
        The colour map of phase and amplitude.
    unwrapped
        The unwrapped phase, if it differs from ``phase``, which is then drawn wrapped, with a cyclic map.
    flattened
        The phase without its slow background, drawn instead of them; its header says so.
    wrapped
        Draw ``phase`` wrapped as well, as it is with ``unwrapped``: where there are jumps.
    pupil
        Draws the modulus and the phase of the pupil.
    leds
        Draws the map of the LEDs.
    verdict
        A sentence about all of it, under the title.

    Examples
    --------
    >>> figure = result_figure(np.eye(16), history={"misfit": [3.0, 1.0, 0.5]}, pixel=0.16e-6)
    >>> len(figure.axes)  # phase, spectrum and misfit
    3
    """
    phase_image = checked_image(phase, "phase")
    images = _images(phase_image, unwrapped, flattened, wrapped, amplitude, cmap)
    pixel_um = micrometres(pixel)
    curves = _history_curves(history or {})
    spectrum = _log_spectrum(phase_image, next((image for name, image, *_ in images if name == "Amplitude"), None))

    cells = len(images) + 2 + (0 if pupil is None else 2) + (0 if leds is None else 1)
    figure, panels = _page(phase_image.shape, len(images), cells, title, verdict)
    for name, image, colours, limits, label in images:
        axes = next(panels)
        colour_bar(axes, show_image(axes, image, colours, limits, phase_image.shape), label)
        header(axes, name)
    scale_bar(figure.axes[0], pixel_um)
    _draw_spectrum(next(panels), spectrum, pixel_um)
    _draw_misfit(next(panels), curves)
    if pupil is not None:
        modulus = pupil.modulus()
        axes = next(panels)
        colour_bar(axes, draw_pupil(axes, pupil, modulus, "gray", (0.0, float(modulus.max()) or 1.0)), "|P|")
        header(axes, "Pupil, modulus", pupil.source)
        axes = next(panels)
        colour_bar(axes, draw_pupil(axes, pupil, pupil.phase(), *pupil.phase_colours()), "phase (rad)")
        header(axes, "Pupil, phase", f"rms {pupil.rms_phase():.2g} rad")
    if leds is not None:
        axes = next(panels)
        mappable = draw_leds(axes, leds)
        header(axes, "LEDs", leds.caption())
        if mappable is not None:
            colour_bar(axes, mappable, "gain")
    return finished(figure)


_Image = tuple[str, RealArray, str, tuple[float, float], str]


def _images(
    phase: RealArray,
    unwrapped: npt.ArrayLike | None,
    flattened: npt.ArrayLike | None,
    wrapped: bool,
    amplitude: npt.ArrayLike | None,
    cmap: str,
) -> list[_Image]:
    """(name, image, colour map, limits, label) of what was found, in the order of the page."""
    images: list[_Image] = []
    if wrapped or unwrapped is not None:
        images.append(("Phase, wrapped", np.angle(np.exp(1j * phase)), CYCLIC, (-np.pi, np.pi), "phase (rad)"))
    if flattened is not None:
        name, shown = "Phase, background removed", _of_the_same_shape(flattened, "flattened", phase)
    elif unwrapped is not None:
        name, shown = "Phase, unwrapped", _of_the_same_shape(unwrapped, "unwrapped", phase)
    else:
        name, shown = "Phase", phase
    images.append((name, shown, cmap, colour_limits([shown]), "phase (rad)"))
    if amplitude is not None:
        image = _of_the_same_shape(amplitude, "amplitude", phase)
        images.append(("Amplitude", image, cmap, colour_limits([image]), "amplitude"))
    return images


def _of_the_same_shape(values: npt.ArrayLike, name: str, phase: RealArray) -> RealArray:
    image = checked_image(values, name)
    if image.shape != phase.shape:
        raise InvalidInputError(
            f"phase and {name} must have one shape, but phase has {phase.shape} and {name} has {image.shape}"
        )
    return image


def _page(field: tuple[int, int], images: int, cells: int, title: str, verdict: str) -> tuple[Figure, Iterator[Axes]]:
    """A page with ``cells`` panels, the first of them ``images`` of the field, which are made as they are asked for."""
    across = {4: 2}.get(cells, min(cells, 3) if cells <= 6 else 4)
    width = panel_width(WIDE_PANEL if cells <= 6 else NARROW_PANEL, field)
    height = width * field[0] / field[1]
    # What is not an image of the field is square, and needs room to be read however flat or narrow the field is.
    side = max(LEAST_SIDE, min(width, height))
    heights = [height] * images + [side] * (cells - images)
    row_heights = [max(heights[first : first + across]) for first in range(0, cells, across)]
    figure = new_page(
        across * (max(width, side) + COLOUR_BAR_SPACE), sum(row_heights) + HEADER_AND_TICKS * len(row_heights), title
    )
    page = figure.add_subfigure(figure.add_gridspec()[0])  # beneath the title, with a line of its own
    if verdict:
        page.suptitle(verdict, x=0.01, ha="left", fontsize=10, color=INK, wrap=True)
    grid = page.add_gridspec(len(row_heights), across, height_ratios=row_heights)
    return figure, (page.add_subplot(grid[cell]) for cell in range(cells))


def _draw_spectrum(axes: Axes, spectrum: RealArray, pixel_um: float | None) -> None:
    mappable = show_image(axes, spectrum, "inferno", colour_limits([spectrum]), spectrum.shape)
    # Both axes of a spectrum end at the same frequency: only in a square is the disc of the pupil round.
    axes.set_box_aspect(1)
    _frequency_ticks(axes, spectrum.shape[1], pixel_um)
    header(axes, "Spectrum of the object")
    colour_bar(axes, mappable, "log₁₀ of magnitude / highest")


def _draw_misfit(axes: Axes, curves: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]]) -> None:
    axes.set(box_aspect=1, anchor="NW")
    header(axes, "Misfit")
    if curves:
        draw_curves(axes, curves, "iteration", "", True, label_ends=len(curves) > 1)
    else:
        frame(axes)
        axes.set(xticks=[], yticks=[])
        axes.text(0.05, 0.95, "no history yet", transform=axes.transAxes, fontsize=9, color=QUIET_INK, va="top")


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
    from scipy.fft import fft2, fftshift

    field = np.exp(1j * np.nan_to_num(phase).astype(np.float32))
    if amplitude is not None:
        field *= np.nan_to_num(amplitude).astype(np.float32)
    # In single precision and one array after the other: a figure must not need more memory than its reconstruction.
    magnitude = fftshift(np.abs(fft2(field, overwrite_x=True)))
    del field
    magnitude /= magnitude.max() or 1.0
    # Single precision carries seven digits: what lies lower is rounding.
    return np.asarray(np.log10(np.maximum(magnitude, 1e-7)))


def _frequency_ticks(axes: Axes, columns: int, pixel_um: float | None) -> None:
    """Ticks at round frequencies on the bottom of a centred spectrum."""
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
