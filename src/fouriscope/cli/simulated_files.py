"""The files of an acquisition that is simulated, and the configuration that reconstructs it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition, CalibratedFrames
from fouriscope.field.simulated import FieldSimulation
from fouriscope.optics import Optics
from fouriscope.paper import PAPER_MICROSCOPE
from fouriscope.run.files import atomic_write, write_text
from fouriscope.run.toml_lines import toml_of


def write_acquisition(out: Path, data: Acquisition, illumination: dict[str, Any]) -> None:
    """frames.tif (one page per frame), truth.tif, and the configuration that names them, which comes last."""
    frames = data.frames.frames if isinstance(data.frames, CalibratedFrames) else data.frames
    write_tiff(out / "frames.tif", np.stack([frames.frame(index) for index in range(len(data))]))
    write_text(out / "config.toml", toml_of(describe_acquisition(out, data, illumination)))


def describe_acquisition(out: Path, data: Acquisition, illumination: dict[str, Any]) -> dict[str, Any]:
    """truth.tif, and the configuration that reconstructs frames.tif beside it."""
    section: dict[str, Any] = {"path": "frames.tif"}
    if isinstance(data.frames, CalibratedFrames):
        section |= {"offset": data.frames.offset, "gain": data.frames.gain}
    if data.truth is not None:
        write_tiff(out / "truth.tif", data.truth)
        section["truth"] = "truth.tif"
    return {
        "frames": section,
        "microscope": _microscope(data.optics),
        "illumination": illumination,
        "object": {"margin": 0},  # the simulated field is periodic; nothing else is chosen, as in fs.reconstruct(data)
        "solver": {"seed": 0},
    }


def write_field(out: Path, simulation: FieldSimulation, illumination: dict[str, Any], *, calibrate_pupil: bool) -> None:
    """The same files for a field, whose frames are written as they are computed."""
    section: dict[str, Any] = {"path": "frames.tif", "truth": "truth.tif"}
    if simulation.camera is not None:
        section |= {"offset": simulation.offset, "gain": simulation.gain}
    _write_pages(out / "frames.tif", simulation.frames(), simulation.shape, simulation.dtype)
    write_tiff(out / "truth.tif", simulation.truth)
    document: dict[str, Any] = {
        "frames": section,
        "microscope": _microscope(simulation.model.optics),
        "illumination": illumination,
        "object": {"model": "phase"},
        "prior": {"name": "tv", "strength": "auto"},
        "solver": {"start": "epry", "seed": 0},
        "stop": {"iterations": 150},
    }
    if calibrate_pupil:
        document["calibration"] = {"zernike": True}
    write_text(out / "config.toml", toml_of(document))


def _microscope(optics: Optics) -> dict[str, float]:
    return PAPER_MICROSCOPE | ({"bandwidth": optics.bandwidth} if optics.bandwidth else {})


def write_tiff(path: Path, array: NDArray[Any]) -> None:
    """One page per image of ``array``; in colour, if the last of four axes has the colours."""
    import tifffile

    buffer = io.BytesIO()
    tifffile.imwrite(buffer, array, photometric="rgb" if array.ndim == 4 else "minisblack")
    with atomic_write(path) as file:
        file.write(buffer.getbuffer())


def _write_pages(path: Path, pages: Iterator[NDArray[Any]], shape: tuple[int, int, int], dtype: np.dtype[Any]) -> None:
    """A TIFF of pages that come one by one and need not fit into memory together."""
    import tifffile

    with atomic_write(path) as file:
        named = tifffile.FileHandle(file, name=path.name)  # tifffile wants a name, and an atomic file has none yet
        tifffile.imwrite(named, pages, shape=shape, dtype=dtype, photometric="minisblack")
