"""Threads for compiled kernels that release the GIL.

There is one pool for the whole process. A kernel gets contiguous slices of its work and writes to its own places, so
results do not depend on the number of threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from itertools import pairwise

from fouriscope.errors import InvalidInputError


class _Here(threading.local):
    """Whether this thread is computing a slice."""

    in_slice = False


_here = _Here()
_limit: ContextVar[int | None] = ContextVar("fouriscope_threads", default=None)


def available_threads() -> int:
    """Cores this process may use (its affinity mask where the system has one)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count() -> int:
    """Threads that kernels use now: ``FOURISCOPE_THREADS`` or all cores, unless inside :func:`threads`."""
    limit = _limit.get()
    if limit is not None:
        return limit
    wanted = os.environ.get("FOURISCOPE_THREADS", "")
    if not wanted:
        return available_threads()
    if not wanted.isdecimal() or int(wanted) < 1:
        raise InvalidInputError(f"FOURISCOPE_THREADS must be a whole number of at least 1, got {wanted!r}")
    return int(wanted)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Use ``count`` threads inside the ``with`` block.

    Examples
    --------
    >>> with threads(1):
    ...     thread_count()
    1
    """
    if count < 1:
        raise InvalidInputError(f"the number of threads must be at least 1, got {count}")
    token = _limit.set(count)
    try:
        yield
    finally:
        _limit.reset(token)


@cache
def _pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, thread_name_prefix="fouriscope")


if hasattr(os, "register_at_fork"):
    # A forked child inherits the pool without its threads, and would wait for them for ever.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def split(total: int, parts: int) -> list[tuple[int, int]]:
    """Cut ``range(total)`` into at most ``parts`` contiguous, nearly equal, non-empty pieces.

    >>> split(10, 4)
    [(0, 2), (2, 5), (5, 7), (7, 10)]
    >>> split(1, 4)
    [(0, 1)]
    """
    parts = max(1, min(parts, total))
    edges = [total * k // parts for k in range(parts + 1)]
    return list(pairwise(edges))


def run_sliced(work: Callable[[int, int], object], total: int) -> None:
    """Call ``work(start, stop)`` on slices that cover ``range(total)``, one slice per thread.

    Work that does so itself computes its own slices alone: the threads of the pool are taken, and one of them that
    waited for another would wait for ever.
    """
    if total <= 0:
        return
    slices = [(0, total)] if _here.in_slice else split(total, thread_count())
    if len(slices) == 1:
        work(*slices[0])
        return
    # The calling thread takes the first slice itself: one hand-over less, and no idle core.
    # The others see its context: NumPy keeps there which warnings the caller has switched off.
    futures = [
        _pool(len(slices) - 1).submit(copy_context().run, _run_slice, work, start, stop) for start, stop in slices[1:]
    ]
    try:
        _run_slice(work, *slices[0])
    finally:
        wait(futures)
    for future in futures:
        future.result()


def _run_slice(work: Callable[[int, int], object], start: int, stop: int) -> None:
    _here.in_slice = True
    try:
        work(start, stop)
    finally:
        _here.in_slice = False
