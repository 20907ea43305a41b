"""Threads for compiled kernels that release the GIL.

One pool for the whole process. A kernel is handed contiguous slices of its work and writes to places of its own, so
results do not depend on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from itertools import pairwise

_limit: int | None = None


def available_threads() -> int:
    """Cores this process may use (its affinity mask where the system has one)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count() -> int:
    """Threads that kernels use now: ``FOURISCOPE_THREADS`` or all cores, unless inside :func:`threads`."""
    if _limit is not None:
        return _limit
    return max(1, int(os.environ.get("FOURISCOPE_THREADS", "0")) or available_threads())


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Use ``count`` threads inside the ``with`` block.

    >>> with threads(1):
    ...     thread_count()
    1
    """
    global _limit
    if count < 1:
        raise ValueError(f"the number of threads must be at least 1, got {count}")
    before, _limit = _limit, count
    try:
        yield
    finally:
        _limit = before


@cache
def _pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, thread_name_prefix="fouriscope")


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
    """Call ``work(start, stop)`` on slices that cover ``range(total)``, one slice a thread."""
    if total <= 0:
        return
    slices = split(total, thread_count())
    if len(slices) == 1:
        work(*slices[0])
        return
    # The calling thread takes the first slice itself: one hand-over less, and no idle core.
    futures = [_pool(len(slices) - 1).submit(work, start, stop) for start, stop in slices[1:]]
    try:
        work(*slices[0])
    finally:
        wait(futures)
    for future in futures:
        future.result()
