"""`fouriscope colour`: three wavelengths, one after the other, put together."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from fouriscope.acquisition.colours import Colour
from fouriscope.cli.last_resort import keep_details_in
from fouriscope.cli.options import INTERRUPTED, CheckpointSeconds, Config, Quiet, console_of
from fouriscope.cli.progress import graceful_interrupt, shown_progress
from fouriscope.colour import reconstruct_colour
from fouriscope.run.assemble import build_stop
from fouriscope.settings import Stop
from fouriscope.solvers import Callback


def run_colour(
    config: Config,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the result. Default: the folder colours beside CONFIG. An unfinished result is continued."
        ),
    ] = None,
    checkpoint_seconds: CheckpointSeconds = None,
    quiet: Quiet = False,
) -> int:
    """Reconstruct a field in three wavelengths and register them. Run it again to continue after an interruption.

    CONFIG has the sections of a configuration and [colour] (docs/colour.md).
    """
    console, folder = console_of(quiet), out if out is not None else config.parent / "colours"
    keep_details_in(folder)
    shown = ExitStack()

    with graceful_interrupt() as interrupt, shown:

        def watch(name: Colour, stop: Stop) -> list[Callback]:
            shown.close()  # the bar of the channel before
            return [shown.enter_context(shown_progress(console, build_stop(stop), name)), interrupt]

        result = reconstruct_colour(
            config,
            folder,
            tell=lambda line: console.print(escape(line)),
            watch=watch,
            checkpoint_seconds=checkpoint_seconds,
        )
    if result is None:
        again = f"fouriscope colour {config}{f' --out {out}' if out is not None else ''}"
        console.print(f"interrupted; finished channels are kept; to continue: {escape(again)}")
        return INTERRUPTED
    rows, columns = result.fields[result.reference].shape
    console.print(f"{rows} × {columns} pixels of {result.pixel[0] * 1e6:.4g} µm in three wavelengths")
    written = sorted(path.name for path in (folder / "result").iterdir())
    console.print(f"{escape(str(folder))}/result: {', '.join(written)}")
    for name, channel in result.channels.items():
        if channel.verdict is not None:
            console.print(escape(f"{name}: {channel.verdict.sentence}"))
    return 0
