"""The one page that a run shows of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fouriscope.errors import InvalidInputError
from fouriscope.plots.aperture import CYCLIC, LEDView, PupilView, draw_leds, draw_pupil
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


# In inches.
WIDE_PANEL = 3.6
NARROW_PANEL = 3.0
LEAST_SIDE = 2.4
COLOUR_BAR_SPACE = 1.15
HEADER = 0.46
FOOTER = 0.62
TICKS = 0.42  # the numbers of an axis stand where an image has its edge
VERDICT_HEIGHT = 0.3
LOG_TICKS = 0.25  # more, for 1.8 × 10² and the like


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

    Args:
        phase: The phase in radians.
        amplitude: The amplitude, for complex objects.
        history: Positive series that share one logarithmic axis, such as ``{"misfit": [...]}``. A series named
            ``"iteration"`` is not drawn but gives the horizontal axis; without it the values count from 1.
        pixel: Size of a pixel in metres; draws the scale bar and gives the spectrum its unit.
        title: A line above everything.
        cmap: The colour map of phase and amplitude.
        unwrapped: The unwrapped phase, if it differs from ``phase``, which is then drawn wrapped, with a cyclic map.
        flattened: The phase without its slow background, drawn instead of them; its header says so.
        wrapped: Draw ``phase`` wrapped as well, as it is with ``unwrapped``: where there are jumps.
        pupil: Draws the modulus and the phase of the pupil.
        leds: Draws the map of the LEDs.
        verdict: A sentence about all of it, under the title.

    >>> figure = result_figure(np.eye(16), history={"misfit": [3.0, 1.0, 0.5]}, pixel=0.16e-6)
    >>> len(figure.axes)  # phase, spectrum, their colour bars, and the misfit
    5
    """
    phase_image = checked_image(phase, "phase")
    images = _images(phase_image, unwrapped, flattened, wrapped, amplitude, cmap)
    pixel_um = micrometres(pixel)
    curves = _history_curves(history or {})
    spectrum = _log_spectrum(phase_image, next((image for name, image, *_ in images if name == "Amplitude"), None))

    others = 2 + (0 if pupil is None else 2) + (0 if leds is None else 1)
    layout = _Layout(
        (int(phase_image.shape[0]), int(phase_image.shape[1])), len(images), others, title, verdict, curves
    )
    for name, image, colours, limits, label in images:
        axes = layout.show(name, image, colours, limits, label, (layout.width, layout.height))
        if name == images[0][0] and pixel_um is not None:
            scale_bar(axes, (0.0, 0.0, layout.field[1], layout.field[0]), pixel_um, layout.width)
    # Both axes of a spectrum end at the same frequency: only in a square is the disc of the pupil round.
    square = (layout.side, layout.side)
    spectrum_label = "log₁₀ of magnitude / highest"
    spectrum_axes = layout.show(
        "Spectrum of the object", spectrum, "inferno", colour_limits([spectrum]), spectrum_label, square
    )
    _frequency_ticks(spectrum_axes, layout.field, pixel_um)
    layout.draw_misfit(curves)
    if pupil is not None:
        layout.draw_pupil(pupil)
    if leds is not None:
        layout.draw_leds(leds)
    return layout.page.figure


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


