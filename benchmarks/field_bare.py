"""A process of its own for the field benchmark: tiles in a plain loop on one thread, without Dask, files or stitching.

Arguments: the folder of a finished field, from which tiles take their configuration and the pupils that they start
from, and the tiles' numbers. It warms up with the first of them, prints "ready", waits for a line, and prints seconds.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

from fouriscope.field import FieldFolder
from fouriscope.field.tile_acquisition import tile_acquisition
from fouriscope.field.tile_task import mean_pupil
from fouriscope.parallel import threads
from fouriscope.run.assemble import build_solver, build_stop
from fouriscope.run.execute import close_stream


def reconstruct(field: FieldFolder, index: int) -> None:
    """What a tile cannot do without."""
    tile = field.plan.tiling[index]
    config = field.plan.tile_config(field.config(), tile)
    acquisition = tile_acquisition(config, field.path, field.plan.margin)
    found = (field.store.record(source.index) for source in field.plan.tiling.pupil_sources(tile))
    sources = [record for record in found if record is not None]
    pupil = mean_pupil(acquisition.pupil, sources, field.store)
    build_solver(replace(acquisition, pupil=pupil), config).solve(build_stop(config.stop))
    close_stream(acquisition)


def main() -> None:
    field, tiles = FieldFolder.open(sys.argv[1]), [int(number) for number in sys.argv[2:]]
    with threads(1):
        reconstruct(field, tiles[0])
        print("ready", flush=True)
        sys.stdin.readline()
        began = time.perf_counter()
        for index in tiles:
            reconstruct(field, index)
        print(time.perf_counter() - began, flush=True)


if __name__ == "__main__":
    main()
