"""Plain stacks of frames: HDF5, Zarr, .npy and .npz without metadata except scalars with plain names."""

from __future__ import annotations

from pathlib import Path

from fouriscope.acquisition.description import Description, FramesSource
from fouriscope.acquisition.frames import kind_of
from fouriscope.acquisition.hdf5_file import stacks_of
from fouriscope.acquisition.input_files import require_file
from fouriscope.acquisition.readers.scalars import with_scalars
from fouriscope.acquisition.stacks import AXES, MATLAB_AXES
from fouriscope.acquisition.zarr_store import open_node
from fouriscope.errors import InvalidInputError

NAMES = {"hdf5": "HDF5", "zarr": "Zarr", "npy": "NumPy .npy", "npz": "NumPy .npz"}


def recognises(path: Path) -> bool:
    """By its name."""
    return kind_of(path) in NAMES


def read(path: Path) -> Description:
    """The only stack in the file, with the order of its axes guessed from their lengths."""
    kind = kind_of(path)
    assert kind is not None
    dataset, shape = None, None
    if kind == "hdf5":
        import h5py

        require_file(path)
        with h5py.File(path, "r") as file:
            found = {name: file[name].shape for name in stacks_of(file)}
        if len(found) != 1:
            raise InvalidInputError(
                f"{path}: one stack of frames (a three-dimensional dataset) was expected, got "
                f"{', '.join(found) or 'none'}; name it: --set frames.dataset=…"
            )
        ((dataset, shape),) = found.items()
    elif kind == "zarr":
        dataset, shape = _zarr_stack(path)
    source = FramesSource(path, kind, dataset)
    if shape is not None and len(shape) > 3:
        source = FramesSource(path, kind, dataset, axes=axes_of(path, shape))
    else:
        frames = source.open()
        axes = guessed_axes(frames.shape)
        source = FramesSource(path, kind, dataset, axes=None if axes == AXES else axes)
    notes = () if source.axes is None else (f"axes {source.axes}: frames are not the first axis",)
    return with_scalars(Description(f"{NAMES[kind]} stack", source, notes=notes))


def named(path: Path, kind: str | None, dataset: str | None, axes: str | None) -> Description:
    """A stack whose storage the user described."""
    source = FramesSource(path, kind or kind_of(path), dataset, axes)
    return with_scalars(Description(f"{source.kind} stack", source))


def guessed_axes(shape: tuple[int, ...]) -> str:
    """ "yxn" if the last axis alone differs from the others, as in stacks that come from MATLAB; "nyx" otherwise.

    >>> guessed_axes((225, 128, 128)), guessed_axes((128, 128, 225))
    ('nyx', 'yxn')
    """
    first, middle, last = shape
    return MATLAB_AXES if first == middle != last else AXES


def axes_of(path: Path, shape: tuple[int, ...]) -> str:
    """The axes of an array of more than three dimensions: the last two are an image, one other counts frames."""
    counted = [place for place, size in enumerate(shape[:-2]) if size > 1]
    if len(counted) > 1:
        raise InvalidInputError(
            f"{path}: one axis of frames was expected before the rows and columns, got shape {shape}"
        )
    frames = counted[0] if counted else 0
    return "".join("n" if place == frames else "1" for place in range(len(shape) - 2)) + "yx"


def _zarr_stack(path: Path) -> tuple[str | None, tuple[int, ...]]:
    """Name and shape of a Zarr array, or of level 0 or the only stack of a group."""
    import zarr

    node = open_node(path)
    if isinstance(node, zarr.Array):
        return None, tuple(node.shape)
    arrays = {name: tuple(array.shape) for name, array in node.arrays() if len(array.shape) >= 3}
    if "0" in arrays:  # the full resolution of an OME-Zarr
        return "0", arrays["0"]
    if len(arrays) != 1:
        raise InvalidInputError(
            f"{path}: one stack of frames was expected, got {', '.join(arrays) or 'none'}; name it: "
            "--set frames.dataset=…"
        )
    return next(iter(arrays.items()))


def stacks_in(folder: Path) -> list[Path]:
    """Files of a folder that could each be a whole acquisition."""
    if not folder.is_dir():
        return []
    kinds = {*NAMES, "mat", "tiff"}
    return sorted(path for path in folder.iterdir() if kind_of(path) in kinds and not path.name.startswith("."))
