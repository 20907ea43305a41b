"""`fouriscope watch`: a picture that gets better while frames arrive."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from fouriscope.cli.last_resort import keep_details_in
from fouriscope.cli.options import INTERRUPTED, CheckpointSeconds, Device, EngineOf, Quiet, console_of
from fouriscope.cli.progress import asked_to_stop, snr_line
from fouriscope.errors import InvalidInputError
from fouriscope.live import WatchedFolder
from fouriscope.run import Result, load_config
from fouriscope.run.engine import with_engine
from fouriscope.solvers import Callback, Record, Solver

CONVERGED = "converged"


def run_watch(
    folder: Annotated[
        Path, typer.Argument(help="Folder that receives the frames, one image file per frame. It may not exist yet.")
    ],
    config: Annotated[Path, typer.Option(help="The configuration, a TOML file. FOLDER replaces its frames.path.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The run folder. Default: the folder run beside CONFIG. An interrupted run is continued."),
    ] = None,
    until: Annotated[
        str,
        typer.Option(
            help="When to stop: `converged` (\\[stop] of CONFIG, from the last frame), or seconds without a new frame."
        ),
    ] = "converged",
    first_number: Annotated[
        int | None,
        typer.Option(min=0, max=1, help="Whether the numbers in the file names start at 0 or 1 (docs/live.md)."),
    ] = None,
    checkpoint_seconds: CheckpointSeconds = None,
    engine: EngineOf = None,
    device: Device = None,
    quiet: Quiet = False,
) -> int:
    """Reconstruct while frames are still being acquired, and say when more frames no longer help."""
    console = console_of(quiet)
    run_folder = out if out is not None else config.parent / "run"
    keep_details_in(run_folder)
    watched = WatchedFolder(
        with_engine(load_config(config), engine, device),
        config.parent,
        folder,
        run_folder,
        first_number=first_number,
        silence=_silence(until),
        tell=lambda line: console.print(escape(line)),
    )
    waiting = "" if folder.is_dir() else ", which does not exist yet"
    console.print(f"waiting for frames in {escape(str(folder))}{waiting}; press Ctrl-C to stop")
    with asked_to_stop() as asked, _shown(console, watched) as progress:
        result = watched.run(callbacks=progress, asked_to_stop=asked, checkpoint_seconds=checkpoint_seconds)
    if result is None:
        console.print("no bright-field frame has arrived, so nothing was reconstructed or written")
        return INTERRUPTED
    return _report(result, watched, run_folder, console)


def _report(result: Result, watched: WatchedFolder, run_folder: Path, console: Console) -> int:
    assert watched.live is not None
    last, live = result.history.last, result.provenance["live"]
    console.print(
        f"{live['arrived']} of {live['expected']} frames, {last.iteration} iterations, {last.seconds:.1f} s (stopped: "
        f"{result.stop_reason})"
    )
    if "snr" in last.as_dict():
        console.print(snr_line(last))
    if live["arrived"] < live["expected"]:
        console.print(escape(live["outlook"]))
    console.print(f"{escape(str(run_folder))}/result: {escape(', '.join(_written(run_folder)))}")
    return INTERRUPTED if result.stop_reason == "interrupted" else 0


def _written(run_folder: Path) -> list[str]:
    return sorted(path.name for path in (run_folder / "result").iterdir())


def _silence(until: str) -> float | None:
    """Seconds without a frame after which to stop; None for "converged"."""
    if until == CONVERGED:
        return None
    try:
        seconds = float(until)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise InvalidInputError(f"--until must be 'converged' or a number of seconds without a frame, got {until!r}")
    return seconds


@contextmanager
def _shown(console: Console, watched: WatchedFolder) -> Iterator[list[Callback]]:
    """Two lines that are kept up to date: what has come and how it fits, and whether more would help."""
    if console.quiet or not console.is_terminal:
        yield []
        return
    with Live(Text("preparing"), console=console, refresh_per_second=5) as display:

        def show(solver: Solver, record: Record) -> None:
            assert watched.live is not None
            details = f"{record.frames_arrived:.0f} of {len(watched.live.arrived)} frames  iteration {record.iteration}"
            details += f"  misfit {record.misfit:.4g}"
            if not math.isnan(record.snr):
                details += f"  SNR {record.snr:.2f} dB"
            display.update(Text(f"{details}\n{watched.live.outlook().sentence}"))

        yield [show]
