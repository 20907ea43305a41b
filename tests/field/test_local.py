"""Workers on this machine, one by one: killed, stopped, out of memory, unable to start, and out of everyone's reach."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from fouriscope.field import local
from fouriscope.field.dispatch import ClusterError, Dispatcher, Ended, Task, WorkerDiedError, run_all
from fouriscope.field.local import LocalWorkers
from tests.field.problems import open_sockets

PATIENCE = 60.0


@pytest.fixture(scope="module")
def worker() -> Iterator[LocalWorkers]:
    with LocalWorkers(1) as workers:
        yield workers


def ended(workers: LocalWorkers) -> Ended:
    found = workers.ended(PATIENCE)
    assert found is not None
    return found


def begin(workers: LocalWorkers, marker: Path, function: Any, *arguments: Any) -> None:
    """Have a task done, and wait until it runs; it makes ``marker``."""
    workers.submit(Task("task", function, (str(marker), *arguments)))
    deadline = time.monotonic() + PATIENCE
    while not marker.exists():
        assert workers.ended(0.05) is None
        assert time.monotonic() < deadline


def sleep_for_long(marker: str) -> None:
    Path(marker).touch()
    time.sleep(1000)


class _UntravelledError(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


def fail_oddly() -> None:
    raise _UntravelledError("this", "that")


def fill_memory(marker: str) -> None:
    Path(marker).touch()
    kept = [np.ones(2**23) for _ in range(16)]  # 1 GiB
    time.sleep(1000)
    del kept


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_tasks_return_and_errors_travel(worker: LocalWorkers) -> None:
    assert dict(run_all(worker, [(n, divmod, (n, 3)) for n in range(7)])) == {n: divmod(n, 3) for n in range(7)}
    assert dict(run_all(worker, [("prints", print, ("not an answer",))])) == {"prints": None}
    with pytest.raises(ZeroDivisionError) as raised:
        list(run_all(worker, [("fails", divmod, (1, 0))]))
    assert "in a worker" in raised.value.__notes__[0]
    with pytest.raises(RuntimeError, match="_UntravelledError: this and that"):
        list(run_all(worker, [("fails", fail_oddly, ())]))
    large = np.arange(10**6)
    (found,) = (value for _, value in run_all(worker, [("large", np.negative, (large,))]))
    np.testing.assert_array_equal(found, -large)


def test_a_worker_that_is_killed_is_replaced(worker: LocalWorkers, tmp_path: Path) -> None:
    begin(worker, tmp_path / "begun", sleep_for_long)
    (killed,) = worker.pids
    os.kill(killed, signal.SIGKILL)
    assert str(ended(worker).error) == "killed by SIGKILL"
    worker.submit(Task("next", os.getpid, ()))
    assert ended(worker).value not in (killed, os.getpid())


def test_a_worker_that_is_killed_while_it_starts_is_replaced(worker: LocalWorkers) -> None:
    for _ in range(3):
        worker.cancel()
        os.kill(worker.pids[0], signal.SIGKILL)
        before = worker.pids
        while worker.pids in ([], before):  # ends as soon as the next one is there, long before it is ready
            assert worker.ended(0.05) is None
    worker.submit(Task("next", divmod, (7, 3)))
    assert ended(worker).value == (2, 1)


def test_a_worker_that_is_stopped_is_replaced(
    worker: LocalWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(worker, tmp_path / "begun", sleep_for_long)
    os.kill(worker.pids[0], signal.SIGSTOP)
    with monkeypatch.context() as patched:
        patched.setattr(local, "SILENT_SECONDS", 1.0)
        assert isinstance(ended(worker).error, WorkerDiedError)
    worker.submit(Task("small", divmod, (7, 3)))
    assert ended(worker).value == (2, 1)
    # A task larger than a pipe, for a worker that reads nothing: nobody waits for it.
    os.kill(worker.pids[0], signal.SIGSTOP)
    worker.submit(Task("large", np.negative, (np.arange(10**6),)))
    with monkeypatch.context() as patched:
        patched.setattr(local, "SILENT_SECONDS", 1.0)
        assert isinstance(ended(worker).error, WorkerDiedError)
    worker.submit(Task("small", divmod, (7, 3)))
    assert ended(worker).value == (2, 1)


def test_workers_are_not_to_blame_if_the_coordinator_was_stopped(worker: LocalWorkers) -> None:
    """Ctrl-Z and fg an hour later."""
    worker.submit(Task("next", os.getpid, ()))
    before = ended(worker).value
    worker._looked -= 3600.0
    worker.submit(Task("next", os.getpid, ()))
    assert ended(worker).value == before


def test_a_worker_that_takes_too_much_memory_ends(tmp_path: Path) -> None:
    with LocalWorkers(1, memory=700 * 10**6) as workers:
        begin(workers, tmp_path / "begun", fill_memory)
        assert str(ended(workers).error) == "it took more memory than allowed"


def test_workers_that_cannot_start_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "FRUITLESS_STARTS", 2)
    monkeypatch.setattr(local, "SHORTEST_REST_SECONDS", 0.01)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with LocalWorkers(2) as workers, pytest.raises(ClusterError, match=r"4 workers in a row .* exit code 1"):
        workers.ended(PATIENCE)
    monkeypatch.setattr(sys, "executable", "/nothing/there")
    with pytest.raises(ClusterError, match="No such file"), LocalWorkers(1) as workers:
        workers.ended(PATIENCE)


def test_workers_that_have_too_little_memory_to_live_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "FRUITLESS_STARTS", 2)
    with LocalWorkers(1, memory=10**7) as workers, pytest.raises(ClusterError, match="more memory than allowed"):
        workers.ended(PATIENCE)


def test_a_task_that_always_kills_its_worker_is_given_up(worker: LocalWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fouriscope.field.dispatch.DEATHS", 2)
    dispatcher = Dispatcher(worker)
    dispatcher.add("deadly", die)
    dispatcher.add("harmless", divmod, 7, 3)
    found = {ended.task.name: ended for ended in dispatcher}
    assert isinstance(found["deadly"].error, WorkerDiedError)
    assert found["harmless"].value == (2, 1)


def test_what_is_cancelled_is_over(worker: LocalWorkers, tmp_path: Path) -> None:
    begin(worker, tmp_path / "begun", sleep_for_long)
    process = psutil.Process(worker.pids[0])
    worker.cancel()
    assert not process.is_running()
    worker.submit(Task("next", divmod, (7, 3)))
    assert ended(worker).task.name == "next"


def test_nobody_can_reach_a_worker(tmp_path: Path) -> None:
    """No port, no named socket, on the coordinator or on a worker, while a task runs: there is nothing to connect to.

    What other tests left open in this process is not the coordinator's.
    """
    before = open_sockets(psutil.Process())
    with LocalWorkers(1) as workers:
        begin(workers, tmp_path / "begun", sleep_for_long)
        process = psutil.Process(workers.pids[0])
        assert not process.children(recursive=True)
        assert open_sockets(process) == []
        assert open_sockets(psutil.Process()) == before
