"""The sources of one frame at the pupil's edge, and the frames that they give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fouriscope.optics import Geometry, Illumination, Optics
from fouriscope.optics.die import Spread, die_points
from fouriscope.optics.sources import Sources
from fouriscope.plots.page import ACCENT, HAIRLINE, INK, QUIET_INK, finished, header, new_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Points along each axis of a die that show its shape, in whatever way the array is turned.
_SHOWN = 40


class Sourced(Protocol):
    """What is asked of a :class:`~fouriscope.ForwardModel`."""

    @property
    def sources(self) -> Sources: ...
    @property
    def illumination(self) -> Illumination: ...
    @property
    def geometry(self) -> Geometry: ...
    @property
    def optics(self) -> Optics: ...
    def __len__(self) -> int: ...


def sources_figure(model: Sourced, frame: int, images: Mapping[str, NDArray[Any]]) -> Figure:
    """The sources of ``frame`` in the plane of the pupil, each with an area like its weight, and ``images`` beside it.

    Sources whose direct light passes the pupil are filled, the others are rings; the die of an LED is grey.

    Parameters
    ----------
    model
        The forward model.
    frame
        Number of the frame.
    images
        Images to draw beside the sources, by their titles.

    Examples
    --------
    >>> from fouriscope.paper import paper_model
    >>> model = paper_model(frame=16, radius=4)
    >>> len(sources_figure(model, 0, {"the frame": model.intensity(np.zeros(model.object_shape), [0])[0]}).axes)
    2
    """
    from matplotlib.patches import Circle
    from matplotlib.ticker import MaxNLocator

    count = 1 + len(images)
    figure = new_page(3.2 * count, 4.0)
    axes = figure.subplots(1, count, squeeze=False)[0]
    sources, _ = model.sources.of(np.array([frame]))
    na, weights = model.sources.na[sources], model.sources.weights[sources]
    lights, shown = model.illumination, na
    if isinstance(lights, Spread) and lights.die and len(lights) == len(model):
        shape = die_points(_SHOWN, lights.die_shape)
        shown = lights.die_directions(shape, model.geometry.patch_center)[frame]
        axes[0].scatter(shown[:, 1], shown[:, 0], s=8, marker="s", color=HAIRLINE, linewidths=0, zorder=1)
    edge = Circle((0, 0), model.optics.na, facecolor=ACCENT, alpha=0.12, edgecolor="none", zorder=0)
    axes[0].add_patch(edge)
    axes[0].add_patch(Circle((0, 0), model.optics.na, fill=False, edgecolor=ACCENT, linewidth=1.4, zorder=2))
    passes = model.optics.passes(np.hypot(na[:, 0], na[:, 1]))
    for group, colour in ((passes, INK), (~passes, "none")):
        sizes = 500 * weights[group] / weights.sum()
        axes[0].scatter(na[group, 1], na[group, 0], s=sizes, facecolors=colour, edgecolors=INK, zorder=3)
    middle, reach = shown.mean(axis=0), 0.8 * max(float(np.ptp(shown, axis=0).max()), 0.02 * model.optics.na)
    axes[0].set(
        xlim=(middle[1] - reach, middle[1] + reach), ylim=(middle[0] + reach, middle[0] - reach), aspect="equal"
    )
    axes[0].set_xlabel("na_x", fontsize=8.5, color=INK)
    axes[0].set_ylabel("na_y", fontsize=8.5, color=INK)
    axes[0].tick_params(labelsize=7, color=QUIET_INK)
    axes[0].xaxis.set_major_locator(MaxNLocator(4))
    header(axes[0], "sources", f"{len(na)} of frame {frame}, at the edge of NA {model.optics.na:g}")
    low = min((float(image.min()) for image in images.values()), default=0.0)
    high = max((float(image.max()) for image in images.values()), default=1.0)
    for place, (title, image) in zip(axes[1:], images.items(), strict=True):
        place.imshow(image, cmap="gray", vmin=low, vmax=high, interpolation="nearest")
        place.set_axis_off()
        header(place, title, f"mean {image.mean():.3f}")
    return finished(figure)
