"""Kills at random while other programs take both cores: ``python -m benchmarks faults [KILLS [SEED]]``.

A small field is reconstructed again and again by `fouriscope field`. Its workers, also those that are just starting,
and its coordinator are killed (SIGKILL) at random times. A coordinator that was killed is started again, as a person
would. The result must be that of an undisturbed field, bit for bit; a tile that was committed must stay as it is; no
process may stay behind; and every command must end.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from benchmarks.field_problems import fingerprint
from benchmarks.report import bar, table
from fouriscope.field import FieldFolder

KILLS = 100
KILLS_EACH = 12  # of one field, so that no tile loses all its attempts
ATTEMPTS = 20
WORKERS = 2
BUSY_PROCESSES = 14
HUNG_SECONDS = 400.0
LEFT_BEHIND_SECONDS = 60.0
READY_THREADS = 3  # a worker has two threads beside its first one as soon as it can take a task
TILE = 32


@contextmanager
def busy_cores(processes: int = BUSY_PROCESSES) -> Iterator[None]:
    """Other programs that compute all the time, until this one ends."""
    burn = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
    burning = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


class DisturbedField:
    """One field, disturbed by ``kills`` kills, and what became of it."""

    def __init__(self, configuration: Path, out: Path, kills: int, rng: random.Random) -> None:
        self.configuration, self.out, self.kills, self.rng = configuration, out, kills, rng
        self.killed: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self._committed: dict[str, int] = {}

    def run(self, expected: str) -> None:
        """Until the field is done, or the command hangs or fails."""
        process, deadline = self._start()
        try:
            while process.poll() is None:
                if time.monotonic() > deadline:
                    self.found["hung"] += 1
                    return
                if self.kills > 0 and self._kill_one(process):
                    process, deadline = self._start()
                self._sleep(process)
        finally:
            process.kill()
            said = process.communicate()[1]
        self._check_committed()
        if process.returncode != 0:
            self.found["lost"] += 1
            print(f"{self.out.name}: exit code {process.returncode}: {said.decode()[-500:]}", flush=True)
            return
        field = FieldFolder.open(self.out)
        self.found["lost"] += len(field.plan.tiling) - len(field.done())
        if fingerprint(self.out) != expected:
            self.found["differing"] += 1

    def _start(self) -> tuple[subprocess.Popen[bytes], float]:
        options = ["--out", self.out, "--tile", TILE, "--workers", WORKERS, "--attempts", ATTEMPTS, "--quiet"]
        command = [sys.executable, "-m", "fouriscope.cli.app", "field", self.configuration, *options]
        process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE)
        return process, time.monotonic() + HUNG_SECONDS

    def _sleep(self, process: subprocess.Popen[bytes]) -> None:
        """Mostly as long as a part of a tile or of a start takes on busy cores, sometimes not at all."""
        with suppress(subprocess.TimeoutExpired):
            process.wait(self.rng.choice((0.05, 1.0, 3.0, 8.0)) * self.rng.random())

    def _kill_one(self, process: subprocess.Popen[bytes]) -> bool:
        """Kill the coordinator, a worker, or the youngest one; returns whether it was the coordinator."""
        with suppress(psutil.NoSuchProcess):
            workers = psutil.Process(process.pid).children()
            if not workers:  # it is still loading
                return False
            if self.rng.random() < 0.12:
                self._check_committed()
                process.kill()
                process.communicate()
                self._count("coordinator")
                if psutil.wait_procs(workers, timeout=LEFT_BEHIND_SECONDS)[1]:
                    self.found["left behind"] += 1
                return True
            workers.sort(key=lambda worker: worker.create_time())
            victim = workers[-1] if self.rng.random() < 0.3 else self.rng.choice(workers)
            kind = "worker" if victim.num_threads() >= READY_THREADS else "starting worker"
            victim.kill()
            self._count(kind)
        return False

    def _count(self, kind: str) -> None:
        self.killed[kind] += 1
        self.kills -= 1

    def _check_committed(self) -> None:
        """A tile that was committed may not be done again."""
        records = {path.name: path.stat().st_mtime_ns for path in (self.out / "tiles").glob("*.json")}
        self.found["lost"] += sum(records.get(name) != when for name, when in self._committed.items())
        self._committed = records


def disturbed_fields(folder: Path, kills: int, seed: int) -> tuple[Counter[str], Counter[str], int]:
    """(kills by victim, what went wrong, fields)."""
    from tests.field.problems import write_field

    configuration = write_field(folder / "data")
    whole = DisturbedField(configuration, folder / "undisturbed", 0, random.Random(seed))
    process, _ = whole._start()
    if process.wait(HUNG_SECONDS):
        raise RuntimeError("the undisturbed field failed")
    expected = fingerprint(whole.out)
    rng, killed, found, fields = random.Random(seed), Counter[str](), Counter[str](), 0
    with busy_cores():
        while killed.total() < kills:
            field = DisturbedField(configuration, folder / f"field-{fields}", KILLS_EACH, rng)
            field.run(expected)
            killed += field.killed
            found.update(field.found)
            fields += 1
            print(f"{fields} fields, {killed.total()} kills, {dict(+found) or 'nothing'} went wrong", flush=True)
    return killed, found, fields


def main(arguments: list[str]) -> None:
    """Print the table."""
    kills, seed = (int(argument) for argument in (*arguments, *(str(KILLS), "0")[len(arguments) :]))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        killed, found, fields = disturbed_fields(Path(folder), kills, seed)
    rows = [[f"killed: {kind}", str(count), "", ""] for kind, count in killed.most_common()]
    rows.append(["kills", str(killed.total()), *bar("faults, kills", killed.total(), kills, at_least=True)])
    for kind in ("hung", "lost", "differing", "left behind"):
        rows.append([kind, str(found[kind]), *bar(f"faults, {kind}", found[kind], 0)])
    seconds = time.monotonic() - began
    title = f"`fouriscope field`, {fields} fields of 12 tiles beside {BUSY_PROCESSES} busy processes, {seconds:.0f} s"
    table(title, ["what", "number", "bar", ""], rows)
