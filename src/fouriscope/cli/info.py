"""`fouriscope info`: what a configuration compiles to."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape

from fouriscope.optics import report_geometry
from fouriscope.run import load_config
from fouriscope.run.assemble import build_geometry
from fouriscope.run.memory import memory_available, memory_needed


def show_info(config_path: Path, *, console: Console) -> None:
    """Print the report of the optics and of what a reconstruction needs; frames, if any, are opened but not read."""
    config = load_config(config_path)
    geometry = build_geometry(config, config_path.parent)
    console.print(escape(str(report_geometry(geometry))), soft_wrap=True)
    available = memory_available()
    free = "" if available is None else f" of {available / 2**30:.1f} GiB free"
    console.print(f"memory                   {memory_needed(geometry, config) / 2**20:.0f} MiB{free}")
