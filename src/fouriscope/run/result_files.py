"""The files of a ``result`` folder. docs/results.md says how to open each of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from fouriscope import plots
from fouriscope.acquisition.stored import READ_ERRORS, first_line
from fouriscope.acquisition.zarr_store import open_array
from fouriscope.errors import RunFolderError
from fouriscope.run import schema
from fouriscope.run.files import atomic_write, write_json, write_text
from fouriscope.run.folder_files import FolderFiles
from fouriscope.run.halving import Levels, mean_levels, phase_levels
from fouriscope.run.ome_tiff import write_ome_tiff
from fouriscope.run.ome_zarr import create_object, note_background, write_ome_zarr
from fouriscope.run.phase_background import WORDS, background, order_of
from fouriscope.run.phases import nearest_turn
from fouriscope.run.result_figure import figure_of
from fouriscope.run.result_geometry import ResultGeometry
from fouriscope.run.stored_arrays import read_npy, read_tiff, zarr_header
from fouriscope.verdict import Verdict

# Sharp on a screen. At 200 dots an inch drawing took more memory than an online reconstruction of 512² frames.
FIGURE_DPI = 150

if TYPE_CHECKING:
    from fouriscope.run.result import Result


def write_result_files(result: Result, target: Path) -> None:
    """Write ``result`` into the empty folder ``target``; the caller renames it when everything is there.

    Files are written one after the other, so at any time there are a few images in memory, not all of them.
    """
    unwrapped = result.unwrapped_phase
    jumps = not np.array_equal(unwrapped, result.phase, equal_nan=True)
    flat, kind = unwrapped, result.phase_background
    order = order_of(kind)
    if order is not None:  # result.flattened_phase, without unwrapping once more
        slow = background(unwrapped, None if result.absorption is None else result.amplitude, order=order)
        flat = (unwrapped - slow).astype(unwrapped.dtype)
        del slow
    _write_images(result, unwrapped, flat, target)
    del unwrapped
    _write_object(result, target / "object.zarr")
    _write_pupil(result, target)
    if result.geometry is not None:
        write_text(target / "geometry.csv", result.geometry.table())
        write_json(target / "geometry.json", result.geometry.numbers() | _pupil_numbers(result))
    last = result.history.last.as_dict() if len(result.history) else {}
    summary: dict[str, Any] = {"shape": list(result.phase.shape), "pixel_size_m": list(result.pixel)}
    summary |= {"phase_background": kind, "stopped": result.stop_reason} | last
    if result.verdict is not None:
        summary["verdict"] = result.verdict.as_json()
    write_json(target / "summary.json", summary)
    figure = figure_of(result, flat, jumps=jumps)
    plots.save_figure(figure, target / "figure.png", dpi=FIGURE_DPI)


def read_result_files(files: FolderFiles) -> dict[str, Any]:
    """What :func:`write_result_files` wrote into ``result`` of a run folder, as arguments of a ``Result``."""
    source = files.root / "result"
    try:
        summary = schema.checked(schema.Summary, files.json("result/summary.json"), source / "summary.json")
        read = {"pixel": tuple(summary["pixel_size_m"]), "stop_reason": summary["stopped"]}
        if summary.get("verdict") is not None:
            read["verdict"] = Verdict.from_json(
                schema.checked(TypeAdapter(Verdict), summary["verdict"], source / "summary.json")
            )
        return read | _read_images(files) | _read_optics(files)
    except RunFolderError:
        raise
    except (*READ_ERRORS, MemoryError) as error:
        raise RunFolderError(f"{source}: cannot be read as a result ({first_line(error)})") from error


def _read_images(files: FolderFiles) -> dict[str, Any]:
    absorbs = files.exists("result/amplitude.ome.tif")
    phase: NDArray[Any] = read_tiff(files, "result/phase.ome.tif")
    amplitude: NDArray[Any] | None = read_tiff(files, "result/amplitude.ome.tif") if absorbs else None
    header = zarr_header(files, "result/object.zarr")
    if header.shape != phase.shape or (amplitude is not None and amplitude.shape != phase.shape):
        raise RunFolderError(f"{files.root / 'result'}: its images differ in shape ({phase.shape}, {header.shape})")
    if header.dtype == np.complex128:  # the images are 32-bit; the field knows more digits, but not the whole turns
        transmittance = open_array(files.whole_folder("result/object.zarr"))[...]
        phase = nearest_turn(np.angle(transmittance), phase.astype(np.float64))
        amplitude = np.abs(transmittance) if absorbs else None
    if amplitude is None:
        return {"phase": phase, "absorption": None}
    with np.errstate(divide="ignore"):  # no light at all is an absorption without end
        return {"phase": phase, "absorption": -np.log(amplitude)}


def _read_optics(files: FolderFiles) -> dict[str, Any]:
    read: dict[str, Any] = {}
    if files.exists("result/pupil.npy"):
        read["pupil"] = read_npy(files, "result/pupil.npy")
    if files.exists("result/geometry.json"):
        where = files.root / "result" / "geometry.json"
        numbers = schema.checked(schema.Geometry, files.json("result/geometry.json"), where)
        read["geometry"] = ResultGeometry.from_files(files.text("result/geometry.csv"), numbers)
        if "pupil" in numbers:
            step_y, step_x = numbers["pupil"]["na_step"]
            read |= {"pupil_na_step": (step_y, step_x), "pupil_recovered": numbers["pupil"]["source"] == "recovered"}
    return read


def _write_images(result: Result, unwrapped: NDArray[Any], flat: NDArray[Any], target: Path) -> None:
    # Functions, so that an image that has to be computed is in memory while its channel is written, and no longer.
    channels: dict[str, Levels] = {
        "phase": lambda count: phase_levels(result.phase, result.transmittance, count),
        "phase_unwrapped": lambda count: mean_levels(unwrapped, count),
    }
    kind = result.phase_background
    if kind != "none":
        channels["phase_flat"] = lambda count: mean_levels(flat, count)
    write_ome_tiff(
        target / "phase.ome.tif",
        result.phase,
        pixel=result.pixel,
        channels=["phase"],
        description="phase in radians as the solver found it, up to a constant that no intensity can show",
    )
    write_ome_tiff(
        target / "phase_unwrapped.ome.tif",
        unwrapped,
        pixel=result.pixel,
        channels=["phase_unwrapped"],
        description="phase in radians, with whole turns added so that neighbouring pixels are continuous",
    )
    if kind != "none":
        write_ome_tiff(
            target / "phase_flat.ome.tif",
            flat,
            pixel=result.pixel,
            channels=["phase_flat"],
            description=f"unwrapped phase in radians {WORDS[kind]}, for viewing; to measure, use phase.ome.tif",
        )
    if result.absorption is not None:
        write_ome_tiff(
            target / "amplitude.ome.tif",
            result.amplitude,
            pixel=result.pixel,
            channels=["amplitude"],
            description="amplitude transmittance; 1 is the empty bright field",
        )
        channels["amplitude"] = lambda count: mean_levels(result.amplitude, count)
    rows, columns = result.phase.shape
    write_ome_zarr(target / "result.ome.zarr", channels, (rows, columns), result.pixel, name="fouriscope result")
    note_background(target / "result.ome.zarr", kind)


def _write_object(result: Result, path: Path) -> None:
    field = result.transmittance
    rows, columns = field.shape
    create_object(path, (rows, columns), result.pixel, field.dtype)[...] = field


def _write_pupil(result: Result, target: Path) -> None:
    if result.pupil is None or result.pupil_na_step is None:
        return
    with atomic_write(target / "pupil.npy") as file:  # what [pupil] array = "…" of a configuration reads
        np.lib.format.write_array(file, np.ascontiguousarray(result.pupil), allow_pickle=False)
    step_y, step_x = result.pupil_na_step
    rows, columns = result.pupil.shape
    write_ome_tiff(
        target / "pupil.ome.tif",
        np.stack([np.abs(result.pupil), np.angle(result.pupil)]),
        pixel=None,
        channels=["amplitude", "phase"],
        description=(
            f"Pupil over numerical aperture, not a length, so there is no pixel size: a pixel is {step_y!r} NA "
            f"high and {step_x!r} NA wide, and NA 0 is the pixel (row, column) = ({rows // 2}, {columns // 2}), "
            "counted from 0. Phase in radians."
        ),
    )


def _pupil_numbers(result: Result) -> dict[str, object]:
    """What geometry.json says of the pupil's array beside the coefficients of the model."""
    if result.pupil is None or result.pupil_na_step is None:
        return {}
    source = "recovered" if result.pupil_recovered else "model"
    return {"pupil": {"source": source, "shape": list(result.pupil.shape), "na_step": list(result.pupil_na_step)}}
