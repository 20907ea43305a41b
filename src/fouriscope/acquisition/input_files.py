"""What is checked before a file is opened or an array is made: its kind, and how much it claims to hold."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fouriscope.acquisition.byte_sizes import format_bytes
from fouriscope.acquisition.machine_memory import memory_available
from fouriscope.errors import InsufficientMemoryError, InvalidInputError

# Nobody asks about an array below this. A larger one must fit into memory, and must not have been packed a hundredfold:
# frames of a camera hold noise, which does not become much smaller, and what does is made to fill memories.
UNQUESTIONED = 2**28
MOST_PACKED = 100
# No table, no metadata and no configuration is as long.
LONGEST_TEXT = 2**26

_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket",
          stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}  # fmt: skip


def require_name(path: Path) -> None:
    """Raise unless the path is text. Linux allows any bytes; a description of the acquisition could not name them."""
    try:
        os.fspath(path).encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInputError(f"{path}: the name is not valid UTF-8; rename it") from None


def require_file(path: Path) -> int:
    """Raise unless ``path`` is a file with a name in UTF-8, and return its size in bytes.

    Opening a pipe may wait for ever, reading a device may never end, and a folder is not a file.
    """
    require_name(path)
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InvalidInputError(f"{path}: cannot be accessed ({error})") from error
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise InvalidInputError(f"{path}: a file was expected, but this is {kind}")
    return found.st_size


def require_files_below(folder: Path) -> None:
    """Raise if anything below ``folder`` is neither a file nor a folder: reading it could wait for ever."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                require_files_below(Path(entry.path))
            elif not entry.is_file() and not entry.is_dir():
                require_file(Path(entry.path))


def require_neighbour(path: Path, name: str, who: str) -> Path:
    """The file ``name`` beside ``path``, which ``who`` names. Only the plain name of a file in the same folder will do:
    what is in a file must not lead to other places of the machine."""
    folder = path.parent.resolve()
    beside = path.parent / name
    if Path(name).name != name or beside.resolve().parent != folder:
        raise InvalidInputError(
            f"{path}: {who} leads to {name!r}; only files of the same folder are read, by their names"
        )
    if not beside.exists():
        raise InvalidInputError(f"{path}: {who} names {name}, which is not beside it; bring the files together")
    require_file(beside)
    return beside


def require_replaceable(path: Path) -> None:
    """Raise if ``path`` is a device, a pipe or a socket, which a file that takes its name would remove."""
    try:
        mode = path.lstat().st_mode
    except OSError:  # it is not there, or cannot be written, as the writer will say
        return
    if stat.S_IFMT(mode) in _KINDS and not stat.S_ISDIR(mode):
        raise InvalidInputError(
            f"{path}: this is {_KINDS[stat.S_IFMT(mode)]}, which is never replaced; choose another name"
        )


def read_text(path: Path, what: str) -> str:
    """The text of a file that is one, is not endless, and is UTF-8, with or without a mark at its beginning."""
    size = require_file(path)
    if size > LONGEST_TEXT:
        raise InvalidInputError(
            f"{path}: {what} of at most {format_bytes(LONGEST_TEXT)} was expected, got {format_bytes(size)}"
        )
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path}: cannot be read as {what} ({error})") from error


def require_room(path: Path, what: str, size: int, packed: int | None = None) -> None:
    """Raise if an array of ``size`` bytes that a file declares should not be made; ``packed`` is its size in the file.

    If it claims more than the file can hold, the file is at fault; if it is too large for the machine, the file is not.
    """
    if size <= UNQUESTIONED:
        return
    if packed is not None and size > MOST_PACKED * packed:
        raise InvalidInputError(
            f"{path}: {what} claims {format_bytes(size)}, which the file holds in {format_bytes(packed)}; no frames "
            "can be packed so small: the file is damaged, or made to fill the memory"
        )
    available = memory_available()
    if size > available:
        raise InsufficientMemoryError(
            f"{path}: {what} takes {format_bytes(size)}, {format_bytes(available)} are free; use smaller frames, or "
            "store them so that each can be read alone"
        )
