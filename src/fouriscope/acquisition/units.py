"""Whether frames are in units of the empty bright field, and what that unit is in counts."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from fouriscope.acquisition.corrections import CorrectedFrames, Corrections
from fouriscope.acquisition.frames import Frames
from fouriscope.acquisition.survey import RIM
from fouriscope.errors import InvalidInputError, UnitsWarning
from fouriscope.optics.patterns import frame_levels

if TYPE_CHECKING:
    from fouriscope.acquisition.acquisition import Acquisition

# Bright-field frames that are looked at: their medians agree well enough, and frames on disk are slow to read.
LOOKED_AT = 9
# A sample may take most of the light and a guess of the unit may be poor. Beyond this factor it is neither.
FACTOR = 20.0


def bright_field_level(data: Acquisition, frames: Frames) -> float | None:
    """The brightness of the empty field in ``frames`` of ``data``: the median of the medians of bright-field ones.

    Up to nine frames well inside the pupil are read, the central ones first. A frame that several LEDs lit counts as
    one of a single LED, and is divided by its gain. Frames of weight 0 and pixels that are not finite do not count.
    None if there is nothing to look at.

    >>> from fouriscope.acquisition import Acquisition
    >>> from fouriscope.optics import LEDArray, Optics
    >>> optics = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = LEDArray.square(3, pitch=4e-3, height=70e-3)
    >>> data = Acquisition(optics, leds, np.full((9, 8, 8), 4000, np.uint16))
    >>> bright_field_level(data, data.frames)
    4000.0
    """
    gains = 1.0 if data.gains is None else np.asarray(data.gains)
    levels = frame_levels(data.illumination, data.optics, data.patch_center) * gains
    sizes = data.illumination_na
    counts = (sizes <= (1 - RIM) * data.optics.na) & (data.frame_weights > 0)
    inside = np.argsort(np.where(counts, sizes, np.inf), kind="stable")[: np.count_nonzero(counts)]
    found = []
    for index in inside[:LOOKED_AT].tolist():
        pixels = frames.frame(index)
        finite = pixels[np.isfinite(pixels)]
        if finite.size:
            found.append(float(np.median(finite)) / levels[index])
    return float(np.median(found)) if found else None


def frames_of_counts(
    data: Acquisition, dark: ArrayLike, exposures: ArrayLike | None, bright_field: float | None
) -> CorrectedFrames:
    """The frames of ``data``, which are counts, in units of the bright field: :meth:`Acquisition.from_counts`."""
    level = np.asarray(dark, np.float64)
    offset, frame = (float(level), None) if level.ndim == 0 else (0.0, level)
    corrections = Corrections(offset=offset, dark=frame, exposures=exposures)
    if bright_field is None:
        bright_field = bright_field_level(data, CorrectedFrames(data.frames, corrections))
    if bright_field is None or not bright_field > 0:
        found = "no frame is bright field" if bright_field is None else f"it is {bright_field:g} above dark"
        raise InvalidInputError(
            f"bright_field must be the counts of the empty field, above 0, but {found}: give the number, or look at "
            "dark, NA and the order of the LEDs"
        )
    return CorrectedFrames(data.frames, replace(corrections, gain=bright_field))


def warn_of_counts(data: Acquisition, *, stacklevel: int) -> None:
    """Warn, as ``stacklevel`` callers above this one, if the bright field is far from 1, as that of counts is."""
    level = bright_field_level(data, data.frames)
    if level is None or level == 0 or 1 / FACTOR <= level <= FACTOR:  # empty frames are told of when all are read
        return
    warnings.warn(
        "frames must be in units of the empty bright field, so that the median of a bright-field frame is near 1; "
        f"here it is {level:.4g} ({data.frames.frame(0).dtype}). If these are camera counts, make the acquisition with "
        "Acquisition.from_counts(optics, illumination, counts, dark=…); otherwise divide the frames by the value of "
        "the empty bright field",
        UnitsWarning,
        stacklevel=stacklevel + 1,
    )
