"""The alignment that a configuration asks for, and how what it found is written back into one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fouriscope import settings
from fouriscope.acquisition import Acquisition, CorrectedFrames
from fouriscope.acquisition.straightening import above
from fouriscope.alignment import Alignment, align
from fouriscope.errors import InvalidInputError
from fouriscope.optics import LEDArray, Multiplexed

# What an alignment finds by short reconstructions, whatever lit the frames; the rest asks where each LED is.
WITH_PATTERNS = ("exposure", "focus")


def aligned(
    acquisition: Acquisition,
    section: settings.Alignment,
    tell: Callable[[str], object] | None = None,
    stage: Callable[[str], object] | None = None,
    *,
    tiles: bool = False,
) -> Alignment:
    """``acquisition`` aligned as the section [alignment] says, for ``tiles`` or as a whole; as it is, if that asks for
    nothing."""
    if not section.is_wanted:
        return Alignment(acquisition, ())
    wanted = [key for key, value in section.model_dump().items() if value is True and key not in WITH_PATTERNS]
    if wanted and isinstance(acquisition.illumination, Multiplexed):
        raise InvalidInputError(
            f"alignment by {', '.join(wanted)} needs frames of one LED each, but these have patterns of several: align "
            "a sequential set of the same array, describe the LEDs as it found them, and leave out "
            f"all but {' and '.join(WITH_PATTERNS)}"
        )
    return align(acquisition, **section.model_dump(), tiles=tiles, tell=tell, stage=stage)


def with_alignment(document: dict[str, Any], alignment: Alignment) -> dict[str, Any]:
    """A resolved configuration with what was found instead of what was described, and nothing left to align.

    So a resumed run begins where the first one did, without searching again.
    """
    if not alignment.notes:
        return document
    acquisition = alignment.acquisition
    weights = {} if acquisition.weights is None else {"weights": np.asarray(acquisition.weights, float).tolist()}
    gains = {} if acquisition.gains is None else {"brightness": np.asarray(acquisition.gains).tolist()}
    curvature = acquisition.optics.wave_curvature
    curved = {} if curvature is None else {"wave_curvature": curvature}
    return document | {
        "frames": _straight(document["frames"], alignment) | gains | weights,
        "microscope": document["microscope"] | {"na": acquisition.optics.na} | curved,
        "illumination": _lights(acquisition, document["illumination"]),
        "pupil": document["pupil"] | {"defocus": acquisition.pupil.defocus},
        "alignment": document["alignment"] | settings.switched(settings.Alignment, ()),
    }


def _straight(frames: dict[str, Any], alignment: Alignment) -> dict[str, Any]:
    """[frames] as it describes straightened frames: every level in counts is one after the power."""
    if alignment.power == 1.0:
        return frames
    straight = alignment.acquisition.frames
    assert isinstance(straight, CorrectedFrames)
    found = straight.corrections
    levels: dict[str, Any] = {"offset": found.offset, "floor": found.floor, "gain": found.gain}
    if found.background is not None and not isinstance(found.background, str):
        levels["background"] = np.asarray(found.background).tolist()
    if isinstance(frames.get("saturation"), int | float):
        levels["saturation"] = float(above(frames["saturation"], 0.0, alignment.power))
    return frames | levels | {"amplitude": False, "power": found.power}


def _lights(acquisition: Acquisition, before: dict[str, Any]) -> dict[str, Any]:
    lights = acquisition.illumination
    if not isinstance(lights, LEDArray):
        return before
    sized = lights.die > 0 and "height" in before  # only LEDs at a height have a size
    if (before["kind"] == "directions" and not sized) or (before["kind"] == "file" and "height" not in before):
        # Directions without a height were placed at one metre to be moved; they stay directions.
        height = {"height": lights.height} if "height" in before else {}
        return {"kind": "directions", "na": lights.directions().tolist(), **height}
    glass = lights.slide
    slide = {} if glass is None else {"slide_thickness": glass.thickness, "slide_index": glass.index}
    return {
        "kind": "positions",
        "positions": lights.positions.tolist(),
        "height": lights.height,
        "rotation": lights.rotation,
        "offset": list(lights.offset),
        **slide,
        **({"die": lights.die, "die_shape": lights.die_shape} if lights.die else {}),
    }
