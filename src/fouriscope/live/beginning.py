"""What a watch needs before there are frames: compiled code, and no setting that needs all frames."""

from __future__ import annotations

import numpy as np

from fouriscope.acquisition import Acquisition, ArrivingFrames
from fouriscope.errors import InvalidInputError
from fouriscope.live.reconstruction import LiveReconstruction
from fouriscope.paper import paper_leds, paper_optics
from fouriscope.run import RunConfig


def warm_up(config: RunConfig) -> None:
    """Compile, or load, all that an iteration needs, on something small: the first frame should not have to wait."""
    optics, leds, shape = paper_optics(), paper_leds(1.5), (24, 24)
    grid = config.object.model_copy(update={"shape": "auto", "margin": 0})
    plain = config.model_copy(update={"object": grid, "calibration": type(config.calibration)()})
    live = LiveReconstruction(Acquisition(optics, leds, ArrivingFrames((len(leds), *shape))), plain)
    rng = np.random.default_rng(0)
    for led in range(len(leds)):
        live.add(1 + 0.1 * rng.standard_normal(shape).astype(np.float32), led)
        live.step()


def refuse_what_needs_all_frames(config: RunConfig) -> None:
    """Raise for what a configuration wants to find from frames that are not there yet."""
    section = config.frames
    if section.kind not in (None, "folder"):
        raise InvalidInputError(
            f'frames.kind = "{section.kind}" is one file, but watch follows a folder with one image per frame (a stack '
            "that grows page by page cannot be followed)"
        )
    if section.plane is not None:
        raise InvalidInputError(
            "frames.plane is for a colour camera, but watch follows grey frames of one wavelength; reconstruct colour "
            "frames when they are complete"
        )
    for key in ("saturation", "bad_pixels", "reject"):
        if getattr(section, key) == "auto":
            raise InvalidInputError(
                f'frames.{key} = "auto" needs all frames, which are not there yet: give numbers, as `fouriscope '
                "import` writes them for an earlier acquisition of the same camera, or leave it out"
            )
