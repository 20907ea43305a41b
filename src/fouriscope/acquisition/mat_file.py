"""MATLAB files of either version behind one interface: shapes and values as MATLAB shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.hdf5_file import own_dataset, own_items
from fouriscope.acquisition.input_files import require_file, require_room
from fouriscope.acquisition.mat5_file import Mat5File
from fouriscope.acquisition.stored import READ_ERRORS, first_line, reading
from fouriscope.errors import FouriscopeError, InvalidInputError


class MatFile:
    """The variables of a MATLAB file: their shapes at once, small values when asked for. Stacks are not loaded."""

    def __init__(self, path: Path) -> None:
        import h5py

        require_file(path)
        self.path = path
        self.is_hdf5 = bool(h5py.is_hdf5(path))
        self._version_5: Mat5File | None = None
        self._loaded: dict[str, Any] = {}
        self.shapes: dict[str, tuple[int, ...]]
        try:
            if self.is_hdf5:
                with h5py.File(path, "r") as file:
                    self.shapes = {
                        name: tuple(item.shape[::-1]) if isinstance(item, h5py.Dataset) else (1, 1)
                        for name, item in own_items(file)
                        if not name.startswith("#")
                    }
            else:
                self._version_5 = Mat5File(path)
                self.shapes = {name: variable.shape for name, variable in self._version_5.variables.items()}
        except READ_ERRORS as error:
            if isinstance(error, FouriscopeError):
                raise
            raise InvalidInputError(f"{path}: not a readable MATLAB file ({first_line(error)})") from error

    def value(self, name: str, default: Any = None) -> Any:
        """A variable, or a field of a structure by its dotted name; ``default`` if it is absent or empty."""
        root = name.partition(".")[0]
        if root not in self.shapes:
            return default
        with reading(self.path, name):
            found = self._from_hdf5(name) if self._version_5 is None else self._from_version_5(name)
        return default if found is None or np.size(found) == 0 else found

    def array(self, name: str) -> NDArray[Any]:
        """A whole variable of version 5, which must be numbers; what was asked for by :meth:`value` is not kept."""
        assert self._version_5 is not None
        with reading(self.path, f"the variable {name!r}"):
            found = self._version_5.read(name)
        if not isinstance(found, np.ndarray):
            raise InvalidInputError(f"{self.path}: the variable {name!r} holds no numbers, so it cannot be the frames")
        return found

    def _from_hdf5(self, name: str) -> Any:
        import h5py

        with h5py.File(self.path, "r") as file:
            item = own_dataset(file, name.replace(".", "/"), self.path)
            if item is None or "MATLAB_empty" in item.attrs:
                return None
            require_room(self.path, name, item.size * item.dtype.itemsize)
            return np.squeeze(item[()].T)

    def _from_version_5(self, name: str) -> Any:
        assert self._version_5 is not None
        root, *fields = name.split(".")
        if root not in self._loaded:
            self._loaded[root] = self._version_5.read(root)
        found = self._loaded[root]
        for field in fields:
            found = found.get(field) if isinstance(found, dict) else None
        return np.squeeze(found) if isinstance(found, np.ndarray) else found
