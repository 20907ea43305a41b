"""From a description to an acquisition, the same way for files, folders that fill, tiles and arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import (
    Acquisition,
    CorrectedFrames,
    Corrections,
    FrameMasks,
    Frames,
    StreamedFrames,
    bad_frames,
    center_of_region,
    field_scale,
    find_bad_pixels,
    open_frames,
    simplified_masks,
    survey_frames,
)
from fouriscope.acquisition.colours import ColourPlane
from fouriscope.acquisition.stored import Region, StoredFrames
from fouriscope.acquisition.survey import Survey
from fouriscope.errors import InvalidInputError
from fouriscope.optics import Illumination, Optics, Pupil
from fouriscope.optics.patterns import frame_levels
from fouriscope.run.image_files import load_image, mean_image
from fouriscope.run.memory import default_budget
from fouriscope.run.microscope import build_illumination, build_optics, build_pupil
from fouriscope.settings import RunConfig

# How frames are stored, which a reader must know before it can say anything else.
STORAGE = ("kind", "dataset", "axes", "pattern", "files")
CAMERA = ("plane", "mosaic")


@dataclass(frozen=True, eq=False)
class Described:
    """What a configuration describes, seen at the patch that its frames show.

    Nothing is read until it is needed. Whether an LED is bright or dark field is always decided at the patch: seen from
    a region of interest or a tile off the axis, the LEDs lie in other directions.

    Parameters
    ----------
    config, folder
        The configuration, and where its relative paths start.
    layout
        Replaces the stored frames while they are not there yet: their shapes and the region of interest.
    """

    config: RunConfig
    folder: Path
    layout: Frames | None = None

    @cached_property
    def optics(self) -> Optics:
        return build_optics(self.config.microscope)

    @cached_property
    def illumination(self) -> Illumination:
        return build_illumination(self.config.illumination, self.folder)

    @cached_property
    def pupil(self) -> Pupil:
        return build_pupil(self.config.pupil, self.folder)

    @cached_property
    def stored(self) -> Frames:
        """The frames as they are stored, cut to the region of interest."""
        return open_stored(self.config, self.folder) if self.layout is None else self.layout

    @property
    def frame_shape(self) -> tuple[int, int]:
        """(rows, columns) of the frames that are used; before there are any, as [frames] says."""
        region = self.config.frames.roi
        if self.is_planned:
            return self.whole_shape if region is None else region[2:]
        return self.stored.shape[1:]

    @property
    def is_planned(self) -> bool:
        """Whether there are no frames yet, only the shape that they will have."""
        return self.config.frames.path is None and self.layout is None

    @cached_property
    def whole_shape(self) -> tuple[int, int]:
        """(rows, columns) of a whole frame, of which a region of interest may be all that is used."""
        planned = self.config.frames.shape
        if self.is_planned and planned is not None:
            return planned
        return self.stored.stored_shape if isinstance(self.stored, StoredFrames) else self.stored.shape[1:]

    @cached_property
    def patch_center(self) -> tuple[float, float]:
        """(y, x) in metres, of the region of interest if there is one, as an acquisition has it."""
        return self.center_of(self.config.frames.roi)

    def center_of(self, region: Region | None) -> tuple[float, float]:
        """(y, x) in metres from where the LEDs are seen as they are from a region of whole frames, or from all."""
        scale = field_scale(self.illumination, self.optics.wave_curvature)
        y, x = self.place_of(region)
        return scale * y, scale * x

    def place_of(self, region: Region | None) -> tuple[float, float]:
        """(y, x) in metres of the middle of a region of whole frames, whose own middle [microscope] places."""
        center = self.config.microscope.patch_center
        if region is None:
            return center
        return center_of_region(center, region, self.whole_shape, self.optics.pixel, self.illumination)

    @cached_property
    def directions(self) -> NDArray[np.float64]:
        """(na_y, na_x) of every LED, seen from the patch."""
        return self.illumination.directions(self.patch_center)

    @property
    def levels(self) -> NDArray[np.float64]:
        """How bright each frame is compared with that of one LED: 1, unless there are patterns."""
        return frame_levels(self.illumination, self.optics, self.patch_center)

    def counts(self, source: Frames | None = None) -> Frames:
        """Frames in the counts in which offset and saturation are given: after the bit shift and the power."""
        section, source = self.config.frames, self.stored if source is None else source
        if not section.bit_shift and section.exponent == 1:
            return source
        return CorrectedFrames(source, Corrections(bit_shift=section.bit_shift, power=section.exponent))

    def survey(self, source: Frames | None = None) -> Survey:
        """What is in the counts; every frame is read."""
        return survey_frames(self.counts(source), dtype=getattr(self.stored, "dtype", None))

    def corrections(self) -> Corrections:
        """What [frames] says is done to the frames, with its images loaded and cut to the region of interest."""
        section = self.config.frames
        dark, flat = (mean_image(names, self.folder) for names in (section.dark, section.flat))
        return Corrections(
            bit_shift=section.bit_shift,
            power=section.exponent,
            offset=section.offset,
            dark=None if dark is None else self.cut(dark),
            flat=None if flat is None else self.cut(flat),
            flat_level=None if flat is None else float(flat.mean()),
            exposures=section.exposures,
            background=section.background,
            floor=section.floor,
            dark_field=self._dark_field(),
            gain=section.gain,
        )

    def rejected(self, survey: Survey | None) -> dict[int, str]:
        """Frames that [frames] leaves out, with the reason; "auto" needs the survey."""
        named, count = self.config.frames.reject, self.stored.shape[0]
        if named == "auto":
            assert survey is not None
            return bad_frames(survey)
        wrong = [index for index in named if not 0 <= index < count]
        if wrong:
            raise InvalidInputError(f"frames.reject holds {wrong[0]}, but frames are 0 to {count - 1}")
        return dict.fromkeys(named, "named in frames.reject")

    def acquisition(self, source: Frames | None = None) -> Acquisition:
        """The acquisition, of the stored frames or of those that ``source`` will hold, in the same layout and counts.

        Stored frames are read only for settings that are "auto", and, with a ``saturation``, until two of them have
        different masks. Those of a ``source`` are not read. Memory holds the stored numbers, before the corrections:
        they are smaller than intensities, and the masks of saturated pixels need them too.
        """
        section = self.config.frames
        to_come = source is not None
        source = self._streamed() if source is None else source
        survey = self.survey(source) if "auto" in (section.saturation, section.reject) else None
        corrected = CorrectedFrames(source, self.corrections())  # raises where something does not fit the frames
        return Acquisition(
            self.optics,
            self.illumination,
            corrected if section.is_corrected else source,
            pupil=self.pupil,
            patch_center=self.patch_center,
            weights=self._weights(survey),
            mask=self._mask(survey, source, to_come=to_come),
            gains=None if section.brightness is None else np.array(section.brightness),
            truth=None if section.truth is None else load_image(self.folder / section.truth),
        )

    def seen_anew(self, acquisition: Acquisition) -> Acquisition:
        """``acquisition``, which has the frames that are described here, with the microscope that is described here.

        Another aperture changes which frames are dark field, and so the corrections. Counts, masks and rejected frames
        depend on the camera alone: they are not read again, and frames that are in memory stay there.
        """
        frames = acquisition.frames
        if isinstance(frames, CorrectedFrames):
            frames = CorrectedFrames(frames.frames, self.corrections())
        return replace(
            acquisition,
            optics=self.optics,
            illumination=self.illumination,
            pupil=self.pupil,
            patch_center=self.patch_center,
            frames=frames,
        )

    def cut(self, image: NDArray[Any]) -> NDArray[Any]:
        """An image of whole frames cut to the region of interest; one of the region's own shape stays as it is."""
        if image.shape[-2:] != self.whole_shape or not isinstance(self.stored, StoredFrames):
            return image
        return image[..., self.stored.rows, self.stored.columns]

    def _streamed(self) -> Frames:
        """The frames, kept and read ahead within ``frames.memory``; a stack that had to be loaded whole stays so."""
        if isinstance(getattr(self.stored, "array", None), np.ndarray):
            return self.stored
        memory = self.config.frames.memory
        return StreamedFrames(self.stored, default_budget() if memory is None else memory)

    def _dark_field(self) -> NDArray[np.bool_] | None:
        section = self.config.frames
        if (section.background is None and not section.floor) or len(self.illumination) != self.stored.shape[0]:
            return None
        return ~self.optics.passes(np.hypot(*self.directions.T))

    def _weights(self, survey: Survey | None) -> NDArray[np.float64] | None:
        given, rejected = self.config.frames.weights, self.rejected(survey)
        if given is None and not rejected:
            return None
        weights = np.ones(self.stored.shape[0]) if given is None else np.array(given, np.float64)
        if len(weights) == self.stored.shape[0]:  # if not, the acquisition says so
            weights[list(rejected)] = 0
        return weights

    def _mask(self, survey: Survey | None, source: Frames, *, to_come: bool) -> Frames | NDArray[Any] | None:
        section, counts = self.config.frames, self.counts(source)
        good = None if section.mask is None else self.cut(load_image(self.folder / section.mask))
        if isinstance(self.stored, ColourPlane) and (pixels := self.stored.pixels) is not None:
            good = pixels if good is None else (np.asarray(good) != 0) & pixels
        if section.bad_pixels == "auto":
            working = find_bad_pixels(counts)
            good = working if good is None else (np.asarray(good) != 0) & working
        saturation = section.saturation
        if saturation == "auto":
            assert survey is not None
            saturation = survey.saturation
        if saturation is None:
            return good
        masks = FrameMasks(counts, saturation=saturation, good=good)
        return masks if to_come else simplified_masks(masks)


def open_stored(config: RunConfig, folder: Path) -> Frames:
    """The frames that ``config`` names as they are stored, cut to the region of interest; no pixel is read."""
    section = config.frames
    if section.path is None:
        raise InvalidInputError(
            "frames.path is missing: the shape of the frames is enough for `fouriscope info`, but `reconstruct` needs "
            "the file that holds them"
        )
    frames = open_frames(folder / section.path, roi=section.roi, **section.model_dump(include={*STORAGE, *CAMERA}))
    if section.crosstalk is None or not isinstance(frames, ColourPlane):
        return frames
    full = section.saturation if isinstance(section.saturation, float) else None
    return frames.unmixed(section.crosstalk, offset=section.offset, saturation=full)
