"""Where tiles are reconstructed: on this machine's cores, or on a running Dask cluster."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fouriscope.acquisition.byte_sizes import parse_bytes
from fouriscope.field.dispatch import ClusterError, Workers
from fouriscope.field.local import LocalWorkers
from fouriscope.field.remote import DaskWorkers

CONNECT_SECONDS = 30
WORKERS_SECONDS = 300  # for as many workers as were asked for


@contextmanager
def connected(
    scheduler: str | None = None,
    *,
    workers: int | None = None,
    memory: str | None = None,
    devices: Sequence[str] = (),
) -> Iterator[LocalWorkers | DaskWorkers]:
    """``workers`` processes here, one thread each (as many as cores), or those of a running Dask scheduler.

    Parameters
    ----------
    scheduler
        Its address, such as ``tls://10.0.0.1:8786``, or the path of its scheduler file. None starts workers here.
    workers
        How many. For a running cluster: how many must be there before the field begins (others may come later).
    memory
        Memory of each worker that is started here, such as "2GB"; a cluster has its own limits.
    devices
        Names of devices of torch: one worker is started here for each. In a cluster, workers that offer the resource
        "GPU" do the tasks, one task for each that they offer.
    """
    if scheduler is None:
        with LocalWorkers(workers, None if memory is None else parse_bytes(memory), devices) as here:
            yield here
        return
    import dask.config
    import distributed  # noqa: F401  (its own settings must be there before they are changed for a while)

    with dask.config.set({"distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s"}):
        client = _client(scheduler)
        try:
            there = DaskWorkers(client, on_devices=bool(devices))
            if workers is not None:
                _await_workers(there, workers, scheduler)
            yield there
        finally:
            with suppress(TimeoutError):  # of a scheduler that does not answer
                client.close(timeout=CONNECT_SECONDS)


def as_workers(client: Any) -> Workers:
    """What :func:`connected` gives, or the workers of any ``distributed.Client``."""
    return client if isinstance(client, LocalWorkers | DaskWorkers) else DaskWorkers(client)


def _client(scheduler: str) -> Any:
    from distributed import Client

    try:
        if Path(scheduler).is_file():
            return Client(scheduler_file=scheduler, timeout=CONNECT_SECONDS)
        return Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        _forget(error)
        raise ClusterError(
            f"no Dask scheduler answers at {scheduler} ({str(error) or type(error).__name__}); start one with "
            "`dask scheduler`, and give its address as it prints it, tcp://HOST:8786"
        ) from error
    except AssertionError as error:  # what Dask says if its own thread does not start within 10 s
        _forget(error)
        raise ClusterError("Dask did not start within 10 s: this machine is too busy; try again") from error
    except TypeError as error:  # what Dask says if it knows of no certificate
        _forget(error)
        raise ClusterError(
            f"{scheduler} asks for certificates, but Dask has none ({error}); set "
            "DASK_DISTRIBUTED__COMM__TLS__CA_FILE, …__CLIENT__CERT and …__CLIENT__KEY, see docs/field.md"
        ) from error


def _forget(error: BaseException) -> None:
    """Release the client that failed to start. Dask closes it when it is collected, and would wait for ever if that
    happened while the next one starts."""
    causes: BaseException | None = error
    while causes is not None:
        causes.__traceback__ = None
        causes = causes.__cause__ or causes.__context__
    gc.collect()


def _await_workers(there: DaskWorkers, workers: int, scheduler: str) -> None:
    try:
        there.client.wait_for_workers(workers, timeout=WORKERS_SECONDS)
    except TimeoutError as error:
        raise ClusterError(
            f"{workers} workers were requested, but only {there.count} are at {scheduler} after {WORKERS_SECONDS:g} s; "
            "start more, or request fewer with --workers"
        ) from error
