"""Memory and disk of a field, from its plan alone."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from fouriscope.acquisition import Frames
from fouriscope.acquisition.byte_sizes import format_bytes
from fouriscope.acquisition.images import FolderFrames, TiffFrames
from fouriscope.errors import InvalidInputError
from fouriscope.field.plan import FieldPlan
from fouriscope.optics import Geometry
from fouriscope.run.described import Described, open_stored
from fouriscope.run.memory import memory_needed
from fouriscope.settings import RunConfig

# A worker before its first tile: Python, NumPy, SciPy, Numba with compiled kernels, and Zarr.
WORKER_BYTES = 250 * 2**20


def tile_bytes(plan: FieldPlan, config: RunConfig, base: Path) -> int:
    """What the reconstruction of one tile takes, without its frames."""
    seen = Described(plan.tile_config(config, plan.tiling[len(plan.tiling) // 2]), base)
    geometry = Geometry.compile(
        seen.optics,
        seen.illumination,
        plan.tiling.tile_shape,
        margin=plan.margin,
        object_shape=(plan.scale * plan.grid_shape[0], plan.scale * plan.grid_shape[1]),
        patch_center=seen.patch_center,
    )
    return memory_needed(geometry, config)


def window_bytes(plan: FieldPlan, frames: int, itemsize: int) -> int:
    """One tile's window of all frames."""
    return frames * math.prod(plan.tiling.tile_shape) * itemsize


def frames_budget(plan: FieldPlan, config: RunConfig, base: Path, memory: int) -> int:
    """What is left for frames of a worker's ``memory``; raises if that is less than two frames."""
    needed = WORKER_BYTES + tile_bytes(plan, config, base)
    stored = open_stored(config, base)
    itemsize = np.dtype(getattr(stored, "dtype", np.float64)).itemsize
    two_frames = 2 * window_bytes(plan, 1, itemsize)
    if memory < needed + two_frames:
        raise InvalidInputError(
            f"a worker with tiles of {plan.tiling.tile_shape[0]} × {plan.tiling.tile_shape[1]} frame pixels needs "
            f"about {format_bytes(needed + two_frames)}, but --memory is {format_bytes(memory)}; give more, or use "
            "smaller tiles with --tile"
        )
    return memory - needed


def read_bytes(plan: FieldPlan, stored: Frames | None, frames: int, itemsize: int) -> int:
    """Bytes that all tiles together read from storage: whole chunks of a chunked array, or whole images.

    >>> from fouriscope.field.tiling import Tiling
    >>> plan = FieldPlan(Tiling((512, 512)), (0, 0), 4, 16, ("phase",), 1e-7)
    >>> read_bytes(plan, None, frames=10, itemsize=2) / (512 * 512 * 10 * 2)  # 25 tiles that overlap
    1.5625
    """
    chunks = getattr(getattr(stored, "array", None), "chunks", None)
    whole = getattr(stored, "stored_shape", plan.tiling.frame_shape)
    if chunks is not None and len(chunks) == 3:
        cell = chunks[1:]
    else:  # images are decoded as a whole; what is mapped from a file is read as asked
        cell = whole if isinstance(stored, TiffFrames | FolderFrames) else (1, 1)
    pixels = [
        _covered(starts, size, origin, step, limit)
        for starts, size, origin, step, limit in zip(
            (plan.tiling.tops, plan.tiling.lefts), plan.tiling.tile_shape, plan.origin, cell, whole, strict=True
        )
    ]
    return pixels[0] * pixels[1] * frames * itemsize


def _covered(starts: tuple[int, ...], size: int, origin: int, step: int, limit: int) -> int:
    """Pixels along one axis of all cells that windows touch, each window's counted for itself."""
    firsts = [(origin + start) // step * step for start in starts]
    lasts = [min(limit, -(-(origin + start + size) // step) * step) for start in starts]
    return sum(last - first for first, last in zip(firsts, lasts, strict=True))


def disk_bytes(plan: FieldPlan) -> tuple[int, int]:
    """(tiles, result): tiles are kept until somebody deletes them; a pyramid is a third more than its finest level."""
    channels = len(plan.channels)
    tiles = len(plan.tiling) * channels * math.prod(plan.tile_object_shape) * 4
    pixels = math.prod(plan.field_shape)
    return tiles, int(pixels * (channels * 4 * 4 / 3 + 8))
