"""What a reader found in an acquisition: the content of an ``acquisition.toml`` before it is written."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.frames import Frames, kind_of, open_frames
from fouriscope.acquisition.led_table import LEDTable
from fouriscope.errors import InvalidInputError

INLINE_LEDS = 50  # more than this go to a file beside the TOML

# The keys that a description needs before it can be reconstructed, with what they mean and an example.
_MICROSCOPE = {
    "wavelength": ("the wavelength in metres", "523e-9"),
    "na": ("the numerical aperture of the objective", "0.1"),
    "magnification": ("the magnification (1 if camera_pixel is the pixel at the sample)", "4"),
    "camera_pixel": ("the pixel of the camera in metres", "6.5e-6"),
}


@dataclass(frozen=True)
class FramesSource:
    """Where frames are and how they are stored: the arguments of :func:`open_frames`."""

    path: Path
    kind: str | None = None
    dataset: str | None = None
    axes: str | None = None
    pattern: str | None = None
    files: tuple[str, ...] | None = None
    amplitude: bool = False
    power: float | None = None

    def open(self) -> Frames:
        """The frames, lazily."""
        return open_frames(**vars(self) | {"power": 1.0 if self.power is None else self.power})


@dataclass(frozen=True)
class Missing:
    """A key that the reader could not fill in: ``section.key``, what it is, and an example of its value."""

    key: str
    meaning: str
    example: str


@dataclass(frozen=True, eq=False)
class Description:
    """An acquisition as a file describes it. Lengths are in metres, times in seconds. What is unknown is left out.

    Attributes
    ----------
    format
        The name of the format, for people.
    frames
        Where the frames are.
    microscope
        The keys of [microscope] that were found.
    leds, leds_path, leds_field
        One LED per frame, in the order of the frames; the CSV file they were read from, if there is one; and what the
        format calls them, for errors.
    lighting
        Further keys of [illumination]: height, pitch, rotation, offset, slide_thickness, slide_index.
    pupil
        Keys of [pupil].
    exposures, weights
        One per frame.
    dark, flat, mask
        Images beside the frames.
    notes, assumed
        What else was found, and what the file's authors publish although the file does not say it.
    """

    format: str
    frames: FramesSource
    microscope: dict[str, float] = field(default_factory=dict)
    leds: LEDTable | None = None
    leds_path: Path | None = None
    leds_field: str = "illumination"
    lighting: dict[str, Any] = field(default_factory=dict)
    pupil: dict[str, Any] = field(default_factory=dict)
    exposures: NDArray[np.float64] | None = None
    weights: NDArray[np.float64] | None = None
    dark: tuple[Path, ...] = ()
    flat: Path | None = None
    mask: Path | None = None
    notes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    def check(self, count: int) -> None:
        """Raise unless there is one LED (and exposure, and weight) for each of ``count`` frames."""
        source = self.leds_path or self.frames.path
        for name, values in ((self.leds_field, self.leds), ("exposures", self.exposures), ("weights", self.weights)):
            if values is not None and len(values) != count:
                raise InvalidInputError(f"{source}: {name} has {len(values)} entries, but the stack has {count} frames")

    def missing(self) -> list[Missing]:
        """The keys that could not be inferred."""
        lacking = [
            Missing(f"microscope.{key}", meaning, example)
            for key, (meaning, example) in _MICROSCOPE.items()
            if key not in self.microscope
        ]
        if self.leds is None:
            meaning = (
                "the LEDs: square, disc, spiral, rings, or kind = 'file' with path = a CSV of na_y, na_x, one per frame"
            )
            return [
                *lacking,
                Missing("illumination.kind", meaning, "file"),
                Missing("illumination.path", "", "leds.csv"),
            ]
        if self.leds.kind != "na" and "height" not in self.lighting:
            lacking.append(Missing("illumination.height", "distance of the LEDs from the sample in metres", "0.09"))
        if self.leds.kind == "grid" and "pitch" not in self.lighting:
            lacking.append(Missing("illumination.pitch", "distance from LED to LED in metres", "4e-3"))
        return lacking

    def document(self, folder: Path, leds_name: str) -> dict[str, dict[str, Any]]:
        """The sections of the configuration, with paths as seen from ``folder``; ``leds_name`` is a CSV to be written
        there where :meth:`leds_file` says so."""
        source = self.frames
        frames: dict[str, Any] = {"path": _seen_from(folder, source.path)}
        if source.kind is not None and source.kind != kind_of(source.path):
            frames["kind"] = source.kind
        optional = {"dataset": source.dataset, "axes": source.axes, "pattern": source.pattern}
        frames |= {key: value for key, value in optional.items() if value is not None}
        if source.files is not None:
            frames["files"] = list(source.files)
        if source.amplitude:
            frames["amplitude"] = True
        if source.power is not None:
            frames["power"] = source.power
        if self.exposures is not None and np.ptp(self.exposures) > 0:
            frames["exposures"] = self.exposures.tolist()
        if self.weights is not None and np.any(self.weights != 1):
            frames["weights"] = self.weights.tolist()
        if self.dark:
            names = [_seen_from(folder, path) for path in self.dark]
            frames["dark"] = names[0] if len(names) == 1 else names
        for key, path in (("flat", self.flat), ("mask", self.mask)):
            if path is not None:
                frames[key] = _seen_from(folder, path)
        sections = {
            "frames": frames,
            "microscope": dict(self.microscope),
            "illumination": self._lights(folder, leds_name),
        }
        return sections | ({"pupil": dict(self.pupil)} if self.pupil else {})

    def lighting_of(self, kind: str) -> dict[str, Any]:
        """What is known of the place of the LEDs whatever their order, as far as an illumination of ``kind`` asks for
        it: for somebody who overrules the order."""
        keys = ["height"] if kind in ("file", "directions") else ["height", "slide_thickness", "slide_index"]
        keys += ["pitch"] if kind in ("square", "disc", "spiral") else []
        return {key: self.lighting[key] for key in keys if key in self.lighting}

    def leds_file(self) -> Literal["none", "there", "new"]:
        """Whether the LEDs stand in the TOML, in a CSV that exists, or in one that must be written."""
        if self.leds is None:
            return "none"
        if self.leds_path is not None:
            return "there"
        return "new" if len(self.leds) > INLINE_LEDS or self.leds.kind == "grid" else "none"

    def _lights(self, folder: Path, leds_name: str) -> dict[str, Any]:
        if self.leds is None or self.leds.kind == "positions":
            lighting = {key: value for key, value in self.lighting.items() if key != "pitch"}
        else:
            lighting = {
                key: value for key, value in self.lighting.items() if self.leds.kind == "grid" or key == "height"
            }
        if self.leds is None:
            return lighting
        if self.leds_file() != "none":
            path = leds_name if self.leds_path is None else _seen_from(folder, self.leds_path)
            return {"kind": "file", "path": path} | lighting
        if self.leds.kind == "na":
            return {"kind": "directions", "na": self.leds.values.tolist()} | lighting
        return {"kind": "positions", "positions": self.leds.values.tolist()} | lighting


def _seen_from(folder: Path, path: Path) -> str:
    """Relative if the file lies in or below the folder, so that both can move together; absolute otherwise."""
    folder, path = folder.resolve(), path.resolve()
    return os.path.relpath(path, folder) if path.is_relative_to(folder) else str(path)
