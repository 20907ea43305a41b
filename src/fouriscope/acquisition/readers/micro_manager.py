"""Micro-Manager: TIFF beside ``*_metadata.txt``, whose UserData name the LED of each frame by column and row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fouriscope.acquisition.description import Description, FramesSource
from fouriscope.acquisition.images import TIFF
from fouriscope.acquisition.led_table import LEDTable
from fouriscope.acquisition.readers.fields import number, read_json, record
from fouriscope.errors import InvalidInputError


def recognises(path: Path) -> bool:
    """A folder with one ``*_metadata.txt``, or a TIFF with its own beside it."""
    return _metadata_file(path) is not None


def _metadata_file(path: Path) -> Path | None:
    if path.is_dir():
        found = sorted(path.glob("*metadata.txt"))
        return found[0] if len(found) == 1 else None
    if path.suffix.lower() not in TIFF:
        return None
    beside = path.with_name(path.name.split(".")[0] + "_metadata.txt")
    return beside if beside.is_file() else None


def read(path: Path) -> Description:
    """Frames in the order of their numbers, LEDs as steps of a lattice from the centre LED."""
    from tifffile import natural_sorted

    metadata = _metadata_file(path)
    assert metadata is not None
    content = read_json(metadata)
    keys = natural_sorted(key for key in content if key.startswith("FrameKey"))
    if not keys:
        held = ", ".join(content) or "nothing"
        raise InvalidInputError(f"{metadata}: FrameKey entries are missing; the file holds {held}")
    frames = [(key, record(metadata, key, content[key])) for key in keys]
    times = [(f"{key}.Exposure-ms", frame["Exposure-ms"]) for key, frame in frames if "Exposure-ms" in frame]
    size = frames[0][1].get("PixelSizeUm") or 0
    notes = ("PixelSizeUm is the pixel at the sample: written as camera_pixel with magnification 1",) if size else ()
    return Description(
        "Micro-Manager TIFF",
        _source(path, metadata, [frame for _, frame in frames]),
        microscope={"magnification": 1.0, "camera_pixel": number(metadata, "PixelSizeUm", size) / 1e6} if size else {},
        leds=_leds(metadata, frames),
        leds_field=f"LEDs of {metadata.name}",
        exposures=np.array([number(metadata, *t) for t in times]) / 1000 if len(times) == len(frames) else None,
        notes=notes,
    )


def _leds(metadata: Path, frames: list[tuple[str, Any]]) -> LEDTable | None:
    data = [record(metadata, f"{key}.UserData", frame.get("UserData", {})) for key, frame in frames]
    if not any("LEDCoordX" in places for places in data):
        return None
    return LEDTable("grid", np.array([_steps(metadata, key, frame, frames[0][1]) for key, frame in frames]))


def _steps(metadata: Path, key: str, frame: dict[str, Any], first: dict[str, Any]) -> tuple[float, float]:
    """(rows, columns) of the frame's LED from the centre LED, which the first frame names."""
    place = []
    for axis in "YX":
        values = []
        for data, name in ((frame, f"LEDCoord{axis}"), (first, f"centerLEDCoord{axis}")):
            value = data.get("UserData", {}).get(name)
            if not isinstance(value, dict) or "scalar" not in value:
                raise InvalidInputError(f"{metadata}: {key}.UserData.{name}.scalar is missing")
            values.append(number(metadata, f"{key}.UserData.{name}.scalar", value["scalar"], positive=False))
        place.append(values[0] - values[1])
    return place[0], place[1]


def _source(path: Path, metadata: Path, frames: list[dict[str, Any]]) -> FramesSource:
    if path.is_file():
        return FramesSource(path, "tiff")
    names = [str(frame.get("FileName", "")) for frame in frames]
    if all(names) and len(set(names)) == len(names) > 1:
        return FramesSource(path, "folder", files=tuple(names))
    stem = metadata.name.removesuffix("metadata.txt").rstrip("_")
    stacks = [child for child in sorted(path.iterdir()) if child.suffix.lower() in TIFF and child.name.startswith(stem)]
    if len(stacks) != 1:
        raise InvalidInputError(
            f"{path}: one TIFF was expected beside {metadata.name}, got {len(stacks)}; name the TIFF itself"
        )
    return FramesSource(stacks[0], "tiff")
