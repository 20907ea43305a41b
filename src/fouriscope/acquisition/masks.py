"""Pixels that do not count: saturated, dead and hot ones are masked, never clipped or filled in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.frames import Frames
from fouriscope.acquisition.sequence import FrameSequence
from fouriscope.acquisition.streaming import announce_all
from fouriscope.checks import door, door_class
from fouriscope.errors import InvalidInputError

BoolArray = NDArray[np.bool_]

_SAMPLED_FRAMES = 32
_OUTLIER = 8.0  # in robust standard deviations


@door_class
class FrameMasks(FrameSequence):
    """Masks on demand: ``frame(i)`` is True where a pixel of frame i counts.

    Parameters
    ----------
    frames
        In the counts in which ``saturation`` is given: before any offset or gain.
    saturation
        Pixels at or above this level are full wells; their true value is unknown.
    good
        (rows, columns), nonzero where the camera's pixel works: a mask of the user's, or :func:`find_bad_pixels`.

    Examples
    --------
    >>> from fouriscope.acquisition.frames import ArrayFrames
    >>> stack = np.array([[[3, 255], [4, 5]], [[1, 2], [3, 4]]], np.uint8)
    >>> masks = FrameMasks(ArrayFrames(stack), saturation=255)
    >>> masks.frame(0).tolist(), bool(masks.frame(1).all())
    ([[True, False], [True, True]], True)
    >>> np.asarray(masks).shape
    (2, 2, 2)
    """

    def __init__(self, frames: Frames, *, saturation: float | None = None, good: NDArray[Any] | None = None) -> None:
        if good is not None and np.shape(good) not in (frames.shape[1:], frames.shape):
            raise InvalidInputError(
                f"good: a mask must have the shape {frames.shape[1:]} or {frames.shape}, got {np.shape(good)}"
            )
        self.frames, self.saturation = frames, saturation
        self.good = None if good is None else np.asarray(good) != 0

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.frames.shape

    def frame(self, index: int) -> BoolArray:
        """(rows, columns): True where a pixel counts."""
        if self.good is None:
            good: BoolArray = np.ones(self.shape[1:], bool)
        else:
            good = self.good[index] if self.good.ndim == 3 else self.good
        if self.saturation is None:
            return good
        return np.asarray(good & (self.frames.frame(index) < self.saturation))


def mask_of(masks: Frames | NDArray[Any], index: int) -> BoolArray:
    """(rows, columns), True where a pixel of frame ``index`` counts, from an array or from masks on demand.

    >>> mask_of(np.array([[[1, 0]], [[1, 1]]]), 0).tolist(), mask_of(np.array([[1, 0]]), 7).tolist()
    ([[True, False]], [[True, False]])
    """
    if len(masks.shape) == 2:
        return np.asarray(np.asarray(masks) != 0)
    mask = masks[index] if isinstance(masks, np.ndarray) else masks.frame(index)
    return np.asarray(mask != 0)


def simplified_masks(masks: FrameMasks) -> FrameMasks | BoolArray | None:
    """The masks in their simplest form: None if every pixel counts, (rows, columns) if all frames agree.

    Frames are read until two of them differ. Then the masks themselves are returned, to be used one by one.

    Parameters
    ----------
    masks
        One mask per frame, found when it is needed.
    """
    if masks.saturation is None:
        return masks.good
    first = masks.frame(0)
    announce_all(masks.frames)
    for index in range(1, masks.shape[0]):
        if not np.array_equal(masks.frame(index), first):
            return masks
    return None if first.all() else first


@door
def find_bad_pixels(frames: Frames) -> BoolArray:
    """(rows, columns), True where the camera's pixel works.

    Up to 32 frames, spread over the stack, are used. A pixel is *stuck* (dead, or always full) if the range of its
    values is less than a tenth of the median pixel's. It is *hot* if it exceeds the median of its 3 × 3 neighbours by
    more than 8 robust standard deviations, and 8 counts, in nine of ten of the darkest quarter of the frames. Bright
    spots of a sample move with the LED; defects of the camera stay where they are.

    Parameters
    ----------
    frames
        The stored frames.
    """
    from scipy.ndimage import median_filter

    count = frames.shape[0]
    chosen = np.unique(np.linspace(0, count - 1, min(count, _SAMPLED_FRAMES)).astype(int)).tolist()
    brightness = [float(np.mean(frames.frame(index))) for index in chosen]
    darker = [index for index, mean in zip(chosen, brightness, strict=True) if mean <= np.quantile(brightness, 0.25)]
    low, high = np.full(frames.shape[1:], np.inf), np.full(frames.shape[1:], -np.inf)
    hot = np.zeros(frames.shape[1:], np.int64)
    for index in chosen:
        stored = frames.frame(index)
        image = np.asarray(stored, np.float64)
        np.fmin(low, image, out=low)
        np.fmax(high, image, out=high)
        if index in darker:
            excess = image - median_filter(image, size=3, mode="nearest")
            least = 1.0 if stored.dtype.kind in "iu" else 1e-6 * float(np.ptp(image))  # of frames that are flat
            spread = max(1.4826 * float(np.median(np.abs(excess))), least)
            hot += excess > _OUTLIER * spread
    span = high - low
    stuck = (span < 0.1 * np.median(span)) & (count > 3)
    return np.asarray(~stuck & (hot < max(2, 0.9 * len(darker))))
