"""Bundles of fpm-rs: ``dataset.json`` names ``measurements.json`` (frames, corrections) and ``configuration.json``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from fouriscope.acquisition.description import Description, FramesSource
from fouriscope.acquisition.led_table import LEDTable
from fouriscope.acquisition.readers.fields import number, numbers, read_json, record, records, required
from fouriscope.errors import InvalidInputError

FILE = "dataset.json"


def recognises(path: Path) -> bool:
    """A folder with dataset.json that names a measurement manifest, or that file itself."""
    file = path / FILE if path.is_dir() else path
    return file.name == FILE and file.is_file() and "measurement_manifest" in read_json(file)


def read(path: Path) -> Description:
    """Frames in the order of the manifest, directions from the wave vectors of the reconstruction's model."""
    file = path / FILE if path.is_dir() else path
    content = read_json(file)
    manifest = file.parent / str(required(file, content, "measurement_manifest"))
    settings = file.parent / str(required(file, content, "configuration"))
    measurements, configuration = read_json(manifest), read_json(settings)
    frames = records(manifest, "frames", required(manifest, measurements, "frames"))
    name = "reconstruction_experiment"
    experiment = record(settings, name, required(settings, configuration, name))
    optics = record(settings, f"{name}.optics", required(settings, experiment, "optics"))
    microscope = numbers(
        settings,
        {
            "wavelength": ("optics.wavelength_vacuum_m", required(settings, optics, "wavelength_vacuum_m"), 1.0),
            "na": ("optics.objective_na", optics.get("objective_na"), 1.0),
            "magnification": ("optics.magnification", optics.get("magnification"), 1.0),
            "camera_pixel": ("optics.camera_pixel_size", optics.get("camera_pixel_size"), 1.0),
            "medium_index": ("medium", optics.get("objective_medium_refractive_index"), 1.0),
        },
    )
    switches = record(manifest, "preprocessing", measurements.get("preprocessing") or {})
    notes = [
        f"{name} is listed, but its correction is switched off in preprocessing: not applied"
        for name, switch in (("dark_frame", "subtract_dark"), ("flat_field", "divide_flat_field"))
        if measurements.get(name) and not switches.get(switch)
    ]
    if switches.get("subtract_background"):
        notes.append("background images are not applied: use frames.background")
    leds, sign_note = _directions(settings, configuration, experiment, microscope["wavelength"])
    mask = measurements.get("mask")
    return Description(
        "fpm-rs bundle",
        FramesSource(
            manifest.parent, "folder", files=tuple(str(required(manifest, frame, "path")) for frame in frames)
        ),
        microscope=microscope,
        leds=leds,
        leds_field="k_vectors",
        exposures=_each(manifest, frames, "exposure_time") if switches.get("normalize_exposure") else None,
        weights=_each(manifest, frames, "weight"),
        dark=(manifest.parent / str(required(manifest, measurements, "dark_frame")),)
        if switches.get("subtract_dark")
        else (),
        flat=manifest.parent / str(required(manifest, measurements, "flat_field"))
        if switches.get("divide_flat_field")
        else None,
        mask=manifest.parent / mask if isinstance(mask, str) else None,
        notes=(*sign_note, *notes),
    )


def _directions(
    file: Path, configuration: dict[str, Any], experiment: dict[str, Any], wavelength: float
) -> tuple[LEDTable, tuple[str, ...]]:
    """na = ±k λ/2π.

    Measured wave vectors say around which frequency the spectrum is cropped, and so do ours. Those that fpm-rs computed
    from the positions of LEDs have the opposite sign of what fpm-rs, PtyLab and we give an LED at +x; the object would
    come out conjugated.
    """
    models = record(file, "compiled_models", configuration.get("compiled_models") or {})
    model = record(file, "compiled_models.reconstruction_model", models.get("reconstruction_model") or {})
    light = record(file, "illumination", experiment.get("illumination") or {})
    geometry = record(file, "illumination.geometry", light.get("geometry") or {})
    found = model.get("k_vectors") or geometry.get("k_vectors")
    if not found:
        raise InvalidInputError(f"{file}: compiled_models.reconstruction_model.k_vectors is missing")
    vectors = records(file, "k_vectors", found)
    k = np.array(
        [
            [number(file, f"k_vectors[{n}].{axis}", vector.get(axis), positive=False) for axis in ("ky", "kx")]
            for n, vector in enumerate(vectors)
        ]
    )
    na = k * wavelength / (2 * math.pi)
    if geometry.get("kind", "k_vector_list") in ("k_vector_list", "direction_list"):
        return LEDTable("na", na), ()
    return LEDTable("na", -na), (f"wave vectors of a {geometry['kind']}: their sign is reversed to ours (+x is +na_x)",)


def _each(manifest: Path, frames: list[dict[str, Any]], field: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array(
        [
            number(manifest, f"frames[{n}].{field}", frame.get(field, 1.0), positive=False)
            for n, frame in enumerate(frames)
        ]
    )
