"""Frames on demand: the small protocol through which every measurement reaches the solver."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fouriscope.acquisition.colours import Colour, ColourPlane, Mosaic
from fouriscope.acquisition.images import FolderFrames, TiffFrames
from fouriscope.acquisition.input_files import require_name
from fouriscope.acquisition.sequence import FrameSequence
from fouriscope.acquisition.stacks import (
    COLOUR_AXES,
    MATLAB_COLOUR_AXES,
    Hdf5Frames,
    NpyFrames,
    ZarrFrames,
    open_mat,
    open_npz,
)
from fouriscope.acquisition.stored import StoredFrames, reading
from fouriscope.checks import door, door_class
from fouriscope.errors import InvalidInputError


@runtime_checkable
class Frames(Protocol):
    """A stack of intensity frames that are read one at a time.

    A class with these two members can feed fouriscope: a file, a camera, a database. A class that also inherits from
    :class:`FrameSequence` has ``frames[3]``, ``len(frames)`` and ``np.asarray(frames)``.
    """

    @property
    def shape(self) -> tuple[int, int, int]:
        """(frames, rows, columns)."""
        ...

    def frame(self, index: int) -> NDArray[Any]:
        """Frame ``index`` as a real 2-D array; called in any order, any number of times."""
        ...


class ArrayFrames(FrameSequence):
    """Frames that are already in memory.

    Parameters
    ----------
    array
        (frames, rows, columns), real numbers.

    Examples
    --------
    >>> ArrayFrames(np.ones((3, 4, 5), np.float32)).frame(2).shape
    (4, 5)
    """

    def __init__(self, array: NDArray[Any]) -> None:
        array = np.asarray(array)
        if array.ndim != 3 or array.dtype.kind not in "fiu":
            raise InvalidInputError(
                f"frames must be a real array (frames, rows, columns), got {array.dtype} of shape {array.shape}"
            )
        self.array, self.dtype = array, array.dtype

    @property
    def shape(self) -> tuple[int, int, int]:
        count, rows, columns = self.array.shape
        return count, rows, columns

    def frame(self, index: int) -> NDArray[Any]:
        frame: NDArray[Any] = self.array[index]
        return frame

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.array, dtype, copy=copy)  # the array itself, unless another is asked for


@door_class
class CalibratedFrames(FrameSequence):
    """(counts − offset) / gain: from camera counts to intensity in units of the empty bright field.

    Parameters
    ----------
    frames
        Camera counts.
    offset, gain
        Counts in the dark, and counts of the empty bright field above it.
    """

    def __init__(self, frames: Frames, *, offset: float = 0.0, gain: float = 1.0) -> None:
        if not (np.isfinite(gain) and gain > 0 and np.isfinite(offset)):
            raise InvalidInputError(f"gain must be positive and offset finite, got gain {gain} and offset {offset}")
        self.frames, self.offset, self.gain = frames, float(offset), float(gain)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.frames.shape

    def frame(self, index: int) -> NDArray[Any]:
        counts = self.frames.frame(index)
        double = counts.dtype.newbyteorder("=") == np.float64
        image: NDArray[Any] = counts.astype(np.float64 if double else np.float32)
        return (image - self.offset) / self.gain


KINDS: dict[str, tuple[str, ...]] = {
    "npy": (".npy",),
    "npz": (".npz",),
    "tiff": (".tif", ".tiff"),
    "zarr": (".zarr",),
    "hdf5": (".h5", ".hdf5", ".hdf"),
    "mat": (".mat",),
    "folder": (),
}
_ENDINGS = ", ".join(ending for endings in KINDS.values() for ending in endings)


def kind_of(path: Path) -> str | None:
    """How frames are stored, by the name of what holds them: the key of :data:`KINDS`, or None."""
    if path.is_dir() and path.suffix.lower() != ".zarr":
        return "folder"
    return next((kind for kind, endings in KINDS.items() if path.suffix.lower() in endings), None)


@door
def open_frames(
    path: str | Path,
    *,
    kind: str | None = None,
    dataset: str | None = None,
    axes: str | None = None,
    pattern: str | None = None,
    files: Sequence[str] | None = None,
    roi: Sequence[int] | None = None,
    plane: Colour | None = None,
    mosaic: Mosaic | None = None,
    amplitude: bool = False,
    power: float = 1.0,
    bit_shift: int = 0,
    memory: int | str | None = None,
) -> FrameSequence:
    """Open a stack of frames lazily.

    Parameters
    ----------
    path
        A file, or a folder with one image per frame.
    kind
        "npy", "npz", "tiff", "zarr", "hdf5", "mat" or "folder". By default it follows from the name.
    dataset
        The array inside an .npz, HDF5, MATLAB or Zarr file; needed if there are several.
    axes
        Order of the axes of that array: n counts frames, y rows, x columns. The default is "nyx", for MATLAB "yxn".
    pattern, files
        In a folder: which files (``"led_*.tif"``, in natural order), or their names in the order of the LEDs.
    roi
        (row, column, height, width) of the part of each frame to read.
    plane, mosaic
        For a colour camera: which pixels to read, "red", "green" or "blue". If the file holds the numbers of the sensor
        instead of colour images, also the colours of its first two rows, such as "RGGB"
        (:class:`~fouriscope.acquisition.colours.ColourPlane`).
    amplitude
        Whether the numbers are amplitudes. Frames are then their squares, as with ``power`` = 0.5.
    power
        p in stored = intensity^p: frames are stored^(1/p).
    bit_shift
        Bits by which a camera shifted its counts to the left: 4 for 12 bits in 16.
    memory
        A budget in bytes ("64MB") for keeping frames that were read and reading ahead those that a solver announces
        (:class:`fouriscope.acquisition.StreamedFrames`). Without it, a frame is read each time it is needed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/stack.npy", np.arange(24.0).reshape(2, 3, 4))
    ...     frames = open_frames(f"{folder}/stack.npy", roi=(1, 1, 2, 2))
    ...     frames.shape, frames[1].tolist()
    ((2, 2, 2), [[17.0, 18.0], [21.0, 22.0]])
    """
    path = Path(path)
    require_name(path)
    if not path.exists():
        raise InvalidInputError(f"{path}: no such file or folder; frames are a folder of images or end in {_ENDINGS}")
    kind = kind or kind_of(path)
    if kind not in KINDS:
        raise InvalidInputError(
            f"{path}: frames must be a folder of images or a file that ends in {_ENDINGS}, got {path.suffix!r}; "
            f"or give its kind, one of {', '.join(KINDS)}"
        )
    if kind == "folder" and not path.is_dir():
        raise InvalidInputError(f"{path}: kind = 'folder' expects a folder, but this is a file")
    if mosaic is not None and plane is None:
        raise InvalidInputError(f"mosaic = {mosaic!r} needs plane: whose pixels are wanted, red, green or blue")
    coloured = plane is not None and mosaic is None
    if coloured and axes is None:
        axes = MATLAB_COLOUR_AXES if kind == "mat" else COLOUR_AXES
    if kind not in ("folder", "tiff") and axes is not None and ("c" in axes) != coloured:
        told = "needs plane, red, green or blue" if "c" in axes else "has no axis c of colours, as plane needs it"
        raise InvalidInputError(f"{path}: axes = {axes!r} {told}")
    stored: StoredFrames
    with reading(path, "a stack of frames"):
        if kind == "folder":
            stored = FolderFrames(path, roi, pattern=pattern, files=files, colour=coloured)
        elif kind == "tiff":
            stored = TiffFrames(path, roi, colour=coloured)
        elif kind == "npy":
            stored = NpyFrames(path, axes, roi)
        elif kind in ("npz", "mat"):
            stored = (open_npz if kind == "npz" else open_mat)(path, dataset, axes, roi)
        else:
            stored = (ZarrFrames if kind == "zarr" else Hdf5Frames)(path, axes, roi, dataset)
    frames: FrameSequence = stored if plane is None else ColourPlane(stored, plane, mosaic)
    if memory is not None:
        from fouriscope.acquisition.streaming import StreamedFrames

        frames = StreamedFrames(frames, memory)
    if amplitude or bit_shift or power != 1:
        from fouriscope.acquisition.corrections import CorrectedFrames, Corrections

        return CorrectedFrames(frames, Corrections(amplitude=amplitude, power=power, bit_shift=bit_shift))
    return frames
