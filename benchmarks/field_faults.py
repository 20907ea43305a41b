"""Workers and coordinators of a small field, killed (SIGKILL) at random times, and what becomes of the result."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.field_problems import fingerprint, run
from fouriscope.errors import FouriscopeError
from fouriscope.field import FieldProgress
from fouriscope.field.dispatch import run_all
from fouriscope.field.local import LocalWorkers
from fouriscope.field.tile_task import reconstruct_tile

TILE = 32
WORKERS = 2
UNDISTURBED_RUNS = 3


def spread(rng: random.Random, trials: int, seconds: float) -> Iterator[float]:
    """Random times, one in each of ``trials`` equal parts of ``seconds``, in random order: no stage is left out."""
    parts = rng.sample(range(trials), trials)
    return ((part + rng.random()) / trials * seconds for part in parts)


def kill_workers(configuration: Path, folder: Path, trials: int) -> tuple[int, Counter[str]]:
    """How many results are those of an undisturbed run, and how many workers died in which stage.

    One worker a trial, either of the two. Before each trial both are there, and both have done a tile, so that the
    times of all trials mean the same as in the undisturbed run.
    """
    rng, same, stages = random.Random(0), 0, Counter[str]()
    with LocalWorkers(WORKERS) as client:
        expected, seconds = undisturbed(configuration, folder, client)
        for trial, delay in enumerate(spread(rng, trials, seconds)):
            warm(client, folder / "undisturbed-0")
            out = folder / f"worker-{trial}"
            victim = rng.choice(client.pids)
            stage = run_and_kill(configuration, out, client, victim, delay)
            stages[stage] += 1
            found = fingerprint(out) if (out / "result").exists() else ""
            same += found == expected
            if found != expected:
                print(f"trial {trial}, worker killed after {delay:.2f} s ({stage}): not the same result", flush=True)
    return same, stages


def run_and_kill(configuration: Path, out: Path, client: Any, victim: int, delay: float) -> str:
    """Reconstruct a field while ``victim`` is killed after ``delay`` seconds; returns the stage in which that was."""
    stage, stage_of_death = ["before the tiles"], ["after the result"]

    def note(progress: FieldProgress) -> None:
        stage[0] = progress.stage

    def kill() -> None:
        stage_of_death[0] = stage[0]
        os.kill(victim, signal.SIGKILL)

    killer = threading.Timer(delay, kill)
    killer.start()
    try:
        run(configuration, out, client, tile=TILE, watch=note)
        stage[0] = "after the result"
    except (FouriscopeError, OSError, RuntimeError) as error:
        print(f"{type(error).__name__}: {error}", flush=True)
    killer.join()
    return stage_of_death[0]


def undisturbed(configuration: Path, folder: Path, client: Any) -> tuple[str, float]:
    """The fingerprint that all runs must have, and the seconds of the fastest run."""
    seconds, prints = float("inf"), set()
    for attempt in range(UNDISTURBED_RUNS):
        out = folder / f"undisturbed-{attempt}"
        seconds = min(seconds, run(configuration, out, client, tile=TILE).seconds)
        prints.add(fingerprint(out))
    if len(prints) > 1:
        raise RuntimeError("undisturbed runs of one field differ")
    return prints.pop(), seconds


def warm(workers: LocalWorkers, field: Path) -> None:
    """Wait for the workers that were started anew, and let each load its kernels."""
    warmed: set[int] = set()
    while len(warmed) < WORKERS:
        warmed |= {pid for _, pid in run_all(workers, [(n, _warmed, (str(field),)) for n in range(WORKERS)])}


def _warmed(field: str) -> int:
    reconstruct_tile(field, 0)
    time.sleep(0.2)  # so that the other task goes to the other worker
    return os.getpid()


def kill_coordinators(configuration: Path, folder: Path, trials: int) -> tuple[int, Counter[str]]:
    """How many results of the same command, given again after its first process was killed, are those of an undisturbed
    run, and how many coordinators died in which stage.

    Times count from when the field's folder is there: before that there is nothing to lose.
    """
    out = folder / "command-undisturbed"
    process = start(configuration, out)
    began = wait_for_folder(out, process)
    while process.poll() is None and not (out / "result" / "summary.json").exists():
        time.sleep(0.002)
    seconds = time.monotonic() - began
    process.wait()
    expected = fingerprint(out)
    rng, same, stages = random.Random(1), 0, Counter[str]()
    for trial, delay in enumerate(spread(rng, trials, seconds)):
        out = folder / f"command-{trial}"
        process = start(configuration, out)
        began = wait_for_folder(out, process)
        time.sleep(max(0.0, delay - (time.monotonic() - began)))
        process.kill()
        process.communicate()
        stages[stage_of(out)] += 1
        again = start(configuration, out)
        _, said = again.communicate()
        found = fingerprint(out) if again.returncode == 0 else ""
        same += found == expected
        if found != expected:
            outcome = f"another result (exit code {again.returncode})"
            print(
                f"trial {trial}, coordinator killed after {delay:.2f} s: {outcome} {said.decode()[-500:]}", flush=True
            )
    return same, stages


def start(configuration: Path, out: Path) -> subprocess.Popen[bytes]:
    """`fouriscope field` in a process of its own."""
    options = ["--out", str(out), "--tile", str(TILE), "--workers", str(WORKERS), "--quiet"]
    command = [sys.executable, "-m", "benchmarks.peak", "field", str(configuration), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for_folder(out: Path, process: subprocess.Popen[bytes]) -> float:
    """The time at which the folder appeared."""
    while not out.exists():
        if process.poll() is not None:
            raise RuntimeError(f"the command ended before it began: {process.communicate()[1].decode()[-500:]}")
        time.sleep(0.001)
    return time.monotonic()


def stage_of(out: Path) -> str:
    """How far a field had come whose coordinator is dead."""
    if not (out / "plan.json").exists():
        return "before the plan"
    if (out / "result").exists():
        return "after the result"
    return "stitching" if (out / ".result.part").exists() else "tiles"
