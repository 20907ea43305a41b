"""`fouriscope paper`: the paper's figures and numbers, beside the published ones."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from fouriscope.cli.progress import duration, graceful_interrupt
from fouriscope.errors import InvalidInputError
from fouriscope.reproduction.paper_run import FIGURES, run_paper
from fouriscope.reproduction.protocol import Protocol
from fouriscope.reproduction.summary import Summary


class _Job:
    """One line for the whole job, with the time left by the pace of this run."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.task = progress.add_task("paper", total=None, details="")
        self.total = 0.0
        self.began: tuple[float, float] | None = None

    def plan(self, total: float) -> None:
        self.total = total
        self.progress.update(self.task, total=total)

    def __call__(self, done: float, what: str) -> None:
        now = time.monotonic()
        if self.began is None or done < self.began[1]:
            self.began = (now, done)
        worked = done - self.began[1]
        left = (now - self.began[0]) * (self.total - done) / worked if worked > 0 else None
        self.progress.update(
            self.task, completed=done, details=what if left is None else f"{what}  {duration(left)} left"
        )


def run_paper_command(
    out: Path, *, images: Path | None, figure: str, quick: bool, console: Console, quiet: bool
) -> None:
    """Run, and print the table of bars; an interrupted run goes on where it was."""
    if figure not in (*FIGURES, "all"):
        raise InvalidInputError(f"--figure is 1, 2, 3 or all, got {figure!r}")
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[details]}"))
    began = time.monotonic()
    with (
        graceful_interrupt() as interrupt,
        Progress(*columns, console=console, disable=quiet or not console.is_terminal) as progress,
    ):
        job = _Job(progress)
        try:
            summary = run_paper(
                out,
                images=images,
                figures=set(FIGURES) if figure == "all" else {figure},
                protocol=Protocol.quick() if quick else Protocol(),
                tell=lambda words: console.print(escape(words)),
                on_plan=job.plan,
                on_progress=job,
                interrupt=interrupt,
            )
        except KeyboardInterrupt:
            console.print(f"interrupted; the same command goes on from what is in {escape(str(out))}")
            raise
    _print(summary, console)
    if quick:
        console.print("--quick: two images and fewer iterations, so nothing here has converged")
    console.print(f"{duration(time.monotonic() - began)}; look at {escape(str(out / 'report.html'))} (or report.md)")


def _print(summary: Summary, console: Console) -> None:
    table = Table("what", "paper", "bar", "measured", "")
    for bar in summary.bars():
        mark = "[green]reached[/]" if bar.reached else "[red]not reached[/]"
        table.add_row(escape(bar.what), bar.paper, bar.wanted, bar.measured, mark)
    console.print(table)
