"""From what the camera stored to intensity in units of the empty bright field, one frame at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriscope.acquisition.frames import Frames
from fouriscope.acquisition.pedestals import automatic_background
from fouriscope.acquisition.sequence import FrameSequence
from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class Corrections:
    """What is done to each frame, in this order. What is not given is not done.

    1. c = stored ≫ ``bit_shift``, for a camera that stores 12 bits in the upper bits of 16
    2. c = c^(1/``power``), if the numbers are a power of the intensity; ``amplitude`` is a power of 1/2
    3. c = c − ``offset`` − ``dark``
    4. c = c / (``flat`` / ``flat_level``)
    5. c = c · min(``exposures``) / ``exposures[i]``: everything in counts of the shortest exposure
    6. c = c − ``background``, in dark-field frames only, unless there is one number per frame
    7. c = √(c² − ``floor``²), and 0 below it, in dark-field frames only
    8. y = c / ``gain``

    Without a floor, negative values are kept: they are noise around zero, and to clip them would brighten the dark
    field.

    Parameters
    ----------
    bit_shift
        Unused low bits of the stored numbers.
    power, amplitude
        p in stored = intensity^p; ``amplitude`` means 1/2.
    offset, dark, flat
        Counts in the dark (a number, a frame of them, or both), and the image of an empty, evenly lit field.
    flat_level
        The value of ``flat`` that leaves counts as they are: its mean, unless given. For a region of interest it is
        the mean over whole frames, so that regions side by side have the same brightness.
    exposures
        One per frame, in any unit.
    background
        One number per frame, subtracted as given; one number, subtracted in dark field (``dark_field``); or "auto":
        the frame's own pedestal, the 2 % quantile of its 3 × 3 means, if frame and pedestal are dark in units of
        ``gain`` (:mod:`fouriscope.acquisition.pedestals`). Stray light lifts the whole frame, so its darkest places
        hold mostly stray light.
    floor
        Counts of a frame's own exposure, after ``bit_shift``, up to which light cannot be told from the camera's noise;
        twice its standard deviation is usual. The amplitude loss takes the root of every count, so noise around zero
        looks like light that is everywhere, and dark pixels far outnumber bright ones. What is well above the floor
        hardly changes.
    dark_field
        One bool per frame: where a single ``background`` and the ``floor`` apply. All frames unless given.
    gain
        Counts of the empty bright field.

    Examples
    --------
    >>> from fouriscope.acquisition.frames import ArrayFrames
    >>> stored = np.full((2, 4, 4), 1632, np.uint16)  # 102 of a 12-bit camera, in the upper bits
    >>> corrected = CorrectedFrames(ArrayFrames(stored), Corrections(bit_shift=4, offset=2, exposures=[1, 4], gain=50))
    >>> [float(corrected.frame(i)[0, 0]) for i in range(2)]
    [2.0, 0.5]
    """

    bit_shift: int = 0
    amplitude: bool = False
    power: float = 1.0
    offset: float = 0.0
    dark: ArrayLike | None = None
    flat: ArrayLike | None = None
    flat_level: float | None = None
    exposures: ArrayLike | None = None
    background: ArrayLike | Literal["auto"] | None = None
    floor: float = 0.0
    dark_field: ArrayLike | None = None
    gain: float = 1.0

    @property
    def exponent(self) -> float:
        """p in stored = intensity^p."""
        return 0.5 if self.amplitude else self.power


@door_class
class CorrectedFrames(FrameSequence):
    """``frames`` after :class:`Corrections`, computed when a frame is needed, in single precision unless stored double.

    Attributes
    ----------
    frames, corrections
        What it was made of.
    """

    def __init__(self, frames: Frames, corrections: Corrections) -> None:
        self.frames, self.corrections = frames, corrections
        count, *shape = frames.shape
        c = corrections
        if not (np.isfinite(c.gain) and c.gain > 0 and np.isfinite(c.offset)):
            raise InvalidInputError(f"gain must be positive and offset finite, got gain {c.gain} and offset {c.offset}")
        if not (np.isfinite(c.floor) and c.floor >= 0):
            raise InvalidInputError(f"floor must be a number of counts ≥ 0, got {c.floor}")
        if not (np.isfinite(c.power) and c.power > 0):
            raise InvalidInputError(f"power must be positive, such as 0.5 for stored amplitudes, got {c.power}")
        if c.amplitude and c.power != 1:
            raise InvalidInputError(f"amplitude means power = 0.5, but power = {c.power:g} is given too: give one")
        if not 0 <= c.bit_shift <= 15:
            raise InvalidInputError(f"bit_shift must be from 0 to 15 bits, got {c.bit_shift}")
        self._dark = _checked("dark", c.dark, tuple(shape))
        self._flat = _checked("flat", c.flat, tuple(shape))
        if self._flat is not None:
            if not (self._flat > 0).all():
                raise InvalidInputError("flat must be positive everywhere; mask the pixels that see no light")
            level = self._flat.mean() if c.flat_level is None else c.flat_level
            if not (np.isfinite(level) and level > 0):
                raise InvalidInputError(f"flat_level must be positive, got {level}")
            self._flat = self._flat / level
        self._exposures = _checked("exposures", c.exposures, (count,))
        if self._exposures is not None and not (self._exposures > 0).all():
            raise InvalidInputError(f"exposures must be positive, but the shortest is {self._exposures.min():g}")
        self._automatic = isinstance(c.background, str)
        if self._automatic and c.background != "auto":
            raise InvalidInputError(f"background must be 'auto', a number, or one per frame, got {c.background!r}")
        dark_field = _checked("dark_field", c.dark_field, (count,))
        self._dark_field = np.ones(count, bool) if dark_field is None else dark_field != 0
        self._background = None
        if c.background is not None and not self._automatic:
            levels = np.asarray(c.background, np.float64)
            self._background = _checked(
                "background", levels * self._dark_field if levels.ndim == 0 else levels, (count,)
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.frames.shape

    def frame(self, index: int) -> NDArray[Any]:
        stored, c = self.frames.frame(index), self.corrections
        if c.bit_shift:
            if stored.dtype.kind not in "iu":
                raise InvalidInputError(
                    f"bit_shift = {c.bit_shift} needs whole numbers, but the frames are {stored.dtype}"
                )
            stored = stored >> c.bit_shift
        double = stored.dtype.newbyteorder("=") == np.float64
        image: NDArray[Any] = stored.astype(np.float64 if double else np.float32)
        if c.exponent == 0.5:
            image *= image
        elif c.exponent != 1:
            with np.errstate(over="ignore", invalid="ignore"):  # a pixel that is not finite is reported with its frame
                image = np.copysign(np.abs(image) ** (1 / c.exponent), image)  # noise around zero stays around zero
        if c.offset:
            image -= c.offset
        if self._dark is not None:
            image -= self._dark
        if self._flat is not None:
            image /= self._flat
        shortened = 1.0 if self._exposures is None else float(self._exposures.min() / self._exposures[index])
        if shortened != 1:
            image *= shortened
        if self._automatic:
            image -= automatic_background(image, c.gain)
        elif self._background is not None:
            image -= self._background[index]
        if c.floor and self._dark_field[index]:
            np.maximum(image, 0, out=image)
            image *= image
            image -= (c.floor * shortened) ** 2
            np.sqrt(np.maximum(image, 0, out=image), out=image)
        image /= c.gain
        return image


def _checked(name: str, values: ArrayLike | None, shape: tuple[int, ...]) -> NDArray[np.float64] | None:
    if values is None:
        return None
    array = np.asarray(values, np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise InvalidInputError(
            f"{name} must be finite and of shape {shape}, like the frames, got shape {array.shape}"
            + ("" if np.isfinite(array).all() else " with NaN or infinite values")
        )
    return array
