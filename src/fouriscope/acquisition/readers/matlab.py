"""MATLAB files, v5 and v7.3: the names that UConn, Waller's and Caltech's groups use, and any other single stack."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from fouriscope.acquisition.description import Description, FramesSource
from fouriscope.acquisition.led_table import LEDTable
from fouriscope.acquisition.mat_file import MatFile
from fouriscope.acquisition.readers.fields import number, numbers, pairs
from fouriscope.acquisition.readers.scalars import with_scalars
from fouriscope.errors import InvalidInputError
from fouriscope.optics.spiral import spiral_steps

# Caltech's LEDs by the letter at the end of a file's name, in metres.
COLOURS = {"r": 0.632e-6, "red": 0.632e-6, "g": 0.5126e-6, "green": 0.5126e-6, "b": 0.471e-6, "blue": 0.471e-6}

# What the UConn group publishes beside its files; 90.88 mm of air and 1 mm of glass make up the height.
UCONN = {"na": 0.1, "magnification": 1.0, "camera_pixel": 1.845e-6}
UCONN_LIGHT = {"height": 91.88e-3, "pitch": 4e-3, "slide_thickness": 1e-3, "slide_index": 1.52}


def recognises(path: Path) -> bool:
    """By its name."""
    return path.is_file() and path.suffix.lower() == ".mat"


def read(path: Path) -> Description:
    """By the names of the variables."""
    file = MatFile(path)
    if "imlow_HDR" in file.shapes:
        return _uconn(file)
    if "I_low" in file.shapes:
        return _caltech(file)
    if "data" in file.shapes and "metadata" in file.shapes:
        return _waller(file)
    stacks = [name for name, shape in file.shapes.items() if len(shape) == 3]
    if len(stacks) != 1:
        raise InvalidInputError(
            f"{path}: imlow_HDR, I_low, data with metadata, or one three-dimensional variable was expected; "
            f"the file holds {', '.join(file.shapes) or 'nothing'}"
        )
    source = FramesSource(path, "mat", stacks[0])
    return with_scalars(Description("MATLAB stack", source, notes=(f"frames are in {stacks[0]!r}",)))


def _uconn(file: MatFile) -> Description:
    """Amplitudes; LEDs in a spiral from the centre, shifted by xint, yint (mm) and turned by theta (degrees)."""
    path, count = file.path, file.shapes["imlow_HDR"][2]
    x, y, theta = (number(path, name, file.value(name, 0.0), positive=False) for name in ("xint", "yint", "theta"))
    lighting: dict[str, Any] = dict(UCONN_LIGHT)
    if x or y:
        lighting["offset"] = [y * 1e-3, x * 1e-3]
    if theta:
        lighting["rotation"] = float(np.deg2rad(theta))
    defocus = number(path, "z", file.value("z", 0.0), positive=False)
    return Description(
        "UConn MATLAB",
        FramesSource(path, "mat", "imlow_HDR", amplitude=True),
        microscope=numbers(path, {"wavelength": ("wlength", file.value("wlength"), 1.0)}) | UCONN,
        leds=LEDTable("grid", spiral_steps(count)),
        lighting=lighting,
        pupil={"defocus": defocus} if defocus else {},
        notes=_aberration(file),
        assumed=(
            "na: 0.1, the objective that the authors publish",
            "camera_pixel: 1.845 µm at the sample, as the authors publish",
            "LEDs: a spiral from the centre, pitch 4 mm, 90.88 mm of air and 1 mm of glass",
        ),
    )


def _aberration(file: MatFile) -> tuple[str, ...]:
    """What the file says about the pupil. Its array is on the frames' grid, but [pupil] array needs the grid of frames
    with their margin, so it cannot be used."""
    array = np.squeeze(np.asarray(file.value("aberration", 0.0)))
    if array.ndim == 0:
        return () if array == 0 else (f"aberration is {array.item():g}, a number of unknown meaning: not used",)
    shape = " × ".join(map(str, array.shape))
    return (
        f"aberration holds {shape} {array.dtype} numbers, a pupil on the grid of the bare frames. [pupil] array needs "
        "the grid of frames with their margin, so it is not used; [calibration] recovers the pupil from the frames",
    )


def _waller(file: MatFile) -> Description:
    """metadata.source_list holds (x, y) in NA; calibrated ones are preferred, then initial, then designed ones."""
    path = file.path
    found = {name: file.value(f"metadata.source_list.{name}") for name in ("na_calib", "na_init", "na_design")}
    name = next((name for name, values in found.items() if values is not None), None)
    if name is None:
        raise InvalidInputError(f"{path}: metadata.source_list has none of na_calib, na_init, na_design")
    leds = pairs(path, f"metadata.source_list.{name}", found[name])[:, ::-1]
    nominal, calibrated = file.value("metadata.objective.na"), file.value("metadata.self_cal.na_cal")
    power = [file.value(f"metadata.objective.{part}") for part in ("mag", "system_mag")]
    total = [number(path, "metadata.objective.mag", value) for value in power if value is not None]
    fields = {
        "wavelength": ("metadata.illumination.wavelength_um", file.value("metadata.illumination.wavelength_um"), 1e-6),
        "na": ("metadata.objective.na", nominal if calibrated is None else calibrated, 1.0),
        "magnification": ("metadata.objective.mag", float(np.prod(total)) if total else None, 1.0),
        "camera_pixel": ("metadata.camera.pixel_size_um", file.value("metadata.camera.pixel_size_um"), 1e-6),
    }
    height = file.value("metadata.illumination.z_distance_mm")
    notes = [f"directions are metadata.source_list.{name}"]
    if file.value("metadata.bk") is not None:
        notes.append("metadata.bk holds background levels: use them as frames.background if stray light matters")
    return Description(
        "Waller MATLAB",
        FramesSource(path, "mat", "data"),
        microscope=numbers(path, fields),
        leds=LEDTable("na", leds),
        leds_field=f"metadata.source_list.{name}",
        lighting=numbers(path, {"height": ("metadata.illumination.z_distance_mm", height, 1e-3)}),
        notes=tuple(notes),
    )


def _caltech(file: MatFile) -> Description:
    """na_calib holds (x, y) in NA; without it, freqXY_calib in pixels of the spectrum, DC at floor(n/2) + 1."""
    path, (rows, columns, _) = file.path, file.shapes["I_low"]
    na, radius = file.value("na_cal"), file.value("na_rp_cal")
    if file.value("na_calib") is not None:
        leds = pairs(path, "na_calib", file.value("na_calib"))
    elif file.value("freqXY_calib") is not None and radius is not None and na is not None:
        pixels = pairs(path, "freqXY_calib", file.value("freqXY_calib")) - [columns // 2 + 1, rows // 2 + 1]
        leds = pixels * number(path, "na_cal", na) / number(path, "na_rp_cal", radius)
    else:
        raise InvalidInputError(f"{path}: na_calib (or freqXY_calib with na_rp_cal and na_cal) is missing")
    colour = next((file.value(name) for name in ("lambda", "wavelength") if file.value(name) is not None), None)
    assumed: tuple[str, ...] = ()
    if colour is None:
        letter = re.findall(r"(?:^|[_\-\s])(r|g|b|red|green|blue)(?=$|[_\-\s])", path.stem.lower())
        if letter:
            colour = COLOURS[letter[-1]] * 1e6
            assumed = (f"wavelength: {colour:g} µm, Caltech's LED of the colour at the end of the file's name",)
    unit = 1e-6 if colour is not None and number(path, "lambda", colour) > 1e-3 else 1.0
    fields = {
        "wavelength": ("lambda", colour, unit),
        "na": ("na_cal", na, 1.0),
        "magnification": ("mag", file.value("mag"), 1.0),
        "camera_pixel": ("dpix_c", file.value("dpix_c"), 1e-6),
    }
    return Description(
        "Caltech MATLAB",
        FramesSource(path, "mat", "I_low"),
        microscope=numbers(path, fields),
        leds=LEDTable("na", leds[:, ::-1]),
        leds_field="na_calib" if file.value("na_calib") is not None else "freqXY_calib",
        assumed=assumed,
    )
