"""From the sections [microscope], [illumination] and [pupil] to the optics they describe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fouriscope.acquisition.led_table import LEDTable, read_led_table
from fouriscope.acquisition.pattern_table import read_patterns
from fouriscope.errors import InvalidInputError
from fouriscope.optics import GlassSlide, Illumination, LEDArray, Multiplexed, Optics, Pupil
from fouriscope.run.image_files import load_image
from fouriscope.settings import (
    DirectionsSection,
    DiscSection,
    FileSection,
    MicroscopeSection,
    PupilSection,
    RingsSection,
    SpiralSection,
    SquareSection,
)


def build_optics(section: MicroscopeSection) -> Optics:
    """The microscope of the section [microscope]."""
    return Optics(
        *(section.wavelength, section.na, section.magnification, section.camera_pixel, section.medium_index),
        bandwidth=section.bandwidth,
        spectrum=section.spectrum or (),
        wave_curvature=section.wave_curvature,
    )


def build_illumination(section: Any, folder: Path = Path()) -> Illumination:
    """The light that the section [illumination] describes; files in it are looked for in ``folder``."""
    leds = build_leds(section, folder)
    if section.patterns is None:
        return leds
    return Multiplexed(leds, read_patterns(folder / section.patterns, len(leds)))


def build_leds(section: Any, folder: Path = Path()) -> Illumination:
    """The LEDs of the section [illumination], one by one."""
    if isinstance(section, DirectionsSection):
        table = LEDTable("na", np.array(section.na))
        return table.illumination(height=section.height, rotation=section.rotation, offset=section.offset)
    slide = GlassSlide(section.slide_thickness, section.slide_index) if section.slide_thickness else None
    common: dict[str, Any] = {"rotation": section.rotation, "offset": section.offset, "slide": slide}
    common |= {"die": section.die, "die_shape": section.die_shape}
    if isinstance(section, FileSection):
        table = read_led_table(folder / section.path)
        try:
            return table.illumination(height=section.height, pitch=section.pitch, **common)
        except InvalidInputError as error:
            raise InvalidInputError(f"{folder / section.path}: {error}") from error
    if isinstance(section, SquareSection):
        return LEDArray.square(section.shape, section.pitch, section.height, **common)
    if isinstance(section, DiscSection):
        return LEDArray.disc(section.pitch, section.height, section.radius, **common)
    if isinstance(section, SpiralSection):
        order: dict[str, Any] = {"count": section.count, "start": section.start, "clockwise": section.clockwise}
        return LEDArray.spiral(section.size, section.pitch, section.height, **order, **common)
    if isinstance(section, RingsSection):
        return LEDArray.rings(section.radii, section.counts, section.height, start_angle=section.start_angle, **common)
    return LEDArray.at(np.array(section.positions), section.height, **common)


def without_file(section: Any, folder: Path) -> dict[str, Any]:
    """The keys of [illumination], with the LEDs of its file (looked for in ``folder``) written out."""
    keys: dict[str, Any] = section.model_dump(mode="json", exclude_unset=True)
    if section.patterns is not None:
        keys["patterns"] = str((folder / section.patterns).resolve())
    if not isinstance(section, FileSection):
        return keys
    table = read_led_table(folder / keys.pop("path"))
    if table.kind == "na":
        return keys | {"kind": "directions", "na": table.values.tolist()}
    return keys | {"kind": "positions", "positions": (table.values * keys.pop("pitch", 1.0)).tolist()}


def build_pupil(section: PupilSection, folder: Path) -> Pupil:
    """The aberrations of the section [pupil]; an array in it is looked for in ``folder``."""
    array = None if section.array is None else load_image(folder / section.array)
    return Pupil(zernike=section.zernike, defocus=section.defocus, array=array)
