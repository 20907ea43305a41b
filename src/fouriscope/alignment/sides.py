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
# A frame that is twice as bright as that ground, and of which more than this share looks like bright field, holds
# direct light; the bright field must have some contrast to tell. Both are smoothed over this many pixels, and this many
# bright frames are looked at.
DIRECT, CONTRAST, SMOOTH, MOST_BRIGHT = 0.3, 0.03, 3.0, 20
# LEDs far outside that show how much light even dark frames have.
FAR = 8


def sides(acquisition: Acquisition) -> tuple[Bools, Bools]:
    """(bright, dark): LEDs most of whose direct light reaches the patch, and LEDs whose direct light does not at all.

    An LED that is neither lies in the penumbra of the pupil's edge, where no single direction explains its frame. LEDs
    without weight and those far from the edge are taken from the description, and so are all LEDs if none is surely
    bright field, because then nothing can be compared.

    Parameters
    ----------
    acquisition
        The frames and what is known about the microscope.
    """
    na = acquisition.illumination_na / acquisition.optics.na
    counts = acquisition.frame_weights > 0
    means, grounds = np.full(len(na), np.nan), np.full(len(na), np.nan)
    # What the farthest LEDs show everywhere is the camera's or the room's.
    far = np.flatnonzero(counts & (na >= OUTER))
    far = far[np.argsort(-na[far], kind="stable")][:FAR]
    for led in (*np.flatnonzero(counts & (na < OUTER)), *far):
        frame = acquisition.frames.frame(int(led))
        pixels = frame[counted_pixels(acquisition, int(led), frame)]
        if pixels.size:
            level = 1.0 if acquisition.gains is None else float(acquisition.gains[led])
            means[led], grounds[led] = pixels.mean() / level, np.quantile(pixels, DARKEST) / level
    pedestal = grounds[far][np.isfinite(grounds[far])]
    if pedestal.size:
        means, grounds = means - np.median(pedestal), grounds - np.median(pedestal)
    inner = means[(na < INNER) & np.isfinite(means)]
    level = float(np.median(inner)) if len(inner) else 0.0
    near = (na >= INNER) & (na < OUTER) & np.isfinite(means)
    inside = acquisition.bright_field
    if not level > 0:
        return inside, ~inside
    bright = np.where(near, means > BRIGHT_ENOUGH * level, inside)
    dark = np.where(near, (grounds < GROUND * level) & (means < DARK_ENOUGH * level), ~inside)
    dark &= ~bright
    candidates = np.flatnonzero(near & dark & (means > 2 * GROUND * level))
    dark[candidates[_resembles(acquisition, candidates, np.flatnonzero(bright & counts))]] = False
    return bright, dark


def _resembles(acquisition: Acquisition, leds: NDArray[np.int64], bright: NDArray[np.int64]) -> Bools:
    """Whether frames of ``leds`` look like bright field, on the scale of some pixels: light where the sample is clear.

    Scattered light comes from where it is not. With a the slope of a frame over the bright field, a times the bright
    field is the direct light that it holds: negative for a dark field, a share of the frame's mean in a penumbra.
    """
    from scipy.ndimage import gaussian_filter

    def smooth(led: int) -> NDArray[np.float64]:
        frame = np.asarray(acquisition.frames.frame(led), np.float64)
        good = counted_pixels(acquisition, led, frame)
        return np.asarray(gaussian_filter(np.where(good, frame, frame[good].mean() if good.any() else 0.0), SMOOTH))

    if not len(bright) or not len(leds):
        return np.zeros(len(leds), bool)
    reference = np.mean([smooth(int(led)) for led in bright[:MOST_BRIGHT]], axis=0)
    level, contrast = float(reference.mean()), reference - reference.mean()
    if not float(contrast.std()) > CONTRAST * level:
        return np.zeros(len(leds), bool)
    direct = np.zeros(len(leds))
    for place, led in enumerate(leds):
        image = smooth(int(led))
        slope = float(np.sum((image - image.mean()) * contrast) / np.sum(contrast**2))
        direct[place] = slope * level / float(image.mean()) if image.mean() > 0 else 0.0
    return (direct > DIRECT) & (direct < 1 + DIRECT)  # no frame is more than all direct light
