"""Folders of images and multi-page TIFFs, with what OME-XML says about the microscope."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.description import Description, FramesSource
from fouriscope.acquisition.images import IMAGES, TIFF, images_of
from fouriscope.acquisition.readers.fields import numbers

_LENGTHS = {"m": 1.0, "mm": 1e-3, "µm": 1e-6, "μm": 1e-6, "um": 1e-6, "nm": 1e-9}


def recognises(path: Path) -> bool:
    """A TIFF, or a folder with more than one image."""
    if path.is_file():
        return path.suffix.lower() in TIFF
    return sum(child.suffix.lower() in IMAGES for child in path.iterdir() if not child.name.startswith(".")) > 1


def read(path: Path) -> Description:
    """Where the frames are; an OME-TIFF also says with which objective, pixel, wavelength and exposures."""
    if path.is_dir():
        files = images_of(path)
        note = f"natural order: {files[0].name}, {files[1].name} … {files[-1].name}"
        return Description(f"folder of {files[0].suffix.lower().lstrip('.')} images", FramesSource(path), notes=(note,))
    microscope, exposures, notes = read_ome(path)
    return Description(
        "OME-TIFF" if notes or microscope else "multi-page TIFF",
        FramesSource(path, "tiff"),
        microscope=microscope,
        exposures=exposures,
        notes=notes,
    )


def read_ome(path: Path) -> tuple[dict[str, float], NDArray[np.float64] | None, tuple[str, ...]]:
    """(keys of [microscope], exposures in seconds, notes) of the OME-XML in a TIFF; nothing if there is none."""
    import tifffile

    with tifffile.TiffFile(path) as tiff:
        text = tiff.ome_metadata
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
