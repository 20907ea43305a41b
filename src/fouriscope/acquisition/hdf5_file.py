"""HDF5 files, of which only what lies in them is read: links and arrays may name any other file of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fouriscope.acquisition.input_files import require_neighbour, require_room

_MOST_LINKS = 8  # one after the other; they may go round in circles


def own_items(file: Any) -> Iterator[tuple[str, Any]]:
    """(name, group or dataset) of all that stands at the root of an open file, without what lies in other files."""
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
    others = [source.file_name for source in item.virtual_sources()] if item.is_virtual else []
    others += [external[0] for external in item.external or ()]
    for other in dict.fromkeys(others):
        if other != ".":
            require_neighbour(path, other, f"the dataset {name}")
    _require_small_chunks(path, name, item)
    return item


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


def _require_small_chunks(path: Path, name: str, item: Any) -> None:
    """HDF5 takes memory for whole chunks before it looks what is in them."""
    size = item.dtype.itemsize
    for side in item.chunks or ():
        size *= side
    if item.chunks:
        require_room(path, f"a chunk of {name}", size, path.stat().st_size)
