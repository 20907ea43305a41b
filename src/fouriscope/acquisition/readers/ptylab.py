"""PtyLab's HDF5: datasets at the root, ``encoder`` in metres as (row, column). Read, and written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fouriscope.acquisition.acquisition import Acquisition
from fouriscope.acquisition.description import Description, FramesSource
from fouriscope.acquisition.hdf5_file import own_dataset, own_items
from fouriscope.acquisition.led_table import LEDTable
from fouriscope.acquisition.output_files import replacing
from fouriscope.acquisition.readers.fields import named_numbers, pairs, required
from fouriscope.errors import InvalidInputError
from fouriscope.optics import LEDArray

ENDINGS = (".h5", ".hdf5", ".hdf", ".mat")


def recognises(path: Path) -> bool:
    """An HDF5 file with a ptychogram."""
    import h5py

    if not path.is_file() or path.suffix.lower() not in ENDINGS or not h5py.is_hdf5(path):
        return False
    with h5py.File(path, "r") as file:
        return own_dataset(file, "ptychogram", path) is not None


def read(path: Path) -> Description:
    """Frames, LEDs and microscope. ``dxd`` is the pixel of the camera; an LED at +x has +na_x, as here."""
    import h5py

    with h5py.File(path, "r") as file:
        shape = own_dataset(file, "ptychogram", path).shape
        content = {
            name: item[()]
            for name, _ in own_items(file)
            if name != "ptychogram" and (item := own_dataset(file, name, path)) is not None and _is_small(item)
        }
    if len(shape) != 3:
        raise InvalidInputError(f"{path}: ptychogram must be of shape (frames, rows, columns), got shape {shape}")
    encoder, notes = np.asarray(required(path, content, "encoder")), []
    if encoder.ndim == 2 and encoder.shape[0] == 2 and encoder.shape[1] == shape[0] != 2:
        encoder = encoder.T - encoder.mean(axis=1)
        notes.append("encoder is (2, frames): transposed and centred, as PtyLab does")
    names = {"wavelength": "wavelength", "na": "NA", "magnification": "magnification", "camera_pixel": "dxd"}
    if np.any(content.get("orientation", 0)):
        turn = int(np.ravel(content["orientation"])[0])
        notes.append(f"orientation = {turn} is not applied; look at the sheet (fouriscope info --sheet)")
    return Description(
        "PtyLab HDF5",
        FramesSource(path, "hdf5", "ptychogram"),
        microscope=named_numbers(path, content, **names),
        leds=LEDTable("positions", pairs(path, "encoder", encoder)),
        leds_field="encoder",
        lighting=named_numbers(path, content, height="zled"),
        notes=tuple(notes),
    )


def _is_small(item: Any) -> bool:
    """Numbers of the microscope and of the LEDs, not images."""
    return item.shape is not None and item.size <= 10**6 and item.dtype.itemsize <= 16


def write_ptylab(path: str | Path, acquisition: Acquisition) -> None:
    """Write an acquisition in PtyLab's format. Frames are written one by one; the file appears whole or not at all.

    PtyLab knows only LEDs in a plane. LEDs with a glass slide, directions and patches off the axis are written as the
    positions in the plane at the same height (for directions without one, at 0.1 m) that give the same directions. The
    size of LEDs (``die``) is left out, because in PtyLab LEDs are points.

    Parameters
    ----------
    path
        The file to write.
    acquisition
        What is written.
    """
    import h5py

    path = Path(path)
    optics, light = acquisition.optics, acquisition.illumination
    height = getattr(light, "height", None) or 0.1
    if (
        isinstance(light, LEDArray)
        and light.slide is None
        and acquisition.patch_center == (0.0, 0.0)
        and not light.rotation
    ):
        positions = light.positions + np.asarray(light.offset)
    else:
        na = light.directions(acquisition.patch_center)
        positions = height * na / np.sqrt(1 - np.sum(na**2, axis=1, keepdims=True))
    scalars = {
        "wavelength": optics.wavelength,
        "NA": optics.na,
        "magnification": optics.magnification,
        "dxd": optics.camera_pixel,
        "zled": height,
    }
    with replacing(path) as temporary, h5py.File(temporary, "w") as file:
        _write(file, acquisition, positions, scalars)


def _write(file: Any, acquisition: Acquisition, positions: Any, scalars: dict[str, float]) -> None:
    shape = acquisition.frames.shape
    stack = file.create_dataset("ptychogram", shape, np.float32, chunks=(1, *shape[1:]))
    for index in range(shape[0]):
        stack[index] = acquisition.frames.frame(index)
    file.create_dataset("encoder", data=positions)
    for name, value in scalars.items():
        file.create_dataset(name, data=value)
