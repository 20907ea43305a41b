"""MATLAB files of either version behind one face: shapes and values as MATLAB shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fouriscope.acquisition.stored import READ_ERRORS, first_line
from fouriscope.errors import InvalidInputError


class MatFile:
    """The variables of a MATLAB file: their shapes at once, small values when asked for. Stacks are not loaded."""

    def __init__(self, path: Path) -> None:
        import h5py
        import scipy.io
        from scipy.io.matlab import MatReadError

        self.path = path
        self.is_hdf5 = bool(h5py.is_hdf5(path))
        self._loaded: dict[str, Any] = {}
        self.shapes: dict[str, tuple[int, ...]]
        try:
            if self.is_hdf5:
                with h5py.File(path, "r") as file:
                    self.shapes = {
                        name: tuple(item.shape[::-1]) if isinstance(item, h5py.Dataset) else (1, 1)
                        for name, item in file.items()
                        if not name.startswith("#")
                    }
            else:
                self.shapes = {name: tuple(shape) for name, shape, _ in scipy.io.whosmat(path)}
        except (MatReadError, *READ_ERRORS) as error:
            raise InvalidInputError(f"{path}: not a readable MATLAB file ({first_line(error)})") from error

    def value(self, name: str, default: Any = None) -> Any:
        """A variable, or a field of a structure by its dotted name; ``default`` where it is absent or empty."""
        root = name.partition(".")[0]
        if root not in self.shapes:
            return default
        try:
            found = self._from_hdf5(name) if self.is_hdf5 else self._from_version_5(name)
        except READ_ERRORS as error:
            raise InvalidInputError(f"{self.path}: {name} cannot be read ({first_line(error)})") from error
        return default if found is None or np.size(found) == 0 else found

    def _from_hdf5(self, name: str) -> Any:
        import h5py

        with h5py.File(self.path, "r") as file:
            item = file.get(name.replace(".", "/"))
            if not isinstance(item, h5py.Dataset) or "MATLAB_empty" in item.attrs:
                return None
            return np.squeeze(item[()].T)

    def _from_version_5(self, name: str) -> Any:
        import scipy.io

        root, *fields = name.split(".")
        if root not in self._loaded:
            options: dict[str, Any] = {"struct_as_record": False, "squeeze_me": True}
            self._loaded[root] = scipy.io.loadmat(self.path, variable_names=[root], **options)[root]
        found = self._loaded[root]
        for field in fields:
            found = getattr(found, field, None)
        return found
