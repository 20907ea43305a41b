"""One look at every frame: what is in it, and what that says about camera, storage and LEDs."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.frames import Frames
from fouriscope.acquisition.streaming import read_through
from fouriscope.errors import InvalidInputError

FloatArray = NDArray[np.float64]

_RIM = 0.1  # of NA: an LED this near to the pupil's edge may be bright or dark
_FULL_SCALES = tuple(2**bits - 1 for bits in range(8, 17))
_NEIGHBOURS = 8
_BLOCK = 16  # pixels along a side of the squares in which noise is measured
_QUIET = 0.1  # of the squares, which show no more than noise; and of the frames, which are the darkest


@dataclass(frozen=True, eq=False)
class Survey:
    """Statistics of the frames as they are stored (after an amplitude's square), one number a frame.

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
    twin
        Index of an earlier frame with the very same pixels, or −1.
    used_bits
        Of whole numbers: all pixels of all frames, or-ed together.
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
    twin: NDArray[np.int64]
    used_bits: int

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def bit_shift(self) -> int:
        """Trailing bits that no pixel of a 16-bit camera uses: 4 for 12 bits stored in the upper bits of 16."""
        if self.dtype.kind not in "iu" or self.dtype.itemsize != 2 or self.used_bits == 0:
            return 0
        return (self.used_bits & -self.used_bits).bit_length() - 1

    @property
    def offset(self) -> float:
        """Counts in the dark, of whole numbers alone: what the darkest places of the darkest frames have on average.

        Every pixel of a camera sits on the same pedestal, with noise around it, and of a frame whose mean is below a
        fifth of the brightest some part saw no light. Of frames too small for squares it is the lowest count. Without
        such frames nothing is known: 0.
        """
        darkest = self._darkest
        if self.dtype.kind not in "iu" or not len(darkest):
            return 0.0
        ground = self.ground[darkest]
        level = np.floor(np.median(self.low[darkest])) if np.isnan(ground).any() else np.median(ground)
        return float(f"{level:.4g}")

    @property
    def floor(self) -> float:
        """Counts above the offset up to which light cannot be told from noise, of whole numbers alone; 0 if unknown.

        Twice the noise of the darkest tenth of the frames, and one count at least, which is what a camera rounds to.
        """
        darkest = self._darkest
        if self.dtype.kind not in "iu" or not np.isfinite(self.noise[darkest]).any():
            return 0.0
        return max(float(1 << self.bit_shift), 2 * float(np.nanmedian(self.noise[darkest])))

    @property
    def _darkest(self) -> NDArray[np.int64]:
        """The darkest tenth of the frames that are dark at all; a frame of one value is no measurement."""
        dark = np.flatnonzero((self.mean < 0.2 * self.mean.max()) & (self.high > self.low))
        return dark[np.argsort(self.mean[dark], kind="stable")][: math.ceil(_QUIET * len(dark))]

    @property
    def saturation(self) -> float | None:
        """The level at which pixels pile up, or None.

        The largest value of all frames is one where a camera is full (2⁸−1 … 2¹⁶−1, shifted bits counted) or where
        more than four pixels lie exactly on it, and more than within the 2 % below it.
        """
        top = float(self.high.max())
        at = self.high == top
        if top <= 0:
            return None
        full = self.dtype.kind in "iu" and (int(top) >> self.bit_shift) in _FULL_SCALES and self.at_top[at].sum() >= 2
        piled = self.at_top[at] > np.maximum(self.near_top[at], max(4, 1e-4 * self.pixels))
        return top if full or bool(piled.any() and self.low.min() < top) else None


def survey_frames(frames: Frames, *, dtype: np.dtype[Any] | None = None) -> Survey:
    """Read every frame once. Memory is one frame.

    >>> from fouriscope.acquisition.frames import ArrayFrames
    >>> survey = survey_frames(ArrayFrames(np.arange(24, dtype=np.uint16).reshape(2, 3, 4) * 16))
    >>> survey.bit_shift, survey.median.tolist()
    (4, [88.0, 280.0])
    """
    count, rows, columns = frames.shape
    low, high, mean, median, noise, ground = np.zeros((6, count))
    broken, at_top, near_top, twin = np.zeros((4, count), np.int64)
    seen, used, kind = dict[bytes, int](), 0, dtype
    for i, frame in enumerate(read_through(frames)):
        image = np.ascontiguousarray(frame)
        kind = kind or image.dtype
        first = seen.setdefault(hashlib.blake2b(image.tobytes(), digest_size=16).digest(), i)
        twin[i] = first if first != i else -1
        if image.dtype.kind in "iu":
            used |= int(np.bitwise_or.reduce(image, axis=None))
        else:
            finite = np.isfinite(image)
            broken[i] = image.size - np.count_nonzero(finite)
            image = image[finite]
        noise[i], ground[i] = _squares(frame)
        if not image.size:
            continue
        top = image.max()
        low[i], high[i], mean[i], median[i] = image.min(), top, image.mean(dtype=np.float64), np.median(image)
        at_top[i] = np.count_nonzero(image == top)
        near_top[i] = np.count_nonzero(image >= high[i] - 0.02 * (high[i] - low[i])) - at_top[i]
    assert kind is not None
    return Survey(
        np.dtype(kind), rows * columns, low, high, mean, median, broken, at_top, near_top, noise, ground, twin, used
    )


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
    survey: Survey, sizes: FloatArray, na: float, exposures: FloatArray | None = None, offset: float | None = None
) -> float:
    """Counts of the empty bright field: the median over bright-field frames of their median, above the offset."""
    brightness = (survey.median - (survey.offset if offset is None else offset)) / _relative(exposures, len(survey))
    bright = (sizes <= (1 - _RIM) * na) & (survey.broken < survey.pixels)
    if not bright.any():
        bright = sizes <= sizes.min()
    level = float(np.median(brightness[bright]))
    if level <= 0:
        raise InvalidInputError(
            f"the bright-field frames are dark (median {level:g} above the offset): the LEDs are in another order, "
            "the wrong frames were read, or NA is too large"
        )
    return level


def bad_frames(
    survey: Survey, directions: FloatArray | None = None, na: float | None = None, exposures: FloatArray | None = None
) -> dict[int, str]:
    r"""Frames that should not count, with the reason.

    Always: frames with NaN, all zero, constant, or equal to an earlier one. With the ``directions`` of the LEDs and the
    objective's ``na`` also those of a brightness that their place rules out: a bright-field frame below a tenth of
    the others' median, a dark-field frame above half of it, or a dark-field frame ten times brighter or darker than the
    median of the eight with the most similar \|na\|: dark field falls steeply with the angle, and with little else.
    LEDs within 10 % of the pupil's edge may be either and are left alone.
    """
    found: dict[int, str] = {}
    for index in range(len(survey)):
        if survey.broken[index]:
            found[index] = f"{survey.broken[index]} pixels are NaN or infinite"
        elif survey.high[index] == survey.low[index]:
            value = survey.high[index]
            found[index] = "all pixels are zero" if value == 0 else f"all pixels are {value:g}"
        elif survey.twin[index] >= 0:
            found[index] = f"the same pixels as frame {survey.twin[index]}"
    if directions is None or na is None:
        return found
    sizes = np.hypot(directions[:, 0], directions[:, 1])
    brightness = (survey.mean - survey.offset) / _relative(exposures, len(survey))
    sound = np.array([index not in found for index in range(len(survey))])
    inside = sound & (sizes <= (1 - _RIM) * na)
    outside = np.flatnonzero(sound & (sizes >= (1 + _RIM) * na))
    reference = float(np.median(brightness[inside])) if inside.any() else None
    if reference is not None:
        for index in map(int, np.flatnonzero(inside & (brightness < 0.1 * reference))):
            found[index] = (
                f"dark ({brightness[index] / reference:.1%} of the bright field), its LED is inside the pupil"
            )
        for index in map(int, outside[brightness[outside] > 0.5 * reference]):
            found[index] = "as bright as the bright field, its LED is outside the pupil"
    for index in map(int, outside):
        others = outside[outside != index]
        if index in found or len(others) < _NEIGHBOURS:
            continue
        distance = np.abs(sizes[others] - sizes[index])
        near = brightness[others[np.argsort(distance, kind="stable")[:_NEIGHBOURS]]]
        middle = float(np.median(near))
        spread = 1.4826 * float(np.median(np.abs(near - middle)))
        if middle > 0 and abs(brightness[index] - middle) > 3 * spread:
            if brightness[index] > 10 * middle:
                found[index] = f"{brightness[index] / middle:.0f} times brighter than others of its angle"
            elif brightness[index] < 0.1 * middle:
                found[index] = f"dark ({brightness[index] / middle:.1%} of others of its angle): a dead LED?"
    return dict(sorted(found.items()))


def _relative(exposures: FloatArray | None, count: int) -> FloatArray:
    return np.ones(count) if exposures is None else exposures / exposures.min()
