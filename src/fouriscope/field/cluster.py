"""Where tiles are reconstructed: on this machine's cores, or on a Dask cluster that exists already."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from fouriscope import __version__
from fouriscope.acquisition.byte_sizes import parse_bytes
from fouriscope.errors import InvalidInputError
from fouriscope.field.dispatch import ClusterError
from fouriscope.parallel import available_threads

CONNECT_SECONDS = 30
REPLACE_MILLISECONDS = 5000
SETTINGS: dict[str, Any] = {
    "distributed.worker.memory.target": False,  # tiles leave nothing in a worker that could be written to disk
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": 0.95,  # then the tile is tried again with less memory
    # Without MALLOC_TRIM_THRESHOLD_, which Dask sets: it gives freed memory back at once, and a solver, which asks for
    # it again, would spend a fifth of its time on page faults. A tile gives it back at its end.
    "distributed.nanny.pre-spawn-environ": {"OMP_NUM_THREADS": 1, "MKL_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1},
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.worker.profile.enabled": False,  # it looks at the solver's stack a hundred times a second
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s",
}


@contextmanager
def connected(scheduler: str | None = None, *, workers: int | None = None, memory: str | None = None) -> Iterator[Any]:
    """A Dask client: of ``workers`` processes here, one thread each (as many as cores), or of a running scheduler.

    Parameters
    ----------
    scheduler
        Its address, such as ``tcp://10.0.0.1:8786``, or the path of its scheduler file. None starts workers here.
    workers
        How many. Of a running cluster: how many must be there before the field begins (others may come later).
    memory
        Of each worker that is started here, such as "2GB"; a cluster has its own limits.
    """
    import dask.config
    from distributed import Client, LocalCluster
    from tornado.ioloop import PeriodicCallback

    with dask.config.set(SETTINGS):
        if scheduler is not None:
            with _client(scheduler) as client:
                if workers is not None:
                    _await_workers(client, workers, scheduler)
                yield client
            return
        _quiet_resource_tracker()
        with (
            LocalCluster(
                n_workers=workers or available_threads(),
                threads_per_worker=1,
                processes=True,
                memory_limit="auto" if memory is None else parse_bytes(memory),
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                preload=["fouriscope.field.worker"],
                silence_logs=logging.CRITICAL,  # what matters of a worker's end is said by the coordinator
            ) as cluster,
            Client(cluster) as client,
        ):
            replacing = PeriodicCallback(WorkerReplacement(cluster).check, REPLACE_MILLISECONDS)
            cluster.loop.add_callback(replacing.start)
            try:
                yield client
            finally:
                cluster.loop.add_callback(replacing.stop)


class WorkerReplacement:
    """Starts a worker for each that is gone for good.

    Dask starts a killed worker anew, but gives up on one that is killed while it starts. Then, in the end, nobody would
    be left to work. A worker counts as gone when it was dead at two checks in a row, because starting takes a moment.
    """

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self._suspects: set[Any] = set()

    def check(self) -> None:
        """Once every few seconds, in the thread of the cluster's loop."""
        dead = {name for name, nanny in self.cluster.workers.items() if not nanny.is_alive()}
        gone, self._suspects = dead & self._suspects, dead
        wanted = len(self.cluster.worker_spec)
        for name in gone:
            self.cluster.worker_spec.pop(name, None)
            self.cluster.loop.add_callback(self.cluster.workers.pop(name).close)
        if gone:
            self.cluster.scale(wanted)


def _quiet_resource_tracker() -> None:
    """Python's resource tracker mourns the semaphore of every worker that was killed; here that is all in the plan.

    It is a process of its own, and listens to nothing but its environment when it starts.
    """
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [before, "ignore:resource_tracker"]))
    try:
        resource_tracker.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


def _client(scheduler: str) -> Any:
    from distributed import Client

    try:
        if Path(scheduler).is_file():
            return Client(scheduler_file=scheduler, timeout=CONNECT_SECONDS)
        return Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {scheduler} ({str(error) or type(error).__name__}); start one with "
            "`dask scheduler`, and give its address as it prints it, tcp://HOST:8786"
        ) from error


def _await_workers(client: Any, workers: int, scheduler: str) -> None:
    try:
        client.wait_for_workers(workers, timeout=10 * CONNECT_SECONDS)
    except TimeoutError as error:
        there = len(client.nthreads())
        raise ClusterError(
            f"{workers} workers were asked for, {there} are at {scheduler} after {10 * CONNECT_SECONDS} s; "
            "start more, or ask for fewer with --workers"
        ) from error


def check_workers(client: Any, folder: Path, frames: Path) -> None:
    """Raise if a worker cannot do a tile: another version of fouriscope, or files that it cannot see."""
    try:
        answers = client.run(_introduce, str(folder.resolve()), str(frames.resolve()))
    except ImportError as error:
        raise ClusterError(
            f"a worker cannot import fouriscope ({error}); install fouriscope {__version__} where the workers run"
        ) from error
    for worker, (version, missing) in answers.items():
        if version != __version__:
            raise ClusterError(f"worker {worker} has fouriscope {version}, this is {__version__}; install the same")
        if missing:
            raise InvalidInputError(
                f"worker {worker} cannot see {missing}; frames and output must be on storage that all workers share"
            )


def _introduce(folder: str, frames: str) -> tuple[str, str]:
    return __version__, next((path for path in (folder, frames) if not Path(path).exists()), "")
