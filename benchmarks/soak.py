"""``make soak``: every command that runs for long, on a busy machine, with everything that can happen to it.

``reconstruct``, ``watch`` and ``field`` are killed (also their workers, also while they start), stopped for a while as
by a slow disk, and refused disk space. Then the same command is given again, until it is done. A page shows all of it.
The result has to be, bit for bit, what comes out when nothing happens.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import tifffile
import tomli_w

from benchmarks import report
from benchmarks.faults import busy_cores
from benchmarks.field_problems import fingerprint
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray, Optics
from fouriscope.run import Result, RunFolder

COMMAND = [sys.executable, "-m", "fouriscope.cli.app"]
# No command takes longer than some seconds here when nothing happens; on a busy machine a minute.
PATIENCE_SECONDS = 300.0
ORPHAN_SECONDS = 60.0
SIDE, LEDS = 64, 7
SCOPE = {"wavelength": 513e-9, "na": 0.2, "magnification": 8.1485, "camera_pixel": 6.5e-6}


@dataclass
class Tally:
    """What happened to one kind of command."""

    runs: int = 0
    kills: int = 0
    pauses: int = 0
    full_disks: int = 0
    lost: int = 0
    differing: int = 0
    hung: int = 0
    said: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Job:
    """A command, what it is after it was disturbed, and a checksum of what it makes."""

    name: str
    begin: Callable[[Path], list[str]]
    go_on: Callable[[Path], list[str]]
    checksum: Callable[[Path], str]


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
        return ["resume", str(out), *often] if is_run(out) else begin(out)

    def field_command(out: Path) -> list[str]:
        return ["field", str(config), "--out", str(out), "--tile", "32", "--workers", "2", "-q"]

    return [
        Job("reconstruct", reconstruct, lambda out: resume(out, reconstruct, _has_begun), _picture),
        Job("watch", watch, lambda out: resume(out, watch, _is_complete), _picture),
        Job("field", field_command, field_command, fingerprint),
    ]


def _has_begun(out: Path) -> bool:
    return (out / "provenance.json").exists()


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


def disturb(process: subprocess.Popen[str], delay: float, rng: random.Random, tally: Tally) -> None:
    """After ``delay`` seconds kill the command or one of its workers, or stop it for a while."""
    time.sleep(delay)
    if process.poll() is not None:
        return
    with suppress(psutil.NoSuchProcess):
        whole = psutil.Process(process.pid)
        victim = rng.choice([whole, *whole.children(recursive=True)])
        if rng.random() < 0.2:
            victim.suspend()
            time.sleep(rng.uniform(0.2, 2.0))
            victim.resume()
            tally.pauses += 1
        else:
            victim.kill()
            tally.kills += 1


def ended(process: subprocess.Popen[str], name: str, tally: Tally) -> bool:
    """Wait for the end; a command that does not come to it is killed with all that it started, and counted."""
    try:
        _, said = process.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        tally.hung += 1
        return False
    if "Traceback" in said:
        tally.lost += 1
        tally.said.append(f"{name}: {said}")
    elif process.returncode > 0:
        tally.said.append(f"{name} ended with {process.returncode}: {said.strip()}")
    return process.returncode == 0


def one_run(job: Job, out: Path, expected: str, seconds: float, rng: random.Random, tally: Tally) -> None:
    """One to five disturbances at random times, then the same command until it is done."""
    command = job.begin(out)
    for _ in range(rng.randint(1, 5)):
        full = rng.random() < 0.15
        tally.full_disks += full
        process = start(command, most_bytes=rng.choice((0, 1000, 20_000, 200_000)) if full else None)
        disturb(process, rng.uniform(0.0, 1.2 * seconds), rng, tally)
        ended(process, job.name, tally)
        command = job.go_on(out)
    done = ended(start(command), job.name, tally)
    tally.runs += 1
    if not done and job.name != "field":
        done = ended(start(job.go_on(out)), job.name, tally)
    if not done:
        tally.lost += 1
    elif job.checksum(out) != expected:
        tally.differing += 1


@contextmanager
def looked_at(folder: Path) -> Iterator[Callable[[], bool]]:
    """A page of all runs; what it gives says whether the page still answers."""
    process = subprocess.Popen(
        [*COMMAND, "view", str(folder), "--no-browser", "-q"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    address = next(word for word in process.stdout.readline().split() if word.startswith("http"))
    base, token = address.split("?token=") if "?token=" in address else (address, "")

    def answers() -> bool:
        try:
            with urllib.request.urlopen(f"{base}api/runs?token={token}", timeout=60) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    try:
        yield answers
    finally:
        process.kill()
        process.wait()


def left_behind(folder: Path) -> int:
    """Processes of ended commands that are still there after a while."""
    deadline = time.monotonic() + ORPHAN_SECONDS
    while True:
        there = 0
        for process in psutil.process_iter(["cmdline", "ppid"]):
            command = " ".join(process.info["cmdline"] or ())
            there += str(folder) in command and " view " not in command
        if not there or time.monotonic() > deadline:
            return there
        time.sleep(1)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--kills", type=int, default=0, help="go on until there were so many, whatever the time")
    parser.add_argument("--load", type=int, default=4, help="other processes that keep the cores busy")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="fouriscope-soak-") as name:
        folder = Path(name)
        everything = jobs(folder)
        runs = folder / "runs"
        runs.mkdir()
        expected, seconds, tallies = {}, {}, {job.name: Tally() for job in everything}
        for job in everything:
            begun = time.monotonic()
            if not ended(start(job.begin(runs / f"undisturbed-{job.name}")), job.name, tallies[job.name]):
                sys.exit(f"{job.name} failed though nothing happened: {tallies[job.name].said}")
            seconds[job.name] = time.monotonic() - begun
            expected[job.name] = job.checksum(runs / f"undisturbed-{job.name}")
        begun, number, silent_pages = time.monotonic(), 0, 0
        with busy_cores(options.load), looked_at(runs) as answers:
            while (
                time.monotonic() - begun < 60 * options.minutes
                or sum(t.kills for t in tallies.values()) < options.kills
            ):
                job = everything[number % len(everything)]
                one_run(
                    job, runs / f"{number}-{job.name}", expected[job.name], seconds[job.name], rng, tallies[job.name]
                )
                silent_pages += not answers()
                number += 1
        orphans = left_behind(folder)
        for tally in tallies.values():
            for line in dict.fromkeys(tally.said):
                print(line)
    columns = ["runs", "kills", "pauses", "full_disks", "lost", "differing", "hung"]
    rows = [[name, *(str(getattr(tally, key)) for key in columns)] for name, tally in tallies.items()]
    rows.append(["all", *(str(sum(getattr(tally, key) for tally in tallies.values())) for key in columns)])
    minutes = (time.monotonic() - begun) / 60
    header = ["command", *(key.replace("_", " ") for key in columns)]
    report.table(f"Soak: {minutes:.0f} minutes, {options.load} other busy processes, seed {options.seed}", header, rows)
    print(f"processes left behind: {orphans}; times the page did not answer: {silent_pages}")
    for key in ("lost", "differing", "hung"):
        report.bar(f"soak: {key}", sum(getattr(tally, key) for tally in tallies.values()), 0)
    report.bar("soak: processes left behind", orphans, 0)
    report.bar("soak: page did not answer", silent_pages, 0)
