"""What a watch needs before there are frames: an acquisition to put them into, and compiled code."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fouriscope.acquisition import Acquisition, ArrivingFrames, CorrectedFrames, FrameMasks, Frames
from fouriscope.acquisition.stored import StoredFrames
from fouriscope.errors import InvalidInputError
from fouriscope.live.reconstruction import LiveReconstruction
from fouriscope.paper import paper_leds, paper_optics
from fouriscope.run import RunConfig
from fouriscope.run.assemble import build_illumination, build_optics, build_pupil, patch_center_of
from fouriscope.run.measured import corrections_of, counted, cut, load_image, rejected_frames


def acquisition_to_come(config: RunConfig, base: Path, layout: StoredFrames) -> Acquisition:
    """The acquisition of a configuration whose frames are yet to be added, cut and stored as ``layout`` says.

    What is done to frames and which pixels count is as in :func:`fouriscope.run.measured.measured`, without what that
    finds from all of them.
    """
    section, count = config.frames, layout.shape[0]
    optics, illumination = build_optics(config), build_illumination(config.illumination, base)
    directions = illumination.directions()
    arriving = ArrivingFrames(layout.shape)
    corrections = corrections_of(section, layout, base, optics, directions)
    frames: Frames = CorrectedFrames(arriving, corrections) if section.is_corrected else arriving
    counts = counted(section, arriving)
    good = None if section.mask is None else cut(load_image(base / section.mask), layout)
    assert section.saturation != "auto"
    weights = np.ones(count) if section.weights is None else np.array(section.weights, np.float64)
    weights[list(rejected_frames(section, None, count))] = 0
    return Acquisition(
        optics,
        illumination,
        frames,
        pupil=build_pupil(config.pupil, base),
        patch_center=patch_center_of(config, layout, illumination),
        weights=weights,
        mask=good if section.saturation is None else FrameMasks(counts, saturation=section.saturation, good=good),
        gains=None if section.brightness is None else np.array(section.brightness),
        truth=None if section.truth is None else load_image(base / section.truth),
    )


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
            f'frames.kind = "{section.kind}" is one file, and watch follows a folder with one image a frame (a stack '
            "that grows page by page cannot be followed)"
        )
    for key in ("saturation", "bad_pixels", "reject"):
        if getattr(section, key) == "auto":
            raise InvalidInputError(
                f'frames.{key} = "auto" looks at all frames, which are not there yet: give numbers, as `fouriscope '
                "import` writes them for an earlier acquisition of the same camera, or leave it out"
            )
