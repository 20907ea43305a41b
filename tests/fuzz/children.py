"""One case in a forked child, with a limit of time and of memory, and what became of it.

The parent has imported everything and run each command once, so that a case costs a fork and not a start of Python.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.fuzz.mutations import damage
from tests.fuzz.targets import Target

# Of a machine that has nothing else to do: the time in which a child waited for a core does not count, up to a limit.
SECONDS = 20.0
WALL_SECONDS = 10 * SECONDS
BYTES = 10**9
# Above this a child is killed, before it troubles the machine.
MOST_BYTES = 3 * 10**9
FINE = (0, 1, 2)  # 1: `import` says that keys are missing
LONGEST_LINE = 2000
GARBAGE = "[fuzz] most pixels are not those of the valid input"
PAGES = (
    "",
    "/config",
    "/summary",
    "/metrics",
    "/leds",
    "/image/phase",
    "/image/pupil",
    "/led/0/measured",
    "/led/0/predicted",
)


@dataclass
class Case:
    """A target, a seed and a number; after it has run, its faults."""

    target: Target
    seed: int
    number: int
    damage: str = ""
    faults: list[str] = field(default_factory=list)
    accepted: bool = False
    garbage: bool = False
    seconds: float = 0.0
    bytes: int = 0

    @property
    def name(self) -> str:
        return f"{self.target.name}/{self.seed}/{self.number}"

    def damaged(self, template: Path, folder: Path) -> Path:
        """Copy the valid input to ``folder`` and damage one or two files of it; the path that commands are given."""
        shutil.copytree(template, folder)
        given = folder / (template / ".given").read_text(encoding="utf-8")
        (folder / ".given").unlink()
        rng = random.Random(self.name)
        inside = given if given.is_dir() else folder
        files = sorted(path for path in inside.rglob("*") if path.is_file() and not path.name.startswith("."))
        if given.is_file() and given.suffix == ".toml":
            files = [given] * 9 + files  # descriptions are what is fuzzed, not their frames
        chosen = {rng.choice(files) for _ in range(rng.choice((1, 1, 1, 2)))}
        self.damage = "; ".join(damage(path, rng) for path in sorted(chosen))
        return given


def template(target: Target, folder: Path) -> Path:
    """A valid input, built once per target."""
    (folder / "out").mkdir(parents=True)
    given = target.build(folder)
    (folder / ".given").write_text(str(given.relative_to(folder)), encoding="utf-8")
    return folder


def commands_in(target: Target, given: Path, folder: Path) -> int:
    """Run the target's commands in this process; the exit code of the last. Output goes to files in ``folder``."""
    from fouriscope.cli.app import program

    os.chdir(folder)
    code = 0
    for command in target.commands(given):
        sys.argv = ["fouriscope", *command]
        try:
            program()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if code != 0:
            break
    if target.asks_page:
        _ask_page(given)
    elif code == 0:
        _compare_frames(folder)
    return code


def _compare_frames(folder: Path) -> None:
    """Whether frames that were accepted are those of the valid input; the valid input itself writes them down."""
    import fouriscope as fs

    description = next(path for name in ("out/acquisition.toml", "config.toml") if (path := folder / name).exists())
    data = fs.load(description)
    frames = np.asarray(data.frames)
    used = frames if data.weights is None else frames[np.asarray(data.weights) > 0]
    if not np.isfinite(used).all():
        print("Traceback: frames that are not finite were accepted", file=sys.stderr)
    valid = folder / ".frames.npy"
    if not valid.exists():
        np.save(valid, frames)
        return
    expected = np.load(valid)
    if frames.shape != expected.shape or np.mean(np.abs(frames - expected) > 0.1 * np.abs(expected).max()) > 0.5:
        print(GARBAGE)


def _ask_page(run: Path) -> None:
    """Every address of the page for this run, beside a good one: words or pictures, never an error of the server."""
    from tests.viewer.served import TOKEN, Pages, written_run

    good = written_run(run.parent / "good")
    pages = Pages([run, good])
    listed = pages.get(f"/api/runs?token={TOKEN}")
    answers = [listed, *(pages.get(f"/api/runs/0{page}?token={TOKEN}") for page in PAGES)]
    for answer in answers:
        if answer.status_code >= 500:
            print(f"Traceback: the page answered {answer.status_code} to {answer.url.path}", file=sys.stderr)
    if listed.status_code != 200 or len(listed.json()) != 2:
        print("Traceback: a damaged run hides the others", file=sys.stderr)
    shutil.rmtree(good)


