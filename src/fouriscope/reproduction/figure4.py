"""The paper's figure 4: NoReg, TV and BM3D, Batch above Online, with the same two close-ups of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fouriscope import plots
from fouriscope.errors import InvalidInputError
from fouriscope.reproduction.specimen_run import FIGURE_4, MeasuredSummary

Zoom = tuple[int, int, int]

CLOSE_UPS = 2
CLOSE_UP_SHARE = 1 / 6
# Close-ups stay away from the edge of the field, where what lies outside has left its mark.
BORDER_SHARE = 0.05
# The images from which close-ups are chosen automatically: all measurements and a prior, so what is lively is no noise.
REFERENCE = "BM3D-Online"


def draw_figure4(summary: MeasuredSummary, out: Path, zooms: Sequence[Zoom] = ()) -> list[Path]:
    """Write ``figure4-amplitude`` (for a complex object) and ``figure4-phase`` as PNG and PDF; returns the PNGs."""
    reference = summary.cells[REFERENCE]
    chosen = list(zooms) or lively_squares(
        reference.phase if reference.amplitude is None else reference.amplitude, CLOSE_UPS
    )
    amplitudes = {name: cell.amplitude for name, cell in summary.cells.items() if cell.amplitude is not None}
    # No intensity shows the mean of a phase; the medians are put on one level.
    phases = {name: cell.phase - np.median(cell.phase) for name, cell in summary.cells.items()}
    wanted = [("amplitude", amplitudes, "amplitude")] if amplitudes else []
    drawn = []
    for kind, images, label in [*wanted, ("phase", phases, "phase (rad), median 0")]:
        figure = plots.grid_figure(
            [
                [_panel(summary, one.name, images[one.name]) for one in FIGURE_4 if one.data == data]
                for data in ("Batch", "Online")
            ],
            pixel=summary.pixel,
            zooms=chosen,
            title=f"Figure 4: {summary.specimen.name}, {kind}",
            colour_label=label,
        )
        plots.save_figure(figure, out / f"figure4-{kind}.pdf")
        drawn.append(plots.save_figure(figure, out / f"figure4-{kind}.png"))
    return drawn


def _panel(summary: MeasuredSummary, name: str, image: NDArray[np.float32]) -> plots.Panel:
    return plots.Panel(name, image, f"misfit of held-out frames {summary.score(name):.2f}")


def lively_squares(image: NDArray[np.float32], count: int) -> list[Zoom]:
    """``count`` squares (row, column, size) that do not overlap, where the image's gradient has most energy.

    The first is the liveliest of all, the next the liveliest of those that keep clear of it.

    >>> image = np.zeros((120, 120), np.float32)
    >>> image[30:34, 80:84], image[90:94, 20:24] = 1.0, 0.5
    >>> squares = lively_squares(image, 2)
    >>> all(any(r <= y < r + s and c <= x < c + s for r, c, s in squares) for y, x in [(31, 81), (91, 21)])
    True
    """
    down, across = np.gradient(image.astype(np.float64))
    energy = np.pad(down**2 + across**2, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
    size = max(1, round(CLOSE_UP_SHARE * min(image.shape)))
    border = round(BORDER_SHARE * min(image.shape))
    sums = energy[size:, size:] - energy[:-size, size:] - energy[size:, :-size] + energy[:-size, :-size]
    free = np.zeros(sums.shape, np.bool_)
    free[border : sums.shape[0] - border, border : sums.shape[1] - border] = True
    squares: list[Zoom] = []
    for _ in range(count):
        if not free.any():
            raise InvalidInputError(
                f"an image of shape {image.shape} has no room for {count} squares of {size} pixels; use larger frames"
            )
        row, column = (int(place) for place in np.unravel_index(np.argmax(np.where(free, sums, -1)), sums.shape))
        squares.append((row, column, size))
        free[max(0, row - size + 1) : row + size, max(0, column - size + 1) : column + size] = False
    return squares
