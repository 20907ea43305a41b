"""Files of a run folder, by names that we know: read only, and never a way out of the folder."""

from __future__ import annotations

import os
from pathlib import Path

from fouriscope.errors import RunFolderError

LARGEST_TEXT = 16 * 2**20


class FolderFiles:
    """The files below ``root``. Names come from our own lists, never from a request.

    What is a symbolic link, or lies behind one, counts only if it ends inside the folder: a run folder from somebody
    else must not be a way to read other files of this machine.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, name: str) -> Path:
        """Where ``name`` lies; raises if that is outside."""
        path, root = self.root / name, self.root.resolve()
        if not path.resolve().is_relative_to(root):
            raise RunFolderError(f"{name} leads out of the run folder by a symbolic link, and is not shown")
        return path

    def version(self, name: str) -> int | None:
        """A number that changes when the file does; None if it is not there. A folder changes with its entries."""
        try:
            found = os.stat(self.root / name)
        except OSError:
            return None
        return found.st_mtime_ns ^ (found.st_size << 20) ^ (found.st_ino << 40)

    def exists(self, name: str) -> bool:
        return (self.root / name).exists()

    def text(self, name: str) -> str:
        """A text file as it is; bytes that are not UTF-8 are shown as such."""
        return self.data(name).decode("utf-8", errors="replace")

    def data(self, name: str) -> bytes:
        """The bytes of a small file."""
        path = self.path(name)
        try:
            if not path.is_file():  # a pipe would be waited for, forever
                raise RunFolderError(f"{name} is not a file")
            if (size := path.stat().st_size) > LARGEST_TEXT:
                raise RunFolderError(f"{name} has {size} bytes, more than any run writes")
            return path.read_bytes()
        except RunFolderError:
            raise
        except OSError as error:
            raise RunFolderError(f"{name}: not readable ({error.strerror or error})") from error

    def whole_folder(self, name: str) -> Path:
        """A folder (a Zarr array, say) of which no part is a symbolic link that leads out."""
        top, root = self.path(name), self.root.resolve()
        for folder, folders, files in os.walk(top):
            for entry in (*folders, *files):
                path = Path(folder, entry)
                if path.is_symlink() and not path.resolve().is_relative_to(root):
                    raise RunFolderError(f"{name} holds a symbolic link that leads out of the run folder")
        return top
