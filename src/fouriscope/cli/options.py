"""Options that several commands have, and the console that all print on."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fouriscope.cli.last_resort import INTERRUPTED, OutputClosedError
from fouriscope.errors import InvalidInputError

__all__ = ["INTERRUPTED", "CheckpointSeconds", "Config", "Device", "EngineOf", "Force", "Memory", "Quiet", "console_of"]

Config = Annotated[Path, typer.Argument(help="The configuration, a TOML file.")]
CheckpointSeconds = Annotated[
    float | None,
    typer.Option(min=0, help="Seconds between checkpoints. Default: 10. With 0, every iteration writes one."),
]
Device = Annotated[
    str | None,
    typer.Option(help="Device of the torch engine: cpu, cuda, cuda:1 or mps. Default: engine.device of CONFIG."),
]
Devices = Annotated[
    str | None,
    typer.Option(
        "--device",
        help="Where the engine torch computes: cpu, mps, cuda, or several such as cuda:0,cuda:1, with a worker for "
        "each. Default: engine.device of CONFIG.",
    ),
]
EngineOf = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="Engine that computes: auto, numba, scipy or torch (docs/engines.md). Default: engine.name of CONFIG.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")]
Memory = Annotated[
    str | None,
    typer.Option(
        help="Memory for frames, such as 64MB or 2GB. Other frames stay on disk. It also limits the torch engine. "
        "Default: frames.memory and engine.memory of CONFIG."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]


class _Output(Console):
    def on_broken_pipe(self) -> None:
        self.quiet = True
        raise OutputClosedError(errno.EPIPE, "nobody reads the output any more")


def console_of(quiet: bool = False, *, stderr: bool = False) -> Console:
    """Where a command prints; ``quiet``, it prints nothing."""
    return _Output(quiet=quiet, stderr=stderr, highlight=False, emoji=False, soft_wrap=True)


def check_new(out: Path) -> None:
    """Raise unless ``out`` can become a new folder."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidInputError(f"{out} exists and is not empty; choose another folder")
