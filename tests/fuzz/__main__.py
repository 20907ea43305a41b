"""``python -m tests.fuzz``: as many damaged inputs as asked for, and a table of what became of them."""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import itertools
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.fuzz.children import Case, commands_in, run_cases, template
from tests.fuzz.targets import TARGETS, Target

KINDS = ("traceback", "crash", "hung", "memory", "left", "silent", "long line", "warning")


def every_case(targets: list[Target], count: int, seed: int) -> Iterator[Case]:
    """``count`` cases, the targets in turn."""
    turns = (Case(target, seed, turn) for turn in itertools.count() for target in targets if turn % target.every == 0)
    return itertools.islice(turns, count)


def _case(name: str) -> Case:
    """The case that a report calls ``name``."""
    where, seed, number = name.rsplit("/", 2)
    return Case(next(target for target in TARGETS if target.name == where), int(seed), int(number))


def prepared(targets: list[Target], folder: Path) -> dict[str, Path]:
    """The valid input of each target; its commands are run once in this process, which must succeed."""
    os.environ["FOURISCOPE_THREADS"] = "1"  # a child of a process with threads has none of them
    templates, here = {}, Path.cwd()
    for number, target in enumerate(targets):
        templates[target.name] = template(target, folder / f"valid-{number}")
        again = template(target, folder / f"trial-{number}")
        given = again / (again / ".given").read_text(encoding="utf-8")
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = commands_in(target, given, again)
        os.chdir(here)
        if code != 0:
            raise SystemExit(f"{target.name}: the valid input ended with {code}: {said.getvalue()}")
        if (again / ".frames.npy").exists():
            shutil.copy(again / ".frames.npy", templates[target.name])
    gc.collect()
    gc.freeze()  # what is here stays: a child that looked for garbage in it would copy every page
    return templates


def table(cases: list[Case], group: Callable[[Case], str], kinds: Sequence[str]) -> str:
    """Counts by group and kind of fault; all kinds together, as docs/reliability.md shows them, if none is named."""
    head = ["inputs", "cases", "accepted", "garbage", *(kinds or ["faults"]), "longest", "most memory"]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for name in [*dict.fromkeys(map(group, cases)), "all"]:
        those = [case for case in cases if name in ("all", group(case))]
        numbers = [
            len(those),
            sum(case.accepted for case in those),
            sum(case.garbage for case in those),
            *(sum(any(fault.startswith(kind) for fault in case.faults) for case in those) for kind in kinds or [""]),
        ]
        longest, most = max(case.seconds for case in those), max(case.bytes for case in those) / 1e6
        lines.append([name, *(f"{number:,}" for number in numbers), f"{longest:.1f} s", f"{most:.0f} MB"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--target", help="only targets with this in their name")
    parser.add_argument(
        "--only", action="append", help="a case, as the report names it: TARGET/SEED/NUMBER; can be repeated"
    )
    parser.add_argument("--keep", type=Path, help="where the inputs with faults are kept; a temporary folder otherwise")
    options = parser.parse_args()
    targets = [target for target in TARGETS if (options.target or "") in target.name]
    folder = options.keep or Path(tempfile.mkdtemp(prefix="fouriscope-fuzz-"))
    cases = every_case(targets, options.cases, options.seed)
    if options.only:
        chosen = [_case(name) for name in options.only]
        cases, targets = iter(chosen), list({case.target.name: case.target for case in chosen}.values())
    templates = prepared(targets, folder / "valid")
    begun, done = time.monotonic(), []
    for case in run_cases(cases, templates, folder, options.jobs):
        done.append(case)
        if case.faults:
            print(f"{case.name}: {', '.join(case.faults)} ({case.damage})", flush=True)
        if len(done) % 1000 == 0:
            print(f"{len(done)} cases, {time.monotonic() - begun:.0f} s", flush=True)
    print(table(done, lambda case: case.target.name, KINDS), end="\n\n")
    print(table(done, lambda case: case.target.group, ()), end="\n\n")
    faulty = [case for case in done if case.faults]
    print(f"{len(done)} cases in {time.monotonic() - begun:.0f} s, {len(faulty)} with faults; inputs in {folder}")
    return int(bool(faulty))


if __name__ == "__main__":
    sys.exit(main())
