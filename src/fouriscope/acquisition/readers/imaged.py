"""imaged: ``info.json`` with the microscope and, for each capture, file, exposure and the LED that was lit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fouriscope.acquisition.description import Description, FramesSource
from fouriscope.acquisition.led_table import LEDTable
from fouriscope.acquisition.readers.fields import named_numbers, number, read_json, records, required
from fouriscope.errors import InvalidInputError

FILE = "info.json"


def recognises(path: Path) -> bool:
    """A folder with info.json in which captures are listed, or that file itself."""
    file = path / FILE if path.is_dir() else path
    return file.name == FILE and file.is_file() and "captures" in read_json(file)


def read(path: Path) -> Description:
    """Captures with one LED are frames, those without are dark frames."""
    folder = path if path.is_dir() else path.parent
    file = folder / FILE
    content = read_json(file)
    captures = records(file, "captures", required(file, content, "captures"))
    lit = [(n, capture) for n, capture in enumerate(captures) if capture.get("led_positions")]
    dark = [capture for capture in captures if not capture.get("led_positions")]
    if not lit:
        raise InvalidInputError(f"{file}: captures names no frame with led_positions")
    wavelengths = {number(file, f"captures[{n}].wavelength", capture.get("wavelength")) for n, capture in lit}
    if len(wavelengths) > 1:
        listed = ", ".join(f"{wavelength:g}" for wavelength in sorted(wavelengths))
        raise InvalidInputError(
            f"{file}: captures have {len(wavelengths)} wavelengths ({listed} m), but one is expected: keep only the "
            "captures of one wavelength in info.json"
        )
    places = np.array([_position(file, n, capture) for n, capture in lit])
    heights, lighting = np.abs(places[:, 2]), {}
    if np.ptp(heights) <= 1e-9 + 1e-6 * heights.max():
        leds, lighting = LEDTable("positions", places[:, :2]), {"height": float(heights[0])}
    else:  # LEDs that lie in no plane: each has a direction all the same
        leds = LEDTable("na", places[:, :2] / np.linalg.norm(places, axis=1, keepdims=True))
    names = {"na": "numerical_aperture", "magnification": "magnification", "camera_pixel": "sensor_pixel_size"}
    times = [(f"captures[{n}].exposure", capture["exposure"]) for n, capture in lit if "exposure" in capture]
    return Description(
        "imaged bundle",
        FramesSource(folder, "folder", files=tuple(_name(file, folder, n, capture) for n, capture in lit)),
        microscope={"wavelength": wavelengths.pop()} | named_numbers(file, content, **names),
        leds=leds,
        lighting=lighting,
        exposures=np.array([number(file, *time) for time in times]) if len(times) == len(lit) else None,
        dark=tuple(folder / _name(file, folder, -1, capture) for capture in dark),
        notes=(f"{len(dark)} dark frames: their mean is subtracted",) if dark else (),
    )


def _position(file: Path, n: int, capture: dict[str, Any]) -> tuple[float, float, float]:
    """(y, x, z) of the only LED of a capture."""
    leds = records(file, f"captures[{n}].led_positions", capture["led_positions"])
    if len(leds) != 1:
        raise InvalidInputError(f"{file}: captures[{n}].led_positions has {len(leds)} LEDs; one per frame is expected")
    y, x, z = (number(file, f"captures[{n}].led_positions.{axis}", leds[0].get(axis), positive=False) for axis in "yxz")
    return y, x, z


def _name(file: Path, folder: Path, n: int, capture: dict[str, Any]) -> str:
    """The capture's file, relative to the folder: as it is named, or in captures/."""
    name = str(required(file, capture, "filename"))
    for candidate in (f"captures/{name}", name):
        if (folder / candidate).is_file():
            return candidate
    raise InvalidInputError(f"{file}: captures[{n}].filename is {name!r}, but {folder}/captures has no such file")
