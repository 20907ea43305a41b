"""A solver inside a run folder: metrics and checkpoints on the way, the result at the end, however it ends."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from fouriscope.errors import RunFolderError, not_written
from fouriscope.freed_memory import return_free_memory
from fouriscope.run.folder import RunFolder
from fouriscope.run.result import Result
from fouriscope.run.snapshot import Snapshot, SnapshotWriter, write_snapshot
from fouriscope.solvers import INTERRUPTED, Callback, History, Record, Solver
from fouriscope.verdict import Verdict

CHECKPOINT_SECONDS = 10.0


def solve_into(
    run: RunFolder,
    solve: Callable[[Callback], Solver],
    checkpoint_seconds: float | None = None,
    judged: Callable[[], Verdict | None] | None = None,
) -> Result:
    """Let ``solve(keep)`` run a solver and return it when it has stopped; ``keep`` must see every iteration.

    Metrics and checkpoints are written on the way, the result at the end, and the reason for the end in any case. A run
    that reached its end is ``judged``, if that is given.
    """
    interval = CHECKPOINT_SECONDS if checkpoint_seconds is None else checkpoint_seconds
    saved = time.monotonic()
    picture = SnapshotWriter(lambda current: write_snapshot(run.path, Snapshot.of(current)))

    def keep(current: Solver, record: Record) -> None:
        nonlocal saved
        with _writing(run):
            run.append(record)
            picture(current, record)
            if time.monotonic() - saved >= interval:
                run.write_checkpoint(current.state(), record.iteration)
                saved = time.monotonic()

    with run.ending("in the middle of an iteration"):
        solver = solve(keep)
        history: History = solver.history
        reason = solver.stop_reason or ""
        if len(history):
            with _writing(run):
                run.write_checkpoint(solver.state(), len(history))
                picture.now(solver)
        verdict = judged() if judged is not None and reason != INTERRUPTED else None
        solver.fidelity.release_memory()  # pictures need the room
        return_free_memory()
        result = Result.of(
            *(solver.fidelity.model, solver.x, history, reason, run.config(), run.provenance()),
            pupil=solver.recovered_pupil,
            nominal_na=run.provenance().get("alignment", {}).get("nominal_na"),
            verdict=verdict,
        )
        with _writing(run):
            result.write_into(run)
            run.write_status("interrupted" if reason == INTERRUPTED else "finished", reason)
            run.close()
    return result


@contextlib.contextmanager
def _writing(run: RunFolder) -> Iterator[None]:
    """Inside the block, an error of the system means that the run folder could not be written."""
    try:
        yield
    except OSError as error:
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        raise RunFolderError(f"{not_written(run.path, cause)}, then: fouriscope resume {run.path}") from error
