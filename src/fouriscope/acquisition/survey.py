"""One look at every frame: what is in it, and what that says about camera, storage and LEDs."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.frames import Frames
from fouriscope.acquisition.levels import LevelCollector, Levels
from fouriscope.acquisition.pedestals import bright_level, is_dark, pedestal
from fouriscope.acquisition.streaming import read_through
from fouriscope.checks import door
from fouriscope.errors import InvalidInputError

FloatArray = NDArray[np.float64]

RIM = 0.1  # of NA: an LED this near to the pupil's edge may be bright or dark
_FULL_SCALES = tuple(2**bits - 1 for bits in range(8, 17))
_BLOCK = 16  # pixels along a side of the squares in which noise is measured
_QUIET = 0.1  # of the squares, which show no more than noise; and of the frames, which are the darkest


@dataclass(frozen=True, eq=False)
class Survey:
    """Statistics of the stored frames, after their power if they are not intensities; one number per frame.

    Attributes
    ----------
    dtype
        Type of the stored numbers.
    pixels
        Of one frame.
    low, high, mean, median
        Of the finite pixels: minimum, maximum, mean and median.
    broken
        Pixels that are NaN or infinite.
    at_top, near_top
        Pixels at the frame's maximum, and those below it but within 2 % of the frame's range.
    noise, ground
        Of the squares of 16 × 16 pixels: the standard deviation within the quietest tenth, and the mean of the darkest
        tenth. NaN of smaller frames.
    pedestal
        The 2 % quantile of the means of 3 × 3 pixels (:func:`fouriscope.acquisition.pedestals.pedestal`).
    twin
        Index of an earlier frame with the very same pixels, or −1.
    used_bits
        Of whole numbers: all pixels of all frames, or-ed together.
    levels
        Of fractions: whether they are whole numbers in other units, or a power of such.
    """

    dtype: np.dtype[Any]
    pixels: int
    low: FloatArray
    high: FloatArray
    mean: FloatArray
    median: FloatArray
    broken: NDArray[np.int64]
    at_top: NDArray[np.int64]
    near_top: NDArray[np.int64]
    noise: FloatArray
    ground: FloatArray
    pedestal: FloatArray
    twin: NDArray[np.int64]
    used_bits: int
    levels: Levels | None = None

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def bit_shift(self) -> int:
        """Trailing bits that no pixel of a 16-bit camera uses: 4 for 12 bits stored in the upper bits of 16."""
        if self.dtype.kind not in "iu" or self.dtype.itemsize != 2 or self.used_bits == 0:
            return 0
        return (self.used_bits & -self.used_bits).bit_length() - 1

    @property
    def power(self) -> float:
        """p of stored = (unit · n)^p with whole numbers n, where the levels of fractions show it; 1 otherwise."""
        return 1.0 if self.levels is None else self.levels.power

    @property
    def unit(self) -> float:
        """One count, in the numbers that are stored: 1 shifted by the unused bits, or 1/255 of a frame divided by 255.

        0 of fractions whose levels are no multiples of anything.
        """
        if self.levels is not None:
            return self.levels.unit if self.levels.power == 1 else 0.0
        return float(1 << self.bit_shift) if self.dtype.kind in "iu" else 0.0

    def dark(
        self, exposures: FloatArray | None = None, offset: float | None = None, outside: NDArray[np.bool_] | None = None
    ) -> NDArray[np.bool_]:
        """Which frames are dark field, by their own brightness first, for directions may be wrong; ``outside`` says
        whose LED is described well outside the pupil."""
        above = self.offset if offset is None else offset
        relative = relative_exposures(exposures, len(self))
        mean, level = (self.mean - above) / relative, (self.pedestal - above) / relative
        sound = (self.broken == 0) & (self.high > self.low)
        if not sound.any():
            return np.zeros(len(self), bool)
        described = False if outside is None else outside
        return np.asarray(sound & is_dark(mean, level, bright_level(mean[sound]), described))

    @property
    def offset(self) -> float:
        """Counts in the dark, for whole numbers only: the average of the darkest places of the darkest frames.

        Every pixel of a camera has the same pedestal, with noise around it. In a frame whose mean is below a fifth of
        the brightest, some part saw no light. For frames too small for squares it is the lowest count. Without such
        frames nothing is known: 0.
        """
        darkest = self._darkest
        if not self.unit or not len(darkest):
            return 0.0
        ground = self.ground[darkest]
        if np.isnan(ground).any():
            return float(np.floor(np.median(self.low[darkest]) / self.unit) * self.unit)
        return float(f"{np.median(ground):.4g}")

    @property
    def floor(self) -> float:
        """Counts above the offset up to which light cannot be told from noise, for whole numbers only; 0 if unknown.

        Twice the noise of the darkest tenth of the frames, and at least one count, to which a camera rounds.
        """
        darkest = self._darkest
        if not self.unit or not np.isfinite(self.noise[darkest]).any():
            return 0.0
        return max(self.unit, 2 * float(np.nanmedian(self.noise[darkest])))

    @property
    def _darkest(self) -> NDArray[np.int64]:
        """The darkest tenth of the frames that are dark at all; a frame of one value is no measurement."""
        dark = np.flatnonzero((self.mean < 0.2 * self.mean.max()) & (self.high > self.low))
        return dark[np.argsort(self.mean[dark], kind="stable")][: math.ceil(_QUIET * len(dark))]

    @property
    def saturation(self) -> float | None:
        """The level at which pixels pile up, or None.

        The largest value of all frames is such a level if it is the full scale of a camera (2⁸−1 … 2¹⁶−1, shifted bits
        counted), or if more than four pixels have exactly this value, and more than lie within the 2 % below it.
        """
        top = float(self.high.max())
        at = self.high == top
        if top <= 0:
            return None
        full = self.unit > 0 and round(top / self.unit, 2) in _FULL_SCALES and self.at_top[at].sum() >= 2
        piled = self.at_top[at] > np.maximum(self.near_top[at], max(4, 1e-4 * self.pixels))
        return top if full or bool(piled.any() and self.low.min() < top) else None


@door
def survey_frames(frames: Frames, *, dtype: np.dtype[Any] | None = None) -> Survey:
    """Read every frame once. Memory is one frame.

    Parameters
    ----------
    frames
        The stored frames.
    dtype
        Type of the stored numbers. By default, that of the first frame.

    Examples
    --------
    >>> from fouriscope.acquisition.frames import ArrayFrames
    >>> survey = survey_frames(ArrayFrames(np.arange(24, dtype=np.uint16).reshape(2, 3, 4) * 16))
    >>> survey.bit_shift, survey.median.tolist()
    (4, [88.0, 280.0])
    """
    count, rows, columns = frames.shape
    low, high, mean, median, noise, ground, lift = np.zeros((7, count))
    broken, at_top, near_top, twin = np.zeros((4, count), np.int64)
    seen, used, kind, levels = dict[bytes, int](), 0, dtype, LevelCollector()
    for i, frame in enumerate(read_through(frames)):
        image = np.ascontiguousarray(frame)
        kind = kind or image.dtype
        first = seen.setdefault(hashlib.blake2b(image.tobytes(), digest_size=16).digest(), i)
        twin[i] = first if first != i else -1
        if image.dtype.kind in "iu":
            used |= int(np.bitwise_or.reduce(image, axis=None))
        else:
            levels.add(image)
            finite = np.isfinite(image)
            broken[i] = image.size - np.count_nonzero(finite)
            image = image[finite]
        noise[i], ground[i] = _squares(frame)
        lift[i] = pedestal(frame)
        if not image.size:
            continue
        top = image.max()
        low[i], high[i], mean[i], median[i] = image.min(), top, image.mean(dtype=np.float64), np.median(image)
        at_top[i] = np.count_nonzero(image == top)
        near_top[i] = np.count_nonzero(image >= high[i] - 0.02 * (high[i] - low[i])) - at_top[i]
    assert kind is not None
    statistics = (low, high, mean, median, broken, at_top, near_top, noise, ground, lift, twin)
    return Survey(np.dtype(kind), rows * columns, *statistics, used, levels.found())


def _squares(frame: NDArray[Any]) -> tuple[float, float]:
    """(noise, ground) of one frame; squares with broken pixels do not count."""
    rows, columns = (size // _BLOCK for size in frame.shape)
    if not rows or not columns:
        return np.nan, np.nan
    squares = frame[: rows * _BLOCK, : columns * _BLOCK].reshape(rows, _BLOCK, columns, _BLOCK)
    squares = squares.astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):  # infinite pixels; such squares are left out
        mean = squares.mean(axis=(1, 3), keepdims=True)
        spread = np.square(squares - mean, out=squares).mean(axis=(1, 3))
    known = np.isfinite(spread)
    if not known.any():
        return np.nan, np.nan
    darkest = np.quantile(mean[:, 0, :, 0][known], _QUIET)
    return float(np.sqrt(np.quantile(spread[known], _QUIET))), float(darkest)


def empty_bright_field(
    survey: Survey,
    sizes: FloatArray,
    na: float,
    exposures: FloatArray | None = None,
    offset: float | None = None,
    levels: FloatArray | float = 1.0,
) -> float:
    """Counts of the empty bright field: the median over bright-field frames of their median, above the offset.

    ``levels`` are the brightness of patterns beside one LED.
    """
    exposed = relative_exposures(exposures, len(survey)) * levels
    brightness = (survey.median - (survey.offset if offset is None else offset)) / exposed
    bright = (sizes <= (1 - RIM) * na) & (survey.broken < survey.pixels)
    if not bright.any():
        bright = sizes <= sizes.min()
    level = float(np.median(brightness[bright]))
    if level <= 0:
        raise InvalidInputError(
            f"the bright-field frames are dark (median {level:g} above the offset): the LEDs are in another order, "
            "the wrong frames were read, or NA is too large"
        )
    return level


def relative_exposures(exposures: FloatArray | None, count: int) -> FloatArray:
    return np.ones(count) if exposures is None else exposures / exposures.min()
