"""A Dask cluster that exists already: certificates, foreign clients, and schedulers that stop to answer."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fouriscope.field import cluster, connected, remote
from fouriscope.field.dispatch import ClusterError, Task, WorkerDiedError, run_all
from fouriscope.field.remote import DaskWorkers

pytestmark = pytest.mark.slow

START_SECONDS = 240.0  # starting Dask takes seconds, and a minute on a busy machine


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The settings of Dask that name a certificate, which is its own authority, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the command openssl, to make a certificate")
    folder = tmp_path_factory.mktemp("certificate")
    names = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test", *names]
    subprocess.run(command, check=True, capture_output=True)
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    settings = {f"{tls}CA_FILE": str(folder / "cert.pem")}
    for role in ("CLIENT", "SCHEDULER", "WORKER"):
        settings |= {f"{tls}{role}__CERT": str(folder / "cert.pem"), f"{tls}{role}__KEY": str(folder / "key.pem")}
    return settings


Dask = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def dask() -> Iterator[Dask]:
    """Starts ``dask scheduler`` and ``dask worker``, and ends them."""
    started = []

    def start(*arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *arguments, "--host", "127.0.0.1", "--no-dashboard"]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=os.environ | environment)
        started.append(process)
        return process

    yield start
    for process in reversed(started):
        process.kill()
        process.wait()


def written(path: Path) -> Path:
    """``path`` when it is there."""
    deadline = time.monotonic() + START_SECONDS
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return path


ASK_FOREIGN = """
import sys
from distributed import Client
try:
    with Client(sys.argv[1], timeout=5) as client:
        print("reached", client.run_on_scheduler(lambda: 1))
except (OSError, TypeError, ValueError) as error:
    print("refused", type(error).__name__)
"""


def test_a_scheduler_with_certificates(dask: Dask, certificate: dict[str, str], tmp_path: Path) -> None:
    """With them tasks run; without, nobody gets in: not at the scheduler, the worker or its nanny."""
    import dask.config as dask_config
    import distributed  # noqa: F401  (with its settings)

    file = tmp_path / "scheduler.json"
    dask_options = ("--protocol", "tls", "--scheduler-file", str(file))
    dask("scheduler", "--port", "0", *dask_options, **certificate)
    dask("worker", "--nthreads", "1", "--protocol", "tls", "--scheduler-file", str(written(file)), **certificate)
    shown = {
        name.removeprefix("DASK_").lower().replace("__", ".").replace("ca_file", "ca-file"): value
        for name, value in certificate.items()
    }
    with dask_config.set(shown), connected(str(file), workers=1) as workers:
        assert isinstance(workers, DaskWorkers)
        address = workers.client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        assert dict(run_all(workers, [(n, divmod, (n, 3)) for n in range(4)])) == {n: divmod(n, 3) for n in range(4)}
        found = workers.client.scheduler_info()["workers"]
        addresses = [address, *found, *(worker["nanny"] for worker in found.values())]
    assert len(addresses) == 3
    for reached in (*addresses, *(address.replace("tls://", "tcp://") for address in addresses)):
        asked = subprocess.run([sys.executable, "-c", ASK_FOREIGN, reached], capture_output=True, timeout=START_SECONDS)
        assert asked.stdout.startswith(b"refused"), (reached, asked)
    with pytest.raises(ClusterError, match="asks for certificates"), connected(address):
        pass


def test_a_scheduler_that_stops_to_answer_is_an_error(
    dask: Dask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "scheduler.json"
    scheduler = dask("scheduler", "--port", "0", "--scheduler-file", str(file))
    with connected(str(written(file))) as workers:
        assert workers.count == 0
        monkeypatch.setattr(remote, "ANSWER_SECONDS", 1.0)
        monkeypatch.setattr(cluster, "CONNECT_SECONDS", 2)
        monkeypatch.setattr(remote, "ASKED_EVERY_SECONDS", 0.0)
        workers.submit(Task("task", divmod, (7, 3)))
        os.kill(scheduler.pid, signal.SIGSTOP)
        with pytest.raises(ClusterError, match="has not answered for 1 s"):
            workers.ended(1.0)
        assert workers.count == 0
        workers.cancel()  # waits no more


def test_a_cluster_without_workers_is_an_error(dask: Dask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "scheduler.json"
    dask("scheduler", "--port", "0", "--scheduler-file", str(file))
    with connected(str(written(file))) as workers:
        workers.submit(Task("task", divmod, (7, 3)))
        assert workers.ended(0.1) is None
        monkeypatch.setattr(remote, "WORKERLESS_SECONDS", 0.1)
        with pytest.raises(ClusterError, match="no worker for 0 s; tiles that were done are kept"):
            workers.ended(0.2)
    monkeypatch.setattr(cluster, "WORKERS_SECONDS", 0.1)
    with pytest.raises(ClusterError, match="were requested, but only 0 are at"), connected(str(file), workers=3):
        pass


def test_a_worker_that_dies_too_often_gives_its_task_back() -> None:
    """What Dask says then is taken for a death, not for an answer."""
    from distributed.scheduler import KilledWorker

    class Killed:
        status = "error"

        def exception(self, timeout: float) -> Any:
            return KilledWorker("task", SimpleNamespace(address="tcp://worker"), 3)

    task = Task("task", divmod, (7, 3))
    found = DaskWorkers(None)._take_in(Killed(), task)
    assert found is not None
    assert isinstance(found.error, WorkerDiedError)


def test_a_client_that_did_not_connect_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask closes it when it is collected; while another client starts, that would wait for ever."""
    from distributed import Client

    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.2)
    with pytest.raises(ClusterError, match="no Dask scheduler answers"), connected("tcp://127.0.0.1:1"):
        pass
    assert not [thing for thing in gc.get_objects() if isinstance(thing, Client)]
