"""Stacks that are one array in a file: .npy, .npz, Zarr, HDF5 and MATLAB."""

from __future__ import annotations

import struct
import weakref
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.mat_file import MatFile
from fouriscope.acquisition.stored import StoredFrames, reading
from fouriscope.acquisition.tile_layout import CHECKSUM_KEY, CompleteArray, shard_names
from fouriscope.errors import InvalidInputError

AXES = "nyx"
MATLAB_AXES = "yxn"


class ArrayStack(StoredFrames):
    """Frames in anything that can be sliced like an array.

    ``axes`` names the axes of the array as it is stored: n counts frames, y rows and x columns, and 1 stands for an
    axis of length one. NumPy people write "nyx", MATLAB people "yxn", OME-Zarr of a time series is "n11yx".
    """

    def __init__(self, path: Path, array: Any, axes: str | None, roi: Sequence[int] | None, name: str = "") -> None:
        axes = axes or AXES
        if sorted(axes.replace("1", "")) != sorted(AXES):
            raise InvalidInputError(f"{path}: axes must hold n, y and x once each, such as 'nyx', got {axes!r}")
        shape, dtype = tuple(array.shape), np.dtype(array.dtype)
        unit_axes_fit = len(shape) == len(axes) and all(
            size == 1 for size, axis in zip(shape, axes, strict=True) if axis == "1"
        )
        if not unit_axes_fit or dtype.kind not in "fiu":
            wanted = ", ".join({"n": "frames", "y": "rows", "x": "columns", "1": "1"}[axis] for axis in axes)
            raise InvalidInputError(
                f"{path}{name and f' ({name})'}: a real array of shape ({wanted}) was expected, "
                f"got {dtype} of shape {shape}"
            )
        self.array, self._axes = array, axes
        chunks = getattr(array, "chunks", None)  # of HDF5 and Zarr
        self._depth: int = chunks[axes.index("n")] if chunks else 1
        size = {axis: shape[place] for place, axis in enumerate(axes)}
        super().__init__(path, size["n"], (size["y"], size["x"]), dtype, roi)

    def together(self, index: int) -> range:
        start = index // self._depth * self._depth
        return range(start, min(start + self._depth, self.shape[0]))

    def _files(self, indices: range) -> Sequence[str]:
        loaded = isinstance(getattr(self, "array", None), np.ndarray)
        return () if loaded else super()._files(indices)

    def _read(self, index: int, rows: slice, columns: slice) -> NDArray[Any]:
        return self._cut(self.array, index, rows, columns)

    def _read_several(self, indices: range, rows: slice, columns: slice) -> NDArray[Any]:
        return self._cut(self.array, slice(indices.start, indices.stop), rows, columns)

    def _cut(self, array: Any, frames: int | slice, rows: slice, columns: slice) -> NDArray[Any]:
        chosen: dict[str, int | slice] = {"n": frames, "y": rows, "x": columns, "1": 0}
        part = np.asarray(array[tuple(chosen[axis] for axis in self._axes)])
        left = [axis for axis in self._axes if isinstance(chosen[axis], slice)]
        return part.transpose([left.index(axis) for axis in AXES if axis in left])


class NpyFrames(ArrayStack):
    """Frames in a ``.npy`` file, or in one member of an uncompressed ``.npz``, read one by one.

    The file is not kept mapped, because mapped pages count as memory of the process.
    """

    def __init__(
        self, path: Path, axes: str | None = None, roi: Sequence[int] | None = None, *, start: int = 0
    ) -> None:
        self._layout = _npy_layout(path, start)
        super().__init__(path, np.memmap(path, mode="r", **self._layout), axes, roi)
        del self.array
        self._plain = self._axes == AXES and self._layout["order"] == "C"

    def _read_several(self, indices: range, rows: slice, columns: slice) -> NDArray[Any]:
        return StoredFrames._read_several(self, indices, rows, columns)

    def _read(self, index: int, rows: slice, columns: slice) -> NDArray[Any]:
        if not self._plain:
            mapped = np.memmap(self.path, mode="r", **self._layout)
            return np.array(self._cut(mapped, index, rows, columns))
        (height, width), wanted = self.stored_shape, rows.stop - rows.start
        with self.path.open("rb") as file:
            file.seek(self._layout["offset"] + (index * height + rows.start) * width * self.dtype.itemsize)
            return np.fromfile(file, self.dtype, wanted * width).reshape(wanted, width)[:, columns]


def _npy_layout(path: Path, start: int) -> dict[str, Any]:
    """Where the numbers of a .npy begin and how they lie, as ``np.memmap`` wants to know it; a short file is found."""
    with path.open("rb") as file:
        if start == 0 and file.read(4) == b"PK\x03\x04":
            raise InvalidInputError(f"{path}: one array was expected, this is an archive of arrays (.npz)")
        file.seek(start)
        version = np.lib.format.read_magic(file)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in readers:
            raise InvalidInputError(f"{path}: version {version} of the .npy format holds no plain stack of numbers")
        shape, fortran, dtype = readers[version](file)
        offset = file.tell()
    if dtype.hasobject:
        raise InvalidInputError(f"{path}: it holds Python objects, not numbers; save a plain array with np.save")
    expected = offset + dtype.itemsize * int(np.prod(shape))
    if path.stat().st_size < expected:
        raise InvalidInputError(f"{path}: {expected} bytes were expected, the file has {path.stat().st_size}")
    return {"dtype": dtype, "offset": offset, "shape": shape, "order": "F" if fortran else "C"}


