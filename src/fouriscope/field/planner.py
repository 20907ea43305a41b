"""How much time, memory and disk a field will take: a tile is tried for some iterations, the rest is arithmetic."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fouriscope.acquisition import Acquisition, ArrayFrames
from fouriscope.errors import InvalidInputError
from fouriscope.field.costs import WORKER_BYTES, disk_bytes, read_bytes, tile_bytes, window_bytes
from fouriscope.field.plan import FieldPlan
from fouriscope.field.tile_acquisition import tile_acquisition
from fouriscope.paper import phase_image
from fouriscope.parallel import available_threads, threads
from fouriscope.run.assemble import build_model, build_solver
from fouriscope.run.described import Described
from fouriscope.run.execute import close_stream
from fouriscope.settings import RunConfig
from fouriscope.simulation import simulate
from fouriscope.solvers import Iterations

# The first iterations cost more than those that follow: denoising starts anew, and the strength of an automatic prior
# settles after thirty. The later ones tell what all that come after will take.
PROBED_ITERATIONS = 60
LATE_ITERATIONS = 25
# Loading the command and starting workers on one machine.
CLUSTER_SECONDS = 2.0
# Comparing, blending and coarsening, for a pixel of the stitched object and a channel of it, on one core. A guess: no
# benchmark measures it alone, and it is little compared with the tiles.
STITCH_SECONDS = 1.2e-7
# Each worker loads the compiled kernels once.
WORKER_SECONDS = 2.0


@dataclass(frozen=True)
class Forecast:
    """What a field will take, on cores like those of this machine.

    Attributes
    ----------
    field
        How the field is divided.
    workers, iterations
        Number of workers, and of iterations per tile.
    setup_seconds, iteration_seconds
        Time to begin a tile, and time per iteration.
    stitch_seconds
        Time to put the tiles together.
    worker_bytes
        Memory of one worker.
    frames_bytes, tiles_bytes, result_bytes
        Size of the frames, of the finished tiles and of the result on disk.
    read_bytes
        How much the workers read from disk.
    """

    field: FieldPlan
    workers: int
    iterations: int
    setup_seconds: float
    iteration_seconds: float
    stitch_seconds: float
    worker_bytes: int
    frames_bytes: int
    tiles_bytes: int
    result_bytes: int
    read_bytes: int

    @property
    def tile_seconds(self) -> float:
        """One tile on one core."""
        return self.setup_seconds + self.iterations * self.iteration_seconds

    @property
    def core_seconds(self) -> float:
        """All tiles and the stitching, on one core."""
        return len(self.field.tiling) * self.tile_seconds + self.stitch_seconds * self.workers

    @property
    def seconds(self) -> float:
        """From the command to the result: whole tiles per worker, and then the stitching."""
        rounds = math.ceil(len(self.field.tiling) / self.workers)
        return CLUSTER_SECONDS + WORKER_SECONDS + rounds * self.tile_seconds + self.stitch_seconds


def forecast(
    config: RunConfig, base: Path, *, workers: int | None = None, tile: int | None = None, overlap: float | None = None
) -> Forecast:
    """Measure a tile of ``config`` here, and predict the field of all of them with ``workers``, one core each.

    The tile in the middle is reconstructed for some iterations, on simulated frames if there are none yet. The forecast
    holds for cores like this one's, if storage keeps up (``read_bytes`` says how much it must read). If rules stop a
    tile early, the forecast is an upper bound. Without a number of iterations there is no forecast.

    Parameters
    ----------
    config, base
        The description of the whole field, and where its relative paths start.
    workers
        Processes, one core each. By default, one per core of this machine.
    tile, overlap
        As in :class:`Tiling`.
    """
    count = config.stop.limit
    if count is None:
        raise InvalidInputError("stop.iterations is unlimited: a forecast needs a number of iterations")
    workers = workers or available_threads()
    plan = FieldPlan.of(config, base, tile=tile, overlap=overlap)
    seen = Described(config, base)
    stored = None if seen.is_planned else seen.stored
    with threads(1):
        setup, iteration = _probe(plan, config, base)
    frames = len(seen.illumination)
    itemsize = np.dtype(getattr(stored, "dtype", np.uint16)).itemsize
    tiles, result = disk_bytes(plan)
    pixels = math.prod(plan.field_shape) * len(plan.channels)
    return Forecast(
        field=plan,
        workers=workers,
        iterations=count,
        setup_seconds=setup,
        iteration_seconds=iteration,
        stitch_seconds=STITCH_SECONDS * pixels / workers,
        worker_bytes=WORKER_BYTES + tile_bytes(plan, config, base) + window_bytes(plan, frames, itemsize),
        frames_bytes=frames * math.prod(plan.tiling.frame_shape) * itemsize,
        tiles_bytes=tiles,
        result_bytes=result,
        read_bytes=read_bytes(plan, stored, frames, itemsize),
    )


def _probe(plan: FieldPlan, config: RunConfig, base: Path) -> tuple[float, float]:
    """Seconds to begin a tile, with what its first iterations take beyond later ones, and seconds of a later one.

    Everything is compiled by a first tile that is not timed.
    """
    chosen = plan.tile_config(config, plan.tiling[len(plan.tiling) // 2])
    build_solver(_acquisition(plan, chosen, base), chosen).solve(Iterations(2))
    began = time.perf_counter()
    acquisition = _acquisition(plan, chosen, base)
    opened = time.perf_counter()
    solver = build_solver(acquisition, chosen)
    solver.begin()
    built = time.perf_counter()
    iterations = min(PROBED_ITERATIONS, config.stop.limit or 1)
    seconds = [record.seconds for record in solver.solve(Iterations(iterations))]
    close_stream(acquisition)
    late = max(1, min(LATE_ITERATIONS, iterations - 1))
    iteration = (seconds[-1] - (seconds[-late - 1] if iterations > late else 0.0)) / late
    # Simulated frames are there at once when the time comes.
    opening = opened - began if config.frames.path is not None else 0.0
    return opening + built - opened + max(0.0, seconds[-1] - iterations * iteration), iteration


def _acquisition(plan: FieldPlan, config: RunConfig, base: Path) -> Acquisition:
    if config.frames.path is not None:
        return tile_acquisition(config, base, plan.margin)
    seen = Described(config, base)
    ones = np.ones((len(seen.illumination), *plan.tiling.tile_shape), np.float32)
    blank = Acquisition(seen.optics, seen.illumination, ArrayFrames(ones), patch_center=seen.patch_center)
    model = build_model(blank, config)
    truth = phase_image(model.object_shape, 1.0, None)
    x = truth if model.object.name == "phase" else np.stack([truth, 0.1 * truth])
    return replace(simulate(model, x.astype(model.dtype), seed=0), truth=None, periodic=False)
