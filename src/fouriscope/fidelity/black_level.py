"""A black level that cuts off negative noise: how much that lifts the mean of dark frames, and frames without it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from fouriscope.acquisition import Frames
from fouriscope.acquisition.masks import mask_of

# If fewer pixels than this have the least value, their mean is lifted by less than a hundredth of the noise. If more
# than that have it, the others are too few to tell how large the noise is.
FEWEST_CUT, MOST_CUT = 0.02, 0.9
# Cut noise is continuous: pixels lie just above the least value, within this many standard deviations of it. There
# must be this share of the expected pixels …
JUST_ABOVE, LEAST_THERE = 0.45, 0.5
# … with this many different values. Electrons that are counted one by one, and coarse steps of a converter, have one or
# two of them. They lift no mean.
FEWEST_LEVELS = 5


def noise_cut_off(frames: Frames, mask: Frames | NDArray[Any] | None, leds: list[int]) -> float:
    """The standard deviation of noise whose negative part the black level cuts off; 0 if it does not.

    A converter has no counts below 0. If the black level is less than about twice the read noise, the darkest pixels
    all have the least value m, and their mean is too large. It looks like light that comes from everywhere, and may
    be ten times as much as the light of a weak sample. The share f of pixels at m and the mean of a frame tell the
    rest: for normal noise around μ with u = (μ − m)/σ, f = Φ(−u) and the mean is m + σ (u Φ(u) + φ(u)).

    Parameters
    ----------
    frames, mask
        All frames, and which of their pixels count.
    leds
        Some dark-field frames. Of these, the darker half is asked: there, light hardly changes the shape of the noise.

    Examples
    --------
    >>> from fouriscope.acquisition import ArrayFrames
    >>> noise = np.random.default_rng(0).normal(0.001, 0.01, (8, 64, 64))
    >>> sigma = noise_cut_off(ArrayFrames(np.maximum(noise, 0)), None, list(range(8)))
    >>> bool(abs(sigma / 0.01 - 1) < 0.05), noise_cut_off(ArrayFrames(noise), None, list(range(8)))
    (True, 0.0)
    """
    pixels = [_counted(np.asarray(frames.frame(led), np.float64), mask, led) for led in leds]
    pixels = sorted((values for values in pixels if values.size), key=lambda values: float(values.mean()))
    found = [_noise(values) for values in pixels[: (len(pixels) + 1) // 2]]
    return float(np.median(found)) if found else 0.0


class LoweredFrames:
    """Frames without the light that a cut black level pretends.

    From each frame the same number is subtracted from all pixels, σ (φ(u) + u Φ(u) − u), where Φ(−u) is the share of
    its pixels that have its least value. So bright frames stay as they are.

    Parameters
    ----------
    frames, mask
        All frames, and which of their pixels count.
    sigma
        What :func:`noise_cut_off` found.
    """

    def __init__(self, frames: Frames, mask: Frames | NDArray[Any] | None, sigma: float) -> None:
        self.frames, self.mask, self.sigma = frames, mask, sigma

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.frames.shape

    def frame(self, index: int) -> NDArray[Any]:
        frame = self.frames.frame(index)
        values = _counted(frame, self.mask, index)
        share = _share_cut(values) if values.size else 0.0
        if share < FEWEST_CUT:
            return frame
        u = -float(ndtri(min(share, MOST_CUT)))
        lift = self.sigma * (_rectified(u) - u)
        return np.asarray(frame - np.asarray(lift, np.result_type(frame, np.float32)))


def _counted(frame: NDArray[Any], mask: Frames | NDArray[Any] | None, led: int) -> NDArray[Any]:
    return frame.reshape(-1) if mask is None else frame[mask_of(mask, led)]


def _share_cut(values: NDArray[Any]) -> float:
    return float(np.count_nonzero(values == values.min()) / values.size)


def _rectified(u: float) -> float:
    """E max(u + n, 0) for normal noise n of variance 1."""
    return u * float(ndtr(u)) + math.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)


def _noise(values: NDArray[np.float64]) -> float:
    """σ of the noise in the pixels of a dark frame, or 0 if it is not cut off."""
    share = _share_cut(values)
    if not FEWEST_CUT <= share <= MOST_CUT:
        return 0.0
    u, least = -float(ndtri(share)), float(values.min())
    sigma = (float(values.mean()) - least) / _rectified(u)
    there = values[(values > least) & (values <= least + JUST_ABOVE * sigma)]
    expected = values.size * (float(ndtr(JUST_ABOVE - u)) - share)
    is_continuous = there.size > LEAST_THERE * expected and np.unique(there).size >= FEWEST_LEVELS
    return sigma if is_continuous else 0.0
