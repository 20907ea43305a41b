"""What becomes of memory that is freed: the C library keeps it for what comes next, or gives it back to the system."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

# Options of glibc's malloc. Blocks from the second on are taken from the system one by one, and given back when they
# are freed. Of what smaller blocks leave at the end, as much as the first is kept. ``KEEP`` are its largest values.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEEP, GIVE_BACK = (2**26, 2**25), (2**17, 2**16)


def handle_freed_memory(*, keep: bool) -> None:
    """Have the C library keep what is freed from now on, or give it back, in the whole process.

    Fresh pages for each large array make a gradient up to 1.6 times as long. But what is kept seldom fits exactly what
    is wanted next, so a process that keeps it grows, by up to a third.
    """
    set_option = _of_glibc("mallopt")
    if set_option is not None:
        for option, value in zip((M_TRIM_THRESHOLD, M_MMAP_THRESHOLD), KEEP if keep else GIVE_BACK, strict=True):
            set_option(option, value)


def return_free_memory() -> None:
    """Return memory that Python has freed to the system, if the C library keeps it (glibc does, per thread)."""
    trim = _of_glibc("malloc_trim")
    if trim is not None:
        trim(0)


def _of_glibc(name: str) -> Callable[..., int] | None:
    """A function that other C libraries do not have, and do not need."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
