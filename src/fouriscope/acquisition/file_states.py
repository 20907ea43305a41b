"""Whether files have changed since they were first read: their size, time of last change and inode."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from fouriscope.errors import FramesChangedError

State: TypeAlias = tuple[int, int, int] | None
T = TypeVar("T")

# A file is not checked again within this many seconds: less than the tick of its clock. A small frame is read in a
# hundredth of it.
TICK = 1e-3


class FileStates:
    """Remembers the state of files when they were first read, and raises when a changed file is read.

    A run reads frames again and again. If they changed in between, checksum and picture would be of neither version.
    """

    def __init__(self) -> None:
        self._first: dict[str, State] = {}
        self._looked: dict[str, float] = {}

    def read(self, files: Sequence[str], read: Callable[[], T]) -> T:
        """What ``read`` returns. Raises if one of ``files`` has changed since it was first read, or changes now."""
        new: list[str] = []
        for file in files:
            if file not in self._first:
                self._first[file] = _state(file)
                new.append(file)
        try:
            value = read()
        except Exception:
            for file in new:
                del self._first[file]  # nothing was read of it
            # A file that cannot be decoded may be half rewritten. If a file is gone, the error itself says enough.
            for file in files:
                if file in self._first and _state(file) is not None:
                    self._check(file)
            raise
        now = time.monotonic()  # not before: between a look and a read the file could change
        for file in files:
            if now - self._looked.get(file, 0.0) > TICK:
                self._check(file)
                self._looked[file] = now
        return value

    def _check(self, file: str) -> None:
        if _state(file) != self._first[file]:
            raise FramesChangedError(
                f"{file} was changed while its frames were in use; restore the old file, or start again with "
                "frames that do not change"
            )


def _state(file: str) -> State:
    try:
        found = os.stat(file)
    except FileNotFoundError:  # Zarr stores no chunk of nothing but its fill value
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino
