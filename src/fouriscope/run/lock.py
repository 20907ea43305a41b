"""One writer a folder: a lock that the system releases when its holder ends, however it ends."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import weakref
from pathlib import Path

from fouriscope.errors import RunFolderError

if sys.platform != "win32":
    import fcntl

LOCK_NAME = ".lock"


class FolderLock:
    """Holds ``.lock`` of a folder from the construction to :meth:`release`, or to the end of the process.

    The file says who holds it, as "process host". It is gone after a release; what a killed process leaves of it
    locks nobody out. Windows has no ``flock``, and some network file systems refuse it: there nobody is locked out.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK_NAME
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        while not self._taken(handle):
            # Who held it has deleted the file since: lock the one that everybody else sees.
            os.close(handle)
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        self._release = weakref.finalize(self, _release, handle, self.path, os.getpid())
        with contextlib.suppress(OSError):  # a full disk: the lock holds without a note of who holds it
            os.truncate(handle, 0)
            os.write(handle, f"{os.getpid()} {socket.gethostname()}\n".encode())

    def _taken(self, handle: int) -> bool:
        if sys.platform == "win32":
            return True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            process, _, host = os.read(handle, 1000).decode(errors="replace").strip().partition(" ")
            os.close(handle)
            elsewhere = f" on {host}" if host not in ("", socket.gethostname()) else ""
            raise RunFolderError(
                f"{self.path.parent} is being written by process {process or 'unknown'}{elsewhere}; "
                "wait until it ends, or stop it with Ctrl-C first"
            ) from None
        except OSError:
            return True
        try:
            return os.path.samestat(os.fstat(handle), os.stat(self.path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let others write; does nothing the second time."""
        self._release()


def _release(handle: int, path: Path, owner: int) -> None:
    if os.getpid() != owner:  # the copy in a forked process: the lock is its parent's
        return
    if sys.platform == "win32":  # an open file cannot be deleted there
        os.close(handle)
        path.unlink(missing_ok=True)
        return
    try:
        path.unlink(missing_ok=True)
    finally:
        os.close(handle)
