"""Tasks on a cluster, some at a time: what comes back, and what happened to those that did not."""

from __future__ import annotations

import math
import queue
import time
import uuid
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple

from fouriscope.errors import FouriscopeError

# Tasks a thread of the cluster has before it asks: one that runs, and one that waits so that it need not.
TASKS_A_THREAD = 2
PATIENCE_SECONDS = 2.0
# A task whose worker dies under it this often is given up, unless the task keeps count itself.
DEATHS = 10


class ClusterError(FouriscopeError, ConnectionError):
    """The cluster is gone, or its workers cannot work."""


class Done(NamedTuple):
    """A task that came to an end: its name, and what it returned or raised."""

    name: Hashable
    value: Any
    error: BaseException | None


class Dispatcher:
    """Hands tasks to the workers of ``client`` and takes in what they return.

    A worker that dies is Dask's business: it gives the task to another. When it has done that too often it stops with
    KilledWorker, though the task may be innocent (it only waited on workers that died); then it is handed in anew.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._waiting: deque[tuple[Hashable, Callable[..., Any], tuple[Any, ...]]] = deque()
        self._running: dict[Any, tuple[Hashable, Callable[..., Any], tuple[Any, ...]]] = {}
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._deaths: dict[Hashable, int] = {}
        self._asked, self._threads = -math.inf, 0

    def add(self, name: Hashable, function: Callable[..., Any], *arguments: Any) -> None:
        """One more task; its ``name`` comes back with what it returns."""
        self._waiting.append((name, function, arguments))

    def __iter__(self) -> Iterator[Done]:
        """Every task as it ends, until none is left; tasks can be added meanwhile."""
        while self._waiting or self._running:
            self._check_connection()
            self._hand_out()
            try:
                future = self._ended.get(timeout=PATIENCE_SECONDS)
            except queue.Empty:
                continue
            done = self._take_in(future)
            if done is not None:
                yield done

    @property
    def threads(self) -> int:
        """Threads of all workers: what the scheduler said a moment ago, because workers come and go."""
        if time.monotonic() - self._asked > PATIENCE_SECONDS:
            self._asked, self._threads = time.monotonic(), sum(self.client.nthreads().values())
        return self._threads

    def cancel(self) -> None:
        """Forget everything that was handed in."""
        self._waiting.clear()
        running, self._running = list(self._running), {}
        if self.client.status == "running":
            self.client.cancel(running, force=True)

    def _hand_out(self) -> None:
        room = TASKS_A_THREAD * max(1, self.threads) - len(self._running)
        for _ in range(min(room, len(self._waiting))):
            name, function, arguments = self._waiting.popleft()
            key = f"{function.__name__}-{name}-{uuid.uuid4().hex[:8]}"
            future = self.client.submit(function, *arguments, key=key, pure=False)
            self._running[future] = (name, function, arguments)
            future.add_done_callback(self._ended.put)

    def _take_in(self, future: Any) -> Done | None:
        from distributed.scheduler import KilledWorker

        task = self._running.pop(future, None)
        if task is None:  # cancelled
            return None
        name = task[0]
        if future.status == "finished":
            return Done(name, future.result(), None)
        if future.status != "error":  # cancelled or lost: the scheduler went, or came anew
            self._waiting.append(task)
            return None
        error = future.exception()
        if isinstance(error, KilledWorker):
            self._deaths[name] = self._deaths.get(name, 0) + 1
            if self._deaths[name] <= DEATHS:
                self._waiting.appendleft(task)
                return None
        return Done(name, None, error)

    def _check_connection(self) -> None:
        if self.client.status != "running":
            raise ClusterError(
                "the scheduler is gone; tiles that were done are kept: start a cluster and give the same command again"
            )


def run_all(
    client: Any, tasks: Iterable[tuple[Hashable, Callable[..., Any], tuple[Any, ...]]]
) -> Iterator[tuple[Hashable, Any]]:
    """Run independent tasks and give each name with its value, in the order in which they end; an error is raised."""
    dispatcher = Dispatcher(client)
    for name, function, arguments in tasks:
        dispatcher.add(name, function, *arguments)
    try:
        for done in dispatcher:
            if done.error is not None:
                raise done.error
            yield done.name, done.value
    finally:
        dispatcher.cancel()
