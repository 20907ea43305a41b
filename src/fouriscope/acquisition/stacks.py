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

from fouriscope.acquisition.hdf5_file import own_dataset, stacks_of
from fouriscope.acquisition.input_files import require_file, require_room
from fouriscope.acquisition.mat_file import MatFile
from fouriscope.acquisition.npy_file import npy_layout, read_header, read_member
from fouriscope.acquisition.stored import StoredFrames
from fouriscope.acquisition.tile_layout import CHECKSUM_KEY, CompleteArray, Shards
from fouriscope.acquisition.zarr_store import open_array
from fouriscope.errors import InvalidInputError

AXES = "nyx"
MATLAB_AXES = "yxn"
# Of colour images, if nobody says otherwise: c counts red, green and blue.
COLOUR_AXES, MATLAB_COLOUR_AXES = "nyxc", "yxcn"


_AXIS_NAMES = {"n": "frames", "y": "rows", "x": "columns", "c": "3 colours", "1": "1"}


class ArrayStack(StoredFrames):
    """Frames in anything that can be sliced like an array.

    ``axes`` names the axes of the stored array: n counts frames, y rows and x columns, and 1 stands for an axis of
    length one. NumPy stacks are usually "nyx", MATLAB's "yxn", an OME-Zarr of a time series "n11yx". With a c, which
    counts three or four colours, a frame is (rows, columns, colours).
    """

    def __init__(self, path: Path, array: Any, axes: str | None, roi: Sequence[int] | None, name: str = "") -> None:
        axes = axes or AXES
        if sorted(axes.replace("1", "").replace("c", "", 1)) != sorted(AXES):
            raise InvalidInputError(f"{path}: axes must hold n, y and x once each, such as 'nyx', got {axes!r}")
        shape, dtype = tuple(array.shape), np.dtype(array.dtype)
        allowed = {"1": (1,), "c": (3, 4)}
        axes_fit = len(shape) == len(axes) and all(
            size in allowed.get(axis, (size,)) for size, axis in zip(shape, axes, strict=True)
        )
        if not axes_fit or dtype.kind not in "fiu":
            wanted = ", ".join(_AXIS_NAMES[axis] for axis in axes)
            raise InvalidInputError(
                f"{path}{name and f' ({name})'}: a real array of shape ({wanted}) was expected, "
                f"got {dtype} of shape {shape}"
            )
        size = {axis: shape[place] for place, axis in enumerate(axes)}
        if not isinstance(array, np.ndarray):
            require_room(path, "a frame", size["y"] * size["x"] * size.get("c", 1) * dtype.itemsize)
        self.array, self._axes = array, axes
        chunks = getattr(array, "chunks", None)  # of HDF5 and Zarr
        self._depth: int = chunks[axes.index("n")] if chunks else 1
        super().__init__(path, size["n"], (size["y"], size["x"]), dtype, roi)
        if type(array) is np.ndarray:  # it is in memory; a file that is mapped is not
            self._watched = ()

    def together(self, index: int) -> range:
        start = index // self._depth * self._depth
        return range(start, min(start + self._depth, self.shape[0]))

    def _read(self, index: int, rows: slice, columns: slice) -> NDArray[Any]:
        return self._cut(self.array, index, rows, columns)

    def _read_several(self, indices: range, rows: slice, columns: slice) -> NDArray[Any]:
        return self._cut(self.array, slice(indices.start, indices.stop), rows, columns)

    def _cut(self, array: Any, frames: int | slice, rows: slice, columns: slice) -> NDArray[Any]:
        chosen: dict[str, int | slice] = {"n": frames, "y": rows, "x": columns, "1": 0, "c": slice(None)}
        part = np.asarray(array[tuple(chosen[axis] for axis in self._axes)])
        left = [axis for axis in self._axes if isinstance(chosen[axis], slice)]
        return part.transpose([left.index(axis) for axis in COLOUR_AXES if axis in left])


class NpyFrames(ArrayStack):
    """Frames in a ``.npy`` file, or in one member of an uncompressed ``.npz``, read one by one.

    The file is not kept mapped, because mapped pages count as memory of the process.

    Parameters
    ----------
    path
        The file.
    axes
        The order of the axes, such as "nyx" (the default): n counts frames, y rows, x columns; 1 has length one.
    roi
        (row, column, height, width): only this part of each frame is read.
    start
        Where the array begins in the file, in bytes.
    """

    def __init__(
        self, path: Path, axes: str | None = None, roi: Sequence[int] | None = None, *, start: int = 0
    ) -> None:
        header = npy_layout(path, start)
        self._layout = header._asdict()
        super().__init__(path, np.memmap(path, mode="r", **self._layout) if header.nbytes else header, axes, roi)
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


