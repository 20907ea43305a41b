"""Numbers beside the frames in HDF5, Zarr, .npz and MATLAB files, if their names leave no doubt."""

from __future__ import annotations

import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fouriscope.acquisition.description import Description
from fouriscope.acquisition.hdf5_file import own_dataset
from fouriscope.acquisition.input_files import require_file
from fouriscope.acquisition.mat_file import MatFile
from fouriscope.acquisition.npy_file import read_header, read_member
from fouriscope.acquisition.zarr_store import open_node

_UNITS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "µm": 1e-6, "nm": 1e-9}
_SMALL = 4096  # bytes of an array in an .npz that may be a scalar; a stack is not unpacked for its shape


class _Quantity(NamedTuple):
    """A key of the configuration, the names it goes by (lower case, letters and digits alone), and what is likely:
    for each unit that people leave out, the range of numbers that can be meant in it."""

    section: str
    key: str
    names: tuple[str, ...]
    likely: dict[float, tuple[float, float]]


_QUANTITIES = (
    _Quantity(
        "microscope",
        "wavelength",
        ("wavelength", "wlength", "lambda", "lambda0", "illuminationwavelength"),
        {1.0: (1e-7, 1e-5), 1e-6: (0.1, 10), 1e-9: (100, 1e4)},
    ),
    _Quantity("microscope", "na", ("na", "naobj", "objectivena", "numericalaperture", "lensna"), {1.0: (0.005, 1.7)}),
    _Quantity("microscope", "magnification", ("magnification", "mag", "objectivemagnification"), {1.0: (0.1, 300)}),
    _Quantity(
        "microscope",
        "camera_pixel",
        ("camerapixel", "camerapixelsize", "sensorpixelsize", "pixelsizecamera", "dpixc"),
        {1.0: (1e-7, 1e-3), 1e-6: (0.1, 100)},
    ),
    _Quantity(
        "microscope",
        "sample_pixel",
        ("pixelsizeobject", "objectpixelsize", "samplepixel", "samplepixelsize", "effectivepixelsize"),
        {1.0: (1e-8, 1e-4), 1e-6: (0.05, 100)},
    ),
    _Quantity("microscope", "medium_index", ("mediumindex", "refractiveindexmedium"), {1.0: (1.0, 2.0)}),
    _Quantity(
        "lighting",
        "height",
        ("ledheight", "zled", "ledz", "leddistance", "arrayheight"),
        {1.0: (1e-3, 2), 1e-3: (5, 2e3)},
    ),
    _Quantity("lighting", "pitch", ("ledpitch", "ledspacing", "ledgap"), {1.0: (1e-4, 0.1), 1e-3: (0.5, 50)}),
)
_BY_NAME = {name: quantity for quantity in _QUANTITIES for name in quantity.names}


def with_scalars(description: Description) -> Description:
    """The description with what the scalars of its file say, where it does not know better."""
    found: dict[str, dict[str, float]] = {"microscope": {}, "lighting": {}}
    notes: list[str] = []
    for name, value in scalars_in(description.frames.path, description.frames.kind).items():
        quantity, unit = _meaning(name)
        if quantity is None:
            continue
        size = unit if unit is not None else _likely_unit(quantity, value)
        if size is None:
            notes.append(f"{name} = {value:g} is not a likely {quantity.key} in any unit: it is left out")
            continue
        found[quantity.section].setdefault(quantity.key, float(f"{value * size:.12g}"))
        notes.append(f"{quantity.key} = {value * size:.6g} is the file's {name!r}")
    sample = found["microscope"].pop("sample_pixel", None)
    if sample is not None and not {"magnification", "camera_pixel"} <= {*found["microscope"], *description.microscope}:
        found["microscope"] |= {"magnification": 1.0, "camera_pixel": sample}
        notes.append("the pixel at the sample is given: written as camera_pixel with magnification 1")
    return replace(
        description,
        microscope=found["microscope"] | description.microscope,
        lighting=found["lighting"] | description.lighting,
        notes=(*description.notes, *notes),
    )


def scalars_in(path: Path, kind: str | None) -> dict[str, float]:
    """Name → number of all single finite numbers in a file: attributes, and arrays with one entry."""
    read = {"hdf5": _in_hdf5, "zarr": lambda path: dict(open_node(path).attrs), "npz": _in_npz, "mat": _in_mat}
    found = read[kind](path) if kind in read else {}
    return {name: number for name, value in found.items() if (number := _number(value)) is not None}


def _in_hdf5(path: Path) -> dict[str, Any]:
    import h5py

    require_file(path)
    with h5py.File(path, "r") as file:
        found = dict(file.attrs)

        def look(name: str, item: Any) -> None:
            found.update(item.attrs)
            # Not those whose number lies in another file.
            if isinstance(item, h5py.Dataset) and item.size == 1 and not (item.is_virtual or item.external):
                found[name.rpartition("/")[2]] = own_dataset(file, name, path)[()]

        file.visititems(look)
    return found


def _in_npz(path: Path) -> dict[str, Any]:
    require_file(path)
    found = {}
    with zipfile.ZipFile(path) as archive:
        for item in archive.infolist():
            if item.file_size >= _SMALL:
                continue
            with archive.open(item) as member:
                header = read_header(member, path)
                if header.nbytes <= item.file_size:
                    found[item.filename.removesuffix(".npy")] = read_member(member, path, header)
    return found


def _in_mat(path: Path) -> dict[str, Any]:
    file = MatFile(path)
    return {name: file.value(name) for name, shape in file.shapes.items() if int(np.prod(shape)) == 1}


def _meaning(name: str) -> tuple[_Quantity | None, float | None]:
    """(quantity, unit in SI) that a name means; a unit may stand at its end, as in wavelength_nm."""
    stem, mark, unit = name.rpartition("_")
    if mark and unit in _UNITS:
        quantity = _BY_NAME.get(_letters(stem))
        if quantity is not None:
            return quantity, _UNITS[unit]
    return _BY_NAME.get(_letters(name)), None


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _likely_unit(quantity: _Quantity, value: float) -> float | None:
    return next((unit for unit, (low, high) in quantity.likely.items() if low <= value <= high), None)


def _number(value: Any) -> float | None:
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "iuf" or array.size != 1 or not np.isfinite(array).all():
            return None
    except (TypeError, ValueError):
        return None
    return float(array.item())
