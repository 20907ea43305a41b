"""Folders of images and multi-page TIFFs, with what OME-XML says about the microscope."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.description import Description, FramesSource
from fouriscope.acquisition.images import IMAGES, TIFF, TiffFrames, images_of
from fouriscope.acquisition.readers.fields import numbers
from fouriscope.acquisition.readers.numbering import notes_on_numbers
from fouriscope.acquisition.tiff_file import TiffPages
from fouriscope.errors import InvalidInputError, shortened

_LENGTHS = {"m": 1.0, "mm": 1e-3, "µm": 1e-6, "μm": 1e-6, "um": 1e-6, "nm": 1e-9}


# Files of a folder that are no frames, by a word in their names.
_CORRECTIONS = {word: re.compile(rf"(?:^|[^a-z]){word}(?:[^a-z]|s|frame|field|$)") for word in ("dark", "flat")}


def recognises(path: Path) -> bool:
    """A TIFF, a folder with more than one image, or a pattern such as ``folder/led_*.tif``."""
    if "*" in path.name:
        return path.parent.is_dir()
    if path.is_file():
        return path.suffix.lower() in TIFF
    return sum(child.suffix.lower() in IMAGES for child in path.iterdir() if not child.name.startswith(".")) > 1


def read(path: Path) -> Description:
    """Where the frames are; an OME-TIFF also says with which objective, pixel, wavelength and exposures."""
    if path.is_dir() or "*" in path.name:
        return read_folder(*((path, None) if path.is_dir() else (path.parent, path.name)))
    microscope, exposures, notes = read_ome(path)
    frames = FramesSource(path, "tiff").open()
    pages = frames.shape[0]
    if exposures is not None and len(exposures) != pages:
        notes = (*notes, f"OME has {len(exposures)} exposures, but the file has {pages} pages: they are left out")
        exposures = None
    name = "OME-TIFF" if notes or microscope else "multi-page TIFF"
    if isinstance(frames, TiffFrames) and frames.complaints:
        notes = (*notes, f"the TIFF is unusual but readable: {shortened(frames.complaints[0])}")
    return Description(
        name,
        FramesSource(path, "tiff"),
        microscope=microscope,
        exposures=exposures,
        notes=notes,
    )


def read_folder(path: Path, pattern: str | None, named: Sequence[str] | None = None) -> Description:
    """The images of a folder that ``pattern`` matches, without dark and flat ones, or those that are ``named``."""
    if not path.is_dir():
        raise InvalidInputError(f"{path}: frames.pattern and frames.files need a folder of images, but this is a file")
    if named is not None:
        if pattern is not None:
            raise InvalidInputError("give either frames.pattern or frames.files, not both")
        if isinstance(named, str) or len(named) < 2:
            raise InvalidInputError(f"frames.files expects the names of at least two images, got {named!r}")
        kind = Path(named[0]).suffix.lower().lstrip(".")
        return Description(f"folder of {kind} images", FramesSource(path, "folder", files=tuple(named)))
    images = images_of(path, pattern)
    others = {word: [file for file in images if name.search(file.stem.lower())] for word, name in _CORRECTIONS.items()}
    special = others["dark"] + others["flat"]
    files = [file for file in images if file not in special]
    if len(files) < 2:
        raise InvalidInputError(
            f"{path}: at least two frames were expected, but only {len(files)} images could be frames"
        )
    notes = [f"natural order: {files[0].name}, {files[1].name} … {files[-1].name}", *notes_on_numbers(files)]
    notes += [
        f"{file.name} is used as a {word} frame because of its name" for word, found in others.items() for file in found
    ]
    names = tuple(str(file.relative_to(path)) for file in files) if special else None
    return Description(
        f"folder of {files[0].suffix.lower().lstrip('.')} images",
        FramesSource(path, "folder", pattern=None if names else pattern, files=names),
        dark=tuple(others["dark"]),
        flat=others["flat"][0] if len(others["flat"]) == 1 else None,
        notes=tuple(notes),
    )


def read_ome(path: Path) -> tuple[dict[str, float], NDArray[np.float64] | None, tuple[str, ...]]:
    """(keys of [microscope], exposures in seconds, notes) of the OME-XML in a TIFF; nothing if there is none."""
    pages = TiffPages(path)
    pages.close()
    text = pages.ome
    if text is None:
        return {}, None, ()
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        return {}, None, (f"its OME-XML cannot be read ({error})",)
    pixels, channel, objective = (_first(root, name) for name in ("Pixels", "Channel", "Objective"))
    size = pixels.get("PhysicalSizeX")
    colour = channel.get("EmissionWavelength") or channel.get("ExcitationWavelength")
    fields: dict[str, tuple[str, Any, float]] = {
        "wavelength": ("Channel wavelength", colour, _LENGTHS.get(channel.get("EmissionWavelengthUnit", "nm"), 1e-9)),
        "na": ("Objective LensNA", objective.get("LensNA"), 1.0),
    }
    notes = []
    if size is not None:
        fields["camera_pixel"] = ("PhysicalSizeX", size, _LENGTHS.get(pixels.get("PhysicalSizeXUnit", "µm"), 1e-6))
        fields["magnification"] = ("magnification", 1.0, 1.0)
        notes.append("OME gives the pixel at the sample: written as camera_pixel with magnification 1")
    times = [plane.get("ExposureTime") for plane in _all(root, "Plane")]
    exposures = np.array(times, np.float64) if times and None not in times else None
    return numbers(path, fields), exposures, tuple(notes)


def _all(root: Any, name: str) -> list[Any]:
    return [element for element in root.iter() if element.tag.rpartition("}")[2] == name]


def _first(root: Any, name: str) -> Any:
    return next(iter(_all(root, name)), {})
