"""`fouriscope info`: what a configuration compiles to."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape

from fouriscope.optics import Geometry, report_geometry
from fouriscope.run import load_config
from fouriscope.run.assemble import build_acquisition
from fouriscope.run.memory import memory_available, memory_needed


def show_info(config_path: Path, *, console: Console) -> None:
    """Print the report of the optics and of what a reconstruction needs; frames are opened but not read."""
    config = load_config(config_path)
    acquisition = build_acquisition(config, config_path.parent)
    geometry = Geometry.compile(
        acquisition.optics,
        acquisition.illumination,
        acquisition.frame_shape,
        margin=config.object.margin,
        object_shape=config.object.shape,
        patch_center=acquisition.patch_center,
    )
    console.print(escape(str(report_geometry(geometry))), soft_wrap=True)
    available = memory_available()
    free = "" if available is None else f" of {available / 2**30:.1f} GiB free"
    console.print(f"memory                   {memory_needed(geometry, config) / 2**20:.0f} MiB{free}")
