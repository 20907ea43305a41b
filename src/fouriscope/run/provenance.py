"""Where a result comes from: versions, the microscope, and checksums of its input."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition, Frames
from fouriscope.acquisition.digest import FrameDigest, array_checksum, checksum
from fouriscope.errors import InvalidInputError
from fouriscope.optics import Directions, Illumination, LEDArray, Multiplexed, Pupil

__all__ = ["FrameDigest", "checksum", "describe_acquisition", "file_checksums", "machine_and_versions", "provenance"]

LIBRARIES = (
    "fouriscope",
    "numpy",
    "scipy",
    "numba",
    "rocket-fft",
    "scikit-image",
    "tifffile",
    "h5py",
    "zarr",
    "distributed",
)


def file_checksums(files: Mapping[str, Path]) -> dict[str, str]:
    """SHA-256 over the bytes of each file."""
    sums = {}
    for name, path in files.items():
        try:
            with path.open("rb") as file:
                sums[name] = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
        except OSError as error:
            raise InvalidInputError(f"{path} ({name}): cannot be read ({error.strerror or error})") from error
    return sums


def provenance(
    acquisition: Acquisition, files: Mapping[str, Path] | None = None, *, digest: FrameDigest
) -> dict[str, Any]:
    """Versions, machine, microscope and input of a run; ``files`` are those that its configuration names, and
    ``digest`` has seen all frames."""
    return machine_and_versions() | {
        "acquisition": describe_acquisition(acquisition, digest),
        "input": {
            "frames": list(acquisition.frames.shape),
            "checksum": digest.checksum,
            "files": file_checksums(files or {}),
        },
    }


def machine_and_versions() -> dict[str, Any]:
    """The libraries that compute, and where."""
    return {
        "versions": {name: _version(name) for name in LIBRARIES} | {"python": platform.python_version()},
        "machine": platform.platform(),
    }


def describe_acquisition(acquisition: Acquisition, digest: FrameDigest) -> dict[str, Any]:
    """The microscope in the sections and units of a configuration file, and the directions that follow from it.

    Arrays (a measured pupil, a mask) are given only by shape and checksum.
    """
    return {
        "microscope": asdict(acquisition.optics) | {"patch_center": list(acquisition.patch_center)},
        "illumination": _illumination_section(acquisition.illumination, acquisition.patch_center),
        "pupil": _pupil_section(acquisition.pupil),
        "frame_shape": list(acquisition.frame_shape),
        "directions_at_patch": acquisition.illumination.directions(acquisition.patch_center).tolist(),
        "weights": None if acquisition.weights is None else np.asarray(acquisition.weights, float).tolist(),
        "mask": _mask_section(acquisition.mask, digest),
    }


def _illumination_section(illumination: Illumination, patch_center: tuple[float, float]) -> dict[str, Any]:
    if isinstance(illumination, Multiplexed):
        leds = _illumination_section(illumination.leds, patch_center)
        return leds | {"patterns": _array_section(illumination.patterns)}
    if isinstance(illumination, LEDArray):
        slide = illumination.slide
        die = {"die": illumination.die, "die_shape": illumination.die_shape} if illumination.die else {}
        glass = {} if slide is None else {"slide_thickness": slide.thickness, "slide_index": slide.index}
        return {
            "kind": "positions",
            "positions": illumination.positions.tolist(),
            "height": illumination.height,
            "rotation": illumination.rotation,
            "offset": list(illumination.offset),
        } | (glass | die)
    if isinstance(illumination, Directions):
        height = {} if illumination.height is None else {"height": illumination.height}
        return {"kind": "directions", "na": illumination.na.tolist()} | height
    return {"kind": "directions", "na": illumination.directions(patch_center).tolist()}


def _pupil_section(pupil: Pupil) -> dict[str, Any]:
    section: dict[str, Any] = {"zernike": {str(j): c for j, c in pupil.zernike.items()}, "defocus": pupil.defocus}
    return section if pupil.array is None else section | {"array": _array_section(pupil.array)}


def _mask_section(mask: Frames | NDArray[Any] | None, digest: FrameDigest) -> dict[str, Any] | None:
    if mask is None or isinstance(mask, np.ndarray):
        return None if mask is None else _array_section(mask)
    return {"shape": list(mask.shape), "checksum": digest.mask_checksum}


def _array_section(array: NDArray[Any]) -> dict[str, Any]:
    return {"shape": list(array.shape), "checksum": array_checksum(array)}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
