"""`fouriscope paper`: the paper's figures and numbers, compared with the published ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from fouriscope.cli.options import Quiet, console_of
from fouriscope.cli.progress import duration, graceful_interrupt
from fouriscope.errors import InvalidInputError
from fouriscope.plots import check_zoom
from fouriscope.reproduction.experiment import Listener
from fouriscope.reproduction.figure4 import CLOSE_UPS, Zoom
from fouriscope.reproduction.figure4_report import figure4_blocks, figure4_page
from fouriscope.reproduction.pages import Block, write_pages
from fouriscope.reproduction.paper_run import FIGURES, run_figure4, run_paper
from fouriscope.reproduction.protocol import Protocol
from fouriscope.reproduction.specimen import Specimen
from fouriscope.reproduction.specimen_run import BASELINE, GRADIENTS, QUICK_GRADIENTS, MeasuredSummary
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
    images: Annotated[
        Path | None, typer.Option(help="Folder with the paper's images or others. Default: images of scikit-image.")
    ] = None,
    figure: Annotated[str, typer.Option(help="1, 2, 3, 4 or all (4 only with --data).")] = "all",
    data: Annotated[
        Path | None,
        typer.Option(
            help="For figure 4: the configuration of a measured acquisition, as written by `fouriscope import`."
        ),
    ] = None,
    zoom: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROW,COLUMN,SIZE",
            help="Close-up of figure 4, in pixels. Give it once or twice. Default: automatic.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the figures, the report and all intermediate results.")] = Path(
        "paper"
    ),
    bandwidth: Annotated[
        float,
        typer.Option(
            min=0, max=1e-7, help="Also simulate light of this bandwidth (FWHM in metres). The paper has 20e-9."
        ),
    ] = 0.0,
    quick: Annotated[bool, typer.Option("--quick", help="Use two images and fewer iterations.")] = False,
    quiet: Quiet = False,
) -> None:
    """Repeat the experiments of the paper and compare the results. Run it again to continue after an interruption."""
    console = console_of(quiet)
    figures, squares = _wanted(figure, data, zoom or [])
    if bandwidth and not figures:
        raise InvalidInputError("--bandwidth is for the simulated figures 1 to 3; figure 4 is measured")
    specimen = None if data is None else Specimen.load(data)
    if specimen is not None:
        for square in squares:
            check_zoom(square, specimen.field)
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[details]}"))
    began = time.monotonic()
    with (
        graceful_interrupt() as interrupt,
        Progress(*columns, console=console, disable=quiet or not console.is_terminal) as progress,
    ):
        job = _Job(progress)
        listener = Listener(lambda words: console.print(escape(words)), job.plan, job, interrupt)
        measured: list[tuple[MeasuredSummary, list[Path]]] = []

        def figure4() -> list[Block]:
            if specimen is None:
                return []
            gradients = QUICK_GRADIENTS if quick else GRADIENTS
            measured.append(run_figure4(out, specimen, gradients=gradients, zooms=squares, listener=listener))
            return figure4_blocks(*measured[0])

        summary = None
        try:
            if figures:
                protocol = Protocol.quick() if quick else Protocol()
                summary = run_paper(
                    out,
                    images=images,
                    figures=figures,
                    protocol=protocol,
                    listener=listener,
                    bandwidth=bandwidth,
                    more=figure4,
                )
            else:
                figure4()
                write_pages(out, figure4_page(*measured[0]))
        except KeyboardInterrupt:
            console.print(f"interrupted; give the same command to continue from what is in {escape(str(out))}")
            raise
    if summary is not None:
        _print(summary, console)
    for cells, _ in measured:
        _print_measured(cells, console)
    if quick:
        console.print("--quick: fewer images and iterations, so nothing here has converged")
    console.print(f"{duration(time.monotonic() - began)}; look at {escape(str(out / 'report.html'))} (or report.md)")


def _wanted(figure: str, data: Path | None, zooms: Sequence[str]) -> tuple[set[str], list[Zoom]]:
    """Which of figures 1 to 3 to run (figure 4 is run where there are data), and the close-ups of figure 4."""
    if figure not in (*FIGURES, "4", "all"):
        raise InvalidInputError(f"--figure must be 1, 2, 3, 4 or all, got {figure!r}")
    if figure == "4" and data is None:
        raise InvalidInputError(
            "figure 4 needs measured frames: give their configuration (from `fouriscope import`) with --data"
        )
    if figure in FIGURES and data is not None:
        raise InvalidInputError(f"--data belongs to figure 4, but --figure is {figure}; leave one of them out")
    if zooms and data is None:
        raise InvalidInputError("--zoom belongs to figure 4, which needs --data")
    if len(zooms) > CLOSE_UPS:
        raise InvalidInputError(f"figure 4 has room for {CLOSE_UPS} close-ups, got {len(zooms)} times --zoom")
    figures = set(FIGURES) if figure == "all" else {figure} & set(FIGURES)
    return figures, [_square(words) for words in zooms]


def _square(words: str) -> Zoom:
    parts = words.split(",")
    try:
        row, column, size = (int(part) for part in parts)
    except ValueError:
        raise InvalidInputError(
            f"--zoom must be row,column,size in pixels, such as 120,300,90, got {words!r}"
        ) from None
    return row, column, size


def _print(summary: Summary, console: Console) -> None:
    table = Table("what", "paper", "bar", "measured", "")
    for bar in summary.bars():
        mark = "[green]reached[/]" if bar.reached else "[red]not reached[/]"
        table.add_row(escape(bar.what), bar.paper, bar.wanted, bar.measured, mark)
    console.print(table)


def _print_measured(summary: MeasuredSummary, console: Console) -> None:
    table = Table("figure 4", "misfit of held-out frames", "seconds")
    for name, cell in summary.cells.items():
        table.add_row(escape(name), f"{summary.score(name):.2f}", f"{cell.curves['seconds'][-1]:.0f}")
    console.print(table)
    for name, lower in summary.better_than_baseline().items():
        console.print(f"{name} predicts held-out frames {'better' if lower else 'no better'} than {BASELINE.name}")
