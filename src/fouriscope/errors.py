"""Errors that users see. Each says what was expected, what was found, and what to do.

They derive from the builtins that people already catch, so ``except ValueError`` keeps working.
"""

from __future__ import annotations

import errno

LONGEST = 1000  # letters of an error; names and values out of a file can have any length


def shortened(text: str) -> str:
    """One line of at most 1000 letters, without control characters, which a terminal would obey.

    Parameters
    ----------
    text
        Any text.

    Examples
    --------
    >>> shortened("two\\nlines, \\x1b[31mred"), len(shortened("a" * 5000))
    ('two lines, \\\\x1b[31mred', 1000)
    """
    line = " ".join(text.split("\n")) if "\n" in text else text
    if not line.isprintable():
        line = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in line)
    if len(line) <= LONGEST:
        return line
    end = LONGEST // 3
    return f"{line[: LONGEST - end - 3]} … {line[-end:]}"


# What the system refuses to write, now and for every file, and what to do about it.
NO_ROOM = {
    errno.ENOSPC: "the disk is full: make room",
    errno.EDQUOT: "the quota on this disk is used up: make room, or ask for more",
    errno.EFBIG: "files may not become so large here: raise the limit (ulimit -f), or use another disk",
    errno.EROFS: "this disk is read-only: write to another one",
}


def not_written(path: object, error: OSError) -> str:
    """What could not be written, why, and what to do first.

    Parameters
    ----------
    path
        The file or folder.
    error
        What the system said.

    Examples
    --------
    >>> not_written("run", OSError(errno.ENOSPC, "No space left on device"))
    'run: cannot be written (No space left on device); the disk is full: make room'
    """
    return f"{path}: cannot be written ({error.strerror or error}); {NO_ROOM.get(error.errno or 0, 'correct that')}"


class FouriscopeError(Exception):
    """Base of every error that fouriscope raises on purpose; its text is one line, which the command line prints."""

    def __str__(self) -> str:
        return shortened(super().__str__())


class InvalidInputError(FouriscopeError, ValueError):
    """A value, shape or file that cannot be used."""


class FramesChangedError(InvalidInputError):
    """Frames that have changed since they were first read."""


class InsufficientMemoryError(FouriscopeError, MemoryError):
    """The problem as stated would not fit into the memory of this machine."""


class RunFolderError(FouriscopeError, OSError):
    """A run folder that is missing, foreign or cannot be continued."""


class DivergenceError(FouriscopeError, ArithmeticError):
    """The iterations diverged and could not be recovered."""


class UnitsWarning(UserWarning):
    """Frames that are clearly not in units of the empty bright field, such as raw camera counts."""
