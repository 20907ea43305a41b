"""The section [frames]: from stored numbers to intensities, with the mask and the weights that belong to them."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import (
    CorrectedFrames,
    Corrections,
    FrameMasks,
    Frames,
    StreamedFrames,
    bad_frames,
    find_bad_pixels,
    open_frames,
    simplest,
    survey_frames,
)
from fouriscope.acquisition.stored import StoredFrames
from fouriscope.acquisition.survey import Survey
from fouriscope.errors import InvalidInputError
from fouriscope.optics import Illumination, Optics
from fouriscope.run.memory import default_budget
from fouriscope.run.sections import FramesSection


class Measured(NamedTuple):
    """y_i, which of it counts, and which frames were rejected for what reason."""

    frames: Frames
    weights: NDArray[Any] | None
    mask: Frames | NDArray[Any] | None
    rejected: dict[int, str]


def open_stored(section: FramesSection, folder: Path) -> Frames:
    """The frames of [frames] as they are stored, cut to the region of interest."""
    if section.path is None:
        raise InvalidInputError(
            "frames.path is missing: the shape of the frames is enough for `fouriscope info`, a reconstruction needs "
            "the file that holds them"
        )
    return open_frames(
        folder / section.path,
        kind=section.kind,
        dataset=section.dataset,
        axes=section.axes,
        pattern=section.pattern,
        files=section.files,
        roi=section.roi,
    )


def roi_displacement(section: FramesSection, stored: Frames, pixel: float) -> tuple[float, float]:
    """(y, x) in metres at the sample, from the centre of whole frames to the centre of the region of interest."""
    if section.roi is None or not isinstance(stored, StoredFrames):
        return 0.0, 0.0
    row, column, height, width = section.roi
    rows, columns = stored.stored_shape
    return (row + (height - rows) / 2) * pixel, (column + (width - columns) / 2) * pixel


def measured(
    section: FramesSection, stored: Frames, folder: Path, optics: Optics, illumination: Illumination
) -> Measured:
    """Corrected frames, mask and weights. Frames are read only for what is to be found "auto".

    What is kept in memory is what is stored, below the corrections: smaller than intensities, and there for the masks
    of saturated pixels too.
    """
    directions = illumination.directions()
    source = streamed(section, stored)
    corrected = CorrectedFrames(source, corrections_of(section, stored, folder, optics, directions))
    frames: Frames = corrected if section.is_corrected else source
    counts = counted(section, source)
    survey = (
        survey_frames(counts, dtype=getattr(stored, "dtype", None))
        if "auto" in (section.saturation, section.reject)
        else None
    )
    rejected = rejected_frames(section, survey, stored.shape[0])
    weights = None if section.weights is None else np.array(section.weights, np.float64)
    if rejected:
        weights = np.ones(stored.shape[0]) if weights is None else weights
        if weights.shape == (stored.shape[0],):
            weights[list(rejected)] = 0
    return Measured(frames, weights, _mask(section, survey, counts, stored, folder), rejected)


def counted(section: FramesSection, frames: Frames) -> Frames:
    """Frames in the counts in which offset and saturation are given: after the bit shift and the power."""
    if not section.bit_shift and section.exponent == 1:
        return frames
    return CorrectedFrames(frames, Corrections(bit_shift=section.bit_shift, power=section.exponent))


def streamed(section: FramesSection, stored: Frames) -> Frames:
    """The frames, kept and read ahead within ``frames.memory``; a stack that had to be loaded whole is as it is."""
    if isinstance(getattr(stored, "array", None), np.ndarray):
        return stored
    return StreamedFrames(stored, default_budget() if section.memory is None else section.memory)


def corrections_of(
    section: FramesSection, stored: Frames, folder: Path, optics: Optics, directions: NDArray[np.float64]
) -> Corrections:
    """What [frames] says is done to the frames, with its images loaded and cut to the region of interest."""
    dark, flat = _mean_image(section.dark, folder), _mean_image(section.flat, folder)
    return Corrections(
        bit_shift=section.bit_shift,
        power=section.exponent,
        offset=section.offset,
        dark=None if dark is None else cut(dark, stored),
        flat=None if flat is None else cut(flat, stored),
        flat_level=None if flat is None else float(flat.mean()),
        exposures=section.exposures,
        background=section.background,
        floor=section.floor,
        dark_field=_dark_field(section, directions, optics, stored),
        gain=section.gain,
    )


def _dark_field(
    section: FramesSection, directions: NDArray[np.float64], optics: Optics, stored: Frames
) -> NDArray[np.bool_] | None:
    if (section.background is None and not section.floor) or len(directions) != stored.shape[0]:
        return None
    return ~optics.passes(np.hypot(directions[:, 0], directions[:, 1]))


def rejected_frames(section: FramesSection, survey: Survey | None, count: int) -> dict[int, str]:
    """Frames that [frames] leaves out, with the reason; "auto" needs the survey."""
    if section.reject == "auto":
        assert survey is not None
        return bad_frames(survey)
    wrong = [index for index in section.reject if not 0 <= index < count]
    if wrong:
        raise InvalidInputError(f"frames.reject holds {wrong[0]}, there are frames 0 to {count - 1}")
    return dict.fromkeys(section.reject, "named in frames.reject")


def _mask(
    section: FramesSection, survey: Survey | None, counts: Frames, stored: Frames, folder: Path
) -> Frames | NDArray[Any] | None:
    good = None if section.mask is None else cut(load_image(folder / section.mask), stored)
    if section.bad_pixels == "auto":
        working = find_bad_pixels(counts)
        good = working if good is None else (np.asarray(good) != 0) & working
    saturation = section.saturation
    if saturation == "auto":
        assert survey is not None
        saturation = survey.saturation
    if saturation is None:
        return good
    return simplest(FrameMasks(counts, saturation=saturation, good=good))


def _mean_image(names: str | tuple[str, ...] | None, folder: Path) -> NDArray[np.float64] | None:
    """One image, or the mean of several or of the pages of one."""
    if names is None:
        return None
    images = [load_image(folder / name) for name in ([names] if isinstance(names, str) else names)]
    pages = np.concatenate([image.reshape(-1, *image.shape[-2:]) for image in images])
    return np.asarray(pages.mean(axis=0, dtype=np.float64))


def cut(image: NDArray[Any], stored: Frames) -> NDArray[Any]:
    """An image of whole frames cut to the region of interest; one of the region's own shape stays as it is."""
    whole = stored.stored_shape if isinstance(stored, StoredFrames) else stored.shape[1:]
    if image.shape[-2:] != whole or whole == stored.shape[1:]:
        return image
    assert isinstance(stored, StoredFrames)
    return image[..., stored.rows, stored.columns]


def load_image(path: Path) -> NDArray[Any]:
    """An array from a .npy or TIFF file."""
    if not path.exists():
        raise InvalidInputError(f"{path}: no such file")
    try:
        if path.suffix.lower() == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        if path.suffix.lower() == ".png":
            from fouriscope.acquisition.images import read_image

            return read_image(path)
        import tifffile

        return np.asarray(tifffile.imread(path))
    except (ValueError, OSError, EOFError, RuntimeError, zlib.error) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(
            f"{path}: cannot be read as an array ({error}); .npy, .tif and .png are understood"
        ) from error
