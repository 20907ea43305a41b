"""From tiles to one image: neighbours are compared, constants solved for, blocks blended, and a pyramid built.

Each of these is many small tasks on the workers. Only comparisons of a few kB and corrections of a few numbers are sent
between processes. Images go from the tiles to the result through files, and no task holds more than a block and a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fouriscope.field.bending import solve_bends
from fouriscope.field.blending import Blend, tiles_of
from fouriscope.field.correction import Correction
from fouriscope.field.dispatch import Workers, run_all
from fouriscope.field.folder import FieldFolder
from fouriscope.field.overlaps import Overlap, TileImages, compare
from fouriscope.field.plan import FieldPlan
from fouriscope.field.pyramid import Block, Pyramid, create_object, write_object_block
from fouriscope.field.seams import solve_seams
from fouriscope.field.tile_store import TileStore
from fouriscope.parallel import threads
from fouriscope.run.ome_zarr import note_background
from fouriscope.run.phase_background import Surface, centres, order_of, surface_of
from fouriscope.settings import RunConfig

# Of the overlap, the part at a tile's edge that its borders spoil: it is neither compared nor shown.
BORDER_SHARE = 0.25
PHASE_FLAT = "phase_flat"

Stage = Callable[[str, float], object]
Tasks = list[tuple[Hashable, Callable[..., Any], tuple[Any, ...]]]


class Stitching:
    """Puts the tiles ``done`` of a field together, into ``target``."""

    def __init__(self, field: FieldFolder, workers: Workers, done: set[int], target: Path, stage: Stage) -> None:
        self.field, self.workers, self.done, self.target, self.stage = field, workers, done, target, stage
        self.plan = field.plan
        self.border = border_of(self.plan)
        self.background = field.config().output.phase_background
        self.pyramid = pyramid_of(self.plan, target, self.background)

    def run(self) -> tuple[list[Correction], list[Overlap]]:
        """Write field.ome.zarr and object.zarr; raises BrokenTileError for a tile that is not what it was."""
        overlaps = self._compare()
        corrections = corrected(self.plan, self.field.config(), overlaps)
        self.pyramid.create()
        create_object(self.target / "object.zarr", self.plan.field_shape, (self.plan.pixel, self.plan.pixel))
        self._blend(corrections)
        self._coarsen()
        self._flatten()
        self.pyramid.finish()
        note_background(self.pyramid.path, self.background)
        return corrections, overlaps

    def _compare(self) -> list[Overlap]:
        pairs = [(a, b) for a, b in self.plan.tiling.pairs() if a.index in self.done and b.index in self.done]
        tasks: Tasks = [
            (f"{first.index}-{second.index}", compare_tiles, (str(self.field.path), first.index, second.index))
            for first, second in pairs
        ]
        return list(self._run("comparing neighbours", tasks))

    def _blend(self, corrections: Sequence[Correction]) -> None:
        tasks: Tasks = []
        for block in self.pyramid.blocks(0):
            tiles = [t.index for t in tiles_of(block, self.plan.tiling, self.plan.scale) if t.index in self.done]
            needed = {index: corrections[index] for index in tiles}
            tasks.append(
                (f"{block.row}-{block.column}", blend_block, (str(self.field.path), str(self.target), block, needed))
            )
        list(self._run("blending", tasks))

    def _coarsen(self) -> None:
        for level in range(1, len(self.pyramid.shapes)):  # each is made of the one before
            tasks: Tasks = [
                (f"{level}-{block.row}-{block.column}", Pyramid.coarsen_block, (self.pyramid, level, block))
                for block in self.pyramid.blocks(level)
            ]
            list(self._run("making the pyramid", tasks))

    def _flatten(self) -> None:
        order = order_of(self.background)
        if order is None:
            return
        surface = field_background(self.pyramid, order)
        tasks: Tasks = [
            (f"{level}-{block.row}-{block.column}", flatten_block, (self.pyramid, level, block, surface))
            for level in range(len(self.pyramid.shapes))
            for block in self.pyramid.blocks(level)
        ]
        list(self._run("taking off the background", tasks))

    def _run(self, name: str, tasks: Tasks) -> list[Any]:
        values: list[Any] = []
        self.stage(name, 0.0)
        for _, value in run_all(self.workers, tasks):
            values.append(value)
            self.stage(name, len(values) / len(tasks))
        return values


def border_of(plan: FieldPlan) -> int:
    """Frame pixels at the edge of a tile that are not trusted."""
    return round(BORDER_SHARE * plan.tiling.overlap * min(plan.tiling.tile_shape))


def pyramid_of(plan: FieldPlan, target: Path, background: str) -> Pyramid:
    """The result's image: phase, amplitude for a complex object, and the phase without its ``background``."""
    later = () if order_of(background) is None else (PHASE_FLAT,)
    channels = (*(("phase",) if len(plan.channels) == 1 else ("phase", "amplitude")), *later)
    place = target / "field.ome.zarr"
    return Pyramid(place, channels, plan.field_shape, (plan.pixel, plan.pixel), "fouriscope field", later)


