"""One writer per folder: a lock that the system releases when its holder ends, however it ends."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import weakref
from pathlib import Path

from filelock import FileLock, Timeout

from fouriscope.errors import RunFolderError

LOCK_NAME = ".lock"
# What network file systems that have no locks answer.
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


class FolderLock:
    """Holds ``.lock`` of a folder from the construction to :meth:`release`, or to the end of the process.

    The file says who holds it, as "process host". It is deleted after a release. What a killed process leaves behind
    locks nobody out, and neither does a network file system without locks.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK_NAME
        # Not at once: who had it may be deleting the file, and then the next one has to be locked.
        lock = FileLock(self.path, timeout=0.1, poll_interval=0.02, thread_local=False, fallback_to_soft=False)
        try:
            lock.acquire()
        except Timeout:
            raise RunFolderError(
                f"{folder} is being written by {self._holder()}; wait until it ends, or stop it with Ctrl-C first"
            ) from None
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
        self._release = weakref.finalize(self, _release, lock, self.path, os.getpid())
        with contextlib.suppress(OSError):  # a full disk, or Windows: the lock holds without a note of who holds it
            self.path.write_text(f"{os.getpid()} {socket.gethostname()}\n", encoding="utf-8")

    def _holder(self) -> str:
        note = ""
        with contextlib.suppress(OSError):
            note = self.path.read_text(encoding="utf-8", errors="replace")
        process, _, host = note.strip().partition(" ")
        return f"process {process or 'unknown'}" + (f" on {host}" if host not in ("", socket.gethostname()) else "")

    def release(self) -> None:
        """Let others write; does nothing the second time."""
        self._release()


def _release(lock: FileLock, path: Path, owner: int) -> None:
    if os.getpid() != owner:  # the copy in a forked process: the lock is its parent's
        return
    # Deleted while it is held, so that nobody loses a lock of his own; Windows deletes no open file, and keeps it.
    with contextlib.suppress(PermissionError):
        path.unlink(missing_ok=True)
    lock.release()
