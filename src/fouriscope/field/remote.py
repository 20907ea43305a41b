"""Workers of a running Dask cluster, through a ``distributed.Client``."""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fouriscope import __version__
from fouriscope.errors import InvalidInputError
from fouriscope.field.devices import DEVICE_VARIABLE, RESOURCE
from fouriscope.field.dispatch import ClusterError, Ended, Task, WorkerDiedError

ANSWER_SECONDS = 60.0
ASKED_EVERY_SECONDS = 2.0
# Without any worker the field waits so long, and then ends: a queue that takes longer should be waited for before.
WORKERLESS_SECONDS = 600.0
GONE = "tiles that were done are kept: start a cluster and give the same command again"


class DaskWorkers:
    """The threads of all workers of ``client``; with ``on_devices``, of those that offer the resource "GPU".

    If a worker dies, Dask gives its task to another. If that happens too often, Dask stops with KilledWorker, although
    the task may not be the cause: it may only have waited on workers that died.
    """

    tasks_each = 2  # one that runs, and one that waits so that a worker need not

    def __init__(self, client: Any, *, on_devices: bool = False) -> None:
        self.client = client
        self._needs = {"resources": {RESOURCE: 1}} if on_devices else {}
        self._running: dict[Any, Task] = {}
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._asked = self._seen = time.monotonic()
        self._count: int | None = None
        self._is_lost = False

    @property
    def is_connected(self) -> bool:
        """Whether the scheduler is there, as far as is known."""
        return self.client.status == "running" and not self._is_lost

    @property
    def dashboard(self) -> str:
        """The address of the scheduler's page; empty if it has none."""
        return str(self.client.dashboard_link or "")

    @property
    def count(self) -> int:
        """Threads of all workers: what the scheduler said a moment ago, because workers come and go."""
        now = time.monotonic()
        if not self.is_connected:
            return 0
        if self._count is None or now - self._asked > ASKED_EVERY_SECONDS:
            self._asked, self._count = now, sum(self._call(self.client.nthreads).values())
        if self._count:
            self._seen = now
        return self._count

    def submit(self, task: Task) -> None:
        """Have ``task`` done; :meth:`ended` gives it back."""
        self._check_connected()
        key = f"{task.function.__name__}-{task.name}-{uuid.uuid4().hex[:8]}"
        future = self.client.submit(task.function, *task.arguments, key=key, pure=False, **self._needs)
        self._running[future] = task
        future.add_done_callback(self._ended.put)

    def cancel(self) -> None:
        """Forget everything that was submitted."""
        running, self._running = list(self._running), {}
        if self.is_connected and running:
            self._call(self.client.cancel, running, force=True)

    def ended(self, seconds: float) -> Ended | None:
        """The next task that comes to an end, or None after ``seconds``.

        Raises :class:`ClusterError` if the scheduler is gone, does not answer, or has had no worker for ten minutes.
        """
        self._check_connected()
        if not self.count and time.monotonic() - self._seen > WORKERLESS_SECONDS:
            raise ClusterError(f"the scheduler has had no worker for {WORKERLESS_SECONDS:.0f} s; {GONE}")
        try:
            future = self._ended.get(timeout=seconds)
        except queue.Empty:
            return None
        task = self._running.pop(future, None)
        return None if task is None else self._take_in(future, task)

    def check(self, folder: Path, frames: Path) -> None:
        """Raise if a worker cannot do a tile: another version of fouriscope, or files that it cannot see."""
        try:
            answers = self._call(self.client.run, _introduce, str(folder.resolve()), str(frames.resolve()))
        except ImportError as error:
            raise ClusterError(
                f"a worker cannot import fouriscope ({error}); install fouriscope {__version__} where the workers run"
            ) from error
        if self._needs and not self._offered():
            raise ClusterError(
                f"no worker offers the resource {RESOURCE}, which tiles on devices need; start them with `dask worker "
                f'--resources "{RESOURCE}=1"`, one for each device, with {DEVICE_VARIABLE} in its environment'
            )
        for worker, (version, missing) in answers.items():
            if version != __version__:
                raise ClusterError(f"worker {worker} has fouriscope {version}, this is {__version__}; install the same")
            if missing:
                raise InvalidInputError(
                    f"worker {worker} cannot see {missing}; frames and output must be on storage that all workers share"
                )

    def _offered(self) -> bool:
        workers = self._call(self.client.scheduler_info, n_workers=-1)["workers"]
        return any(worker["resources"].get(RESOURCE, 0) >= 1 for worker in workers.values())

    def _check_connected(self) -> None:
        if not self.is_connected:
            raise ClusterError(f"the scheduler is gone; {GONE}")

    def _take_in(self, future: Any, task: Task) -> Ended | None:
        from distributed import CancelledError
        from distributed.scheduler import KilledWorker

        if future.status == "finished":
            try:
                return Ended(task, future.result(timeout=ANSWER_SECONDS), None)
            except (TimeoutError, CancelledError):  # its worker went with the result
                return Ended(task, None, WorkerDiedError("its result was lost"))
        if future.status != "error":  # cancelled or lost: the scheduler went, or came anew
            return Ended(task, None, WorkerDiedError("the scheduler lost it"))
        error = future.exception(timeout=ANSWER_SECONDS)
        return Ended(task, None, WorkerDiedError(str(error)) if isinstance(error, KilledWorker) else error)

    def _call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """A call to the scheduler that may never return, waited for with a limit."""
        answer: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

        def ask() -> None:
            try:
                answer.put((function(*arguments, **options), None))
            except Exception as error:  # noqa: BLE001  (it is raised below)
                answer.put((None, error))

        threading.Thread(target=ask, daemon=True).start()
        try:
            value, error = answer.get(timeout=ANSWER_SECONDS)
        except queue.Empty:
            self._is_lost = True
            raise ClusterError(f"the scheduler has not answered for {ANSWER_SECONDS:.0f} s; {GONE}") from None
        if isinstance(error, OSError):  # Dask's errors of connections have no number, and are no mistake of ours
            raise ClusterError(f"the cluster does not answer ({error or type(error).__name__}); {GONE}") from error
        if error is not None:
            raise error
        return value


def _introduce(folder: str, frames: str) -> tuple[str, str]:
    return __version__, next((path for path in (folder, frames) if not Path(path).exists()), "")
