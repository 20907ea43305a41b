"""Tiles that keep the LEDs at the pupil's edge: what their light does to the slow phase, where the die explains it.

``python -m benchmarks field_edge``. Frames of a field whose LEDs have a size, in tiles. Each tile is reconstructed
without the LEDs whose die stands across the pupil's edge, with those that a tile keeps, and with all of them. The slow
part of a tile's error is what differs between neighbours, and what a stitched field shows as a lattice.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.field_problems import PHOTONS, Recorded, record
from benchmarks.report import bar, table
from fouriscope.acquisition import Acquisition
from fouriscope.field.overlaps import object_window
from fouriscope.field.plan import FieldPlan
from fouriscope.field.tile_acquisition import tile_acquisition
from fouriscope.metrics import snr_both
from fouriscope.optics.die import across_edge
from fouriscope.run import RunConfig, load_config
from fouriscope.run.assemble import build_acquisition, build_solver, build_stop

SIDE = 230  # 2 × 2 tiles of 128
DIES = (0.5e-3, 1e-3)
ITERATIONS = 60
SLOW = 1 / 10  # of a tile's side, σ of the Gaussian that leaves what is slow
SLOW_BAR = 0.8

Image = NDArray[np.float64]


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for die in DIES:
            recorded = record(Path(name) / f"die-{die}", side=SIDE, die=die)
            found = {rule: _Tiles(recorded, die, rule) for rule in RULES}
            before = found["left out"]
            for rule, tiles in found.items():
                ratio = tiles.slow / before.slow
                cells = (
                    bar(f"field_edge, {die * 1e3:g} mm, slow error", ratio, SLOW_BAR) if rule == "kept" else ["", ""]
                )
                rows.append(
                    [
                        f"{die * 1e3:g} mm, {rule}",
                        f"{tiles.kept:.1f} of {tiles.across:.1f}",
                        f"{tiles.snr:.2f}",
                        f"{1e3 * tiles.slow:.1f}",
                        f"{1e3 * tiles.apart:.1f}",
                        f"{ratio:.2f}",
                        *cells,
                    ]
                )
    title = f"{SIDE}² frames, 4 tiles of 128², 69 LEDs, {PHOTONS} electrons, TV, amplitude, {ITERATIONS} iterations"
    header = ["LEDs across the edge", "kept in a tile", "SNR / dB", "slow error / mrad", "between tiles / mrad"]
    table(title, [*header, "beside left out", "bar", ""], rows)


RULES = ("left out", "kept", "as they are")


class _Tiles:
    """All tiles of a field under one rule, with their scores.

    ``slow`` is the rms of the slow part of their errors, ``apart`` of the difference of neighbours' slow parts where
    they overlap, each after its mean.
    """

    def __init__(self, recorded: Recorded, die: float, rule: str) -> None:
        path = recorded.configuration(
            "edge",
            iterations=ITERATIONS,
            side=SIDE,
            illumination={"die": die},
            solver={"loss": "amplitude"},
            verdict={"enabled": False},
        )
        config = load_config(path)
        plan = FieldPlan.of(config, path.parent)
        errors: list[tuple[tuple[int, int, int, int], Image]] = []
        snrs, kept, across = [], [], []
        for tile in plan.tiling:
            data, at_edge = _acquisition(plan.tile_config(config, tile), path.parent, plan.margin, rule)
            window = object_window(tile, plan.scale)
            top, left, height, width = window
            truth = recorded.truth[top : top + height, left : left + width].astype(np.float64)
            phase = _solved(data, plan.tile_config(config, tile))
            snrs.append(snr_both(phase, truth).aligned)
            errors.append((window, _slow(phase - truth)))
            kept.append(np.count_nonzero(data.frame_weights[at_edge]))
            across.append(np.count_nonzero(at_edge))
        self.snr, self.kept, self.across = (float(np.mean(values)) for values in (snrs, kept, across))
        self.slow = float(np.sqrt(np.mean([np.var(error) for _, error in errors])))
        self.apart = float(np.sqrt(np.mean([np.var(both) for both in _differences(errors)])))


def _acquisition(config: RunConfig, base: Path, margin: int, rule: str) -> tuple[Acquisition, NDArray[np.bool_]]:
    data = build_acquisition(config, base) if rule == "as they are" else tile_acquisition(config, base, margin)
    at_edge = across_edge(data.illumination, data.optics, data.patch_center)
    if rule == "left out":
        data = replace(data, weights=np.where(at_edge, 0.0, data.frame_weights))
    return data, at_edge


def _solved(data: Acquisition, config: RunConfig) -> Image:
    solver = build_solver(data, config)
    solver.solve(build_stop(config.stop))
    model = solver.fidelity.model
    return np.asarray(model.object.phase_and_absorption(solver.x)[0][model.geometry.object_window], np.float64)


def _slow(error: Image) -> Image:
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(error, SLOW * error.shape[0]))


def _differences(errors: list[tuple[tuple[int, int, int, int], Image]]) -> list[Image]:
    """Of every two tiles that overlap, what one says beside the other."""
    found = []
    for number, ((top, left, height, width), first) in enumerate(errors):
        for (other_top, other_left, _, _), second in errors[number + 1 :]:
            rows = slice(max(top, other_top), min(top, other_top) + height)
            columns = slice(max(left, other_left), min(left, other_left) + width)
            found.append(
                first[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left]
                - second[
                    rows.start - other_top : rows.stop - other_top,
                    columns.start - other_left : columns.stop - other_left,
                ]
            )
    return found