def field_background(pyramid: Pyramid, order: int) -> Surface:
    """The slow background of a whole field, from the finest level that is no larger than a block."""
    images = dict(zip(pyramid.channels, pyramid.read(pyramid.overview, slice(None), slice(None)), strict=True))
    return surface_of(images["phase"], images.get("amplitude"), order=order)


def flatten_block(pyramid: Pyramid, level: int, block: Block, surface: Surface) -> None:
    """A task: the phase of one block of a level without the background."""
    phase = pyramid.read(level, *block.slices)[pyramid.channels.index("phase")]
    sizes = zip(pyramid.shapes[level], pyramid.shapes[pyramid.overview], block.slices, strict=True)
    y, x = (centres(size, over)[part] for size, over, part in sizes)
    pyramid.write_channel(level, block, PHASE_FLAT, phase - surface.at(y, x))


def corrected(plan: FieldPlan, config: RunConfig, overlaps: Sequence[Overlap]) -> list[Correction]:
    """The constants of all tiles, and what else is free.

    If each tile refines its LEDs, or its pupil bin by bin, there is a ramp of the phase. Not with Zernike coefficients:
    they have no tilt, and each tile's slow errors, alike in all of them, would be mistaken for ramps that bend the
    field. If tiles refine gains, there is a factor of the amplitude. Last comes a surface of low order where neighbours
    still differ slowly (:mod:`fouriscope.field.bending`).
    """
    calibration = config.calibration
    ramps = calibration.leds or plan.keeps_pupils(config)
    found = solve_seams(plan.tiling, plan.scale, overlaps, ramps=ramps)
    found = solve_bends(plan.tiling, plan.scale, overlaps, found)
    return found if calibration.gains else [replace(correction, absorption=0.0) for correction in found]


def compare_tiles(folder: str, first: int, second: int) -> Overlap:
    """A task: two neighbours where both can be trusted."""
    field = FieldFolder.open(folder)
    plan, tiling = field.plan, field.plan.tiling
    images = (tile_images(field.store, first), tile_images(field.store, second))
    with threads(1):
        return compare(tiling[first], tiling[second], *images, plan.scale, border_of(plan))


def blend_block(folder: str, target: str, block: Block, corrections: dict[int, Correction]) -> None:
    """A task: one block of the field, from the tiles that touch it."""
    field = FieldFolder.open(folder)
    plan = field.plan
    blend = Blend(block, plan.tiling, plan.scale, border_of(plan))
    for index in sorted(corrections):  # in one order, because sums of floats depend on it
        blend.add(plan.tiling[index], tile_images(field.store, index), corrections[index])
    phase, absorption = blend.result()
    if absorption is None and len(plan.channels) > 1:  # no tile is left here
        absorption = np.full_like(phase, np.nan)
    amplitude = None if absorption is None else np.exp(-absorption)
    images = {"phase": phase} if amplitude is None else {"phase": phase, "amplitude": amplitude}
    pyramid_of(plan, Path(target), field.config().output.phase_background).write_block(0, block, images)
    with np.errstate(invalid="ignore"):  # NaN where no tile is
        transmittance = np.exp(1j * phase) * (1 if amplitude is None else amplitude)
    write_object_block(Path(target) / "object.zarr", block, transmittance)


def tile_images(store: TileStore, index: int) -> TileImages:
    """The images of a tile that is done."""
    images = store.images(index)
    return TileImages(images[0], images[1] if len(images) > 1 else None)
