"""Commands that are killed, stopped and refused disk space at random, and given again until they are done."""

from __future__ import annotations

import hashlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import tifffile
import tomli_w

from benchmarks.field_problems import fingerprint
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray, Optics
from fouriscope.run import Result, RunFolder

COMMAND = [sys.executable, "-m", "fouriscope.cli.app"]
# No command takes longer than some seconds here when nothing happens; on a busy machine a minute.
PATIENCE_SECONDS = 400.0
LEFT_BEHIND_SECONDS = 60.0
READY_THREADS = 3  # a worker has two threads beside its first one as soon as it can take a task
ATTEMPTS = 20  # of a tile, so that none is given up because its workers were killed
SIDE, LEDS = 64, 7
SCOPE: dict[str, Any] = {"wavelength": 513e-9, "na": 0.2, "magnification": 8.1485, "camera_pixel": 6.5e-6}


@contextmanager
def busy_cores(processes: int) -> Iterator[None]:
    """Other programs that compute all the time, until this one ends."""
    burn = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
    burning = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class Job:
    """A command, what it is after it was disturbed, a checksum of what it makes, and what it has done for good."""

    name: str
    begin: Callable[[Path], list[str]]
    go_on: Callable[[Path], list[str]]
    checksum: Callable[[Path], str]
    kept: Callable[[Path], dict[str, int]] = lambda out: {}


def jobs(folder: Path) -> list[Job]:
    """Write a small acquisition (one stack, and one file per frame), and what to do with it."""
    optics = Optics(**SCOPE)
    model = ForwardModel(optics, LEDArray.square(LEDS, pitch=4e-3, height=70e-3), (SIDE, SIDE))
    phase = np.random.default_rng(0).normal(0, 0.3, model.object_shape).astype(np.float32)
    frames = model.intensity(phase)
    np.save(folder / "frames.npy", frames)
    arrived = folder / "frames"
    arrived.mkdir()
    for number, frame in enumerate(frames):
        tifffile.imwrite(arrived / f"led_{number:02d}.tif", frame, photometric="minisblack")
    document = {
        "frames": {"path": "frames.npy"},
        "microscope": SCOPE,
        "illumination": {"kind": "square", "shape": [LEDS, LEDS], "pitch": 4e-3, "height": 70e-3},
        "object": {"model": "phase"},
        "prior": {"name": "tv", "strength": 1e-3},
        "solver": {"batch": 12},
        "stop": {"iterations": 150},
        "verdict": {"enabled": False},
    }
    config = folder / "acquisition.toml"
    config.write_text(tomli_w.dumps(document), encoding="utf-8")
    often = ["--checkpoint-seconds", "0.1", "-q"]

    def reconstruct(out: Path) -> list[str]:
        return ["reconstruct", str(config), "--out", str(out), *often]

    def watch(out: Path) -> list[str]:
        return ["watch", str(arrived), "--config", str(config), "--out", str(out), "--first-number", "0", *often]

    def resume(out: Path, begin: Callable[[Path], list[str]], is_run: Callable[[Path], bool]) -> list[str]:
        if not _has_begun(out):
            shutil.rmtree(out, ignore_errors=True)  # as the message says that a person should
        return ["resume", str(out), *often] if is_run(out) else begin(out)

    return [
        Job("reconstruct", reconstruct, lambda out: resume(out, reconstruct, _has_begun), _picture),
        Job("watch", watch, lambda out: resume(out, watch, _is_complete), _picture),
        field_job(config),
    ]


def field_job(config: Path) -> Job:
    """A field; the records of its tiles stay as they are once they are written."""

    def command(out: Path) -> list[str]:
        options = ["--tile", "32", "--workers", "2", "--attempts", str(ATTEMPTS), "-q"]
        return ["field", str(config), "--out", str(out), *options]

    def records(out: Path) -> dict[str, int]:
        return {path.name: path.stat().st_mtime_ns for path in (out / "tiles").glob("[0-9]*.json")}

    return Job("field", command, command, fingerprint, records)


def _has_begun(out: Path) -> bool:
    return (out / "config.toml").exists()