def run_cases(cases: Iterator[Case], templates: dict[str, Path], folder: Path, jobs: int) -> Iterator[Case]:
    """All cases, ``jobs`` at a time; each comes back with its faults. The folder of a case with faults is kept."""
    running: dict[int, tuple[Case, Path, float]] = {}
    waiting = True
    while waiting or running:
        while waiting and len(running) < jobs:
            case = next(cases, None)
            if case is None:
                waiting = False
                break
            place = folder / re.sub(r"[^A-Za-z0-9]+", "-", case.name)
            given = case.damaged(templates[case.target.name], place)
            before = _leftovers(place)
            running[_fork(case.target, given, place)] = (case, place, time.monotonic())
            place.joinpath(".before").write_text("\n".join(before), encoding="utf-8")
        time.sleep(0.005)
        for pid, (case, place, since) in list(running.items()):
            wall = time.monotonic() - since
            case.seconds = wall if wall > WALL_SECONDS else wall - _delayed(pid)
            ended, status, usage = os.wait4(pid, os.WNOHANG)
            case.bytes = max(case.bytes, _resident(pid) if not ended else 1024 * usage.ru_maxrss)
            if not ended:
                if case.seconds > SECONDS or case.bytes > MOST_BYTES:
                    os.killpg(pid, signal.SIGKILL)
                continue
            del running[pid]
            _judge(case, status, place)
            if not case.faults:
                _remove(place)
            yield case


def _fork(target: Target, given: Path, place: Path) -> int:
    """A child that runs the commands, with its output in ``place``."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setpgid(0, 0)
        for number, name in ((1, ".stdout"), (2, ".stderr")):
            os.dup2(os.open(place / name, os.O_WRONLY | os.O_CREAT), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10**9, 10**9))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with _stdio():
            code = commands_in(target, given, place)
    except BaseException:  # noqa: BLE001 - the child ends here, whatever it was; the parent reads this and counts it
        os.write(2, traceback.format_exc().encode("utf-8", "replace"))
        code = 99
    os._exit(code)


@contextlib.contextmanager
def _stdio() -> Iterator[None]:
    """Python's own streams on the new descriptors: pytest and a parent's buffers have others."""
    with open(1, "w", closefd=False) as out, open(2, "w", closefd=False) as errors:
        sys.stdout, sys.stderr = out, errors
        yield


def _judge(case: Case, status: int, place: Path) -> None:
    errors = (place / ".stderr").read_text(encoding="utf-8", errors="replace")
    if case.seconds > SECONDS:
        case.faults.append("hung")
    elif case.bytes > MOST_BYTES:
        case.faults.append("memory")
    elif os.WIFSIGNALED(status):
        case.faults.append(f"crash by signal {os.WTERMSIG(status)}")
    else:
        code = os.WEXITSTATUS(status)
        case.accepted = code == 0
        printed = (place / ".stdout").read_text(encoding="utf-8", errors="replace")
        case.garbage = GARBAGE in printed
        if "Traceback" in errors or code not in FINE:
            case.faults.append("traceback")
        elif code == 2 and not errors.strip() and "cannot be reconstructed" not in printed:
            case.faults.append("silent")
    if case.bytes > BYTES or "not enough memory" in errors:
        case.faults.append("memory")
    if any(len(line) > LONGEST_LINE for line in errors.splitlines()):
        case.faults.append("long line")
    if any("Warning" in line for line in errors.splitlines()):
        case.faults.append("warning on the terminal")
    before = (place / ".before").read_text(encoding="utf-8").splitlines()
    if left := [name for name in _leftovers(place) if name not in before]:
        case.faults.append(f"left {', '.join(left[:3])}")


def _leftovers(place: Path) -> list[str]:
    """Names of what should be gone when a command has ended: parts of files, locks, sockets."""
    found = []
    for path in place.rglob("*"):
        ours = path.name in (".stdout", ".stderr", ".before", ".frames.npy")
        if not ours and (path.name.startswith(".") or path.suffix in (".part", ".tmp", ".lock") or path.name == "lock"):
            found.append(str(path.relative_to(place)))
    return sorted(found)


def _remove(place: Path) -> None:
    place.chmod(0o700)
    shutil.rmtree(place)


def _delayed(pid: int) -> float:
    """Seconds in which a child could have run, and others had the cores."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:  # there until the child is waited for
        return 1e-9 * int(file.read().split()[1])


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):  # it has ended meanwhile
        return 0
