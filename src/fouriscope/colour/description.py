"""One description of three channels, and the ordinary description of each that follows from it."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fouriscope.acquisition.colours import Colour
from fouriscope.errors import InvalidInputError
from fouriscope.run.config import absolute_paths, config_of, read_document
from fouriscope.run.toml_lines import overruled
from fouriscope.settings import RunConfig
from fouriscope.settings.colour import ColourSection
from fouriscope.settings.explaining import explain

# A channel that names one of these has its own frames. Otherwise it reads a plane of the frames that all share.
OWN_FRAMES = {"path", "pattern", "files", "dataset", "shape"}
# What an alignment finds for each channel. Everything else is geometry, which the channels share.
OF_EACH = ("exposure", "focus")


@dataclass(frozen=True, eq=False)
class ColourDescription:
    """A description with a section [colour].

    Attributes
    ----------
    section
        [colour].
    document
        All other sections, as they are in the file.
    path
        The file; relative paths start at its folder.
    """

    section: ColourSection
    document: dict[str, Any]
    path: Path

    @classmethod
    def load(cls, path: str | Path) -> ColourDescription:
        """Read and check a file: its channels must be descriptions that a run understands."""
        path = Path(path)
        document = read_document(path)
        if "colour" not in document:
            raise InvalidInputError(
                f"{path} has no section [colour]: for one wavelength use fouriscope reconstruct, for three see "
                "docs/colour.md"
            )
        keys = document.pop("colour")
        try:
            section = ColourSection.model_validate(keys)
        except ValidationError as error:
            raise InvalidInputError(f"{path}: colour.{explain(error, ColourSection, keys)}") from error
        described = cls(section, document, path)
        for name in section.channels:
            described.config(name)
        return described

    @property
    def base(self) -> Path:
        """Where relative paths start."""
        return self.path.parent

    def config(self, name: Colour, reference: dict[str, Any] | None = None) -> RunConfig:
        """The description of one channel; ``reference`` is the description that the run of the reference found.

        Light of another wavelength comes from the same LEDs, so a channel takes over their places and size, the
        aperture and the frames that are left out at its edge. It finds its own exposures and focus; the search for the
        focus begins at that of the reference.
        """
        channel = self.section.channels[name]
        shared = copy.deepcopy(self.document)
        shared["microscope"] = shared.get("microscope", {}) | {"wavelength": channel.wavelength}
        if channel.bandwidth:
            shared["microscope"]["bandwidth"] = channel.bandwidth
        frames = dict(channel.frames)
        if not OWN_FRAMES & set(frames):
            frames.setdefault("plane", name)
        document = overruled(shared, {"frames": frames})
        if reference is not None:
            document = absolute_paths(document, self.base.resolve())
            document |= {"illumination": reference["illumination"]}
            document["microscope"]["na"] = reference["microscope"]["na"]
            if "weights" in reference["frames"] and "weights" not in frames:
                document["frames"]["weights"] = reference["frames"]["weights"]
            document["pupil"] = document.get("pupil", {}) | {"defocus": reference["pupil"]["defocus"]}
            wanted = document.get("alignment", {})
            kept = {key: value for key, value in wanted.items() if key in (*OF_EACH, "focus_reach")}
            document["alignment"] = kept
        if name != self.section.reference and any(channel.offset):
            document["illumination"] = _moved(document.get("illumination", {}), channel.offset, self.path)
        return config_of(document, self.path, where=f"{self.path} ({name})")


def _moved(illumination: dict[str, Any], offset: tuple[float, float], path: Path) -> dict[str, Any]:
    before = illumination.get("offset", (0.0, 0.0))
    if illumination.get("kind") == "directions" and "height" not in illumination:
        raise InvalidInputError(f"{path}: colour offsets need the height of the LEDs, illumination.height")
    return illumination | {"offset": [float(there + more) for there, more in zip(before, offset, strict=True)]}