def _is_complete(out: Path) -> bool:
    """Whether a watch has written down that all its frames have come: then it is resumed like any run."""
    return _has_begun(out) and bool(RunFolder.open(out).provenance().get("watch", {}).get("complete"))


def _picture(out: Path) -> str:
    return hashlib.sha256(np.ascontiguousarray(Result.load(out).phase).tobytes()).hexdigest()


def start(command: list[str], *, most_bytes: int | None = None) -> subprocess.Popen[str]:
    """The command in a session of its own; no file may grow beyond ``most_bytes``, as on a disk that is full."""

    def limit() -> None:
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    pipes: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*COMMAND, *command], preexec_fn=limit, start_new_session=True, **pipes)


@dataclass
class Disturbed:
    """Runs of one job, what was done to them, and what became of them."""

    job: Job
    expected: str
    seconds: float
    rng: random.Random
    runs: int = 0
    done: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return sum(self.done[kind] for kind in ("commands", "workers", "starting workers"))

    def run(self, out: Path, disturbances: int, *, full_disks: float = 0.15) -> None:
        """Disturb the command so many times, then give it until it is done, and compare."""
        command = self.job.begin(out)
        kept: dict[str, int] = {}
        until = sum(self.done.values()) + disturbances
        while sum(self.done.values()) < until:
            full = self.rng.random() < full_disks
            self.done["full disks"] += full
            process = start(command, most_bytes=self.rng.choice((0, 1000, 20_000, 200_000)) if full else None)
            while sum(self.done.values()) < until and process.poll() is None and not full:
                self._disturb(process)
            done = self._ended(process)
            self._compare(kept, out)
            if done:
                break
            command, kept = self.job.go_on(out), self.job.kept(out)
        else:
            done = self._ended(start(command))
            self._compare(kept, out)
        self.runs += 1
        if not done:
            self.found["lost"] += 1
        elif self.job.checksum(out) != self.expected:
            self.found["differing"] += 1

    def _compare(self, kept: dict[str, int], out: Path) -> None:
        """What was done for good may not be done again."""
        now = self.job.kept(out)
        self.found["lost"] += sum(now.get(name) != when for name, when in kept.items())

    def _disturb(self, process: subprocess.Popen[str]) -> None:
        """After a while, mostly a part of what the command takes, kill it or one of its workers, or stop it."""
        with suppress(subprocess.TimeoutExpired):
            process.wait(self.rng.choice((0.02, 0.3, 1.0)) * self.rng.random() * self.seconds)
            return
        with suppress(psutil.NoSuchProcess):
            victim, kind = self._victim(psutil.Process(process.pid))
            if self.rng.random() < 0.15:
                victim.suspend()
                time.sleep(self.rng.uniform(0.2, 2.0))
                victim.resume()
                kind = "pauses"
            else:
                victim.kill()
            self.done[kind] += 1

    def _victim(self, command: psutil.Process) -> tuple[psutil.Process, str]:
        """The command, one of its workers, or the youngest of them, which may be just starting."""
        workers = sorted(command.children(), key=lambda worker: float(worker.create_time()))
        if not workers or self.rng.random() < 0.25:
            return command, "commands"
        victim = workers[-1] if self.rng.random() < 0.3 else self.rng.choice(workers)
        return victim, "workers" if victim.num_threads() >= READY_THREADS else "starting workers"

    def _ended(self, process: subprocess.Popen[str]) -> bool:
        """Wait for the end; a command that does not come to it is killed with all that it started, and counted."""
        name = self.job.name
        try:
            _, said = process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            self.found["hung"] += 1
            return False
        if "Traceback" in said:
            self.found["lost"] += 1
            self.said.append(f"{name}: {said}")
        elif process.returncode > 0:
            self.said.append(f"{name} ended with {process.returncode}: {said.strip()}")
        return process.returncode == 0


def left_behind(folder: Path) -> int:
    """Processes of ended commands that are still there after a while."""
    deadline = time.monotonic() + LEFT_BEHIND_SECONDS
    while True:
        there = 0
        for process in psutil.process_iter(["cmdline"]):
            command = " ".join(process.info["cmdline"] or ())
            there += str(folder) in command and " view " not in command
        if not there or time.monotonic() > deadline:
            return there
        time.sleep(1)
