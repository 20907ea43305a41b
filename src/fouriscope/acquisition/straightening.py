"""Frames whose counts are a power of the intensity, although nobody says so: how they were before that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fouriscope.acquisition.corrections import CorrectedFrames, Corrections
from fouriscope.acquisition.frames import CalibratedFrames, Frames
from fouriscope.errors import InvalidInputError


def straightened(frames: Frames, power: float) -> CorrectedFrames:
    """``frames`` with counts that are intensities, if those they are made of are a ``power`` of them.

    Pictures made for screens are such powers (gamma). The offset and stray light were raised to it together with the
    light itself, so they are known as counts, and the power is undone before they are subtracted. The empty bright
    field stays 1.

    Parameters
    ----------
    frames
        Any frames. Of those that are corrected here, the counts below the corrections are straightened.
    power
        p in counts = intensity^p.

    Examples
    --------
    >>> from fouriscope.acquisition.frames import ArrayFrames
    >>> light = np.arange(1, 33, dtype=np.float64).reshape(2, 4, 4)
    >>> bent = CorrectedFrames(ArrayFrames((light + 4) ** 0.5), Corrections(offset=2, gain=np.sqrt(20) - 2))
    >>> bool(np.allclose(straightened(bent, 0.5).frame(1), light[1] / 16))
    True
    """
    counts, corrections = _counts_and_corrections(frames)
    return CorrectedFrames(counts, straight_corrections(corrections, power))


def straight_corrections(corrections: Corrections, power: float) -> Corrections:
    """The same corrections for counts c^(1/``power``) instead of c: every level that is given in counts moves, too."""
    if not can_be_straightened(corrections):
        raise InvalidInputError(
            "frames with a dark or flat image cannot be straightened here, because those images are bent as well: "
            "correct their gamma before, and give frames.power = 1"
        )
    offset, exposures = corrections.offset, corrections.exposures
    longer = 1.0 if exposures is None else np.asarray(exposures, np.float64) / np.min(np.asarray(exposures))
    background = corrections.background
    if background is not None and not isinstance(background, str):
        # Counts of the shortest exposure, while the camera bent those of the frame's own.
        background = above(np.asarray(background, np.float64) * longer, offset, power) / longer
    return replace(
        corrections,
        amplitude=False,
        power=corrections.exponent * power,
        offset=float(above(offset, 0.0, power)),
        background=background,
        floor=float(above(corrections.floor, offset, power)),
        gain=float(above(corrections.gain, offset, power)),
    )


def above(level: float | np.ndarray, offset: float, power: float) -> np.ndarray:
    """How far ``level`` counts above ``offset`` lie above it when the power is undone.

    >>> float(above(5.0, 2.0, 0.5))  # 7² − 2²
    45.0
    """
    upper, lower = np.asarray(level, np.float64) + offset, np.float64(offset)
    return np.asarray(np.copysign(abs(upper) ** (1 / power), upper) - np.copysign(abs(lower) ** (1 / power), lower))


def can_be_straightened(frames: Frames | Corrections) -> bool:
    """Whether all that is subtracted or divided by is known in counts, and no other image."""
    corrections = frames if isinstance(frames, Corrections) else _counts_and_corrections(frames)[1]
    return corrections.dark is None and corrections.flat is None


def _counts_and_corrections(frames: Frames) -> tuple[Frames, Corrections]:
    """What ``frames`` are made of: counts, and one set of corrections."""
    if isinstance(frames, CalibratedFrames):
        return frames.frames, Corrections(offset=frames.offset, gain=frames.gain)
    if not isinstance(frames, CorrectedFrames):
        return frames, Corrections()
    return frames.frames, frames.corrections
