"""``metadata.json`` and ``illumination_na.csv`` beside the data: a description that suits any format.

``metadata.json`` may have these keys, all optional, in SI units. Other keys are ignored:

======================  ==============================================================================
wavelength_m            wavelength in vacuum
objective_na            numerical aperture
magnification           of the sample on the camera, together with
camera_pixel_m          pitch of the camera's pixels; or instead of both
pixel_size_object_m     the pixel at the sample
medium_index            refractive index between sample and objective
led_height_m            distance of the LEDs from the sample
led_pitch_m             distance of neighbouring LEDs
glass_slide             {thickness_m, index}
defocus_m               of the sample, as in [pupil] defocus
exposure_s              a list, one per frame
frames, frame_shape     checked against the frames
stored                  text; if it begins with "amplitude", intensity is the square of what is stored, unless its
                        levels show another power
======================  ==============================================================================

``illumination_na.csv`` has the columns na_x (along the columns of a frame) and na_y (along its rows), one line per
frame.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fouriscope.acquisition.description import Description
from fouriscope.acquisition.led_table import read_led_table
from fouriscope.acquisition.readers.fields import named_numbers, number, read_json, record
from fouriscope.errors import InvalidInputError

METADATA = "metadata.json"
LEDS = "illumination_na.csv"


def with_sidecar(description: Description, folder: Path) -> Description:
    """The description with what the sidecars in ``folder`` say. They overrule the data."""
    if (folder / METADATA).is_file():
        description = _with_metadata(description, folder / METADATA)
    if (folder / LEDS).is_file():
        leds = read_led_table(folder / LEDS)
        kept = tuple(text for text in description.assumed if not text.startswith("LED"))
        description = replace(description, leds=leds, leds_path=folder / LEDS, leds_field="illumination", assumed=kept)
    return description


def _with_metadata(description: Description, path: Path) -> Description:
    content = read_json(path)
    microscope = named_numbers(
        path,
        content,
        wavelength="wavelength_m",
        na="objective_na",
        magnification="magnification",
        camera_pixel="camera_pixel_m",
        medium_index="medium_index",
    )
    notes = list(description.notes)
    if "pixel_size_object_m" in content and not {"magnification", "camera_pixel"} <= set(microscope):
        microscope |= {
            "magnification": 1.0,
            "camera_pixel": number(path, "pixel_size_object_m", content["pixel_size_object_m"]),
        }
        notes.append("the pixel at the sample is given: written as camera_pixel with magnification 1")
    lighting = named_numbers(path, content, height="led_height_m", pitch="led_pitch_m")
    slide = content.get("glass_slide")
    if slide is not None:
        slide = record(path, "glass_slide", slide)
        lighting["slide_thickness"] = number(path, "glass_slide.thickness_m", slide.get("thickness_m"))
        lighting["slide_index"] = number(path, "glass_slide.index", slide.get("index"))
    pupil: dict[str, Any] = dict(description.pupil)
    if content.get("defocus_m"):
        pupil["defocus"] = number(path, "defocus_m", content["defocus_m"], positive=False)
    exposures = description.exposures
    if "exposure_s" in content:
        times = content["exposure_s"] if isinstance(content["exposure_s"], list) else [content["exposure_s"]]
        exposures = np.array([number(path, f"exposure_s[{n}]", time) for n, time in enumerate(times)])
    frames = description.frames
    if str(content.get("stored", "")).lower().startswith("amplitude"):
        frames = replace(frames, amplitude=True)
    shape = frames.open().shape
    for field, found in (("frames", shape[0]), ("frame_shape", list(shape[1:]))):
        if content.get(field, found) != found:
            raise InvalidInputError(f"{path}: {field} is {content[field]}, but {frames.path} has {found}")
    assumed = tuple(text for text in description.assumed if text.split(":")[0] not in {*microscope, *lighting})
    return replace(
        description,
        frames=frames,
        microscope=description.microscope | microscope,
        lighting=description.lighting | lighting,
        pupil=pupil,
        exposures=exposures,
        notes=tuple(notes),
        assumed=assumed,
    )
