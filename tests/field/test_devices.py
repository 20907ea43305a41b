"""One worker for each device. No device is needed to test who gets which."""

from __future__ import annotations

import os
import signal
import time
from types import SimpleNamespace
from typing import Any

import pytest

from fouriscope.errors import InvalidInputError
from fouriscope.field.devices import DEVICE_VARIABLE, least_used, on_devices, on_own_device, split_devices
from fouriscope.field.dispatch import ClusterError, Task
from fouriscope.field.local import LocalWorkers
from fouriscope.field.remote import DaskWorkers
from fouriscope.parallel import available_threads
from fouriscope.settings import Engine, RunConfig

PATIENCE = 120.0
PLAIN = RunConfig.model_construct(engine=Engine())
TORCH = RunConfig.model_construct(engine=Engine(name="torch", device="cuda:0"))


def own_device() -> str:
    time.sleep(0.5)  # so that another worker takes the next task
    return os.environ.get(DEVICE_VARIABLE, "")


def devices_of(workers: LocalWorkers, tasks: int) -> list[str]:
    """The devices on which so many tasks, one after the other, find themselves."""
    for k in range(tasks):
        workers.submit(Task(k, own_device, ()))
    found: list[str] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < tasks:
        ended = workers.ended(1.0)
        assert time.monotonic() < deadline
        if ended is not None:
            assert ended.error is None
            found.append(ended.value)
    return found


def ready(workers: LocalWorkers) -> None:
    deadline = time.monotonic() + PATIENCE
    while len(workers._workers) < workers.wanted or not all(worker.is_ready for worker in workers._workers):
        assert workers.ended(0.1) is None
        assert time.monotonic() < deadline


def test_each_worker_has_its_device_and_who_replaces_it_has_it_too() -> None:
    with LocalWorkers(devices=("cuda:0", "cuda:1")) as workers:
        assert workers.wanted == 2
        ready(workers)
        assert set(devices_of(workers, 4)) == {"cuda:0", "cuda:1"}
        victim = workers._workers[0]
        os.kill(victim.process.pid, signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE
        while victim in workers._workers:
            assert workers.ended(0.1) is None
            assert time.monotonic() < deadline
        ready(workers)
        assert sorted(worker.device for worker in workers._workers) == ["cuda:0", "cuda:1"]
        assert set(devices_of(workers, 4)) == {"cuda:0", "cuda:1"}


def test_more_workers_share_the_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []

    def started(memory: int, events: object, device: str) -> Any:
        given.append(device)
        return SimpleNamespace(device=device, silence=0.0, is_ready=False)

    monkeypatch.setattr("fouriscope.field.local._Worker", started)
    LocalWorkers(5, devices=["cuda:0", "mps"])._look_after()
    assert given == ["cuda:0", "mps", "cuda:0", "mps", "cuda:0"]
    given.clear()
    plain = LocalWorkers()
    plain._look_after()
    assert given == [""] * available_threads()


def test_a_tile_is_computed_on_the_device_of_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DEVICE_VARIABLE, raising=False)
    assert on_own_device(TORCH).engine.device == "cuda:0"
    monkeypatch.setenv(DEVICE_VARIABLE, "cuda:3")
    assert on_own_device(TORCH).engine == TORCH.engine.model_copy(update={"device": "cuda:3"})
    assert on_own_device(PLAIN) is PLAIN, "other engines have no devices"
    monkeypatch.setenv(DEVICE_VARIABLE, "gpu")
    with pytest.raises(InvalidInputError, match="device"):
        on_own_device(TORCH)


def test_names_of_devices() -> None:
    assert split_devices("cuda:0,cuda:1") == ["cuda:0", "cuda:1"]
    with pytest.raises(InvalidInputError, match="'cuda:0' is named twice; several workers share one with --workers"):
        split_devices("cuda:0,cuda:0")
    assert [one.engine.device for one in on_devices(TORCH, None, None)] == ["cuda:0"]
    for incomplete in ("cuda:0,", ","):
        with pytest.raises(InvalidInputError, match=f"device '{incomplete}': a name is missing beside a comma"):
            on_devices(TORCH, None, incomplete)
    assert least_used(["a", "b"], ["a", "b"]) == "a"


class Future:
    def add_done_callback(self, done: object) -> None:
        """It never is."""


class Client:
    """A ``distributed.Client`` as far as tasks and resources go."""

    status = "running"

    def __init__(self, resources: dict[str, float]) -> None:
        self.options: dict[str, Any] = {}
        self.resources = resources

    def submit(self, *_: object, **options: Any) -> Any:
        self.options = options
        return Future()

    def run(self, *_: object) -> dict[str, Any]:
        return {}

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        return {"workers": {"one": {"resources": {}}, "other": {"resources": self.resources}}}


def test_tasks_of_a_cluster_ask_for_a_device(tmp_path: Any) -> None:
    plain, client = Client({}), Client({"GPU": 1.0})
    DaskWorkers(plain).submit(Task(0, own_device, ()))
    assert "resources" not in plain.options
    workers = DaskWorkers(client, on_devices=True)
    workers.submit(Task(0, own_device, ()))
    assert client.options["resources"] == {"GPU": 1}
    workers.check(tmp_path, tmp_path)
    DaskWorkers(plain).check(tmp_path, tmp_path)
    with pytest.raises(ClusterError, match=r'no worker offers the resource GPU.*--resources "GPU=1"'):
        DaskWorkers(plain, on_devices=True).check(tmp_path, tmp_path)
