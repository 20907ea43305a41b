"""The one process that knows all tiles: which may begin, which are done, which must be tried again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from fouriscope.errors import RunFolderError
from fouriscope.field.dispatch import Dispatcher, Workers, run_all
from fouriscope.field.folder import FieldFolder
from fouriscope.field.thumbnail import Thumbnail
from fouriscope.field.tile_task import ATTEMPTS, Outcome, reconstruct_tile
from fouriscope.field.tiling import Tile

CHECKED_TOGETHER = 16
NOTED_SECONDS = 2.0


@dataclass
class FieldProgress:
    """The progress of a field.

    Attributes
    ----------
    total, done
        Number of tiles, and of those that are done.
    thumbnail
        A small picture of all tiles that are done.
    stage
        What is being done; "tiles" at first.
    failed
        The tiles that failed, with the reason.
    retries
        Attempts beyond the first of each tile.
    seconds_left
        Expected time until the end; NaN while it is not known.
    fraction
        Share of the work that is done.
    workers
        How many tiles can be worked on at once.
    """

    total: int
    thumbnail: Thumbnail
    stage: str = "tiles"
    done: int = 0
    failed: dict[int, str] = field(default_factory=dict)
    retries: int = 0
    seconds_left: float = math.nan
    fraction: float = 0.0
    workers: int = 0


Watch = Callable[[FieldProgress], object]


class TileRun:
    """Reconstructs the tiles of a field that are not done.

    A tile begins when the neighbours from which its pupil starts are done or given up. Its result depends on nothing
    else: not on the workers, nor on the order in which they end.
    """

    def __init__(
        self,
        field: FieldFolder,
        workers: Workers,
        *,
        memory: int | None = None,
        attempts: int = ATTEMPTS,
        watch: Watch | None = None,
    ) -> None:
        self.field, self.workers = field, workers
        self.memory, self.attempts, self.watch = memory, attempts, watch
        self.progress = FieldProgress(len(field.plan.tiling), Thumbnail(field.plan))
        self._dispatcher = Dispatcher(workers, idle=self._show)
        self._settled: set[int] = set()
        self._handed_out: set[int] = set()
        self._dependants: dict[int, list[Tile]] = {}
        for tile in field.plan.tiling:
            for source in field.plan.tiling.pupil_sources(tile):
                self._dependants.setdefault(source.index, []).append(tile)
        self._noted = -math.inf

    def run(self) -> int:
        """Until every tile is done or has failed; returns how many were done now.

        What failed, and why, is in ``progress.failed``.
        """
        self.progress.stage, self.progress.failed, self.progress.retries = "tiles", {}, 0
        self.field.store.forget_attempts()
        self._settled = self._whole_tiles()
        for index in sorted(self._settled):
            self._draw(index)
        self.progress.done, already = len(self._settled), len(self._settled)
        began = time.monotonic()
        try:
            self._hand_out(self.field.plan.tiling)
            self._show(force=True)
            for ended in self._dispatcher:
                outcome = ended.value
                if ended.error is not None:
                    reason = f"{type(ended.error).__name__}: {ended.error}"
                    outcome = Outcome(int(str(ended.task.name)), "failed", " ".join(reason.split()))
                self._take_in(outcome)
                changed = (outcome.tile, outcome.broken) if outcome.broken >= 0 else (outcome.tile,)
                for index in changed:
                    self._hand_out([self.field.plan.tiling[index], *self._dependants.get(index, ())])
                here = self.progress.done - already
                left = self.progress.total - self.progress.done - len(self.progress.failed)
                self.progress.seconds_left = (time.monotonic() - began) * left / here if here else math.nan
                self._show()
        finally:
            self._dispatcher.cancel()
            self._show(force=True)
        return self.progress.done - already

    def _whole_tiles(self) -> set[int]:
        """The tiles that an earlier run committed and that have not changed since."""
        found = sorted(self.field.done())
        groups = [found[start : start + CHECKED_TOGETHER] for start in range(0, len(found), CHECKED_TOGETHER)]
        tasks = [(number, whole_tiles, (str(self.field.path), group)) for number, group in enumerate(groups)]
        whole = {index for _, indices in run_all(self.workers, tasks) for index in indices}
        for index in set(found) - whole:
            self.field.store.discard(index)
        return whole

    def _hand_out(self, tiles: Iterable[Tile]) -> None:
        for tile in tiles:
            known = tile.index in self._settled or tile.index in self._handed_out
            if not known and self._may_begin(tile):
                self._handed_out.add(tile.index)
                self._dispatcher.add(
                    tile.index, reconstruct_tile, str(self.field.path), tile.index, self.memory, self.attempts
                )

    def _may_begin(self, tile: Tile) -> bool:
        return all(source.index in self._settled for source in self.field.plan.tiling.pupil_sources(tile))

    def _take_in(self, outcome: Outcome) -> None:
        if outcome.state == "stop":
            raise RunFolderError(outcome.reason)
        self._handed_out.discard(outcome.tile)
        if outcome.state == "done":
            self._settled.add(outcome.tile)
            self.progress.done += 1
            self._draw(outcome.tile)
            self._redo_dependants(outcome.tile)
        elif outcome.state == "failed":
            self._settled.add(outcome.tile)
            self.progress.failed[outcome.tile] = outcome.reason
        if outcome.state == "blocked" and outcome.broken in self._settled:
            self._take_back(outcome.broken)

    def _redo_dependants(self, index: int) -> None:
        """Tiles that had to do without the pupil of ``index``, which an earlier run had given up, are done again."""
        for dependant in self._dependants.get(index, ()):
            record = self.field.store.record(dependant.index) if dependant.index in self._settled else None
            if record is not None and index not in record.pupil_sources:
                self._take_back(dependant.index)

    def _take_back(self, index: int) -> None:
        self.field.store.discard(index)
        self._settled.discard(index)
        self.progress.done -= 1

    def _draw(self, index: int) -> None:
        record = self.field.store.record(index)
        if record is not None:
            self.progress.retries += record.attempts - 1
            self.progress.thumbnail.add(record)

    def _show(self, *, force: bool = False) -> None:
        progress = self.progress
        progress.workers = self.workers.count
        progress.fraction = (progress.done + len(progress.failed)) / progress.total
        if force or time.monotonic() - self._noted >= NOTED_SECONDS:
            self._noted = time.monotonic()
            progress.thumbnail.save(self.field.path / "thumbnail.png")
        if self.watch is not None:
            self.watch(progress)


def whole_tiles(folder: str, indices: list[int]) -> list[int]:
    """A task: the committed tiles that are whole and belong to the present request."""
    field = FieldFolder.open(Path(folder))
    tiling = field.plan.tiling
    return [index for index in indices if field.store.is_done(index, field.request(tiling[index]))]
