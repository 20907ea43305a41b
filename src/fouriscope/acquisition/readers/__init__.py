"""Readers: one module a family of formats, each of which recognises its files and describes the acquisition in them.

A reader is a module with two functions, ``recognises(path)``, which is cheap, and ``read(path)``, which returns a
:class:`~fouriscope.acquisition.description.Description` without reading the frames. They are tried in order, the most
particular first; ``metadata.json`` and ``illumination_na.csv`` beside the data then fill in or overrule.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from fouriscope.acquisition.description import Description, FramesSource
from fouriscope.acquisition.frames import kind_of
from fouriscope.acquisition.readers import arrays, fpm_rs, imaged, images, matlab, micro_manager, ptylab
from fouriscope.acquisition.readers.sidecar import with_sidecar
from fouriscope.acquisition.stored import READ_ERRORS, first_line
from fouriscope.errors import InvalidInputError


class Reader(Protocol):
    """What a module of this package offers."""

    def recognises(self, path: Path) -> bool:
        """Whether ``path`` looks like one of its files; the content decides in ``read``."""
        ...

    def read(self, path: Path) -> Description:
        """What is there."""
        ...


READERS: tuple[Reader, ...] = (fpm_rs, imaged, micro_manager, ptylab, matlab, arrays, images)

UNDERSTOOD = (
    "a folder of TIFF, PNG or .npy images, a multi-page TIFF, Micro-Manager's TIFF with its _metadata.txt, "
    "HDF5 (PtyLab's or another), MATLAB, Zarr, .npy, .npz, and bundles of fpm-rs (dataset.json) and imaged (info.json)"
)


def describe(path: str | Path, *, dataset: str | None = None, axes: str | None = None) -> Description:
    """What an acquisition is, from whatever is there: recognise the format, read its metadata, look for sidecars.

    Parameters
    ----------
    path
        A file, a folder, or the pattern of files in one, such as ``cells/led_*.tif``.
    dataset, axes
        The array with the frames and the order of its axes, in a file that does not show which it is; then only the
        sidecars say more.

    Raises
    ------
    InvalidInputError
        If nothing is recognised, or if what is there contradicts itself; the error names file and field.
    """
    path = Path(path)
    if not path.exists() and "*" not in path.name:
        raise InvalidInputError(f"{path}: no such file or folder")
    try:
        if dataset is not None or axes is not None:
            named = FramesSource(path, kind_of(path), dataset, axes)
            return _completed(Description(f"{named.kind} stack", named), path.parent)
        for reader in READERS:
            if reader.recognises(path):
                return _completed(reader.read(path), path if path.is_dir() else path.parent)
    except READ_ERRORS as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"{path}: cannot be read ({first_line(error)})") from error
    stacks = arrays.stacks_in(path)
    if len(stacks) == 1:
        return describe(stacks[0])
    several = f"; it holds several: {', '.join(stack.name for stack in stacks[:5])}" if stacks else ""
    raise InvalidInputError(f"{path}: no acquisition was recognised{several}. Understood are {UNDERSTOOD}")


def _completed(description: Description, folder: Path) -> Description:
    description = with_sidecar(description, folder)
    description.check(description.frames.open().shape[0])
    return description
