"""OME-TIFF in several files: which page of which file is which frame. Only files of the same folder are read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from fouriscope.acquisition.input_files import require_neighbour
from fouriscope.errors import InvalidInputError

MOST_PLANES = 100_000


def planes_of_set(path: Path, text: str | None) -> list[tuple[Path, int]] | None:
    """(file, page) of each frame of the set that ``text``, the OME-XML of ``path``, describes, plane by plane.

    None if it describes no other file: then the pages of the file itself are the frames. That also holds for a renamed
    file, whose OME-XML still has its old name.
    """
    if text is None:
        return None
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return None  # the reader of the metadata says so
    images = [_planes(path, image, root.get("UUID")) for image in root.iter() if _tag(image) == "Pixels"]
    own = next((planes for planes in images if path.name in (name for name, _ in planes.values())), {})
    if {name for name, _ in own.values()} <= {path.name}:
        return None
    if sorted(own) != list(range(len(own))):
        lost = next(plane for plane in range(len(own)) if plane not in own)
        raise InvalidInputError(f"{path}: its OME-XML does not say where plane {lost} of the image is")
    files = {
        name: require_neighbour(path, name, "its OME-XML") for name in dict.fromkeys(name for name, _ in own.values())
    }
    return [(files[own[plane][0]], own[plane][1]) for plane in range(len(own))]


def _planes(path: Path, pixels: Any, identity: str | None) -> dict[int, tuple[str, int]]:
    """Plane → (name of the file, page) of one image."""
    order = pixels.get("DimensionOrder", "XYZCT")[2:]
    sizes = [_whole(path, pixels, f"Size{axis}", 1) for axis in order]
    found: dict[int, tuple[str, int]] = {}
    for data in (child for child in pixels if _tag(child) == "TiffData"):
        uuid = next((child for child in data if _tag(child) == "UUID"), None)
        own = uuid is None or "FileName" not in uuid.attrib or (identity is not None and uuid.text == identity)
        name = path.name if own or uuid is None else str(uuid.get("FileName"))
        steps = [math.prod(sizes[:place]) for place in range(len(sizes))]
        first = sum(_whole(path, data, f"First{axis}", 0) * step for axis, step in zip(order, steps, strict=True))
        count = _whole(path, data, "PlaneCount", 1 if "IFD" in data.attrib else math.prod(sizes))
        page = _whole(path, data, "IFD", 0)
        if first + count > MOST_PLANES:
            raise InvalidInputError(f"{path}: its OME-XML names plane {first + count}; at most {MOST_PLANES} are read")
        found |= {first + place: (name, page + place) for place in range(count)}
    return found


def _whole(path: Path, element: Any, name: str, default: int) -> int:
    text = element.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InvalidInputError(f"{path}: {name} in its OME-XML must be a whole number, got {text!r}")
    return int(text)


def _tag(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]
