"""`fouriscope simulate`: an acquisition to try things on, with the configuration that reconstructs it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape

from fouriscope.acquisition import Acquisition, CalibratedFrames
from fouriscope.errors import InsufficientMemoryError, InvalidInputError
from fouriscope.optics import Geometry
from fouriscope.paper import PAPER_LEDS, PAPER_MICROSCOPE, paper_leds, paper_model, paper_optics, phase_image
from fouriscope.run import ReconstructionConfig
from fouriscope.run.files import atomic_write, write_text
from fouriscope.run.memory import memory_available, memory_needed
from fouriscope.simulation import Camera, simulate


def run_simulation(
    out: Path,
    *,
    image: Path | None,
    phase_range: float,
    snr: float,
    noise: str,
    photons: float | None,
    frame: int,
    radius: float,
    seed: int,
    console: Console,
) -> None:
    """Write frames.tif, truth.tif and config.toml into ``out``."""
    if noise not in ("stack", "frame"):
        raise InvalidInputError(f"--noise must be 'stack' or 'frame', got {noise!r}")
    if not (np.isfinite(phase_range) and phase_range > 0):
        raise InvalidInputError(f"--phase-range must be positive, got {phase_range}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidInputError(f"{out} exists and is not empty; choose another folder")
    _check_memory(frame, radius)
    model = paper_model(frame, radius)
    truth = phase_image(model.object_shape, phase_range, image)
    if photons is None:
        data = simulate(model, truth, snr_db=snr, noise="stack" if noise == "stack" else "frame", seed=seed)
    else:
        data = simulate(model, truth, camera=Camera(photons, offset=100), seed=seed)
    out.mkdir(parents=True, exist_ok=True)
    write_acquisition(out, data, {"kind": "disc", **PAPER_LEDS, "radius": radius})
    console.print(
        f"{escape(str(out))}: {len(data)} frames of {frame} × {frame}, object {truth.shape[0]} × {truth.shape[1]}\n"
        f"next: fouriscope reconstruct {escape(str(out / 'config.toml'))}"
    )


def _check_memory(frame: int, radius: float) -> None:
    """Raise if the frames and their object would not fit; the stack is there three times while it is written."""
    leds = paper_leds(radius)
    geometry = Geometry.compile(paper_optics(), leds, (frame, frame))
    needed = memory_needed(geometry, ReconstructionConfig()) + 3 * len(leds) * frame**2 * np.dtype(np.float32).itemsize
    available = memory_available()
    if available is not None and needed > available:
        raise InsufficientMemoryError(
            f"{len(leds)} frames of {frame} × {frame} and their object need about {needed / 2**30:.1f} GiB, "
            f"{available / 2**30:.1f} GiB are free; give a smaller --frame or --radius"
        )


def write_acquisition(out: Path, data: Acquisition, illumination: dict[str, Any]) -> None:
    """frames.tif (one page a frame), truth.tif, and the configuration that names them, which comes last."""
    frames = data.frames
    section: dict[str, Any] = {"path": "frames.tif"}
    if isinstance(frames, CalibratedFrames):
        section |= {"offset": frames.offset, "gain": frames.gain}
        frames = frames.frames
    stack = np.stack([frames.frame(index) for index in range(len(data))])
    _write_tiff(out / "frames.tif", stack)
    if data.truth is not None:
        _write_tiff(out / "truth.tif", data.truth)
        section["truth"] = "truth.tif"
    document = {
        "frames": section,
        "microscope": PAPER_MICROSCOPE,
        "illumination": illumination,
        "object": {"margin": 0},  # the simulated field is periodic
        "prior": {"name": "tv", "strength": "auto"},
        "solver": {"batch": min(60, len(data)), "seed": 0},
        "stop": {"iterations": 300},
    }
    write_text(out / "config.toml", tomli_w.dumps(document))


def _write_tiff(path: Path, array: NDArray[Any]) -> None:
    import tifffile

    buffer = io.BytesIO()
    tifffile.imwrite(buffer, array, photometric="minisblack")
    with atomic_write(path) as file:
        file.write(buffer.getbuffer())
