"""Scores of a stitched field of which the truth is known: beside its tiles, and along the lines where tiles meet."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriscope.field import FieldFolder, FieldPlan
from fouriscope.field.overlaps import object_window
from fouriscope.field.stitch import border_of
from fouriscope.metrics import snr_both

FloatArray = NDArray[np.float64]
# Frame pixels at the edge of the frames, where no neighbour mends a tile's border.
FRAME_EDGE = 16


class Ratio(NamedTuple):
    """Something at the seams beside the same elsewhere, and its standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class Seams:
    """SNRs in dB, each after the best constant of its window, and the rms of steps across each line of pixels.

    ``windows`` and ``inner_windows`` are of the stitched field in the windows of the tiles, so that the same truth and
    the same freedom (one constant a window) are compared. ``pooled_tiles`` is that of the errors of all tiles together,
    each after its own constant, and ``one_constant`` of the stitched field in the same windows after one for all.
    """

    tiles: float
    whole: float
    windows: float
    inner_tiles: float
    inner_windows: float
    pooled_tiles: float
    one_constant: float
    kinks: tuple[FloatArray, FloatArray]
    steps: tuple[FloatArray, FloatArray]


def score(field: FieldFolder, stitched: NDArray[np.float32], truth: NDArray[np.float32]) -> Seams:
    """Compare a finished field with the truth."""
    plan = field.plan
    trusted = border_of(plan) * plan.scale
    inner = (slice(trusted, -trusted), slice(trusted, -trusted))
    scores: dict[str, list[float]] = {name: [] for name in ("tiles", "windows", "inner_tiles", "inner_windows")}
    signal, tile_error, field_error = 0.0, 0.0, 0.0
    error = (stitched - truth).astype(np.float64)
    error -= error.mean()
    for tile in plan.tiling:
        row, column, height, width = object_window(tile, plan.scale)
        window = slice(row, row + height), slice(column, column + width)
        found, seen, true = field.store.images(tile.index)[0], stitched[window], truth[window]
        scores["tiles"].append(snr_both(found, true).aligned)
        scores["windows"].append(snr_both(seen, true).aligned)
        scores["inner_tiles"].append(snr_both(found[inner], true[inner]).aligned)
        scores["inner_windows"].append(snr_both(seen[inner], true[inner]).aligned)
        signal += float(np.sum(true.astype(np.float64) ** 2))
        tile_error += float(np.var((found - true).astype(np.float64)) * true.size)
        field_error += float(np.sum(error[window] ** 2))
    means = {name: float(np.mean(values)) for name, values in scores.items()}
    kinks, steps = (tuple(_across(error, plan, axis, width) for axis in (0, 1)) for width in (1, _reach(plan)))
    return Seams(
        **means,
        whole=snr_both(stitched, truth).aligned,
        pooled_tiles=10 * np.log10(signal / tile_error),
        one_constant=10 * np.log10(signal / field_error),
        kinks=(kinks[0], kinks[1]),
        steps=(steps[0], steps[1]),
    )


def seam_ratios(seen: Seams) -> dict[str, Ratio]:
    """The error's kinks (its second differences, pixel by pixel: a line that one sees) and steps (its mean over half an
    overlap on this side minus that on the other: tiles of unequal tone) at seams beside those elsewhere."""
    return {"kinks": _ratio(seen.kinks), "steps": _ratio(seen.steps)}


def _reach(plan: FieldPlan) -> int:
    """Object pixels of half an overlap: where one tile's share has fallen to nothing, or nearly."""
    return max(1, (plan.tiling.tile_shape[0] - int(np.diff(plan.tiling.tops).max())) * plan.scale // 2)


def _across(error: FloatArray, plan: FieldPlan, axis: int, width: int) -> FloatArray:
    """Rows of (is a seam, rms across that line) for all lines across ``axis``.

    With ``width`` 1 it is the rms of second differences; else of the mean of ``width`` pixels before the line minus
    that of those behind it.
    """
    edge = FRAME_EDGE * plan.scale
    lines = np.moveaxis(error, axis, 0)[:, edge:-edge]
    if width == 1:
        across = np.diff(lines, 2, axis=0)
        first = 1  # the line in the middle of the first second difference
    else:
        sums = np.cumsum(np.concatenate([np.zeros((1, lines.shape[1])), lines]), axis=0)
        across = (sums[2 * width :] - 2 * sums[width:-width] + sums[: -2 * width]) / width
        first = width
    rms = np.sqrt(np.mean(across**2, axis=1))
    starts, size = (plan.tiling.tops, plan.tiling.lefts)[axis], plan.tiling.tile_shape[axis]
    centres = [(later + earlier + size) / 2 * plan.scale for earlier, later in pairwise(starts)]
    places = np.arange(first, first + len(rms))
    # A blend hands over within half an overlap of its centre; a kink is where it does so most quickly.
    half = 2 if width == 1 else width // 2
    nearest = np.abs(places[:, None] - np.array(centres)[None]).min(axis=1)
    kept = (places >= edge) & (places < len(lines) - edge)
    return np.stack([nearest[kept] <= half, rms[kept]], axis=1).astype(np.float64)


def _ratio(both: tuple[FloatArray, FloatArray]) -> Ratio:
    """Root mean squares of all lines, rows and columns; the error is from how such lines differ elsewhere."""
    table = np.concatenate(both)
    at_seam, elsewhere = table[table[:, 0] > 0, 1], table[table[:, 0] == 0, 1]
    # Lines beside each other are not independent: groups as large as a seam's are.
    seams = 2 * int(np.count_nonzero(np.diff(both[0][:, 0]) > 0))
    group = max(1, len(at_seam) // max(1, seams))
    usable = len(elsewhere) // group * group
    powers = np.mean(elsewhere[:usable].reshape(-1, group) ** 2, axis=1)
    value = np.sqrt(np.mean(at_seam**2) / np.mean(elsewhere**2))
    spread = np.std(powers) / np.mean(powers) / 2  # of a root, half as much
    return Ratio(float(value), float(value * spread / np.sqrt(seams)))
