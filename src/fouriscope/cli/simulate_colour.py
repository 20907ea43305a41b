"""`fouriscope simulate --colour`: three wavelengths of one sample, with the description that reconstructs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
from rich.console import Console
from rich.markup import escape

from fouriscope.acquisition.colours import COLOURS
from fouriscope.cli.simulated_files import write_tiff
from fouriscope.errors import InvalidInputError
from fouriscope.paper import PAPER_LEDS, PAPER_MICROSCOPE, paper_leds
from fouriscope.run.files import write_json, write_text
from fouriscope.run.ome_tiff import write_ome_tiff
from fouriscope.run.recipe import measured_sections
from fouriscope.run.toml_lines import toml_of
from fouriscope.simulation import Camera
from fouriscope.simulation.colours import NO_CROSSTALK, ColourMicroscope, Stored

# Of a colour camera that is simulated: a tenth of its neighbour in the spectrum, and a trace of the other.
CROSSTALK = ((1.0, 0.1, 0.02), (0.12, 1.0, 0.1), (0.02, 0.12, 1.0))


def run_colours(
    out: Path, stored: str, *, frame: int, radius: float, photons: float | None, seed: int, console: Console
) -> None:
    """Write the frames of three wavelengths, colour.toml that describes them, and the truth."""
    if stored not in get_args(Stored):
        raise InvalidInputError(f"--colour must be one of {', '.join(get_args(Stored))}, got {stored!r}")
    crosstalk = NO_CROSSTALK if stored == "files" else CROSSTALK
    microscope = ColourMicroscope(
        paper_leds(radius),
        frame=frame,
        stored="files" if stored == "files" else "planes" if stored == "planes" else "mosaic",
        crosstalk=crosstalk,
        camera=Camera(10_000 if photons is None else photons, offset=100),
    )
    counts = microscope.acquire(seed)
    out.mkdir(parents=True, exist_ok=True)
    if stored == "files":
        for colour, stack in zip(COLOURS, counts, strict=True):
            write_tiff(out / f"{colour}.tif", stack)
    else:
        write_tiff(out / "frames.tif", counts)
    truth = np.stack([microscope.truth(colour, seed) for colour in COLOURS])
    height, width = microscope.model("green").object_pixel
    for name, image in (("amplitude", np.abs(truth)), ("phase", np.angle(truth))):
        write_ome_tiff(
            out / f"truth_{name}.ome.tif",
            image,
            pixel=(height, width),
            channels=list(COLOURS),
            description=f"{name} of the sample in three wavelengths",
        )
    told = {key: getattr(microscope, key) for key in ("wavelengths", "defocus", "shifts", "crosstalk")}
    write_json(out / "truth.json", told)
    write_text(out / "colour.toml", toml_of(describe_colours(microscope, radius)))
    console.print(
        f"{escape(str(out))}: {len(microscope.leds)} frames of {frame} × {frame} in three wavelengths; the truth is in "
        f"truth_amplitude.ome.tif, truth_phase.ome.tif and truth.json\n"
        f"next: fouriscope colour {escape(str(out / 'colour.toml'))}"
    )


def describe_colours(microscope: ColourMicroscope, radius: float) -> dict[str, Any]:
    """colour.toml: the array is as described, so only the focus of each channel is searched for."""
    frames: dict[str, Any] = {"offset": microscope.camera.offset, "gain": microscope.gain}
    if microscope.stored != "files":
        frames |= {"path": "frames.tif", "crosstalk": [list(row) for row in microscope.crosstalk]}
    if microscope.stored == "mosaic":
        frames["mosaic"] = microscope.mosaic
    own = {colour: {"path": f"{colour}.tif"} if microscope.stored == "files" else {} for colour in COLOURS}
    return {
        "frames": frames,
        "microscope": {key: value for key, value in PAPER_MICROSCOPE.items() if key != "wavelength"},
        "illumination": {"kind": "disc", **PAPER_LEDS, "radius": radius},
        **measured_sections(),
        "alignment": {"focus": True, "focus_reach": 20e-6},
        "calibration": {"zernike": True},
        "colour": {
            colour: {"wavelength": wavelength} | ({"frames": own[colour]} if own[colour] else {})
            for colour, wavelength in zip(COLOURS, microscope.wavelengths, strict=True)
        },
    }
