"""What a field is made of: its tiles, their scale, and the configuration of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, Strict

from fouriscope.acquisition.stored import Region
from fouriscope.errors import InvalidInputError
from fouriscope.field.tiling import Tile, Tiling
from fouriscope.forward.objects import object_model
from fouriscope.optics import automatic_object_shape
from fouriscope.optics.frame_sources import largest_na
from fouriscope.run.assemble import chosen_margin
from fouriscope.run.described import Described
from fouriscope.run.schema import Count, Number, Part, Positive, checked
from fouriscope.settings import RunConfig

# Frame pixels along a side of a tile, and the part that neighbours share, unless somebody says otherwise.
TILE, OVERLAP = 128, 0.2
# Tiles of one field must not draw the same minibatches, but a tile must always draw the same ones.
SEEDS_APART = 1_000_003
LARGEST_SEED = 2**31
# Frame pixels along a side of a field or a tile.
Side = Annotated[int, Strict(), Field(ge=1, lt=2**17)]


class PlanFile(Part):
    """plan.json."""

    frame_shape: tuple[Side, Side]
    tile: Side
    overlap: Number
    origin: tuple[Count, Count]
    scale: Annotated[int, Strict(), Field(ge=1, le=256)]
    margin: Annotated[int, Strict(), Field(ge=0, lt=2**17)]
    channels: Annotated[list[Literal["phase", "absorption"]], Field(min_length=1, max_length=2)]
    pixel: Positive


@dataclass(frozen=True)
class FieldPlan:
    """The tiles of a field on one grid of object pixels.

    Attributes
    ----------
    tiling
        The tiles, in frame pixels of the field.
    origin
        (row, column) of the field in the stored frames: that of ``frames.roi``, if there is one.
    scale
        Object pixels per frame pixel, along each axis. It is one number for all tiles, although their LEDs reach
        different NA, because pixels of neighbours must coincide.
    margin
        Frame pixels around each tile that are estimated and discarded.
    channels
        "phase", and "absorption" for a complex object.
    pixel
        Pixel of the object, in metres.
    """

    tiling: Tiling
    origin: tuple[int, int]
    scale: int
    margin: int
    channels: tuple[str, ...]
    pixel: float

    @classmethod
    def of(cls, config: RunConfig, base: Path, *, tile: int | None = None, overlap: float | None = None) -> FieldPlan:
        """The plan for the frames that ``config`` names; its relative paths start at ``base``."""
        seen = Described(config, base)
        tiling = Tiling(seen.frame_shape, TILE if tile is None else tile, OVERLAP if overlap is None else overlap)
        margin = chosen_margin(config, tiling.tile_shape)
        scale = _scale(seen, tiling, margin)
        return cls(
            tiling=tiling,
            origin=(0, 0) if config.frames.roi is None else config.frames.roi[:2],
            scale=scale,
            margin=margin,
            channels=("phase",) if config.object.model == "phase" else ("phase", "absorption"),
            pixel=seen.optics.pixel / scale,
        )

    @property
    def field_shape(self) -> tuple[int, int]:
        """(rows, columns) of the stitched object."""
        rows, columns = self.tiling.frame_shape
        return rows * self.scale, columns * self.scale

    @property
    def tile_object_shape(self) -> tuple[int, int]:
        """(rows, columns) of the object of one tile, without its margin."""
        rows, columns = self.tiling.tile_shape
        return rows * self.scale, columns * self.scale

    @property
    def grid_shape(self) -> tuple[int, int]:
        """(rows, columns) of the frame pixels of one tile with its margins, on which pupils are known."""
        rows, columns = self.tiling.tile_shape
        return rows + 2 * self.margin, columns + 2 * self.margin

    @staticmethod
    def keeps_pupils(config: RunConfig) -> bool:
        """Whether tiles find pupils bin by bin, which are arrays; Zernike coefficients are kept in records."""
        return config.calibration.pixels or config.solver.recovers_pupil

    def tile_config(self, config: RunConfig, tile: Tile) -> RunConfig:
        """The configuration of one tile: its window of the frames, its object's shape, its seed.

        The direction of every LED from the tile's centre follows from the window (:mod:`fouriscope.run.described`).
        """
        rows, columns = (self.scale * size for size in self.grid_shape)
        window = window_of(tile, config)
        seed = (config.solver.seed * SEEDS_APART + tile.index) % LARGEST_SEED
        return config.model_copy(
            update={
                "frames": config.frames.model_copy(update={"roi": window, "truth": None}),
                "object": config.object.model_copy(update={"shape": (rows, columns), "margin": self.margin}),
                "solver": config.solver.model_copy(update={"seed": seed}),
            }
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "frame_shape": list(self.tiling.frame_shape),
            "tile": self.tiling.tile,
            "overlap": self.tiling.overlap,
            "lattice": list(self.tiling.lattice),
            "origin": list(self.origin),
            "scale": self.scale,
            "margin": self.margin,
            "channels": list(self.channels),
            "pixel": self.pixel,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any], where: object = "plan.json") -> FieldPlan:
        """What :meth:`as_dict` gave; ``where`` names it in errors."""
        checked(PlanFile, values, where)
        rows, columns = values["frame_shape"]
        return cls(
            tiling=Tiling((rows, columns), values["tile"], values["overlap"]),
            origin=(values["origin"][0], values["origin"][1]),
            scale=values["scale"],
            margin=values["margin"],
            channels=tuple(values["channels"]),
            pixel=values["pixel"],
        )


def window_of(tile: Tile, config: RunConfig) -> Region:
    """(row, column, height, width) of a tile in whole frames."""
    row, column = (0, 0) if config.frames.roi is None else config.frames.roi[:2]
    return row + tile.top, column + tile.left, tile.height, tile.width


def _scale(seen: Described, tiling: Tiling, margin: int) -> int:
    config = seen.config
    frame_rows, frame_columns = tiling.frame_shape
    if config.object.shape != "auto":
        rows, columns = config.object.shape
        scale = rows // frame_rows
        if scale < 1 or (rows, columns) != (scale * frame_rows, scale * frame_columns):
            raise InvalidInputError(
                f"in a field, object.shape must be a whole multiple of the frames' {frame_rows} × {frame_columns} "
                f"pixels, so that tiles lie on one grid, got {rows} × {columns}; 'auto' chooses one"
            )
        return scale
    grid = (tiling.tile_shape[0] + 2 * margin, tiling.tile_shape[1] + 2 * margin)
    centers = (seen.center_of(window_of(tile, config)) for tile in tiling)
    largest = max(largest_na(seen.illumination, seen.optics, center) for center in centers)
    return automatic_object_shape(seen.optics, largest, grid, object_model(config.object.model).band)[0] // grid[0]
