"""How well each tile went: a table, a small map, and a page to look at."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope import plots
from fouriscope.field.correction import Correction
from fouriscope.field.folder import FieldFolder
from fouriscope.field.overlaps import Overlap
from fouriscope.field.plan import FieldPlan
from fouriscope.field.pyramid import Pyramid
from fouriscope.field.stitch import PHASE_FLAT, pyramid_of
from fouriscope.field.tile_store import TileRecord
from fouriscope.run.files import write_json, write_text
from fouriscope.run.ome_tiff import write_ome_tiff

MEASURES = ("misfit", "iterations", "seconds")
# Pixels along a side of the picture at most: finer than a screen shows is in the pyramid.
PICTURE = 1400
FIGURE_DPI = 150


def write_quality(
    field: FieldFolder,
    target: Path,
    failed: dict[int, str],
    corrections: Sequence[Correction],
    overlaps: Sequence[Overlap],
) -> None:
    """tiles.csv, quality.ome.tif, summary.json and figure.png of a field whose images are in ``target`` already."""
    plan = field.plan
    records = {
        tile.index: record
        for tile in plan.tiling
        if tile.index not in failed and (record := field.store.record(tile.index)) is not None
    }
    write_text(target / "tiles.csv", table(plan, records, failed, corrections))
    maps = quality_maps(plan, records)
    tall, wide = (np.mean(np.diff(starts)) if len(starts) > 1 else size for starts, size in _spacings(plan))
    frame_pixel = plan.pixel * plan.scale
    write_ome_tiff(
        target / "quality.ome.tif",
        np.stack([maps[name] for name in MEASURES]),
        pixel=(float(tall * frame_pixel), float(wide * frame_pixel)),
        channels=list(MEASURES),
        description="one pixel per tile: its misfit, its iterations, and the seconds that it took; NaN if it failed",
    )
    background = field.config().output.phase_background
    told = summary(plan, records, failed, overlaps) | {"phase_background": background}
    write_json(target / "summary.json", told)
    _draw(plan, pyramid_of(plan, target, background), maps, target)


def _spacings(plan: FieldPlan) -> list[tuple[tuple[int, ...], int]]:
    tiling = plan.tiling
    return [(tiling.tops, tiling.tile_shape[0]), (tiling.lefts, tiling.tile_shape[1])]


def table(
    plan: FieldPlan, records: dict[int, TileRecord], failed: dict[int, str], corrections: Sequence[Correction]
) -> str:
    """One line per tile."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [
            *("tile", "row", "column", "frame_row", "frame_column", "height", "width", "state"),
            *(*MEASURES, "stopped", "attempts", "worker", "phase_constant", "ramp_y", "ramp_x", "absorption_constant"),
            *("zernike", "reason"),
        ]
    )
    for tile in plan.tiling:
        record, correction = records.get(tile.index), corrections[tile.index]
        place = [tile.index, tile.row, tile.column, *tile.window]
        if record is None:
            writer.writerow([*place, "failed", *[""] * 11, failed.get(tile.index, "")])
            continue
        found = [f"{value:.6g}" for value in (correction.phase, *correction.ramp, correction.absorption)]
        zernike = " ".join(f"{mode}:{value:.4g}" for mode, value in record.zernike.items())
        numbers = [f"{record.misfit:.6g}", record.iterations, f"{record.seconds:.3f}", record.stop_reason]
        writer.writerow([*place, "done", *numbers, record.attempts, record.worker, *found, zernike, ""])
    return text.getvalue()


def quality_maps(plan: FieldPlan, records: dict[int, TileRecord]) -> dict[str, NDArray[np.float32]]:
    """Each measure on the lattice of tiles; NaN where a tile failed."""
    maps = {name: np.full(plan.tiling.lattice, np.nan, np.float32) for name in MEASURES}
    for index, record in records.items():
        tile = plan.tiling[index]
        for name in MEASURES:
            maps[name][tile.row, tile.column] = getattr(record, name)
    return maps


def summary(
    plan: FieldPlan, records: dict[int, TileRecord], failed: dict[int, str], overlaps: Sequence[Overlap]
) -> dict[str, Any]:
    """The field in numbers. ``neighbours_differ_rad`` is the rms difference of neighbours where both are trusted, after
    their constants are subtracted, as the median over all pairs."""
    seconds = [record.seconds for record in records.values()]
    return {
        "shape": list(plan.field_shape),
        "pixel_size_m": [plan.pixel, plan.pixel],
        "tiles": plan.as_dict() | {"count": len(plan.tiling), "done": len(records)},
        "failed": {str(index): reason for index, reason in sorted(failed.items())},
        "attempts": sum(record.attempts for record in records.values()),
        "core_seconds": float(np.sum(seconds)),
        "misfit_median": float(np.median([record.misfit for record in records.values()])) if records else None,
        "neighbours_differ_rad": float(np.median([overlap.noise for overlap in overlaps])) if overlaps else None,
    }


def _draw(plan: FieldPlan, pyramid: Pyramid, maps: dict[str, NDArray[np.float32]], target: Path) -> None:
    level = next((n for n, shape in enumerate(pyramid.shapes) if max(shape) <= PICTURE), len(pyramid.shapes) - 1)
    images = dict(zip(pyramid.channels, pyramid.read(level, slice(None), slice(None)), strict=True))
    rows, columns = plan.field_shape
    figure = plots.field_figure(
        images.get(PHASE_FLAT, images["phase"]),
        images.get("amplitude"),
        maps,
        flattened=PHASE_FLAT in images,
        pixel=plan.pixel * columns / pyramid.shapes[level][1],
        title=f"{rows} × {columns} pixels from {len(plan.tiling)} tiles",
    )
    plots.save_figure(figure, target / "figure.png", dpi=FIGURE_DPI)
