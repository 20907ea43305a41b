"""A whole field from beginning to end: new or continued, tiles, stitching, result."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fouriscope.errors import InvalidInputError, RunFolderError
from fouriscope.field.cluster import as_workers
from fouriscope.field.coordinator import TileRun, Watch
from fouriscope.field.costs import frames_budget
from fouriscope.field.dispatch import Workers
from fouriscope.field.folder import FieldFolder, is_field
from fouriscope.field.identity import check_same
from fouriscope.field.plan import FieldPlan
from fouriscope.field.prepare import Tell, prepare
from fouriscope.field.quality import write_quality
from fouriscope.field.remote import DaskWorkers
from fouriscope.field.stitch import Stitching
from fouriscope.field.tile_store import BrokenTileError
from fouriscope.field.tile_task import ATTEMPTS
from fouriscope.run.folder import RunFolder
from fouriscope.settings import RunConfig

# How often tiles that turn out broken when they are put together are done again.
ROUNDS = 3


@dataclass(frozen=True)
class FieldResult:
    """A field that is finished.

    Attributes
    ----------
    path
        Its folder.
    plan
        How it was divided.
    failed
        The tiles that failed, with the reason.
    seconds
        The time that it took.
    """

    path: Path
    plan: FieldPlan
    failed: dict[int, str]
    seconds: float


def reconstruct_tiles(
    config: RunConfig,
    base: Path,
    folder: str | Path,
    client: Any,
    *,
    tile: int | None = None,
    overlap: float | None = None,
    memory: int | None = None,
    attempts: int = ATTEMPTS,
    watch: Watch | None = None,
    tell: Tell | None = None,
) -> FieldResult:
    """Reconstruct the field that ``config`` describes (its relative paths start at ``base``) into ``folder``.

    The frames are cut into overlapping tiles. Each is reconstructed by itself, with the directions of the LEDs as seen
    from its centre and a pupil that starts from its neighbours'. Their unknown phase constants are found from all
    overlaps at once, and they are blended into one image. If the folder was begun with the same configuration, it is
    continued: committed tiles are kept.

    Parameters
    ----------
    client
        What :func:`fouriscope.field.connected` gives, or a ``distributed.Client`` whose workers see the same files.
    tile, overlap
        Frame pixels along a side of a tile, and the part that neighbours share: 128 and 0.2.
    memory
        Bytes that a worker may take; frames are kept in memory as far as that allows.
    attempts
        How often a tile is begun, if its worker dies, before it is given up.
    watch, tell
        Called with the progress, and with findings in words.
    """
    began = time.monotonic()
    folder, workers = Path(folder), as_workers(client)
    field = (
        _continued(config, base, folder, tile, overlap)
        if is_field(folder)
        else _begun(config, base, folder, tile, overlap, tell)
    )
    with field.run.ending("by the user"):
        budget = None if memory is None else frames_budget(field.plan, config, base, memory)
        path = config.frames.path
        assert path is not None  # or there would be no plan
        if isinstance(workers, DaskWorkers):  # those that are started here are as we are
            workers.check(folder, base / path)
        was_finished = field.run.status()["state"] == "finished"
        field.run.write_status("running")
        run = TileRun(field, workers, memory=budget, attempts=attempts, watch=watch)
        failed = _to_the_end(field, run, workers, watch, already=was_finished)
        field.run.write_status("finished", f"{len(failed)} of {len(field.plan.tiling)} tiles failed" if failed else "")
    return FieldResult(folder, field.plan, failed, time.monotonic() - began)


def _begun(
    config: RunConfig, base: Path, folder: Path, tile: int | None, overlap: float | None, tell: Tell | None
) -> FieldFolder:
    _clear_unbegun(folder)
    RunFolder(folder).check_free()
    ready = prepare(config, base, folder, tile=tile, overlap=overlap, tell=tell)
    return FieldFolder.create(folder, ready.document, ready.provenance, ready.plan, ready.images)


def _clear_unbegun(folder: Path) -> None:
    """Remove what is left of a field that was killed while its folder was made: nothing had been done in it."""
    try:
        is_ours = RunFolder(folder).provenance().get("kind") == "field"
    except RunFolderError:
        return
    if is_ours:
        run = RunFolder(folder)
        run.lock()  # raises if somebody is making it just now
        shutil.rmtree(folder)
        run.close()


def _continued(config: RunConfig, base: Path, folder: Path, tile: int | None, overlap: float | None) -> FieldFolder:
    field = FieldFolder.open(folder)
    field.check()
    tiling = field.plan.tiling
    for name, asked, is_so in (("--tile", tile, tiling.tile), ("--overlap", overlap, tiling.overlap)):
        if asked is not None and asked != is_so:
            raise InvalidInputError(
                f"{folder} was begun with {name} {is_so}, got {asked}; leave it out to go on, or choose another folder"
            )
    check_same(field.run.provenance(), config, base, field.plan, folder)
    field.run.lock()
    return field


def _to_the_end(
    field: FieldFolder, run: TileRun, workers: Workers, watch: Watch | None, *, already: bool
) -> dict[int, str]:
    """Tiles and stitching, and again if a tile turns out broken in between; returns the tiles that failed."""

    def stage(name: str, fraction: float) -> None:
        run.progress.stage, run.progress.fraction = name, fraction
        if watch is not None:
            watch(run.progress)

    for _ in range(ROUNDS):
        redone = run.run()
        failed = run.progress.failed
        done = {tile.index for tile in field.plan.tiling} - set(failed)
        if not done:
            raise RunFolderError(f"{field.path}: every tile failed; the first one: {next(iter(failed.values()))}")
        if already and not redone and (field.path / "result" / "summary.json").exists():
            return failed
        building = field.path / ".result.part"
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir()
        try:
            corrections, overlaps = Stitching(field, workers, done, building, stage).run()
            write_quality(field, building, failed, corrections, overlaps)
            field.run.replace_result(building)
        except BrokenTileError as error:
            field.store.discard(error.index)
            continue
        finally:
            shutil.rmtree(building, ignore_errors=True)  # there only if something went wrong
        return failed
    raise RunFolderError(f"{field.path}: tiles were found broken {ROUNDS} times; is the disk faulty?")
