"""Workers on this machine: processes that communicate through pipes, and are replaced when they end.

Nothing listens: there is no port, no socket and no file by which somebody else could reach a worker. Nothing waits
without a limit either. A thread reads the messages of each worker. When a worker dies its pipe ends, and when it is
silent for too long it is killed. In both cases another is started.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

from fouriscope.acquisition.machine_memory import memory_total
from fouriscope.field.devices import DEVICE_VARIABLE, least_used
from fouriscope.field.dispatch import ClusterError, Ended, Task, WorkerDiedError
from fouriscope.parallel import available_threads

TICK_SECONDS = 0.5
# A live worker sends a message twice per second. One that is stopped, stuck in the system or cannot start is given up
# after this time, which is long because a machine under load may take a minute to start Python.
SILENT_SECONDS = 120.0
# Workers that end in a row before they had a task, for each that is wanted, before the field is given up.
FRUITLESS_STARTS = 10
SHORTEST_REST_SECONDS, LONGEST_REST_SECONDS = 0.1, 5.0
END_SECONDS = 10.0
# The exit code of a worker that takes more memory than it may.
OUT_OF_MEMORY = 77
# One thread each: tiles share the cores, not the work on a tile.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

Event = tuple["_Worker", str, bytes]


class _Worker:
    """A process, the task that it has, and the thread that listens to it."""

    def __init__(self, memory: int, events: queue.SimpleQueue[Event], device: str = "") -> None:
        self.device = device
        own = {DEVICE_VARIABLE: device} if device else {}
        # A session of its own, so that Ctrl-C in a terminal reaches the coordinator alone. It imports what this process
        # would import; -P keeps it from importing what happens to lie in the current folder.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "fouriscope.field.worker", str(memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ
            | ENVIRONMENT
            | own
            | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
            start_new_session=True,
        )
        self.task: Task | None = None
        self.is_ready = False
        self.silence = 0.0
        self._listener = threading.Thread(target=self._listen, args=(events,), daemon=True)
        self._listener.start()

    def give(self, task: Task) -> None:
        """From a thread of its own: a worker that is stopped reads nothing, and nobody waits for it here."""
        self.task = task
        order = pickle.dumps(pickle.dumps((task.function, task.arguments)))
        threading.Thread(target=self._write, args=(order,), daemon=True).start()

    def end(self) -> str:
        """Kill it if it is alive; returns what became of it, in words."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.kill()
        try:
            code = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return "it cannot be killed"  # it waits for a disk; its thread stays with it
        self._listener.join(END_SECONDS)
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(OSError):  # of what it was sent and did not read
                stream.close()
        if code == OUT_OF_MEMORY:
            return "it took more memory than allowed"
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def _write(self, order: bytes) -> None:
        assert self.process.stdin is not None
        with suppress(OSError, ValueError):  # it is dead, which the listener says, or was given up and closed
            self.process.stdin.write(order)
            self.process.stdin.flush()

    def _listen(self, events: queue.SimpleQueue[Event]) -> None:
        assert self.process.stdout is not None
        try:
            with suppress(EOFError, OSError, pickle.UnpicklingError):  # its end, maybe in the middle of a message
                while True:
                    kind, content = pickle.load(self.process.stdout)
                    events.put((self, kind, content))
        finally:
            events.put((self, "gone", b""))


class LocalWorkers:
    """``wanted`` processes with ``memory`` bytes each, one task at a time. This context manager kills them at its end.

    Where there are ``devices``, one worker is wanted for each; more of them share the devices evenly. A worker that
    takes the place of another takes its device. Workers are supervised while :meth:`ended` waits.
    """

    tasks_each = 1

    def __init__(self, wanted: int | None = None, memory: int | None = None, devices: Sequence[str] = ()) -> None:
        self.devices = tuple(devices)
        self.wanted = wanted or len(devices) or available_threads()
        self.memory = memory or memory_total() // max(available_threads(), len(devices))
        self._workers: list[_Worker] = []
        self._waiting: deque[Task] = deque()
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._fruitless = 0
        self._start_after = self._looked = time.monotonic()

    def __enter__(self) -> Self:
        self._look_after()
        return self

    def __exit__(self, *_: object) -> None:
        self._end(self._workers)

    @property
    def count(self) -> int:
        """Processes that are there or start."""
        return len(self._workers)

    @property
    def pids(self) -> list[int]:
        """Their process identifiers."""
        return [worker.process.pid for worker in self._workers]

    def submit(self, task: Task) -> None:
        """Have ``task`` done; :meth:`ended` gives it back."""
        self._waiting.append(task)

    def cancel(self) -> None:
        """Forget all tasks. Workers that are at one are killed: nobody wants what they would write."""
        self._waiting.clear()
        self._end([worker for worker in self._workers if worker.task is not None])

    def ended(self, seconds: float) -> Ended | None:
        """The next task that comes to an end, or None after ``seconds``; starts workers for those that are gone.

        Raises :class:`ClusterError` if workers end again and again before they have done anything.
        """
        deadline = time.monotonic() + seconds
        while True:
            self._look_after()
            left = deadline - time.monotonic()
            if left <= 0 and self._events.empty():
                return None
            with suppress(queue.Empty):
                ended = self._take_in(*self._events.get(timeout=max(0.0, min(TICK_SECONDS, left))))
                if ended is not None:
                    return ended

    def _look_after(self) -> None:
        now = time.monotonic()
        # When this process itself was stopped, or busy, that is no silence of the workers.
        passed, self._looked = min(now - self._looked, 2 * TICK_SECONDS), now
        for worker in self._workers:
            worker.silence += passed
            if worker.silence > SILENT_SECONDS:
                self._events.put((worker, "gone", b""))
        while len(self._workers) < self.wanted and now >= self._start_after:
            try:
                self._workers.append(_Worker(self.memory, self._events, self._free_device()))
            except OSError as error:
                self._note_fruitless(error.strerror or str(error))
        for worker in self._workers:
            if self._waiting and worker.is_ready and worker.task is None:
                worker.give(self._waiting.popleft())

    def _free_device(self) -> str:
        return least_used(self.devices, (worker.device for worker in self._workers)) if self.devices else ""

    def _take_in(self, worker: _Worker, kind: str, content: bytes) -> Ended | None:
        if worker not in self._workers:  # it was given up or ended; what it still says counts for nothing
            return None
        worker.silence = 0.0
        task = worker.task
        if kind == "gone":
            self._workers.remove(worker)
            fate = worker.end()
            if task is None:
                self._note_fruitless(fate)
                return None
            return Ended(task, None, WorkerDiedError(fate))
        worker.is_ready = True
        if kind != "ended" or task is None:
            return None
        worker.task, self._fruitless = None, 0
        value, error = pickle.loads(content)
        return Ended(task, value, error)

    def _note_fruitless(self, fate: str) -> None:
        self._fruitless += 1
        if self._fruitless >= FRUITLESS_STARTS * self.wanted:
            raise ClusterError(
                f"{self._fruitless} workers in a row ended before they had done anything (the last one: {fate}); "
                "finished tiles are kept: find the cause, such as too little memory, and give the same command again"
            )
        rest = SHORTEST_REST_SECONDS * 2 ** min(self._fruitless // self.wanted, 10)
        self._start_after = time.monotonic() + min(LONGEST_REST_SECONDS, rest)

    def _end(self, workers: list[Any]) -> None:
        for worker in workers:
            worker.process.kill()
        for worker in list(workers):
            self._workers.remove(worker)
            worker.end()
