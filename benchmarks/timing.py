"""Clocks for comparisons on a machine that others use too: rivals take turns, and each keeps its fastest turn."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping

Call = Callable[[], object]


def interleaved(
    calls: Mapping[str, Call], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Seconds of the fastest of ``repeats`` turns of each call, A B A B …, after one turn that does not count.

    ``clock`` is ``time.perf_counter`` for what a user waits, ``time.process_time`` for CPU-seconds of all threads,
    ``time.thread_time`` for those of the calling thread alone.
    """
    for call in calls.values():
        call()
    fastest = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            start = clock()
            call()
            fastest[name] = min(fastest[name], clock() - start)
    return fastest


def page_faults() -> int:
    """Pages the kernel has handed out so far: memory given back and asked for again costs real time."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
