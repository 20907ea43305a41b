"""Errors that users meet. Each says what was expected, what came, and what to do.

They derive from the builtins that people already catch, so ``except ValueError`` keeps working.
"""

from __future__ import annotations


class FouriscopeError(Exception):
    """Base of every error that fouriscope raises on purpose; the command line prints it in one line."""


class InvalidInputError(FouriscopeError, ValueError):
    """A value, shape or file that cannot be worked with."""


class FramesChangedError(InvalidInputError):
    """Frames that are no longer what they were when they were read before."""


class InsufficientMemoryError(FouriscopeError, MemoryError):
    """The problem as stated would not fit into the memory of this machine."""


class RunFolderError(FouriscopeError, OSError):
    """A run folder that is missing, foreign or cannot be continued."""


class DivergenceError(FouriscopeError, ArithmeticError):
    """The iterations went astray and could not be brought back."""
