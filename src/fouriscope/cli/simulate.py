"""`fouriscope simulate`: an acquisition to try things on, with the configuration that reconstructs it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

from fouriscope.acquisition import CalibratedFrames
from fouriscope.acquisition.machine_memory import memory_available
from fouriscope.acquisition.pattern_table import pattern_text, read_patterns
from fouriscope.cli.options import Quiet, check_new, console_of
from fouriscope.cli.playing import play
from fouriscope.cli.simulated_files import describe_acquisition, write_acquisition, write_field, write_tiff
from fouriscope.errors import InsufficientMemoryError, InvalidInputError
from fouriscope.field.simulated import GROUP_BYTES, field_curvature, simulate_field
from fouriscope.forward import ForwardModel
from fouriscope.optics import Geometry, Illumination, Multiplexed
from fouriscope.optics._points import FloatArray
from fouriscope.optics.pattern_makers import NAMES, named_patterns
from fouriscope.paper import PAPER_LEDS, PAPER_MICROSCOPE, paper_leds, paper_optics, phase_image
from fouriscope.run import ReconstructionConfig
from fouriscope.run.files import write_text
from fouriscope.run.memory import memory_needed
from fouriscope.run.recipe import measured_sections
from fouriscope.run.toml_lines import toml_of
from fouriscope.simulation import Camera, HostileMicroscope, Truth, simulate

PATTERNS = "patterns.csv"


def run_simulation(
    out: Annotated[Path, typer.Argument(help="Folder to write frames.tif, truth.tif and config.toml into.")],
    image: Annotated[
        Path | None,
        typer.Option(help="Grey image (TIFF, PNG or .npy) to use as the phase. Default: scikit-image's camera."),
    ] = None,
    phase_range: Annotated[
        float, typer.Option(help="Phase of the brightest pixel in radians. The darkest pixel has phase 0.")
    ] = 0.3,
    snr: Annotated[float, typer.Option(help="SNR of the white noise, in dB.")] = 40.0,
    noise: Annotated[
        str, typer.Option(help="Whether the SNR is that of the whole `stack` or of each `frame`.")
    ] = "stack",
    photons: Annotated[
        float | None,
        typer.Option(
            max=1e12, help="Use photon noise instead, with this many electrons per pixel in the empty bright field."
        ),
    ] = None,
    frame: Annotated[int, typer.Option(min=8, help="Rows and columns of a frame.")] = 100,
    radius: Annotated[float, typer.Option(help="Radius of the disc of LEDs, in pitches. 9.5 gives 293 LEDs.")] = 9.5,
    patterns: Annotated[
        str | None,
        typer.Option(help=f"Several LEDs per frame: {NAMES}, or a file (docs/sources.md)."),
    ] = None,
    die: Annotated[float, typer.Option(help="Side of the square die of each LED, in metres. 0.5e-3 is 0.5 mm.")] = 0.0,
    bandwidth: Annotated[float, typer.Option(help="Bandwidth of the light (FWHM) in metres. 20e-9 is 20 nm.")] = 0.0,
    field: Annotated[
        bool,
        typer.Option(
            "--field/--no-field",
            help="Simulate a large field. The illumination angles change across it, and it is not periodic.",
        ),
    ] = False,
    curvature: Annotated[
        float,
        typer.Option(
            "--field-curvature",
            help="With --field: defocus at the corner in metres. It grows with the square of the distance.",
        ),
    ] = 0.0,
    live: Annotated[
        bool,
        typer.Option(
            "--live/--no-live",
            help="Write one file per frame into OUT/frames at the rate of a microscope, to try `fouriscope watch`.",
        ),
    ] = False,
    rate: Annotated[float, typer.Option(help="With --live: frames per second.")] = 5.0,
    order: Annotated[
        str, typer.Option(help="With --live: order of the LEDs, `na` (from the axis outwards) or `random`.")
    ] = "na",
    hostile: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="SEED",
            help="Simulate a microscope with random faults instead. All other options are ignored.",
        ),
    ] = None,
    colour: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="Simulate a stained sample in three wavelengths instead, as `files`, `planes` of colour images or a "
            "Bayer `mosaic`. Of the options above, only --frame, --radius and --photons are used.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the noise. The same seed gives the same frames.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Simulate an acquisition for `fouriscope reconstruct`, `field` or `watch`."""
    console = console_of(quiet)
    if hostile is not None:
        run_hostile(out, hostile, console)
        return
    if colour is not None:
        from fouriscope.cli.simulate_colour import run_colours

        check_new(out)
        _check_memory(3 * frame, radius, field=False)
        run_colours(out, colour, frame=frame, radius=radius, photons=photons, seed=seed, console=console)
        return
    if noise not in ("stack", "frame"):
        raise InvalidInputError(f"--noise must be 'stack' or 'frame', got {noise!r}")
    if not (np.isfinite(phase_range) and phase_range > 0):
        raise InvalidInputError(f"--phase-range must be positive, got {phase_range}")
    if curvature and not field:
        raise InvalidInputError("--field-curvature needs a field: give --field too")
    if live and field:
        raise InvalidInputError("--live is for the frames of one patch: leave out --field")
    check_new(out)
    _check_memory(frame, radius, field)
    camera = None if photons is None else Camera(photons, offset=100)
    snr_db = snr if photons is None else None
    kind: Literal["stack", "frame"] = "stack" if noise == "stack" else "frame"
    illumination = {"kind": "disc", **PAPER_LEDS, "radius": radius} | ({"die": die} if die else {})
    optics = paper_optics(bandwidth)
    leds: Illumination = replace(paper_leds(radius), die=die)
    table = None if patterns is None else _patterns(patterns, leds, seed)
    if table is not None:
        leds, illumination = Multiplexed(leds, table), illumination | {"patterns": PATTERNS}
    if field:
        shape = (frame, frame)
        simulation = simulate_field(
            *(optics, leds, shape, lambda wanted: phase_image(wanted, phase_range, image)),
            camera=camera,
            snr_db=snr_db,
            noise=kind,
            seed=seed,
            pupil=field_curvature(optics, shape, curvature) if curvature else None,
        )
        count, truth = simulation.shape[0], simulation.truth
        _begin(out, table)
        write_field(out, simulation, illumination, calibrate_pupil=bool(curvature))
    else:
        model = ForwardModel(optics, leds, (frame, frame))
        truth = phase_image(model.object_shape, phase_range, image)
        data = simulate(model, truth, snr_db=snr_db, noise=kind, camera=camera, seed=seed)
        count = len(data)
        _begin(out, table)
        if live:
            document = describe_acquisition(out, data, illumination)
            play(out, data, document, rate=rate, order=order, seed=seed, console=console)
            return
        write_acquisition(out, data, illumination)
    console.print(
        f"{escape(str(out))}: {count} frames of {frame} × {frame}, object {truth.shape[0]} × {truth.shape[1]}\n"
        f"next: fouriscope {'field' if field else 'reconstruct'} {escape(str(out / 'config.toml'))}"
    )