def open_npz(path: Path, dataset: str | None, axes: str | None, roi: Sequence[int] | None) -> ArrayStack:
    """One array of an ``.npz``: read frame by frame if it is stored (np.savez), else loaded (np.savez_compressed)."""
    require_file(path)
    with zipfile.ZipFile(path) as archive:
        members = {name.removesuffix(".npy"): archive.getinfo(name) for name in archive.namelist()}
        name = dataset if dataset is not None else _only(path, _stacks_of(archive, path))
        if name not in members:
            raise missing_dataset(path, name, list(members))
        info = members[name]
        if info.compress_type != zipfile.ZIP_STORED:
            with archive.open(info) as file:
                header = read_header(file, path)
                require_room(path, f"the array {name!r}", header.nbytes, info.compress_size)
                return ArrayStack(path, read_member(file, path, header), axes, roi, name)
    with path.open("rb") as file:
        file.seek(info.header_offset)
        *_, name_length, extra_length = struct.unpack("<4s5H3L2H", file.read(30))
    return NpyFrames(path, axes, roi, start=info.header_offset + 30 + name_length + extra_length)


def _stacks_of(archive: zipfile.ZipFile, path: Path) -> list[str]:
    """The arrays of an ``.npz`` that can be stacks, by their headers; all if none can, for the error to name them."""
    stacks = []
    for name in archive.namelist():
        with archive.open(name) as file:
            if len(read_header(file, path).shape) >= 3:
                stacks.append(name)
    return [name.removesuffix(".npy") for name in stacks or archive.namelist()]


class ZarrFrames(ArrayStack):
    """Frames in a Zarr array, or in the array ``dataset`` of a group; one chunk per frame reads fastest.

    In an array of :func:`~fouriscope.acquisition.tiled_store.write_tiled`, a chunk that is missing is an error.

    Parameters
    ----------
    path
        The folder of the array or group.
    axes
        The order of the axes, such as "nyx" (the default): n counts frames, y rows, x columns; 1 has length one.
    roi
        (row, column, height, width): only this part of each frame is read.
    dataset
        The array inside a group.
    """

    def __init__(
        self, path: Path, axes: str | None = None, roi: Sequence[int] | None = None, dataset: str | None = None
    ) -> None:
        array = open_array(path, dataset)
        self._folder, self._shards = path / (dataset or ""), Shards(array)
        if CHECKSUM_KEY in array.attrs:
            array = CompleteArray(array, self._folder)
        super().__init__(path, array, axes, roi, dataset or "")

    def _files(self, indices: range) -> Sequence[str]:
        chosen = {"n": slice(indices.start, indices.stop), "y": self.rows, "x": self.columns, "1": slice(0, 1)}
        chosen["c"] = slice(0, 4)
        return [f"{self._folder}/{name}" for name in self._shards.names(chosen[axis] for axis in self._axes)]

    def _cut(self, array: Any, frames: int | slice, rows: slice, columns: slice) -> NDArray[Any]:
        # A chunk that is missing reads as zeros, which may be meant where we are not the author; a folder never is.
        self.path.stat()
        return super()._cut(array, frames, rows, columns)


class Hdf5Frames(ArrayStack):
    """Frames in a dataset of an HDF5 file; without a name, in the only one that could be a stack.

    Parameters
    ----------
    path
        The file.
    axes
        The order of the axes, such as "nyx" (the default): n counts frames, y rows, x columns; 1 has length one.
    roi
        (row, column, height, width): only this part of each frame is read.
    dataset
        The name of the dataset. By default, the only one that could be a stack.
    """

    def __init__(
        self, path: Path, axes: str | None = None, roi: Sequence[int] | None = None, dataset: str | None = None
    ) -> None:
        import h5py

        require_file(path)
        self._file = h5py.File(path, "r")
        weakref.finalize(self, self._file.close)
        names = stacks_of(self._file)
        name = dataset if dataset is not None else _only(path, names)
        found = own_dataset(self._file, name, path)
        if found is None:
            raise missing_dataset(path, name, names)
        super().__init__(path, found, axes, roi, name)


def open_mat(path: Path, dataset: str | None, axes: str | None, roi: Sequence[int] | None) -> ArrayStack:
    """A variable of a MATLAB file, ``axes`` as MATLAB shows them: "yxn" unless told otherwise.

    Version 7.3 is HDF5 with the axes in reverse order and is read frame by frame. In version 5 each variable is
    compressed by itself, so the whole variable, and no other, is loaded into memory.
    """
    import h5py

    axes = axes or MATLAB_AXES
    require_file(path)
    if h5py.is_hdf5(path):
        return Hdf5Frames(path, axes[::-1], roi, dataset)
    file = MatFile(path)
    stacks = [name for name, shape in file.shapes.items() if len(shape) == len(axes)]
    name = dataset if dataset is not None else _only(path, stacks)
    if name not in file.shapes:
        raise missing_dataset(path, name, list(file.shapes))
    return ArrayStack(path, file.array(name), axes, roi, name)


def _only(path: Path, names: list[str]) -> str:
    if len(names) != 1:
        raise InvalidInputError(
            f"{path}: dataset must name the stack of frames, one of {', '.join(names)}"
            if names
            else f"{path}: it holds no three-dimensional array of numbers, so no stack of frames"
        )
    return names[0]


def missing_dataset(path: Path, name: str, known: list[str]) -> InvalidInputError:
    """The error of a name that is not in the file."""
    return InvalidInputError(f"{path}: there is no dataset {name!r}; the file holds {', '.join(known) or 'nothing'}")