def open_npz(path: Path, dataset: str | None, axes: str | None, roi: Sequence[int] | None) -> ArrayStack:
    """One array of an ``.npz``: read frame by frame if it is stored (np.savez), else loaded (np.savez_compressed)."""
    with zipfile.ZipFile(path) as archive:
        members = {name.removesuffix(".npy"): archive.getinfo(name) for name in archive.namelist()}
        name = dataset if dataset is not None else _only(path, _stacks_of(archive))
        if name not in members:
            raise missing_dataset(path, name, list(members))
        info = members[name]
        if info.compress_type != zipfile.ZIP_STORED:
            with archive.open(info) as file:
                return ArrayStack(path, np.lib.format.read_array(file, allow_pickle=False), axes, roi, name)
    with path.open("rb") as file:
        file.seek(info.header_offset)
        *_, name_length, extra_length = struct.unpack("<4s5H3L2H", file.read(30))
    return NpyFrames(path, axes, roi, start=info.header_offset + 30 + name_length + extra_length)


def _stacks_of(archive: zipfile.ZipFile) -> list[str]:
    """The arrays of an ``.npz`` that can be stacks, by their headers; all if none can, for the error to name them."""
    stacks = []
    for name in archive.namelist():
        with archive.open(name) as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            if len(read(file)[0]) >= 3:
                stacks.append(name)
    return [name.removesuffix(".npy") for name in stacks or archive.namelist()]


class ZarrFrames(ArrayStack):
    """Frames in a Zarr array, or in the array ``dataset`` of a group; one chunk a frame reads best.

    In an array of :func:`~fouriscope.acquisition.tiled_store.write_tiled`, a chunk that is missing is an error.
    """

    def __init__(
        self, path: Path, axes: str | None = None, roi: Sequence[int] | None = None, dataset: str | None = None
    ) -> None:
        import zarr

        array = zarr.open_array(str(path), path=dataset or "", mode="r")
        self._folder, self._chunked = path / (dataset or ""), array
        if CHECKSUM_KEY in array.attrs:
            array = CompleteArray(array, self._folder)
        super().__init__(path, array, axes, roi, dataset or "")

    def _files(self, indices: range) -> Sequence[str]:
        chosen = {"n": slice(indices.start, indices.stop), "y": self.rows, "x": self.columns, "1": slice(0, 1)}
        names = shard_names(self._chunked, [chosen[axis] for axis in self._axes])
        return [f"{self._folder}/{name}" for name in names]

    def _cut(self, array: Any, frames: int | slice, rows: slice, columns: slice) -> NDArray[Any]:
        # A chunk that is missing reads as zeros, which may be meant where we are not the author; a folder never is.
        self.path.stat()
        return super()._cut(array, frames, rows, columns)


class Hdf5Frames(ArrayStack):
    """Frames in a dataset of an HDF5 file; without a name, in the only one that could be a stack."""

    def __init__(
        self, path: Path, axes: str | None = None, roi: Sequence[int] | None = None, dataset: str | None = None
    ) -> None:
        import h5py

        self._file = h5py.File(path, "r")
        weakref.finalize(self, self._file.close)
        names = hdf5_stacks(self._file)
        name = dataset if dataset is not None else _only(path, names)
        if not isinstance(self._file.get(name), h5py.Dataset):
            raise missing_dataset(path, name, names)
        super().__init__(path, self._file[name], axes, roi, name)


def hdf5_stacks(file: Any) -> list[str]:
    """Names of the datasets of an open HDF5 file that have the dimensions and the type of a stack of frames."""
    import h5py

    found: list[str] = []

    def look(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.ndim == 3 and item.dtype.kind in "fiu":
            found.append(name)

    file.visititems(look)
    return found


def open_mat(path: Path, dataset: str | None, axes: str | None, roi: Sequence[int] | None) -> ArrayStack:
    """A variable of a MATLAB file, ``axes`` as MATLAB shows them: "yxn" unless told otherwise.

    Version 7.3 is HDF5 with the axes in reverse and is read frame by frame. Version 5 is compressed variable by
    variable, so the whole variable is loaded into memory; no other is.
    """
    import h5py

    axes = axes or MATLAB_AXES
    if h5py.is_hdf5(path):
        return Hdf5Frames(path, axes[::-1], roi, dataset)
    import scipy.io

    shapes = MatFile(path).shapes
    stacks = [name for name, shape in shapes.items() if len(shape) == 3]
    name = dataset if dataset is not None else _only(path, stacks)
    if name not in shapes:
        raise missing_dataset(path, name, list(shapes))
    with reading(path, f"the variable {name!r}"):
        return ArrayStack(path, scipy.io.loadmat(path, variable_names=[name])[name], axes, roi, name)


def _only(path: Path, names: list[str]) -> str:
    if len(names) != 1:
        raise InvalidInputError(
            f"{path}: dataset must name the stack of frames, one of {', '.join(names)}"
            if names
            else f"{path}: no three-dimensional array of numbers is in it, so no stack of frames"
        )
    return names[0]


def missing_dataset(path: Path, name: str, known: list[str]) -> InvalidInputError:
    """The error of a name that is not in the file."""
    return InvalidInputError(f"{path}: there is no dataset {name!r}; it holds {', '.join(known) or 'nothing'}")