def run_hostile(out: Path, seed: int, console: Console) -> None:
    """Write the frames of the hostile microscope that ``seed`` draws, as its user would describe them, and the truth.

    truth.tif holds amplitude and phase in the frames' window, truth.json the faults, the true directions, the gains
    and the exposures.
    """
    check_new(out)
    microscope = HostileMicroscope.draw(seed)
    data, truth = microscope.acquire(seed)
    out.mkdir(parents=True, exist_ok=True)
    field = truth.object
    write_tiff(out / "truth.tif", np.stack([np.abs(field), np.angle(field)]).astype(np.float32))
    write_text(out / "truth.json", json.dumps(_told(microscope, truth), indent=1))
    frames = data.frames
    assert isinstance(frames, CalibratedFrames)
    write_tiff(out / "frames.tif", np.stack([frames.frames.frame(index) for index in range(len(data))]))
    document = {
        "frames": {"path": "frames.tif", "offset": frames.offset, "gain": frames.gain},
        "microscope": {key: getattr(microscope, key) for key in PAPER_MICROSCOPE},
        "illumination": {
            "kind": "square",
            "shape": [microscope.leds, microscope.leds],
            "pitch": microscope.pitch,
            "height": microscope.height,
        },
        **measured_sections(),
    }
    write_text(out / "config.toml", toml_of(document))
    rows, columns = data.frame_shape
    console.print(
        f"{escape(str(out))}: {len(data)} frames of {rows} × {columns}, sample: {microscope.sample}; the truth "
        f"is in truth.tif and truth.json\nnext: fouriscope reconstruct {escape(str(out / 'config.toml'))}"
    )


def _told(microscope: HostileMicroscope, truth: Truth) -> dict[str, Any]:
    return {
        "faults": asdict(microscope),
        "na": truth.geometry.na.tolist(),
        "gains": truth.gains.tolist(),
        "exposures": truth.exposures.tolist(),
    }


def _patterns(name: str, leds: Illumination, seed: int) -> FloatArray:
    """Those of a file, or of a name."""
    path = Path(name)
    return read_patterns(path, len(leds)) if path.suffix else named_patterns(name, leds, paper_optics(), seed)


def _begin(out: Path, table: FloatArray | None) -> None:
    """Make the folder, with the patterns if there are any."""
    out.mkdir(parents=True, exist_ok=True)
    if table is not None:
        write_text(out / PATTERNS, pattern_text(table))


def _check_memory(frame: int, radius: float, field: bool) -> None:
    """Raise if the frames and their object would not fit.

    The stack is there three times while it is written. Of a field there is a group of frames and the object, which
    takes five images in double precision while it is made.
    """
    leds = paper_leds(radius)
    geometry = Geometry.compile(paper_optics(), leds, (frame, frame))
    stack = len(leds) * frame**2 * np.dtype(np.float32).itemsize
    if field:
        group = max(stack // len(leds), min(stack, GROUP_BYTES))
        needed = int(np.prod(geometry.object_shape)) * 5 * np.dtype(np.float64).itemsize + group
    else:
        needed = memory_needed(geometry, ReconstructionConfig()) + 3 * stack
    available = memory_available()
    if needed > available:
        raise InsufficientMemoryError(
            f"{len(leds)} frames of {frame} × {frame} and their object need about {needed / 2**30:.1f} GiB, but "
            f"{available / 2**30:.1f} GiB are free; give a smaller --frame or --radius"
        )
