"""``--json``: what a command found as one JSON object on stdout, for scripts. docs/json.md lists the keys."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from fouriscope.cli.options import console_of

AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object instead of text (docs/json.md). Progress goes to stderr."),
]


def consoles(quiet: bool, as_json: bool) -> tuple[Console, Console]:
    """Where a command prints words, and where it shows its progress: with ``as_json`` nowhere, and on stderr."""
    words = console_of(quiet or as_json)
    return words, console_of(quiet, stderr=True) if as_json else words


def print_json(command: str, found: Mapping[str, Any]) -> None:
    """Print ``found``, and the name of the ``command`` first. Numbers that are not finite become null.

    >>> print_json("info", {"path": Path("a"), "level": np.float32("nan"), "shape": (2, 3)})
    {
      "command": "info",
      "path": "a",
      "level": null,
      "shape": [
        2,
        3
      ]
    }
    """
    typer.echo(json.dumps(_plain({"command": command} | dict(found)), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    """``value`` in the few kinds that JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"JSON has no place for {type(value).__name__}")
