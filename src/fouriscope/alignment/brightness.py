"""Which frames hold direct light, judged by their brightness alone, and what that says about the array's place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.acquisition.masks import mask_of
from fouriscope.optics import LEDArray, Optics

Floats = NDArray[np.float64]

# In units of the bright field's level; frames in between may be either.
SURELY_BRIGHT, SURELY_DARK = 0.7, 0.2
# The brightest frames tell the level if they are at least this many times as bright as the median of the others.
CONTRAST = 3.0
# Bright frames that differ by less than this say nothing about their LEDs.
LEAST_SPREAD = 0.05
# A frame across the pupil's edge may differ by so much, in units of the bright field, from the direct light it should
# hold.
AGREES = 0.2
# How far the array may be displaced to bring the bright frames inside the pupil, in pitches, and in how fine steps.
REACH, STEP = 2.5, 0.25


def counted_pixels(acquisition: Acquisition, led: int, frame: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a frame may be looked at: finite, and not masked."""
    finite = np.isfinite(frame)
    return np.asarray(finite if acquisition.mask is None else finite & mask_of(acquisition.mask, led))


def amplitudes(
    acquisition: Acquisition, leds: NDArray[np.int64], intensities: NDArray[Any]
) -> Iterator[tuple[int, Floats, Floats]]:
    """Number, √y and √I of each of ``leds``, whose predicted ``intensities`` these are; of the pixels that count."""
    for led, intensity in zip(map(int, leds), intensities, strict=True):
        frame = np.asarray(acquisition.frames.frame(led), np.float64)
        counted = counted_pixels(acquisition, led, frame)
        predicted = np.asarray(intensity, np.float64)[counted]
        yield led, np.sqrt(np.maximum(frame[counted], 0)), np.sqrt(np.maximum(predicted, 0))


def frame_means(acquisition: Acquisition) -> Floats:
    """The mean over the pixels that count in every frame, at least 0; NaN for frames that are not used."""
    used = acquisition.frame_weights > 0
    means = np.full(len(acquisition), np.nan)
    for led in np.flatnonzero(used):
        frame = np.asarray(acquisition.frames.frame(int(led)), np.float64)
        good = counted_pixels(acquisition, int(led), frame)
        if good.any():
            means[led] = max(float(frame[good].mean()), 0.0)
    return means


def sides_of_edge(means: Floats, inside: NDArray[np.bool_]) -> NDArray[np.int8]:
    """1 for frames that surely hold direct light, by their mean, −1 for those that surely do not, 0 for the others.

    Wherever the array really is, as many frames are bright as LEDs lie ``inside`` the pupil by description. The median
    of these brightest frames is the level of the bright field. Without a clear contrast to the others nothing is sure,
    and all are 0; so are frames whose mean is NaN.

    >>> sides_of_edge(np.array([1.0, 0.9, 0.5, 0.01, 0.02]), np.array([True, False, False, False, True])).tolist()
    [1, 1, 0, -1, -1]
    """
    sides = np.zeros(len(means), np.int8)
    known = np.flatnonzero(np.isfinite(means))
    count = int(np.count_nonzero(inside[known]))
    if not 0 < count < len(known):
        return sides
    ordered = known[np.argsort(-means[known], kind="stable")]
    level = float(np.median(means[ordered[:count]]))
    if not level > CONTRAST * float(np.median(means[ordered[count:]])):
        return sides
    sides[known[means[known] > SURELY_BRIGHT * level]] = 1
    sides[known[means[known] < SURELY_DARK * level]] = -1
    return sides


def sides_of_frames(acquisition: Acquisition, means: Floats) -> NDArray[np.int8]:
    """:func:`sides_of_edge` of the frames of an acquisition."""
    return sides_of_edge(means, acquisition.bright_field)


def holds_direct_light(acquisition: Acquisition, share: Floats) -> NDArray[np.bool_]:
    """Frames whose mean, divided by that of the bright field, is the ``share`` of direct light that they should hold.

    If none should be bright field, all of them. A frame whose mean is not known is not one.
    """
    means = frame_means(acquisition)
    if acquisition.gains is not None:
        means = means / np.asarray(acquisition.gains)
    bright = means[(share == 1) & np.isfinite(means)]
    return np.abs(means / np.median(bright) - share) < AGREES if len(bright) else np.ones(len(share), bool)


def bright_gains(acquisition: Acquisition) -> Floats | None:
    """How bright each LED is compared with the others, as far as bright frames tell: their mean, times known gains.

    All bright-field frames show the same sample from slightly different angles, and hardly differ in what they
    transmit; LEDs differ by some ten percent. If frames differ by less than five percent, that is the sample, and the
    known gains are kept. They are also kept for all other frames.
    """
    means = frame_means(acquisition)
    bright = sides_of_frames(acquisition, means) > 0
    if np.count_nonzero(bright) < 3:
        return acquisition.gains
    level = means / np.median(means[bright])
    if not float(np.std(np.log(level[bright]))) > LEAST_SPREAD:
        return acquisition.gains
    known = np.ones(len(means)) if acquisition.gains is None else np.asarray(acquisition.gains, np.float64)
    return np.where(bright, level, known)


def misplaced(optics: Optics, sides: NDArray[np.int8], na: Floats) -> int:
    """Frames that are bright but should be dark with directions ``na``, or dark but should be bright."""
    inside = optics.passes(np.hypot(na[:, 0], na[:, 1]))
    return int(np.sum((sides > 0) & ~inside) + np.sum((sides < 0) & inside))


def place_by_brightness(acquisition: Acquisition, array: LEDArray, sides: NDArray[np.int8]) -> LEDArray:
    """``array`` displaced as a whole so that the fewest frames lie on the wrong side of the pupil's edge.

    Of all such places the middle is used. If no frame is on the wrong side, or if no displacement helps, the array
    stays where it is.

    Examples
    --------
    An array that is one pitch away from the described place:

    >>> import fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> believed = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
    >>> na = believed.moved(shift=(4e-3, 0.0)).directions()
    >>> sides = np.where(np.hypot(*na.T) < 0.2, 1, -1).astype(np.int8)
    >>> data = fs.Acquisition(optics, believed, np.ones((81, 8, 8)))
    >>> found = place_by_brightness(data, believed, sides)
    >>> bool(abs(found.offset[0] - 4e-3) < 1e-3 and abs(found.offset[1]) < 1e-3)
    True
    """
    center = acquisition.patch_center

    def wrong(shift: tuple[float, float]) -> int:
        return misplaced(acquisition.optics, sides, array.moved(shift=shift).directions(center))

    here = wrong((0.0, 0.0))
    if not here or len(array.positions) < 2:
        return array
    pitch = lattice_pitch(array)
    steps = np.arange(-REACH, REACH + STEP / 2, STEP) * pitch
    counts = {(float(y), float(x)): wrong((float(y), float(x))) for y in steps for x in steps}
    least = min(counts.values())
    if least >= here:
        return array
    y, x = np.mean([place for place, count in counts.items() if count == least], axis=0)
    middle = (float(y), float(x))
    if wrong(middle) > least:  # places that do not hang together: the nearest of them
        middle = min((place for place, count in counts.items() if count == least), key=lambda place: np.hypot(*place))
    return array.moved(shift=middle)


def lattice_pitch(array: LEDArray) -> float:
    """The median distance from an LED to the nearest other one."""
    from scipy.spatial import KDTree

    distances, _ = KDTree(array.positions).query(array.positions, k=2)
    return float(np.median(distances[:, 1]))
