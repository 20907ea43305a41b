"""The acquisition of a tile's window, without the frames that the tile cannot explain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition, Frames, FrameSequence, field_scale
from fouriscope.alignment.brightness import holds_direct_light
from fouriscope.alignment.sides import sides
from fouriscope.alignment.unevenness import direct_shares
from fouriscope.optics.die import across_edge, has_die
from fouriscope.optics.patterns import Multiplexed, direct_light
from fouriscope.run.assemble import build_acquisition
from fouriscope.settings import RunConfig

# Of a frame's direct light: where so much passes the pupil in a part of the tile only, the model still explains it.
HARMLESS = 0.25
# The least share of an LED's direct light, anywhere in a tile, with which its frame can be evened out.
LEAST_SHARE = 0.1
# Places along a side of a tile at which that share is computed; it is nearly linear in between.
PLACES = 5


def tile_acquisition(config: RunConfig, base: Path, margin: int) -> Acquisition:
    """The acquisition of a tile's configuration (:meth:`~fouriscope.field.plan.FieldPlan.tile_config`)."""
    acquisition = build_acquisition(config, base)
    weights = weights_in_tile(acquisition, margin)
    weights[contradicted(acquisition)] = 0.0
    return replace(acquisition, weights=weights, frames=evened(acquisition, weights))


def weights_in_tile(acquisition: Acquisition, margin: int) -> NDArray[np.float64]:
    """The weights of the frames in one tile: 0 where their direct light passes the pupil in a part of it only.

    Seen from one corner of a tile such an LED is bright field, from another dark field, and its frame has an edge that
    no object has. One direction for the whole tile cannot explain it, and the attempt spoils the tile. This affects a
    few LEDs, each in a strip of tiles; elsewhere their frames count. In a pattern with many bright-field LEDs, some may
    come and go without harm. If an LED has a size, the part of its light that passes changes slowly over the tile. Its
    frame counts if it can be evened out (:func:`evened`).
    """
    given = acquisition.frame_weights
    if getattr(acquisition.illumination, "height", None) is None:  # directions that are the same everywhere
        return given
    rows, columns = (size / 2 + margin for size in acquisition.frame_shape)
    if has_die(acquisition.illumination):
        shares = direct_shares(acquisition, np.array([-rows, rows]), np.array([-columns, columns]))
        even = np.ptp(shares, axis=(0, 1)) == 0
        return np.where(even | (shares.min(axis=(0, 1)) >= LEAST_SHARE), given, 0.0)
    pixel, (y, x) = _pixel(acquisition), acquisition.patch_center
    corners = [(y + down * rows * pixel, x + right * columns * pixel) for down in (-1, 1) for right in (-1, 1)]
    lights = [direct_light(acquisition.illumination, acquisition.optics, corner) for corner in corners]
    return np.where(np.ptp(lights, axis=0) <= HARMLESS * np.max(lights, axis=0), given, 0.0)


def contradicted(acquisition: Acquisition) -> NDArray[np.intp]:
    """LEDs near the pupil's edge that the model sees on one side of it and the tile's frames on the other, or on none.

    Away from the axis real lenses vignette, and errors of the array add up. If an LED is believed to be bright field
    but its frame is dark, the object would have to absorb its light. If direct light passes in part, the object would
    get stripes. If the size of an LED says that a part passes, and the frame is as bright as that part, there is no
    contradiction.
    """
    if isinstance(acquisition.illumination, Multiplexed):  # no LED is seen by itself
        return np.zeros(0, np.intp)
    bright, dark = sides(acquisition)
    wrong = np.where(acquisition.bright_field, ~bright, ~dark)
    across = across_edge(acquisition.illumination, acquisition.optics, acquisition.patch_center)
    if across.any():
        share = direct_shares(acquisition, np.zeros(1), np.zeros(1))[0, 0]
        wrong = np.where(across, ~holds_direct_light(acquisition, share), wrong)
    return np.flatnonzero(wrong)


def _pixel(acquisition: Acquisition) -> float:
    """From pixel to pixel, the place from which LEDs are seen moves by so much."""
    return acquisition.optics.pixel * field_scale(acquisition.illumination, acquisition.optics.wave_curvature)


class EvenedFrames(FrameSequence):
    """Frames of a tile, some of them multiplied by the image that :func:`evened` made for them."""

    def __init__(self, frames: Frames, factors: dict[int, NDArray[np.float32]]) -> None:
        self.frames, self.factors = frames, factors

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.frames.shape

    def frame(self, index: int) -> NDArray[Any]:
        factor = self.factors.get(index)
        frame = self.frames.frame(index)
        return frame if factor is None else frame * factor


def evened(acquisition: Acquisition, weights: NDArray[np.float64]) -> Frames:
    """Frames as they would be if as much of each LED's direct light passed the pupil everywhere as in the middle.

    Seen from another place of a tile, another share s(r) of an LED's die lies inside the pupil, and the frame is
    brighter or darker in proportion: the direct light, and what interferes with it, is nearly all of such a frame. So
    it is multiplied by s(middle)/s(r), and the one set of sources that a tile has explains it. Where the curvature of
    the light is known, the model itself explains that, and nothing is changed.
    """
    if acquisition.optics.wave_curvature is not None:
        return acquisition.frames
    across = _across_anywhere(acquisition) & (weights > 0)
    if not across.any():
        return acquisition.frames
    rows, columns = acquisition.frame_shape
    shares = direct_shares(acquisition, *(np.linspace(-0.5, 0.5, PLACES) * size for size in (rows, columns)))
    middle = shares[PLACES // 2, PLACES // 2]
    places = [(np.arange(size) + 0.5) / size * (PLACES - 1) for size in (rows, columns)]
    factors = {
        int(led): (middle[led] / _linear(shares[:, :, led], *places)).astype(np.float32)
        for led in np.flatnonzero(across)
    }
    return EvenedFrames(acquisition.frames, factors)


def _across_anywhere(acquisition: Acquisition) -> NDArray[np.bool_]:
    """LEDs whose die lies across the pupil's edge, seen from a corner of the tile or from its middle."""
    (rows, columns), pixel, (y, x) = acquisition.frame_shape, _pixel(acquisition), acquisition.patch_center
    places = [(y + a * rows * pixel / 2, x + b * columns * pixel / 2) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    seen = [across_edge(acquisition.illumination, acquisition.optics, place) for place in places]
    return np.asarray(np.logical_or.reduce(seen))


def _linear(values: NDArray[np.float64], rows: NDArray[np.float64], columns: NDArray[np.float64]) -> NDArray[Any]:
    """``values`` of a lattice between its points."""
    from scipy.ndimage import map_coordinates

    return np.asarray(map_coordinates(values, np.meshgrid(rows, columns, indexing="ij"), order=1, mode="nearest"))
