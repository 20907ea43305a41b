"""What the frames themselves say about how they should be corrected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.survey import RIM, Survey, empty_bright_field, relative_exposures
from fouriscope.acquisition.suspects import bad_frames

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Suggestion:
    """A key of [frames], the value that the frames suggest for it, and why, in a few words."""

    key: str
    value: Any
    why: str


def suggest(
    survey: Survey,
    directions: FloatArray | None = None,
    na: float | None = None,
    exposures: FloatArray | None = None,
    offset: float | None = None,
    levels: FloatArray | float = 1.0,
) -> list[Suggestion]:
    """Bit shift, power, offset, saturation, background, gain and frames to reject, as far as the frames show them.

    Levels are in counts after the bit shift, as in [frames]. If the frames are a power of intensity, only the power and
    the frames to reject are suggested: survey the frames again with the power. Without ``directions`` and ``na`` the
    gain is unknown; the frames themselves show which are dark and which are no measurements. ``offset`` is that of a
    dark frame, if there is one. ``levels`` are the brightness of patterns compared with one LED.

    >>> from fouriscope.acquisition.frames import ArrayFrames
    >>> from fouriscope.acquisition.survey import survey_frames
    >>> bright, dark = np.arange(500, 564).reshape(8, 8), np.arange(3, 67).reshape(8, 8)
    >>> stack = np.array([bright, dark, bright], np.uint16) << 4
    >>> [(found.key, found.value) for found in suggest(survey_frames(ArrayFrames(stack)))]
    [('bit_shift', 4), ('offset', 3.0), ('background', [0.0, 3.927, 0.0]), ('reject', [2])]
    """
    found = []
    unit = 1 << survey.bit_shift
    if unit > 1:
        bits = 8 * survey.dtype.itemsize
        why = f"{bits - survey.bit_shift} bits stored in {bits}, shifted by {survey.bit_shift}"
        found.append(Suggestion("bit_shift", survey.bit_shift, why))
    if survey.power != 1:
        why = f"the levels are whole numbers to the power {survey.power:.4g}"
        return [*found, Suggestion("power", survey.power, why), *_rejections(survey)]
    if survey.offset > 0:
        found.append(
            Suggestion("offset", survey.offset / unit, "mean counts in the darkest places of the darkest frames")
        )
    if survey.saturation is not None:
        full = survey.high == survey.saturation
        share = survey.at_top[full].sum() / (survey.pixels * full.sum())
        why = f"{share:.2%} of the pixels of {_frames(int(full.sum()))} are full"
        found.append(Suggestion("saturation", survey.saturation / unit, why))
    known = None if offset is None else offset * unit
    outside = None if directions is None or na is None else np.hypot(*directions.T) > (1 + RIM) * na
    background = [float(f"{level:.4g}") for level in veil(survey, exposures, known, outside) / unit]
    # Sums of rounded means leave some 1e-7 of the brightest pixel, which is no light.
    if max(background) > 1e-6 * survey.high.max() / unit:
        why = "stray light in dark frames, the 2 % quantile of their 3 × 3 means; 0 in bright frames"
        found.append(Suggestion("background", background, why))
    if directions is not None and na is not None:
        sizes = np.hypot(directions[:, 0], directions[:, 1])
        level = empty_bright_field(survey, sizes, na, exposures, known, levels) / unit
        found.append(
            Suggestion("gain", float(f"{level:.4g}"), "median of the bright field: intensities are in units of it")
        )
    return [*found, *_rejections(survey)]


def veil(
    survey: Survey,
    exposures: FloatArray | None = None,
    offset: float | None = None,
    outside: NDArray[np.bool_] | None = None,
) -> FloatArray:
    """Stray light of each frame: what a dark frame has everywhere, above the offset and in counts of the shortest
    exposure; 0 of frames that are not dark."""
    level = survey.pedestal - (survey.offset if offset is None else offset)
    level = np.maximum(level / relative_exposures(exposures, len(survey)), 0)
    return np.where(survey.dark(exposures, offset, outside), level, 0.0)


def _rejections(survey: Survey) -> list[Suggestion]:
    bad = bad_frames(survey)
    if not bad:
        return []
    reasons = "; ".join(f"frame {index}: {reason}" for index, reason in list(bad.items())[:5])
    more = f"; and {len(bad) - 5} more" if len(bad) > 5 else ""
    return [Suggestion("reject", list(bad), reasons + more)]


def order_is_wrong(
    survey: Survey,
    directions: FloatArray,
    na: float,
    exposures: FloatArray | None = None,
    levels: FloatArray | float = 1.0,
) -> bool:
    """Whether dark-field frames are about as bright as bright-field ones: LEDs in another order, or a wrong NA."""
    sizes = np.hypot(directions[:, 0], directions[:, 1])
    brightness = (survey.mean - survey.offset) / relative_exposures(exposures, len(survey)) / levels
    bright, dark = brightness[sizes < 0.9 * na], brightness[sizes > 1.1 * na]
    return bool(len(bright) and len(dark) and np.median(bright) < 2 * np.median(dark))


def _frames(count: int) -> str:
    return f"{count} frames" if count != 1 else "1 frame"
