"""Whether files are still those that were read first: their size, the time of their last change, and their inode."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from fouriscope.errors import FramesChangedError

State: TypeAlias = tuple[int, int, int] | None
T = TypeVar("T")

# Seconds after a look at a file in which it is not looked at again: less than the tick of its clock, and small frames
# are read in a hundredth of it.
TICK = 1e-3


class FileStates:
    """Remembers how files were when they were read first, and raises when one is read that is no longer so.

    A run reads frames again and again. Frames that change meanwhile belong to no checksum and to no picture.
    """

    def __init__(self) -> None:
        self._first: dict[str, State] = {}
        self._looked: dict[str, float] = {}

    def read(self, files: Sequence[str], read: Callable[[], T]) -> T:
        """What ``read`` returns, unless one of ``files`` has changed since it was read first, or meanwhile."""
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
            # What cannot be decoded may be half new; of a file that is gone the error itself says enough.
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
                f"{file} was changed while its frames were in use; put back what it was, or start again with "
                "frames that stay as they are"
            )


def _state(file: str) -> State:
    try:
        found = os.stat(file)
    except FileNotFoundError:  # Zarr stores no chunk of nothing but its fill value
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino
