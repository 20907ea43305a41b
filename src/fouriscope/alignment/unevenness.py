"""Frames whose direct light passes the pupil in a part of the field only, or in unequal parts of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition, field_scale
from fouriscope.alignment.brightness import counted_pixels
from fouriscope.optics.die import has_die
from fouriscope.optics.frame_sources import frame_sources

Floats = NDArray[np.float64]

# Frames of LEDs between these distances from the axis, in units of NA, are compared with the mean of those within the
# first: farther inside, the direct light passes everywhere.
NEAR, FAR = 0.85, 1.2
# A frame is looked at in so many blocks along each axis; so many must hold pixels that count.
BLOCKS, LEAST_BLOCKS = 6, 9
# From border to border, along the direction of the LED, the brightness may change by this share of its mean. A change
# counts if it is so many times as large as what blocks differ by otherwise (standard deviations).
MOST, CLEARLY = 0.35, 1.5
# A frame with less than this of the bright field's light is dark: what changes in it is scattered light.
LEAST_LIGHT = 0.1
# An LED with a size, of which less than this share of the direct light passes, is doubtful if that share changes.
MOSTLY_OUTSIDE = 0.5
# So many bright frames must remain.
LEAST_BRIGHT = 3


def uneven(acquisition: Acquisition) -> NDArray[np.int64]:
    """LEDs near the pupil's edge whose frames show that their direct light comes and goes within the field.

    LEDs are near, so directions change over the field. Near the pupil's edge, the direct light of an LED passes on one
    side of the field and not on the other. Such a frame is brighter towards one side: along the direction of the LED,
    its ratio to the mean of inner bright frames changes by more than a third of its mean, and clearly more than it does
    otherwise. A model with one direction for the whole field explains that by a slow phase, which hardly any other
    frame sees: the background of the phase gets hills and bands.

    Nothing is found where the curvature of the light is known, because the model then explains the change, in
    simulations that repeat themselves, and if fewer than three bright frames would remain.

    Parameters
    ----------
    acquisition
        After the alignment, with the weights that frames have by now.

    Examples
    --------
    A clear sample; the frame of the third LED becomes darker from the left to the right:

    >>> from fouriscope import Optics
    >>> from fouriscope.optics import Directions
    >>> frames = np.ones((5, 24, 24))
    >>> frames[2] = np.linspace(1, 0.2, 24)
    >>> na = np.array([[0.0, 0.0], [0.0, 0.05], [0.0, 0.095], [0.0, -0.095], [-0.05, 0.0]])
    >>> optics = Optics(wavelength=513e-9, na=0.1, magnification=4, camera_pixel=6.5e-6)
    >>> uneven(Acquisition(optics, Directions(na), frames)).tolist()
    [2]
    """
    if _changes_are_known(acquisition):
        return np.zeros(0, np.int64)
    used = acquisition.frame_weights > 0
    found = used & _changing_brightness(acquisition, used)
    if np.count_nonzero(used & acquisition.bright_field & ~found) < LEAST_BRIGHT:
        return np.zeros(0, np.int64)
    return np.flatnonzero(found)


def unevenly_lit(acquisition: Acquisition) -> NDArray[np.int64]:
    """LEDs that should be uneven because of their size, although scattered light may hide it.

    Less than half of their direct light passes the pupil in the middle of the field, and another share in a corner.
    """
    if _changes_are_known(acquisition) or not has_die(acquisition.illumination):
        return np.zeros(0, np.int64)
    shares = direct_shares(acquisition, *(np.array([-0.5, 0.0, 0.5]) * size for size in acquisition.frame_shape))
    changing = (np.ptp(shares, axis=(0, 1)) > 0) & (shares[1, 1] < MOSTLY_OUTSIDE)
    return np.flatnonzero(changing & (acquisition.frame_weights > 0))


def _changes_are_known(acquisition: Acquisition) -> bool:
    return acquisition.periodic or acquisition.optics.wave_curvature is not None


def direct_shares(acquisition: Acquisition, rows: Floats, columns: Floats) -> Floats:
    """(rows, columns, LEDs) the share of each LED's direct light that passes, seen from places in the field.

    ``rows`` and ``columns`` are in pixels, from the middle of the frame.
    """
    pixel = acquisition.optics.pixel * field_scale(acquisition.illumination, acquisition.optics.wave_curvature)
    y, x = acquisition.patch_center
    return np.array(
        [[_direct_share(acquisition, (y + row * pixel, x + column * pixel)) for column in columns] for row in rows]
    )


def _direct_share(acquisition: Acquisition, place: tuple[float, float]) -> Floats:
    return frame_sources(acquisition.illumination, acquisition.optics, place).direct_light(acquisition.optics)


def _changing_brightness(acquisition: Acquisition, used: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """LEDs near the pupil's edge whose frames become brighter or darker along their direction."""
    na = acquisition.illumination.directions(acquisition.patch_center)
    radius = np.hypot(na[:, 0], na[:, 1])
    share = radius / acquisition.optics.na
    found = np.zeros(len(acquisition), bool)
    inner = np.flatnonzero(used & (share < NEAR))
    if not len(inner):
        return found
    reference = np.mean([_blocks(acquisition, int(led)) for led in inner], axis=0)
    middles = (np.arange(BLOCKS) + 0.5) / BLOCKS - 0.5
    down, across = np.meshgrid(middles, middles, indexing="ij")
    for led in np.flatnonzero(used & (share >= NEAR) & (share <= FAR)):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = _blocks(acquisition, int(led)) / reference
        known = np.isfinite(ratio)
        if np.count_nonzero(known) < LEAST_BLOCKS:
            continue
        outwards = (na[led, 0] * down + na[led, 1] * across)[known] / radius[led]
        plane = np.stack([np.ones(outwards.size), down[known], across[known]], axis=1)
        (mean, *slope), *_ = np.linalg.lstsq(plane, ratio[known], rcond=None)
        along = float(np.dot(slope, na[led]) / radius[led])
        rest = float(np.std(ratio[known] - plane @ [mean, *slope]))
        clear = abs(along) * float(np.std(outwards)) > CLEARLY * rest
        found[led] = mean > LEAST_LIGHT and abs(along) > MOST * mean and clear
    return found


def _blocks(acquisition: Acquisition, led: int) -> Floats:
    """The mean of each block of a frame, in units of the LED's gain; NaN where no pixel counts."""
    frame = np.asarray(acquisition.frames.frame(led), np.float64)
    counted = counted_pixels(acquisition, led, frame)
    level = 1.0 if acquisition.gains is None else float(acquisition.gains[led])
    edges = [np.linspace(0, size, BLOCKS + 1).astype(int)[:-1] for size in frame.shape]

    def sums(image: Floats) -> Floats:
        return np.asarray(np.add.reduceat(np.add.reduceat(image, edges[0], axis=0), edges[1], axis=1))

    with np.errstate(divide="ignore", invalid="ignore"):
        return sums(np.where(counted, frame, 0.0)) / sums(counted.astype(np.float64)) / level
