"""Our threads around torch: on the CPU they share out work, and torch has one thread in each. Imports torch.

Torch's own threads would wait for each other in every operation, and spin after it on the cores that ours need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from threading import Condition, Lock
from typing import Any, TypeAlias

import torch

from fouriscope.parallel import run_sliced, split, thread_count

Tensor: TypeAlias = Any

# An object is transformed in pieces of so many bytes, which stay in the cache, and in so many at least.
PIECE_BYTES, FEWEST_PIECES = 2**19, 4


@contextmanager
def one_thread() -> Iterator[None]:
    """The calling thread computes alone, without threads of torch's own and without derivatives."""
    before = torch.get_num_threads()
    if before != 1:
        torch.set_num_threads(1)
    try:
        with torch.no_grad():  # which holds for one thread
            yield
    finally:
        if before != 1:
            torch.set_num_threads(before)


@contextmanager
def as_asked(deterministic: bool, device: Any) -> Iterator[None]:
    """Deterministic algorithms if they are asked for, and on the CPU no threads but ours; then as before."""
    strict = torch.are_deterministic_algorithms_enabled()
    if deterministic and not strict:
        torch.use_deterministic_algorithms(True)
    try:
        with one_thread() if device.type == "cpu" else nullcontext():
            yield
    finally:
        if deterministic and not strict:
            torch.use_deterministic_algorithms(False)


def in_turn(
    items: Iterable[Any],
    load: Callable[[Any], Any],
    work: Callable[[Any], Any],
    use: Callable[[Any, Any], object],
    device: Any,
) -> None:
    """``use(item, work(load(item)))`` for all items. On the CPU our threads work on several at once; what is loaded and
    what is used comes one at a time, in the order of the items."""
    if device.type != "cpu":
        for item in items:
            use(item, work(load(item)))
        return
    waiting, loading, turns = enumerate(items), Lock(), _Turns()

    def share(start: int, stop: int) -> None:
        with one_thread(), turns.or_nobody():
            while True:
                with loading:
                    number, item = next(waiting, (None, None))
                    if number is None:
                        return
                    loaded = load(item)
                result = work(loaded)
                del loaded  # before the next is there
                if not turns.wait_for(number):
                    return
                use(item, result)
                turns.next()

    run_sliced(share, thread_count())


class _Turns:
    """Lets threads pass one after the other, by number, until one of them fails: then nobody waits any more."""

    def __init__(self) -> None:
        self._now, self._failed, self._changed = 0, False, Condition()

    def wait_for(self, number: int) -> bool:
        """Wait until it is the turn of ``number``; False if that will never be."""
        with self._changed:
            self._changed.wait_for(lambda: self._failed or self._now == number)
            return not self._failed

    def next(self) -> None:
        with self._changed:
            self._now += 1
            self._changed.notify_all()

    @contextmanager
    def or_nobody(self) -> Iterator[None]:
        """What fails in here fails for all."""
        try:
            yield
        except BaseException:
            with self._changed:
                self._failed = True
                self._changed.notify_all()
            raise


def pieces_of(nbytes: int, device: Any) -> int:
    """Pieces that an object of so many bytes is cut into: on a card it is all in one."""
    return max(FEWEST_PIECES, nbytes // PIECE_BYTES) if device.type == "cpu" else 1


def by_pieces(work: Callable[[slice], None], total: int, count: int, device: Any) -> None:
    """``work`` on ``count`` slices that cover ``range(total)``. On the CPU our threads share them: always the same
    ones, so that a transform of many rows is the same for any number of threads."""
    pieces = split(total, count)

    def share(start: int, stop: int) -> None:
        with one_thread() if device.type == "cpu" else nullcontext():
            for piece in pieces[start:stop]:
                work(slice(*piece))

    run_sliced(share, len(pieces))
