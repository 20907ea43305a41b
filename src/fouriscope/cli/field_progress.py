"""What a person sees while a field is reconstructed: tiles, time left, and the picture as it fills in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fouriscope.cli.progress import duration
from fouriscope.field.coordinator import FieldProgress, Watch

PICTURE_COLUMNS = 56
LINE_EVERY = 0.1  # of the tiles, where there is no terminal to draw on


@contextmanager
def shown_field(console: Console) -> Iterator[Watch | None]:
    """A function to show the progress of a field: a picture on a terminal, a line now and then in a file."""
    if console.quiet:
        yield None
    elif console.is_terminal:
        with Live(console=console, refresh_per_second=4, transient=True) as live:
            yield lambda progress: live.update(drawn(progress))
    else:
        yield _Lines(console)


class _Lines:
    def __init__(self, console: Console) -> None:
        self.console, self.said, self.waiting = console, ("", -1.0), False

    def __call__(self, progress: FieldProgress) -> None:
        stage, fraction = self.said
        if progress.stage != stage or (progress.workers == 0) != self.waiting:
            self.waiting = progress.workers == 0
            self.said = progress.stage, progress.fraction
            self.console.print(summary(progress) if progress.stage == "tiles" else progress.stage)
        elif progress.stage == "tiles" and progress.fraction >= min(1.0, fraction + LINE_EVERY) > fraction:
            self.said = progress.stage, progress.fraction
            self.console.print(summary(progress))


def summary(progress: FieldProgress) -> str:
    """One line."""
    if progress.stage != "tiles":
        return f"{progress.stage}: {progress.fraction:.0%}"
    parts = [f"{progress.done} of {progress.total} tiles"]
    if progress.failed:
        parts.append(f"{len(progress.failed)} failed")
    if progress.retries:
        parts.append(f"{progress.retries} tried again")
    if not progress.workers:
        parts.append("waiting for workers")
    elif math.isfinite(progress.seconds_left):
        parts.append(f"{duration(progress.seconds_left)} left")
    return ", ".join(parts)


def drawn(progress: FieldProgress) -> RenderableType:
    """The picture so far, and a bar."""
    line = Table.grid(padding=(0, 2))
    line.add_row(ProgressBar(total=1.0, completed=progress.fraction, width=24), Text(summary(progress)))
    return Group(picture(progress.thumbnail.grey()), line)


def picture(grey: NDArray[np.uint8], columns: int = PICTURE_COLUMNS) -> Text:
    """An image in characters: each is two pixels, the upper one its colour and the lower one its background."""
    width = min(columns, grey.shape[1])
    height = max(2, 2 * round(width * grey.shape[0] / grey.shape[1] / 2))
    rows = (np.arange(height) + 0.5) * grey.shape[0] / height
    across = (np.arange(width) + 0.5) * grey.shape[1] / width
    small = grey[np.ix_(rows.astype(int), across.astype(int))]
    text = Text()
    for upper, lower in zip(small[0::2], small[1::2], strict=True):
        for top, bottom in zip(upper.tolist(), lower.tolist(), strict=True):
            text.append("▀", style=f"rgb({top},{top},{top}) on rgb({bottom},{bottom},{bottom})")
        text.append("\n")
    return text
