"""One tile: the task that runs on a worker. It reads everything it needs from the field's folder."""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import stream_below
from fouriscope.acquisition.byte_sizes import parse_bytes
from fouriscope.acquisition.digest import FrameDigest, check_unchanged
from fouriscope.acquisition.stored import StoredFrames, stored_below
from fouriscope.errors import NO_ROOM, FouriscopeError, FramesChangedError, not_written
from fouriscope.field.devices import on_own_device
from fouriscope.field.folder import FieldFolder
from fouriscope.field.identity import check_same_frames
from fouriscope.field.tile_acquisition import tile_acquisition
from fouriscope.field.tile_store import BrokenTileError, TileRecord, TileStore, checksum
from fouriscope.freed_memory import return_free_memory
from fouriscope.optics import Pupil
from fouriscope.parallel import threads
from fouriscope.run.assemble import build_solver, build_stop
from fouriscope.run.described import open_stored
from fouriscope.run.memory import keep_freed_memory
from fouriscope.run.phases import unwrap
from fouriscope.settings import RunConfig
from fouriscope.solvers import History

ATTEMPTS = 5
# From one attempt to the next, the part of the frames' memory that is left.
SMALLER_CACHE = 4
THUMBNAIL = 24


class Outcome(NamedTuple):
    """What a task reports to the coordinator. It is small, because it may travel through a scheduler.

    ``state`` "again" asks for another attempt; "blocked" says that the neighbour ``broken`` must be done again first;
    "stop" that no tile can be written any more.
    """

    tile: int
    state: Literal["done", "failed", "again", "blocked", "stop"]
    reason: str = ""
    broken: int = -1


def reconstruct_tile(folder: str, index: int, memory: int | None = None, attempts: int = ATTEMPTS) -> Outcome:
    """Reconstruct tile ``index`` of the field in ``folder`` and commit it.

    If a worker dies, the next one finds the note that the task was begun, and keeps fewer frames in memory. ``memory``
    bounds that from the start. After ``attempts`` the tile is given up. Faults in the data would come again, so they
    end the tile at once.
    """
    keep_freed_memory()
    field = FieldFolder.open(folder)
    if field.store.is_done(index, field.request(field.plan.tiling[index])):
        # Its worker died between the commit and the answer, so it is asked for again.
        return Outcome(index, "done")
    attempt = field.store.begin(index)
    if attempt > attempts:
        return Outcome(
            index, "failed", f"its worker died {attempts} times: killed, or it needs more memory than a worker has"
        )
    try:
        with threads(1):
            _reconstruct(field, index, attempt, memory)
    except MemoryError as error:
        return Outcome(index, "again" if attempt < attempts else "failed", f"out of memory ({error})")
    except BrokenTileError as error:
        return Outcome(index, "blocked", str(error), error.index)
    except FramesChangedError as error:  # no other tile would belong to those that are done
        return Outcome(index, "stop", str(error))
    except FouriscopeError as error:
        return Outcome(index, "failed", str(error))
    except OSError as error:  # a full disk stays full; a file server may be back in a moment
        state: Literal["stop", "again", "failed"] = "again" if attempt < attempts else "failed"
        if error.errno in NO_ROOM:
            state = "stop"
        refused = f"{not_written(field.path, error)}, then give the same command again"
        return Outcome(index, state, refused if state == "stop" else f"{error.strerror or error}")
    finally:
        return_free_memory()  # a worker lives for many tiles
    return Outcome(index, "done")


