"""The stray light that lies over a whole frame, and which frames are dark enough to subtract it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

QUANTILE = 0.02  # of the 3 × 3 means: low enough for a sample that fills the frame, too high for one dead pixel
DARK_MEAN = 0.3  # of the bright field
DARK_IF_OUTSIDE = 0.5  # the same for frames whose LED is described well outside the pupil
DARK_PEDESTAL = 0.1  # of the bright field: light that is everywhere and stronger than this came through the pupil


def pedestal(image: NDArray[Any]) -> float:
    """The 2 % quantile of the means of 3 × 3 pixels: stray light lifts the whole frame, its darkest places too.

    The means reduce the noise, which would put the quantile of single pixels below the average of a dark place. Pixels
    that are NaN or infinite count as the median of the others.

    >>> image = np.full((64, 64), 3.0)
    >>> image[10:50, 10:50] = 100.0
    >>> round(pedestal(image), 9)
    3.0
    """
    from scipy.ndimage import uniform_filter

    image = np.asarray(image)
    image = image.astype(np.float64 if image.dtype.itemsize > 4 else np.float32)
    finite = np.isfinite(image)
    if not finite.all():
        if not finite.any():
            return float("nan")
        image[~finite] = np.median(image[finite])
    return float(np.quantile(uniform_filter(image, 3), QUANTILE))


def is_dark(mean: ArrayLike, pedestals: ArrayLike, bright: float, outside: ArrayLike = False) -> NDArray[np.bool_]:
    """Whether frames are dark field, first by their own light, because the description of the LEDs may be wrong.

    Both the mean and the pedestal must be well below ``bright``, the mean of the bright field, all above the offset. An
    LED at the edge of the pupil gives a frame that is dim as a whole but still bright field: its pedestal shows it.
    If the LED is described well ``outside`` the pupil, half of the mean is enough: a dark field that was exposed ten
    times longer has stray light as bright as a dim bright field.
    """
    level = np.asarray(mean)
    dim = (level < DARK_MEAN * bright) & (np.asarray(pedestals) < DARK_PEDESTAL * bright)
    return np.asarray(dim | (np.asarray(outside) & (level < DARK_IF_OUTSIDE * bright)), np.bool_)


def bright_level(mean: NDArray[np.float64]) -> float:
    """The brightness of the bright field, from the means alone: the median of those above half of the second brightest.

    The brightest is not used, because one LED that is far too bright would make all others look dark.

    >>> bright_level(np.array([900.0, 100.0, 104.0, 96.0, 3.0, 2.0, 2.0]))
    102.0
    """
    if len(mean) < 2:
        return 0.0
    second = np.sort(mean)[-2]
    return float(np.median(mean[mean >= 0.5 * second]))


def automatic_background(image: NDArray[Any], gain: float) -> float:
    """What ``background = "auto"`` subtracts: the pedestal of an image in counts above the offset, 0 if it is bright.

    ``gain`` is the empty bright field in the same counts.
    """
    level = pedestal(image)
    return max(level, 0.0) if is_dark(np.nanmean(image), level, gain) else 0.0
