"""On which side of the pupil's edge an LED is seen: the frames of a small patch show it without any model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.brightness import counted_pixels

Bools = NDArray[np.bool_]

# In units of the objective's NA: LEDs within INNER are bright field whatever is wrong, those beyond OUTER dark field.
INNER, OUTER = 0.5, 1.5
# Of the mean brightness of the inner LEDs: a bright field has more than the one, even where half of its light is cut
# off, and a dark field less than the other, even where it is full of scatterers.
BRIGHT_ENOUGH, DARK_ENOUGH = 0.4, 0.3
# Of the same: direct light lifts even the darkest tenth of the pixels of a frame above this, scattered light does not.
# Of a blood smear and of a resolution target the dark field next to the edge has 0.001, a frame in a penumbra 0.07.
GROUND = 0.02
DARKEST = 0.1
# LEDs far outside that tell what even the dark has.
FAR = 8


def sides(acquisition: Acquisition) -> tuple[Bools, Bools]:
    """(bright, dark): LEDs most of whose direct light is there in the patch, and LEDs of which none is.

    An LED that is neither lies in the penumbra of the pupil's edge, where no single direction explains its frame.
    LEDs without weight and those far from the edge are what the description says. Where none is surely bright field,
    nothing can be compared, and all are.
    """
    na = np.hypot(*acquisition.illumination.directions(acquisition.patch_center).T) / acquisition.optics.na
    counts = np.ones(len(na), bool) if acquisition.weights is None else np.asarray(acquisition.weights) > 0
    means, grounds = np.full(len(na), np.nan), np.full(len(na), np.nan)
    # What the farthest LEDs show everywhere is the camera's or the room's.
    far = np.flatnonzero(counts & (na >= OUTER))
    far = far[np.argsort(-na[far], kind="stable")][:FAR]
    for led in (*np.flatnonzero(counts & (na < OUTER)), *far):
        frame = acquisition.frames.frame(int(led))
        pixels = frame[counted_pixels(acquisition, int(led), frame)]
        if pixels.size:
            means[led], grounds[led] = pixels.mean(), np.quantile(pixels, DARKEST)
    pedestal = grounds[far][np.isfinite(grounds[far])]
    if pedestal.size:
        means, grounds = means - np.median(pedestal), grounds - np.median(pedestal)
    inner = means[(na < INNER) & np.isfinite(means)]
    level = float(np.median(inner)) if len(inner) else 0.0
    near = (na >= INNER) & (na < OUTER) & np.isfinite(means)
    inside = np.asarray(acquisition.optics.passes(na * acquisition.optics.na))
    if not level > 0:
        return inside, ~inside
    bright = np.where(near, means > BRIGHT_ENOUGH * level, inside)
    dark = np.where(near, (grounds < GROUND * level) & (means < DARK_ENOUGH * level), ~inside)
    return bright, dark & ~bright
