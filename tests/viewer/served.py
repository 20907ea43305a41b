"""Run folders to look at, and clients that ask for them as a browser does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from fouriscope.run import load_config, start_run
from fouriscope.run.snapshot import Snapshot, write_snapshot
from fouriscope.viewer.server import ViewServer, make_app
from tests.run.problems import write_acquisition

TOKEN = "the-token-of-the-tests"
PORT = 8123
HOST = f"127.0.0.1:{PORT}"


class Pages:
    """Asks the application directly, without a network. The token is not put in: tests write it into the address."""

    def __init__(self, paths: Sequence[Path], host: str = HOST) -> None:
        self._app: Any = make_app(paths, token=TOKEN, port=PORT)
        self._base = f"http://{host}"

    def get(self, address: str, **options: Any) -> httpx.Response:
        return self.request("GET", address, **options)

    def request(self, method: str, address: str, **options: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(transport=transport, base_url=self._base) as asking:
                return await asking.request(method, address, **options)

        return asyncio.run(ask())


def real_run(folder: Path, **sections: Any) -> Path:
    """A finished run of the small problem."""
    config = write_acquisition(folder, **sections)
    start_run(load_config(config), folder, folder / "run")
    return folder / "run"


def written_run(path: Path, *, state: str = "finished", seed: int = 0, shape: tuple[int, int] = (40, 50)) -> Path:
    """The files of a run without the run: a snapshot of random numbers, metrics and a configuration."""
    path.mkdir(parents=True, exist_ok=True)
    path.joinpath("config.toml").write_text("[stop]\niterations = 10\n", encoding="utf-8")
    path.joinpath("status.json").write_text(json.dumps({"state": state, "reason": ""}), encoding="utf-8")
    lines = [
        {"iteration": k, "frames_seen": 5 * k, "seconds": 0.5 * k, "misfit": 1 / k, "residual": 0.1 / k, "step": 1.0}
        for k in range(1, 6)
    ]
    path.joinpath("metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    show(path, seed=seed, shape=shape)
    return path


def show(path: Path, *, seed: int, shape: tuple[int, int] = (40, 50), iteration: int = 5) -> Snapshot:
    """Write a snapshot of random numbers, as a solver would after an iteration."""
    rng = np.random.default_rng(seed)
    snapshot = Snapshot(
        phase=rng.normal(0.1, 0.4, shape).astype(np.float32),
        absorption=rng.uniform(0.0, 0.3, shape).astype(np.float32),
        pupil=np.exp(1j * rng.normal(size=(12, 12))).astype(np.complex64),
        led_na=np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1]]),
        led_weight=np.array([1.0, 0.5, 0.0]),
        led_arrived=np.array([True, True, False]),
        iteration=iteration,
        seconds=0.5 * iteration,
        frames_seen=5 * iteration,
        pixel=(2e-7, 2e-7),
        wavelength=5e-7,
        objective_na=0.2,
        pupil_na_step=(0.02, 0.02),
    )
    write_snapshot(path, snapshot)
    return snapshot


@contextmanager
def running_server(paths: Sequence[Path]) -> Iterator[ViewServer]:
    """A real server on a free port of 127.0.0.1."""
    server = ViewServer(paths)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(timeout=20)
