"""What a tile has been measured with: the acquisition of its window, without the frames that it cannot explain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.sides import sides
from fouriscope.optics.patterns import Multiplexed, direct_light
from fouriscope.run.assemble import build_acquisition
from fouriscope.settings import RunConfig

# Of a frame's direct light: where so much passes the pupil in a part of the tile only, the model still explains it.
HARMLESS = 0.25


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
    come and go without harm.
    """
    given = acquisition.frame_weights
    if getattr(acquisition.illumination, "height", None) is None:  # directions that are the same everywhere
        return given
    rows, columns = (size / 2 + margin for size in acquisition.frame_shape)
    pixel, (y, x) = acquisition.optics.pixel, acquisition.patch_center
    corners = [(y + down * rows * pixel, x + right * columns * pixel) for down in (-1, 1) for right in (-1, 1)]
    lights = [direct_light(acquisition.illumination, acquisition.optics, corner) for corner in corners]
    return np.where(np.ptp(lights, axis=0) <= HARMLESS * np.max(lights, axis=0), given, 0.0)


def contradicted(acquisition: Acquisition) -> NDArray[np.intp]:
    """LEDs near the pupil's edge that the model sees on one side of it and the tile's frames on the other, or on none.

    Away from the axis real lenses vignette, and errors of the array add up. An LED that is believed to be bright field
    and gives a dark frame would be explained by an object that has swallowed its light, and one whose direct light
    comes through in part, by stripes that the object does not have.
    """
    if isinstance(acquisition.illumination, Multiplexed):  # no LED is seen by itself
        return np.zeros(0, np.intp)
    na = np.hypot(*acquisition.illumination.directions(acquisition.patch_center).T)
    bright, dark = sides(acquisition)
    return np.flatnonzero(np.where(acquisition.optics.passes(na), ~bright, ~dark))
