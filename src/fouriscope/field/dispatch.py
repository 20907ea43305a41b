"""Tasks on workers, some at a time: their results, and what happened to tasks that gave none."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from fouriscope.errors import FouriscopeError

PATIENCE_SECONDS = 2.0
# A task whose worker dies under it this often is given up, unless the task keeps count itself.
DEATHS = 20


class ClusterError(FouriscopeError, ConnectionError):
    """The cluster is gone, or its workers cannot work."""


class WorkerDiedError(ClusterError):
    """A worker died with its task."""


class Task(NamedTuple):
    """Something to do, and the name under which its result comes back."""

    name: Hashable
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Ended(NamedTuple):
    """A task that came to an end, and what it returned or raised."""

    task: Task
    value: Any
    error: BaseException | None


class Workers(Protocol):
    """Processes that do tasks: here (:mod:`fouriscope.field.local`) or on a cluster (:mod:`fouriscope.field.remote`).

    Each may have ``tasks_each`` tasks at once. No call waits without a limit: if it cannot continue, it raises
    ClusterError.
    """

    tasks_each: int

    @property
    def count(self) -> int:
        """How many tasks can run at once."""

    def submit(self, task: Task) -> None:
        """Have ``task`` done."""

    def ended(self, seconds: float) -> Ended | None:
        """A task that ended, with WorkerDiedError if its worker died; None if there is none for ``seconds``."""

    def cancel(self) -> None:
        """Forget everything that was submitted."""


class Dispatcher:
    """Gives tasks to ``workers`` and collects what they return.

    A task whose worker died is submitted again. ``idle`` is called now and then while nothing ends.
    """

    def __init__(self, workers: Workers, idle: Callable[[], object] | None = None) -> None:
        self.workers, self._idle = workers, idle
        self._waiting: deque[Task] = deque()
        self._running = 0
        self._deaths: dict[Hashable, int] = {}

    def add(self, name: Hashable, function: Callable[..., Any], *arguments: Any) -> None:
        """One more task; its ``name`` comes back with what it returns."""
        self._waiting.append(Task(name, function, arguments))

    def __iter__(self) -> Iterator[Ended]:
        """Every task as it ends, until none is left; tasks can be added meanwhile."""
        while self._waiting or self._running:
            self._hand_out()
            ended = self.workers.ended(PATIENCE_SECONDS)
            if ended is None:
                if self._idle is not None:
                    self._idle()
                continue
            self._running -= 1
            if isinstance(ended.error, WorkerDiedError) and self._may_try_again(ended.task):
                self._waiting.appendleft(ended.task)
            else:
                yield ended

    def cancel(self) -> None:
        """Forget everything that was handed in."""
        self._waiting.clear()
        self._running = 0
        self.workers.cancel()

    def _hand_out(self) -> None:
        room = self.workers.tasks_each * max(1, self.workers.count) - self._running
        for _ in range(min(room, len(self._waiting))):
            self.workers.submit(self._waiting.popleft())
            self._running += 1

    def _may_try_again(self, task: Task) -> bool:
        self._deaths[task.name] = self._deaths.get(task.name, 0) + 1
        return self._deaths[task.name] < DEATHS


def run_all(
    workers: Workers, tasks: Iterable[tuple[Hashable, Callable[..., Any], tuple[Any, ...]]]
) -> Iterator[tuple[Hashable, Any]]:
    """Run independent tasks and give each name with its value, in the order in which they end; an error is raised."""
    dispatcher = Dispatcher(workers)
    for name, function, arguments in tasks:
        dispatcher.add(name, function, *arguments)
    try:
        for ended in dispatcher:
            if ended.error is not None:
                raise ended.error
            yield ended.task.name, ended.value
    finally:
        dispatcher.cancel()
