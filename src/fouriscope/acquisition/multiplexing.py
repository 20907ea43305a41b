"""Multiplexed frames from sequential ones: light of different LEDs does not interfere, so their frames add up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriscope.acquisition.acquisition import Acquisition
from fouriscope.acquisition.frames import Frames
from fouriscope.acquisition.masks import mask_of
from fouriscope.acquisition.sequence import FrameSequence
from fouriscope.checks import door
from fouriscope.errors import InvalidInputError
from fouriscope.optics.patterns import Multiplexed, checked_patterns


class SummedFrames(FrameSequence):
    """Frame j is Σ_m patterns[j, m] · frame m of ``frames``, added up when it is needed.

    >>> from fouriscope.acquisition.frames import ArrayFrames
    >>> sums = SummedFrames(ArrayFrames(np.arange(12.0).reshape(3, 2, 2)), np.array([[1, 0, 0], [0, 1, 2]]))
    >>> sums.frame(1).tolist()
    [[20.0, 23.0], [26.0, 29.0]]
    """

    def __init__(self, frames: Frames, patterns: NDArray[np.float64]) -> None:
        self.frames, self.patterns = frames, patterns

    @property
    def shape(self) -> tuple[int, int, int]:
        _, rows, columns = self.frames.shape
        return len(self.patterns), rows, columns

    def frame(self, index: int) -> NDArray[Any]:
        total = np.zeros(self.shape[1:])
        for led in np.flatnonzero(self.patterns[index]):
            total += self.patterns[index, led] * self.frames.frame(int(led))
        return total.astype(np.float32)


class CommonMasks(FrameSequence):
    """A pixel of a sum counts where it counts in every frame that was added."""

    def __init__(self, masks: Frames | NDArray[Any], patterns: NDArray[np.float64]) -> None:
        self.masks, self.patterns = masks, patterns

    @property
    def shape(self) -> tuple[int, int, int]:
        rows, columns = self.masks.shape[-2:]
        return len(self.patterns), rows, columns

    def frame(self, index: int) -> NDArray[np.bool_]:
        leds = np.flatnonzero(self.patterns[index])
        return np.asarray(np.logical_and.reduce([mask_of(self.masks, int(led)) for led in leds]))


@door
def multiplex(data: Acquisition, patterns: ArrayLike) -> Acquisition:
    """The acquisition that ``patterns`` would have given, made by adding frames of one LED each.

    Adding real frames gives real multiplexed frames, except that they have the noise of several read-outs. If the data
    have gains (``data.gains``), these become part of the patterns' weights.

    Parameters
    ----------
    data
        An acquisition with one LED per frame.
    patterns
        (frames, LEDs) weights: how bright each LED is in each new frame.

    Examples
    --------
    >>> import fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
    >>> data = fs.Acquisition(optics, leds, np.ones((81, 16, 16), np.float32))
    >>> fs.multiplex(data, fs.random_patterns(leds, optics, together=4))
    Acquisition: 48 frames of 16 × 16, NA 0.2, 81 LEDs up to NA 0.308, 513 nm, pixel 0.798 µm
    """
    if isinstance(data.illumination, Multiplexed):
        raise InvalidInputError("data must have one LED per frame, but these frames are already multiplexed")
    matrix = checked_patterns(patterns, len(data))
    left_out = np.flatnonzero((matrix > 0).any(axis=0) & (data.frame_weights == 0))
    if len(left_out):
        raise InvalidInputError(
            f"patterns use LED {left_out[0]}, whose frame is left out (weight 0); set its column to 0"
        )
    gains = np.ones(len(data)) if data.gains is None else np.asarray(data.gains, np.float64)
    own_masks = data.mask is not None and len(data.mask.shape) == 3
    return replace(
        data,
        illumination=Multiplexed(data.illumination, matrix * gains),
        frames=SummedFrames(data.frames, matrix),
        weights=None,
        gains=None,
        mask=CommonMasks(data.mask, matrix) if own_masks and data.mask is not None else data.mask,
    )
