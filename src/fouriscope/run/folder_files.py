"""Files of a run folder, by known names: the one place where they are opened.

A run folder may come from somebody else, or be damaged. So only regular files are opened (a pipe would make us wait for
ever), no file is read that is larger than any run writes, text must be UTF-8, and nothing may be nested deeper than a
run nests it. :mod:`fouriscope.run.schema` checks the contents.
"""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from fouriscope.errors import RunFolderError

# Bytes: of any file that is read as a whole, and of those that are known to be smaller.
LARGEST_FILE = 64 * 2**20
LARGEST = {"status.json": 2**20, "config.toml": 4 * 2**20, "zarr.json": 4 * 2**20}
DEEPEST_NESTING = 32


class FolderFiles:
    """The files below ``root``. Names come from our own lists, never from a request.

    If they are ``confined``, what is a symbolic link, or lies behind one, counts only if it ends inside the folder: a
    run folder from somebody else must not be a way to read other files of this machine.
    """

    def __init__(self, root: Path, *, confined: bool = False) -> None:
        self.root, self._confined = root, confined

    def path(self, name: str) -> Path:
        """Where ``name`` lies; raises if that is outside."""
        path = self.root / name
        if not self._confined:
            return path
        try:
            real, root = path.resolve(), self.root.resolve()
        except (OSError, RuntimeError) as error:  # links that lead in a circle
            raise RunFolderError(f"{path}: not readable ({error})") from error
        if not real.is_relative_to(root):
            raise RunFolderError(f"{name} is a symbolic link that leads out of the run folder, so it is not shown")
        return real

    def version(self, name: str) -> int | None:
        """A number that changes when the file does; None if it is not there. A folder changes with its entries."""
        try:
            found = os.stat(self.root / name)
        except OSError:
            return None
        return found.st_mtime_ns ^ (found.st_size << 20) ^ (found.st_ino << 40)

    def exists(self, name: str) -> bool:
        return os.path.exists(self.root / name)

    def open(self, name: str) -> BinaryIO:
        """A regular file, to read; the caller closes it."""
        path = self.path(name)
        try:
            return open_regular(path)
        except RunFolderError:
            raise
        except OSError as error:
            raise RunFolderError(f"{path}: not readable ({error.strerror or error})") from error

    def data(self, name: str) -> bytes:
        """The bytes of a file that is read as a whole."""
        most = LARGEST.get(name.rpartition("/")[2], LARGEST_FILE)
        with self.open(name) as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise RunFolderError(f"{self.root / name} has {size} bytes, more than any run writes ({most})")
            try:
                return file.read(most)
            except OSError as error:
                raise RunFolderError(f"{self.root / name}: not readable ({error.strerror or error})") from error

    def shown_text(self, name: str) -> str:
        """A text file as it is, for people; bytes that are not UTF-8 are shown as such."""
        return self.data(name).decode("utf-8", errors="replace")

    def text(self, name: str) -> str:
        """A text file."""
        try:
            return self.data(name).decode("utf-8")
        except UnicodeDecodeError as error:
            raise RunFolderError(f"{self.root / name}: not readable ({error})") from error

    def json(self, name: str) -> dict[str, Any]:
        """An object of JSON."""
        return self._parsed(name, json.loads)

    def toml(self, name: str) -> dict[str, Any]:
        return self._parsed(name, tomllib.loads)

    def _parsed(self, name: str, parse: Callable[[str], Any]) -> dict[str, Any]:
        text = self.text(name)
        try:
            value = parse(text)
            check_nesting(value)
        except (ValueError, RecursionError) as error:
            raise RunFolderError(f"{self.root / name}: not readable ({error})") from error
        if not isinstance(value, dict):
            raise RunFolderError(
                f"{self.root / name}: not readable (expected an object of JSON, got {type(value).__name__})"
            )
        return value

    def whole_folder(self, name: str) -> Path:
        """A folder (a Zarr array, say) that holds regular files and nothing else; confined, no link that leads out."""
        top, root = self.path(name), self.root.resolve()
        for folder, folders, files in os.walk(top):
            for entry in (*folders, *files):
                path = Path(folder, entry)
                if self._confined and path.is_symlink() and not path.resolve().is_relative_to(root):
                    raise RunFolderError(f"{name} holds a symbolic link that leads out of the run folder")
                if not (path.is_file() if entry in files else path.is_dir()):
                    raise RunFolderError(f"{path} is not a file; a run writes regular files only")
        return top


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read; what is anything else is not touched."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise RunFolderError(f"{path} is not a file; a run writes regular files only")
    # Without waiting, and asked again: what was a file may have become a pipe.
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0)))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise RunFolderError(f"{path} is not a file; a run writes regular files only")
    return file


def check_nesting(value: Any) -> None:
    """Raise ValueError if lists and objects lie deeper in each other than a run writes them."""
    level = [value]
    for _ in range(DEEPEST_NESTING):
        level = [
            item
            for one in level
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise ValueError(f"it is nested deeper than {DEEPEST_NESTING} levels")
