"""`fouriscope import --to-zarr`: the frames rewritten for tiles, and the [frames] that name the copy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar

from fouriscope.acquisition.frames import open_frames
from fouriscope.acquisition.tiled_store import Progress, write_tiled
from fouriscope.run.described import STORAGE

MEMORY = "256MB"


def rewrite_frames(
    section: dict[str, Any], store: Path, memory: str | None, force: bool, console: Console
) -> tuple[dict[str, Any], str]:
    """Write the frames of [frames], whole and as they are stored, to ``store`` beside the description.

    Returns the [frames] of the copy, and the checksum of its frames.
    """
    # The copy is stored in one way only. All other keys say what is done to the numbers.
    storage: dict[str, Any] = {key: section.get(key) for key in STORAGE}
    stored = open_frames(store.parent / section["path"], **storage)
    with _shown(console, stored.shape[0]) as progress:
        checksum = write_tiled(stored, store, memory=memory or MEMORY, progress=progress, force=force)
    kept = {key: value for key, value in section.items() if key not in STORAGE}
    return kept | {"path": store.name}, checksum


@contextmanager
def _shown(console: Console, count: int) -> Iterator[Progress | None]:
    """A bar for each thing that is done to the frames; none if the console is quiet, or a file."""
    if console.quiet or not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description:<24}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("frames"),
        TimeRemainingColumn(),
    )
    with ProgressBar(*columns, console=console) as bar:
        tasks = {doing: bar.add_task(doing, total=count) for doing in ("writing", "verifying")}
        yield lambda doing, done: bar.update(tasks[doing], completed=done)
