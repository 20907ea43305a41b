"""HDF5 files. Only what lies in them is read, because links and arrays may name any other file of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fouriscope.acquisition.hdf5_chunks import bounded, most_unpacked
from fouriscope.acquisition.input_files import require_neighbour, require_room
from fouriscope.errors import InvalidInputError

_MOST_LINKS = 8  # one after the other; they may go round in circles


def own_items(file: Any) -> Iterator[tuple[str, Any]]:
    """(name, group or dataset) of everything at the root of an open file, without what lies in other files."""
    for name in file:
        item = _own_item(file, name)
        if item is not None:
            yield name, item


def own_dataset(file: Any, name: str, path: Path) -> Any:
    """The dataset of that name, or None. Its numbers lie in the file itself, or in files of the same folder."""
    import h5py

    item = _own_item(file, name)
    if not isinstance(item, h5py.Dataset):
        return None
    for external in item.external or ():
        require_neighbour(path, external[0], f"the dataset {name}")
    if item.is_virtual:
        _require_plain_sources(path, name, item)
        return item
    _require_small_chunks(path, name, item)
    return bounded(path, name, item) if item.chunks else item


def stacks_of(file: Any) -> list[str]:
    """Names of the datasets of an open HDF5 file that have the dimensions and the type of a stack of frames."""
    import h5py

    found: list[str] = []

    def look(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.ndim == 3 and item.dtype.kind in "fiu":
            found.append(name)

    file.visititems(look)  # which follows no links
    return found


def _own_item(group: Any, name: str, links: int = 0) -> Any:
    """What a path from a group leads to, or None; links within the file are followed, links to elsewhere are not."""
    import h5py

    item = group.file if name.startswith("/") else group
    for part in name.split("/"):
        if part in ("", "."):
            continue
        link = item.get(part, getlink=True) if isinstance(item, h5py.Group) else None
        if isinstance(link, h5py.HardLink):
            item = item.get(part)
        elif isinstance(link, h5py.SoftLink) and links < _MOST_LINKS:
            item = _own_item(item, link.path, links + 1)
        else:
            return None
    return item


def _require_plain_sources(path: Path, name: str, item: Any) -> None:
    """What a virtual dataset shows lies here or in files beside it, and leads nowhere else; HDF5 alone unpacks it."""
    import h5py

    for source in dict.fromkeys((source.file_name, source.dset_name) for source in item.virtual_sources()):
        other = path if source[0] == "." else require_neighbour(path, source[0], f"the dataset {name}")
        with h5py.File(other, "r") as file:
            shown = _own_item(file, source[1])
            if not isinstance(shown, h5py.Dataset) or shown.is_virtual or shown.external:
                raise InvalidInputError(
                    f"{path}: the dataset {name} shows {source[1]} in {other.name}, which should hold its own numbers "
                    "but does not"
                )
            if shown.chunks:
                _require_small_chunks(other, source[1], shown)
                require_room(
                    other, f"what a chunk of {source[1]} can unpack to", most_unpacked(other, *source[1:], shown)
                )


def _require_small_chunks(path: Path, name: str, item: Any) -> None:
    """HDF5 takes memory for whole chunks before it looks what is in them."""
    size = item.dtype.itemsize
    for side in item.chunks or ():
        size *= side
    if item.chunks:
        require_room(path, f"a chunk of {name}", size, path.stat().st_size)
