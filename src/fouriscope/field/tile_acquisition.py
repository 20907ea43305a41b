"""What a tile has been measured with: the acquisition of its window, without the frames that it cannot explain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.brightness import frame_means
from fouriscope.alignment.sides import sides
from fouriscope.optics.die import across_edge, has_die
from fouriscope.optics.frame_sources import frame_sources
from fouriscope.optics.patterns import Multiplexed, direct_light
from fouriscope.run.assemble import build_acquisition
from fouriscope.settings import RunConfig

# Of a frame's direct light: where so much passes the pupil in a part of the tile only, the model still explains it.
HARMLESS = 0.25
# Of the amplitude of the direct light of LEDs with a size: by how much it may change over the tile.
EXPLAINED = 0.25
# By how much a frame's brightness may differ from the share of direct light that the size of its LED says.
AGREES = 0.2


def tile_acquisition(config: RunConfig, base: Path, margin: int) -> Acquisition:
    """The acquisition of a tile's configuration (:meth:`~fouriscope.field.plan.FieldPlan.tile_config`)."""
    acquisition = build_acquisition(config, base)
    weights = weights_in_tile(acquisition, margin)
    weights[contradicted(acquisition)] = 0.0
    return replace(acquisition, weights=weights)


def weights_in_tile(acquisition: Acquisition, margin: int) -> NDArray[np.float64]:
    """The weights of the frames in one tile: 0 where their direct light passes the pupil in a part of it only.

    Seen from one corner of a tile such an LED is bright field, from another dark field, and its frame has an edge that
    no object has. One direction for the whole tile cannot explain it, and the attempt spoils the tile. A few LEDs are
    concerned, each in a strip of tiles; elsewhere it counts as ever. Of a pattern with many bright-field LEDs some may
    come and go without harm. The light of an LED with a size comes and goes slowly, and the part of it that passes in
    the middle of the tile explains the frame if it changes little towards the corners.
    """
    given = acquisition.frame_weights
    if getattr(acquisition.illumination, "height", None) is None:  # directions that are the same everywhere
        return given
    rows, columns = (size / 2 + margin for size in acquisition.frame_shape)
    pixel, (y, x) = acquisition.optics.pixel, acquisition.patch_center
    corners = [(y + down * rows * pixel, x + right * columns * pixel) for down in (-1, 1) for right in (-1, 1)]
    if has_die(acquisition.illumination):
        shares = [_direct_share(acquisition, corner) for corner in corners]
        return np.where(np.ptp(np.sqrt(shares), axis=0) <= EXPLAINED, given, 0.0)
    lights = [direct_light(acquisition.illumination, acquisition.optics, corner) for corner in corners]
    return np.where(np.ptp(lights, axis=0) <= HARMLESS * np.max(lights, axis=0), given, 0.0)


def contradicted(acquisition: Acquisition) -> NDArray[np.intp]:
    """LEDs near the pupil's edge that the model sees on one side of it and the tile's frames on the other, or on none.

    Away from the axis real lenses vignette, and errors of the array add up. An LED that is believed to be bright field
    and gives a dark frame would be explained by an object that has swallowed its light, and one whose direct light
    comes through in part, by stripes that the object does not have. Where the size of an LED says that a part comes
    through, and the frame is as bright as that part, nothing is contradicted.
    """
    if isinstance(acquisition.illumination, Multiplexed):  # no LED is seen by itself
        return np.zeros(0, np.intp)
    na = np.hypot(*acquisition.illumination.directions(acquisition.patch_center).T)
    bright, dark = sides(acquisition)
    wrong = np.where(acquisition.optics.passes(na), ~bright, ~dark)
    across = across_edge(acquisition.illumination, acquisition.optics, acquisition.patch_center)
    return np.flatnonzero(np.where(across, _too_bright_or_dark(acquisition, across), wrong))


def _too_bright_or_dark(acquisition: Acquisition, across: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Frames whose mean, beside that of the bright field, is not the share of direct light that they should hold."""
    if not across.any():
        return np.zeros(len(across), bool)
    means = frame_means(acquisition)
    if acquisition.gains is not None:
        means = means / np.asarray(acquisition.gains)
    share = _direct_share(acquisition, acquisition.patch_center)
    bright = means[(share == 1) & np.isfinite(means)]
    return np.abs(means / np.median(bright) - share) > AGREES if len(bright) else np.zeros(len(share), bool)


def _direct_share(acquisition: Acquisition, place: tuple[float, float]) -> NDArray[np.float64]:
    return frame_sources(acquisition.illumination, acquisition.optics, place).direct_light(acquisition.optics)
