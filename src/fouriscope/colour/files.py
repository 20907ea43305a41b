"""The result folder of a colour reconstruction: pictures for people, OME files for other programs."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fouriscope import plots
from fouriscope.acquisition.colours import COLOURS
from fouriscope.colour.result import ColourResult
from fouriscope.run.files import atomic_write, write_json
from fouriscope.run.halving import Levels, mean_levels
from fouriscope.run.ome_tiff import write_ome_tiff
from fouriscope.run.ome_zarr import write_ome_zarr
from fouriscope.run.result_files import FIGURE_DPI

# The colours in which viewers should overlay the channels.
LIGHTS = {"red": "FF0000", "green": "00FF00", "blue": "0000FF"}
DESCRIPTIONS = {
    "amplitude": "amplitude transmittance of three wavelengths on one grid; 1 is the empty bright field",
    "phase": "phase in radians of three wavelengths on one grid, each up to a constant and whole turns",
    "phase_flat": "unwrapped phase in radians without ramp and curvature of its background, for viewing",
}


def write_files(result: ColourResult, target: Path) -> None:
    """Write amplitude, phase and phase_flat (.ome.tif), result.ome.zarr, colour.png, figure.png and summary.json."""
    images = {"amplitude": result.amplitude, "phase": result.phase, "phase_flat": result.flattened_phase}
    for name, planes in images.items():
        write_ome_tiff(
            target / f"{name}.ome.tif",
            planes,
            pixel=result.pixel,
            channels=[f"{name}_{colour}" for colour in COLOURS],
            colours=list(LIGHTS.values()),
            description=DESCRIPTIONS[name],
        )
    channels: dict[str, Levels] = {
        f"{name}_{colour}": _levels(plane)
        for name, planes in images.items()
        if name != "phase"  # the mean of wrapped phases is not a phase
        for colour, plane in zip(COLOURS, planes, strict=True)
    }
    rows, columns = images["phase"].shape[1:]
    lights = {f"amplitude_{colour}": light for colour, light in LIGHTS.items()}
    write_ome_zarr(
        target / "result.ome.zarr", channels, (rows, columns), result.pixel, name="fouriscope colours", colours=lights
    )
    _write_png(result.rgb, target / "colour.png")
    write_json(target / "summary.json", summary(result))
    figure = plots.colour_figure(
        result.rgb, dict(zip(COLOURS, images["phase_flat"], strict=True)), pixel=result.pixel[1]
    )
    plots.save_figure(figure, target / "figure.png", dpi=FIGURE_DPI)


def summary(result: ColourResult) -> dict[str, object]:
    """Shifts and focus of the channels, in metres."""
    height, width = result.pixel
    channels = {}
    for name in COLOURS:
        shift, geometry = result.shifts[name], result.channels[name].geometry
        channels[name] = {
            "wavelength_m": None if geometry is None else geometry.wavelength,
            "defocus_m": result.focus[name],
            "shift_m": [shift.down * height, shift.across * width],
            "shift_pixels": [shift.down, shift.across],
            "likeness": shift.likeness,
        }
    shape = list(result.fields[result.reference].shape)
    return {
        "shape": shape,
        "pixel_size_m": [height, width],
        "stopped": "all channels are done",
        "reference": result.reference,
        "channels": channels,
    }


def _levels(plane: NDArray[np.float64]) -> Levels:
    return lambda count: mean_levels(plane, count)


def _write_png(image: NDArray[np.uint8], path: Path) -> None:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    with atomic_write(path) as file:
        file.write(buffer.getbuffer())