def _reconstruct(field: FieldFolder, index: int, attempt: int, memory: int | None) -> None:
    began = time.monotonic()
    plan, tile = field.plan, field.plan.tiling[index]
    config = on_own_device(plan.tile_config(field.config(), tile))
    config = with_frames_memory(config, field.path, attempt, memory)
    acquisition = tile_acquisition(config, field.path, plan.margin)
    check_same_frames(field.run.provenance(), stored_below(acquisition.frames), field.path)
    sources = [record for t in plan.tiling.pupil_sources(tile) if (record := field.store.record(t.index)) is not None]
    acquisition = replace(acquisition, pupil=mean_pupil(acquisition.pupil, sources, field.store))
    digest = FrameDigest(acquisition.frames.shape)
    acquisition.check_frames(digest.add)
    solver = build_solver(acquisition, config)
    solver.solve(build_stop(config.stop))
    check_unchanged(acquisition.frames, digest.checksum)
    model = solver.fidelity.model
    window = model.geometry.object_window
    phase, absorption = model.object.phase_and_absorption(solver.x)
    # Neighbours meet only if neither jumps by a turn; a wave knows its phase within ±π.
    phase = unwrap(phase) if model.object.band == "field" else phase
    shown = [phase] if absorption is None else [phase, absorption]
    images = np.stack([image[window] for image in shown]).astype(np.float32)
    found = solver.model.pupil
    array = None if found.array is None or not plan.keeps_pupils(config) else found.array.astype(np.complex64)
    record = TileRecord(
        index=index,
        request=field.request(tile),
        checksum=checksum(images),
        misfit=last_misfit(solver.history, len(acquisition)),
        iterations=len(solver.history),
        seconds=time.monotonic() - began,
        stop_reason=solver.stop_reason or "",
        attempts=attempt,
        worker=f"{socket.gethostname()} {os.getpid()}",
        pupil_sources=[source.index for source in sources],
        zernike={str(mode): value for mode, value in found.zernike.items()},
        pupil_checksum=None if array is None else checksum(array),
        thumbnail=thumbnail(images[0]).tolist(),
    )
    field.store.commit(record, images, array)
    stream = stream_below(acquisition.frames)
    if stream is not None:
        stream.close()


def with_frames_memory(config: RunConfig, base: Path, attempt: int, memory: int | None) -> RunConfig:
    """The configuration with room for the tile's window of all frames, so that each is read once; with less of it,
    if that is too much for ``memory`` or was too much before."""
    stored = open_stored(config, base)
    dtype = np.dtype(getattr(stored, "dtype", np.float64))
    frame = math.prod(stored.shape[1:]) * dtype.itemsize
    # All of them, and more on their way: a budget that is just filled would push out what is needed again.
    together = len(stored.together(0)) if isinstance(stored, StoredFrames) else 1
    bounds = [(stored.shape[0] + 2 * together) * frame]
    if config.frames.memory is not None:
        bounds.append(parse_bytes(config.frames.memory))
    if memory is not None:
        bounds.append(memory)
    budget = max(2 * frame, min(bounds) // SMALLER_CACHE ** (attempt - 1))
    return config.model_copy(update={"frames": config.frames.model_copy(update={"memory": budget})})


def mean_pupil(configured: Pupil, sources: Sequence[TileRecord], store: TileStore) -> Pupil:
    """The mean of the pupils that a tile's neighbours found; the configured one, if there are no such neighbours."""
    if not sources:
        return configured
    modes = sorted({int(mode) for record in sources for mode in record.zernike})
    zernike = {mode: float(np.mean([r.zernike.get(str(mode), 0.0) for r in sources])) for mode in modes}
    arrays = [pupil for record in sources if (pupil := store.pupil(record.index)) is not None]
    # Arrays are means of complex numbers: neighbours have nearly the same phases.
    array = np.asarray(np.mean(arrays, axis=0, dtype=np.complex128)) if arrays else configured.array
    return Pupil(zernike or configured.zernike, configured.defocus, array)


def last_misfit(history: History, frames: int) -> float:
    """The mean misfit of the last pass over the frames."""
    seen = history["frames_seen"]
    return float(np.mean(history["misfit"][seen > seen[-1] - frames]))


def thumbnail(image: NDArray[Any]) -> NDArray[np.float64]:
    """The means of an image over some 24 × 24 parts, with its median subtracted, to a thousandth."""
    rows, columns = (np.linspace(0, size, min(size, THUMBNAIL) + 1).astype(int)[:-1] for size in image.shape)
    sums = np.add.reduceat(np.add.reduceat(image.astype(np.float64), rows, axis=0), columns, axis=1)
    heights, widths = np.diff([*rows, image.shape[0]]), np.diff([*columns, image.shape[1]])
    coarse = sums / np.outer(heights, widths)
    return np.asarray((coarse - np.median(coarse)).round(3))
