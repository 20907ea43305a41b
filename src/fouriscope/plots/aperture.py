"""The pupil and the LEDs over numerical aperture: na_x to the right and na_y down, as columns and rows run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fouriscope.errors import InvalidInputError
from fouriscope.plots.images import RealArray
from fouriscope.plots.page import ACCENT, HAIRLINE, INK, QUIET_INK, frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CYCLIC = "twilight_shifted"  # its two ends are one colour, as −π and π are one phase
DIVERGING = "RdBu_r"
# In radians: a phase that stays within this does not wrap. On the scale of a whole turn it would be one colour.
SMALL_PHASE = np.pi / 2
LEAST_PHASE = 0.1
DARK_FIELD = "#0072b2"
OUTSIDE = "#f3f4f6"
# Arrows that are drawn shorter than this part of the map's width are points.
VISIBLE_ARROW = 0.004


@dataclass(frozen=True, eq=False)
class PupilView:
    """A pupil to draw.

    Parameters
    ----------
    values
        Complex, on the frequency grid of the frame, zero frequency at n//2 of each axis.
    na_step
        NA from pixel to pixel, (down, across).
    na
        The objective's NA: the radius of the disc.
    recovered
        Whether it was estimated from the frames; the caption says so.
    """

    values: npt.NDArray[Any]
    na_step: tuple[float, float]
    na: float
    recovered: bool = False

    def __post_init__(self) -> None:
        if np.ndim(self.values) != 2 or not all(np.isfinite(step) and step > 0 for step in (*self.na_step, self.na)):
            raise InvalidInputError(
                "a pupil to draw is a 2-D array with a positive NA and NA from pixel to pixel, got shape "
                f"{np.shape(self.values)}, NA {self.na!r} and steps {self.na_step!r}"
            )

    @property
    def source(self) -> str:
        return "recovered" if self.recovered else "of the model"

    def modulus(self) -> RealArray:
        """|P|."""
        return np.asarray(np.abs(self.values), np.float64)

    def phase(self) -> RealArray:
        """The phase of P from that of its mean, which no intensity can show; NaN where nothing passes."""
        mean = complex(np.sum(self.values))
        turned = self.values * (mean.conjugate() / abs(mean) if abs(mean) > 0 else 1.0)
        return np.where(self.values != 0, np.angle(turned), np.nan).astype(np.float64)

    def phase_colours(self) -> tuple[str, tuple[float, float]]:
        """(colour map, limits): cyclic over a whole turn, or for a small aberration symmetric about 0."""
        phase = self.phase()
        largest = max(float(np.nanmax(np.abs(phase))), LEAST_PHASE) if np.isfinite(phase).any() else LEAST_PHASE
        if largest > SMALL_PHASE:
            return CYCLIC, (-np.pi, np.pi)
        return DIVERGING, (-largest, largest)

    def rms_phase(self) -> float:
        """Root mean square of :meth:`phase` over the pixels that pass light."""
        phase = self.phase()
        return float(np.sqrt(np.nanmean(phase**2))) if np.isfinite(phase).any() else 0.0


@dataclass(frozen=True, eq=False)
class LEDView:
    """LEDs to draw.

    Parameters
    ----------
    na
        Directions (N, 2) as (na_y, na_x).
    bright
        Which of them are bright field.
    objective_na
        NA of the objective.
    gains
        Colours the LEDs by their brightness.
    nominal
        Where each LED was thought to be; an arrow is drawn from there.
    """

    na: npt.NDArray[Any]
    bright: npt.NDArray[Any]
    objective_na: float
    gains: npt.NDArray[Any] | None = None
    nominal: npt.NDArray[Any] | None = None

    def __post_init__(self) -> None:
        count = len(self.na)
        for name, shape in (("na", (count, 2)), ("bright", (count,)), ("gains", (count,)), ("nominal", (count, 2))):
            values = getattr(self, name)
            if values is not None and np.shape(values) != shape:
                raise InvalidInputError(
                    f"{name} of the {count} LEDs to draw must have shape {shape}, got {np.shape(values)}"
                )

    @property
    def synthetic_na(self) -> float:
        return float(np.hypot(self.na[:, 0], self.na[:, 1]).max()) + self.objective_na

    def caption(self) -> str:
        """What the circles are, how many LEDs are where, and how far a calibration moved them."""
        bright = int(np.count_nonzero(self.bright))
        words = f"{bright} in NA {self.objective_na:.3g}, {len(self.na) - bright} dark field"
        words += f"\nsynthetic NA {self.synthetic_na:.3g} (dashed)"
        if self.nominal is not None:
            words += f"\nmoved by {np.hypot(*(self.na - self.nominal).T).mean():.2g} NA"
        return words


def draw_pupil(axes: Axes, pupil: PupilView, image: RealArray, cmap: str, limits: tuple[float, float]) -> Any:
    """Draw ``image``, on the pupil's grid, over NA, around the disc alone; returns what a colour bar needs."""
    import matplotlib

    step_y, step_x = pupil.na_step
    rows, columns = image.shape
    top, left = -(rows // 2 + 0.5) * step_y, -(columns // 2 + 0.5) * step_x
    mappable = axes.imshow(
        image,
        cmap=matplotlib.colormaps[cmap].with_extremes(bad=OUTSIDE),
        vmin=limits[0],
        vmax=limits[1],
        extent=(left, left + columns * step_x, top + rows * step_y, top),
        interpolation="nearest",
        aspect="auto",
    )
    axes.set_facecolor(OUTSIDE)
    _circle(axes, pupil.na, ACCENT, "-")
    _na_axes(axes, 1.15 * pupil.na)
    return mappable


def draw_leds(axes: Axes, leds: LEDView) -> Any:
    """Draw the LEDs with the pupil's circle and the synthetic aperture; returns what a colour bar of gains needs.

    The circle of NA separates bright field from dark field. What the object's spectrum holds lies in the dashed one.
    """
    na = np.asarray(leds.na, np.float64)
    bright = np.asarray(leds.bright, bool)
    reach = 1.06 * leds.synthetic_na
    size = float(np.clip(2500 / len(na), 3, 22))
    if leds.nominal is not None:
        _arrows(axes, np.asarray(leds.nominal, np.float64), na, reach)
    mappable = None
    gains = None if leds.gains is None else np.asarray(leds.gains, np.float64)
    for name, group, colour, marker in (
        ("bright field", bright, ACCENT, "o"),
        ("dark field", ~bright, DARK_FIELD, "s"),
    ):
        if not group.any():
            continue
        style: dict[str, Any] = {"color": colour}
        if gains is not None:
            style = {"c": gains[group], "cmap": "viridis", "vmin": gains.min(), "vmax": gains.max()}
        points = axes.scatter(
            na[group, 1], na[group, 0], s=size, marker=marker, linewidths=0, label=name, zorder=3, **style
        )
        mappable = mappable if gains is None else points
    _circle(axes, leds.objective_na, ACCENT, "-")
    _circle(axes, leds.synthetic_na, QUIET_INK, "--")
    _na_axes(axes, reach)
    return mappable


def _arrows(axes: Axes, start: RealArray, end: RealArray, reach: float) -> None:
    moved = np.hypot(*(end - start).T) > VISIBLE_ARROW * 2 * reach
    if not moved.any():
        return
    along = (end - start)[moved]
    axes.quiver(
        *(start[moved, 1], start[moved, 0], along[:, 1], along[:, 0]),
        angles="xy",
        scale_units="xy",
        scale=1,
        width=0.003,
        color=QUIET_INK,
        zorder=4,
    )


def _circle(axes: Axes, radius: float, colour: str, style: str) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle((0, 0), radius, fill=False, edgecolor=colour, linewidth=1.2, linestyle=style, zorder=2))


def _na_axes(axes: Axes, reach: float) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set(xlim=(-reach, reach), ylim=(reach, -reach), box_aspect=1, anchor="NW")
    frame(axes)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.tick_params(labelsize=8, labelcolor=INK, color=HAIRLINE, width=0.6, length=2.5)
    axes.set_xlabel("na_x", fontsize=8.5, color=INK, labelpad=1)
    axes.set_ylabel("na_y", fontsize=8.5, color=INK, labelpad=0)
