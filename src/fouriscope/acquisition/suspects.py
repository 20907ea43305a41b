"""Frames that are not measurements, and frames that do not fit the place of their LED."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.survey import RIM, Survey, relative_exposures

FloatArray = NDArray[np.float64]

_NEIGHBOURS = 8


def bad_frames(survey: Survey) -> dict[int, str]:
    """Frames that cannot be measurements, with the reason: NaN, all zero, constant, or equal to an earlier one.

    Nothing here depends on where the LEDs are said to be.

    Parameters
    ----------
    survey
        What :func:`survey_frames` returns.
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
    return found


def unlike_others(
    survey: Survey,
    directions: FloatArray,
    na: float,
    exposures: FloatArray | None = None,
    levels: FloatArray | float = 1.0,
) -> dict[int, str]:
    r"""Frames whose brightness does not fit the described place of their LED, with the reason; bad ones left out.

    These are bright-field frames below a tenth of the others' median, dark-field frames above half of it, and
    dark-field frames that are, beyond their noise, ten times brighter or darker than the median of the eight with the
    most similar \|na\|: dark field falls steeply with the angle, and depends on little else. LEDs within 10 % of the
    pupil's edge may be either and are not listed.

    That is a reason to look, not to reject: a displaced array, or an objective with another NA than it says, makes good
    frames look like this. ``levels`` are the brightness of patterns compared with one LED.

    Parameters
    ----------
    survey
        What :func:`survey_frames` returns.
    directions
        (na_y, na_x) of each frame's LED.
    na
        NA of the objective.
    exposures
        One per frame, if they differ.
    levels
        Brightness of each frame's pattern compared with one LED.
    """
    bad, found = bad_frames(survey), dict[int, str]()
    sizes = np.hypot(directions[:, 0], directions[:, 1])
    unit = relative_exposures(exposures, len(survey)) * levels
    brightness = (survey.mean - survey.offset) / unit
    # Three standard errors of a mean: a frame of mere noise may be as far from what it shows.
    doubt = 3 * np.nan_to_num(survey.noise) / np.sqrt(survey.pixels) / unit
    sound = np.array([index not in bad for index in range(len(survey))])
    inside = sound & (sizes <= (1 - RIM) * na)
    outside = np.flatnonzero(sound & (sizes >= (1 + RIM) * na))
    reference = float(np.median(brightness[inside])) if inside.any() else None
    if reference is not None:
        for index in map(int, np.flatnonzero(inside & (brightness < 0.1 * reference))):
            found[index] = (
                f"dark ({brightness[index] / reference:.1%} of the bright field), but its LED is inside the pupil"
            )
        for index in map(int, outside[brightness[outside] > 0.5 * reference]):
            found[index] = "as bright as the bright field, but its LED is outside the pupil"
    for index in map(int, outside):
        others = outside[outside != index]
        if index in found or len(others) < _NEIGHBOURS:
            continue
        distance = np.abs(sizes[others] - sizes[index])
        near = brightness[others[np.argsort(distance, kind="stable")[:_NEIGHBOURS]]]
        middle = float(np.median(near))
        spread = 1.4826 * float(np.median(np.abs(near - middle)))
        if middle > 0 and abs(brightness[index] - middle) > 3 * spread:
            if brightness[index] - doubt[index] > 10 * middle:
                found[index] = f"{brightness[index] / middle:.0f} times brighter than others at its angle"
            elif brightness[index] + doubt[index] < 0.1 * middle:
                found[index] = f"dark ({brightness[index] / middle:.1%} of others at its angle): a dead LED?"
    return dict(sorted(found.items()))
