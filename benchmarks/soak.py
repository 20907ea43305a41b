"""``make soak``: every command that runs for long, on a busy machine, with everything that can happen to it.

``reconstruct``, ``watch`` and ``field`` are killed (also their workers, also while they start), stopped for a while as
by a slow disk, and refused disk space. Then the same command is given again, until it is done. A page shows all of it.
The result has to be, bit for bit, what comes out when nothing happens, and a tile that was done stays as it is.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import report
from benchmarks.disturbed import COMMAND, PATIENCE_SECONDS, Disturbed, busy_cores, jobs, left_behind, start

DONE = ("commands", "workers", "starting workers", "pauses", "full disks")
FOUND = ("lost", "differing", "hung")


def undisturbed(folder: Path, runs: Path, rng: random.Random, only: str | None) -> list[Disturbed]:
    """Each command once, or one of them, when nothing happens: what it makes, and how long that takes."""
    found = []
    for job in (job for job in jobs(folder) if only in (None, job.name)):
        out, begun = runs / f"undisturbed-{job.name}", time.monotonic()
        process = start(job.begin(out))
        _, said = process.communicate(timeout=PATIENCE_SECONDS)
        if process.returncode:
            sys.exit(f"{job.name} failed though nothing happened: {said}")
        found.append(Disturbed(job, job.checksum(out), time.monotonic() - begun, rng))
    return found


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


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="go on until there were so many")
    parser.add_argument("--minutes", type=float, default=0.0, help="and at least so long")
    parser.add_argument("--load", type=int, default=4, help="other processes that keep the cores busy")
    parser.add_argument("--only", choices=("reconstruct", "watch", "field"), help="one of the commands")
    parser.add_argument("--full-disks", type=float, default=0.15, help="share of starts that find the disk full")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="fouriscope-soak-") as name:
        folder, runs = Path(name), Path(name) / "runs"
        runs.mkdir()
        with busy_cores(options.load):
            everything = undisturbed(folder, runs, rng, options.only)
            begun, number, silent_pages = time.monotonic(), 0, 0
            with looked_at(runs) as answers:
                while (
                    sum(one.kills for one in everything) < options.kills
                    or time.monotonic() - begun < 60 * options.minutes
                ):
                    disturbed = everything[number % len(everything)]
                    out = runs / f"{number}-{disturbed.job.name}"
                    disturbed.run(out, rng.randint(2, 8), full_disks=options.full_disks)
                    silent_pages += not answers()
                    number += 1
                    wrong = sum((one.found for one in everything), Counter[str]())
                    kills = sum(one.kills for one in everything)
                    print(f"{number} runs, {kills} kills, {dict(wrong) or 'nothing'} went wrong", flush=True)
        orphans = left_behind(folder)
    for one in everything:
        print(*dict.fromkeys(one.said), sep="\n")
    _report(everything, (time.monotonic() - begun) / 60, options, orphans, silent_pages)


def _report(
    everything: list[Disturbed], minutes: float, options: argparse.Namespace, orphans: int, silent_pages: int
) -> None:
    rows = [
        [
            one.job.name,
            str(one.runs),
            *(str(one.done[kind]) for kind in DONE),
            *(str(one.found[kind]) for kind in FOUND),
        ]
        for one in everything
    ]
    rows.append(["all", *(str(sum(int(row[k]) for row in rows)) for k in range(1, len(rows[0])))])
    killed = [f"killed {kind}" if kind not in ("pauses", "full disks") else kind for kind in DONE]
    title = f"Soak: {minutes:.0f} minutes, {options.load} other busy processes, seed {options.seed}"
    report.table(title, ["command", "runs", *killed, *FOUND], rows)
    print(f"processes left behind: {orphans}; times the page did not answer: {silent_pages}")
    report.bar("soak: kills", sum(one.kills for one in everything), options.kills, at_least=True)
    for kind in FOUND:
        report.bar(f"soak: {kind}", sum(one.found[kind] for one in everything), 0)
    report.bar("soak: processes left behind", orphans, 0)
    report.bar("soak: page did not answer", silent_pages, 0)