class _Layout:
    """The cells of the page, filled one after the other: a header, a panel, and room for its axis and colour bar."""

    def __init__(
        self,
        field: tuple[int, int],
        images: int,
        others: int,
        title: str,
        verdict: str,
        curves: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]],
    ) -> None:
        rows, columns = self.field = field
        cells = images + others
        self.across = {4: 2}.get(cells, min(cells, 3) if cells <= 6 else 4)
        self.width = panel_width(WIDE_PANEL if cells <= 6 else NARROW_PANEL, field)
        self.height = self.width * rows / columns
        # What is not an image of the field is square, and needs room to be read however flat or narrow the field is.
        self.side = max(LEAST_SIDE, min(self.width, self.height))
        self.cell_width = max(self.width, self.side) + COLOUR_BAR_SPACE
        heights = [self.height] * images + [self.side] * others
        row_heights = [max(heights[first : first + self.across]) for first in range(0, cells, self.across)]
        row_ends = np.cumsum([HEADER + height + FOOTER for height in row_heights])
        verdict_top = MARGIN + (TITLE_HEIGHT if title else 0)
        first_top = verdict_top + (VERDICT_HEIGHT if verdict else 0)
        self.tops = [first_top + HEADER, *(first_top + HEADER + float(end) for end in row_ends)]
        self.end_labels = len(curves) > 1
        self.used = 0
        self.page = Page(
            width=MARGIN + self.across * self.cell_width + (end_labels_width(curves) - 0.6 if self.end_labels else 0),
            height=self.tops[-1] - HEADER + 0.05,
        )
        if title:
            self.page.text(MARGIN, MARGIN + 0.02, title, size=13, weight="bold", width=self.page.width - 2 * MARGIN)
        if verdict:
            self.page.text(MARGIN, verdict_top, verdict, size=10, width=self.page.width - 2 * MARGIN)

    def next_corner(self) -> tuple[float, float]:
        """(left, top) in inches of the panel in the next cell."""
        down, across = divmod(self.used, self.across)
        self.used += 1
        return MARGIN + across * self.cell_width, self.tops[down]

    def show(
        self,
        name: str,
        image: RealArray,
        colours: str,
        limits: tuple[float, float],
        label: str,
        size: tuple[float, float],
    ) -> Axes:
        """An image over the field, with its colour bar."""
        left, top = self.next_corner()
        axes = self.page.axes(left, top, *size)
        self.page.header(left, top, self.cell_width - 0.1, name, "")
        mappable = show_image(axes, image, colours, limits, self.field)
        self.page.colour_bar(mappable, left + size[0] + 0.1, top, size[1], label)
        return axes

    def draw_misfit(self, curves: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]]) -> None:
        left, top = self.next_corner()
        left += TICKS + LOG_TICKS
        width, height = self.cell_width - COLOUR_BAR_SPACE - LOG_TICKS, self.side
        self.page.header(left, top, width, "Misfit", "")
        axes = self.page.axes(left, top, width, height)
        if curves:
            draw_curves(axes, curves, "iteration", "", True, height, label_ends=self.end_labels)
        else:
            axes.set(xticks=[], yticks=[])
            self.page.text(left + 0.15, top + 0.15, "no history yet", size=9, ink=QUIET_INK, width=width - 0.3)

    def draw_pupil(self, pupil: PupilView) -> None:
        modulus = pupil.modulus()
        panels = (
            ("Pupil, modulus", pupil.source, modulus, "gray", (0.0, float(modulus.max()) or 1.0), "|P|"),
            ("Pupil, phase", f"rms {pupil.rms_phase():.2g} rad", pupil.phase(), *pupil.phase_colours(), "phase (rad)"),
        )
        for name, caption, image, colours, limits, label in panels:
            left, top, side = self._map_cell(name, caption)
            mappable = draw_pupil(self.page.axes(left, top, side, side), pupil, image, colours, limits)
            self.page.colour_bar(mappable, left + side + 0.1, top, side, label)

    def draw_leds(self, leds: LEDView) -> None:
        left, top, side = self._map_cell("LEDs", leds.caption())
        mappable = draw_leds(self.page.axes(left, top, side, side), leds)
        if mappable is not None:
            self.page.colour_bar(mappable, left + side + 0.1, top, side, "gain")

    def _map_cell(self, name: str, caption: str) -> tuple[float, float, float]:
        """(left, top, side) of a square panel with numbers on its left."""
        left, top = self.next_corner()
        left += TICKS
        side = min(self.cell_width - COLOUR_BAR_SPACE - 0.25, self.side)
        self.page.header(left, top, self.cell_width - TICKS - 0.1, name, caption)
        return left, top, side


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
