"""Readers: one module per family of formats. Each recognises its files and describes the acquisition in them.

A reader is a module with two functions, ``recognises(path)``, which is cheap, and ``read(path)``, which returns a
:class:`~fouriscope.acquisition.description.Description` without reading the frames. They are tried in order, the most
specific first. Then ``metadata.json`` and ``illumination_na.csv`` beside the data fill in what is missing, or overrule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from fouriscope.acquisition.description import Description
from fouriscope.acquisition.frames import kind_of
from fouriscope.acquisition.input_files import require_file, require_name
from fouriscope.acquisition.levels import levels_of
from fouriscope.acquisition.readers import arrays, fpm_rs, imaged, images, matlab, micro_manager, ptylab
from fouriscope.acquisition.readers.sidecar import with_sidecar
from fouriscope.acquisition.stored import reading
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


def describe(
    path: str | Path,
    *,
    kind: str | None = None,
    dataset: str | None = None,
    axes: str | None = None,
    pattern: str | None = None,
    files: Sequence[str] | None = None,
) -> Description:
    """Describe the acquisition at ``path``: recognise the format, read its metadata, look for sidecars.

    Parameters
    ----------
    path
        A file, a folder, or the pattern of files in one, such as ``cells/led_*.tif``.
    kind, dataset, axes
        How the file is stored, the array with the frames, and the order of its axes, if the file does not show it. Then
        only the scalars in the file and the sidecars say more.
    pattern, files
        In a folder: which images are frames, or their names in the order of the LEDs, as for :func:`open_frames`.

    Raises
    ------
    InvalidInputError
        If nothing is recognised, or if the files contradict each other. The error names file and field.
    """
    path = Path(path)
    require_name(path)
    if not path.exists() and "*" not in path.name:
        raise InvalidInputError(f"{path}: no such file or folder")
    if path.exists() and not path.is_dir():
        require_file(path)
    with reading(path, "it"):
        if pattern is not None or files is not None:
            return _completed(images.read_folder(path, pattern, files), path)
        if kind is not None or dataset is not None or axes is not None:
            return _completed(arrays.named(path, kind, dataset, axes), path.parent)
        for reader in READERS:
            if reader.recognises(path):
                return _completed(reader.read(path), path)
    stacks = arrays.stacks_in(path)
    if len(stacks) == 1:
        return describe(stacks[0])
    several = f"; it holds several: {', '.join(stack.name for stack in stacks[:5])}" if stacks else ""
    raise InvalidInputError(f"{path}: no acquisition was recognised{several}. Known formats: {UNDERSTOOD}")


def _completed(description: Description, path: Path) -> Description:
    """With what lies beside the file, or in the folder of the files; a Zarr array is both a file and a folder."""
    for folder in dict.fromkeys([*([] if kind_of(path) == "folder" else [path.parent]), path]):
        description = with_sidecar(description, folder)
    description = _with_power(description)
    description.check(description.frames.open().shape[0])
    return description


def _with_power(description: Description) -> Description:
    """Where frames are said to be amplitudes, the power that their levels show, if it is another for certain."""
    source = description.frames
    if not source.amplitude:
        return description
    levels = levels_of(replace(source, amplitude=False).open())
    note = "the numbers are amplitudes: intensity is their square"
    if levels is not None and levels.power not in (1, 0.5):
        source = replace(source, amplitude=False, power=levels.power)
        note = (
            f"the file calls its numbers amplitudes, but their levels are whole numbers to the power "
            f"{levels.power:.4g}: intensity is the power {1 / levels.power:.4g} of the stored numbers"
        )
    return replace(description, frames=source, notes=(*description.notes, note))
