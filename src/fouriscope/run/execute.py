"""Running a solver inside a run folder: metrics, checkpoints, results, and going on after an end of any kind."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fouriscope.acquisition import Acquisition
from fouriscope.errors import FouriscopeError, InvalidInputError, RunFolderError
from fouriscope.priors import as_prior
from fouriscope.run.assemble import build_acquisition, build_solver, build_stop
from fouriscope.run.config import RunConfig, parse_config
from fouriscope.run.folder import RunFolder
from fouriscope.run.provenance import checksum, provenance
from fouriscope.run.result import Result
from fouriscope.solvers import Callback, History, PnP, Record, Solver

CHECKPOINT_SECONDS = 10.0


def resolved(config: RunConfig, base: Path) -> dict[str, Any]:
    """The configuration with its defaults and absolute paths, as ``config.toml`` of a run folder holds it."""
    document: dict[str, Any] = config.model_dump(mode="json", exclude_none=True)
    for key in ("path", "mask", "truth"):
        if key in document["frames"]:
            document["frames"][key] = str((base / document["frames"][key]).resolve())
    if "array" in document["pupil"]:
        document["pupil"]["array"] = str((base / document["pupil"]["array"]).resolve())
    document["prior"] = as_prior(config.prior).spec()
    document["pupil"]["zernike"] = {str(index): value for index, value in config.pupil.zernike.items()}
    return document


def start_run(
    config: RunConfig,
    base: Path,
    folder: str | Path,
    *,
    callbacks: Sequence[Callback] = (),
    checkpoint_seconds: float | None = None,
) -> Result:
    """Reconstruct what ``config`` describes (its relative paths start at ``base``) into a new run folder."""
    RunFolder(folder).check_free()
    acquisition = build_acquisition(config, base)
    solver = build_solver(acquisition, config)  # before the folder exists: bad input must leave nothing behind
    build_stop(config.stop)
    run = RunFolder.create(folder, resolved(config, base), provenance(acquisition))
    return _solve(run, solver, config, callbacks, checkpoint_seconds)


def resume_run(
    folder: str | Path,
    *,
    callbacks: Sequence[Callback] = (),
    iterations: int | None = None,
    checkpoint_seconds: float | None = None,
) -> Result:
    """Go on from the last checkpoint, to the same numbers as a run that was never interrupted.

    ``iterations`` sets a new total, so that a finished run can be continued; ``config.toml`` is changed to say so.
    """
    run = RunFolder.open(folder)
    document = run.config()
    if iterations is not None:
        document.setdefault("stop", {})["iterations"] = iterations
    if "frames" not in document:
        raise RunFolderError(
            f"{run.path} was saved from Python with data that lay in memory; only `fouriscope reconstruct` runs resume"
        )
    config = parse_config(document, where=str(run.path / "config.toml"))
    acquisition = build_acquisition(config, run.path)
    _check_same_input(run, acquisition)
    solver = build_solver(acquisition, config)
    checkpoint = run.read_checkpoint()
    if checkpoint is None:
        run.rewind(0)
    else:
        state, done = checkpoint
        if iterations is not None and iterations < done:
            raise InvalidInputError(f"{run.path} has {done} iterations already; a new total must not be less")
        try:
            solver.load_state(state)
        except KeyError as error:
            raise RunFolderError(
                f"{run.path / 'checkpoint.npz'}: {error} is missing, so it was written by another version or with "
                "another configuration; delete it to start this run from the beginning"
            ) from error
        solver.history = run.rewind(done)
    if iterations is not None:
        run.write_config(document)
    run.write_status("running")
    return _solve(run, solver, config, callbacks, checkpoint_seconds)


def _check_same_input(run: RunFolder, acquisition: Acquisition) -> None:
    before = run.provenance().get("input", {}).get("checksum")
    now = checksum(acquisition.frames)
    if before != now:
        raise RunFolderError(
            f"the frames are not those that {run.path} was started with (checksum {now[:19]}…, was {str(before)[:19]}…)"
        )


def _solve(
    run: RunFolder, solver: PnP, config: RunConfig, callbacks: Sequence[Callback], checkpoint_seconds: float | None
) -> Result:
    interval = CHECKPOINT_SECONDS if checkpoint_seconds is None else checkpoint_seconds
    saved = time.monotonic()

    def keep(current: Solver, record: Record) -> None:
        nonlocal saved
        run.append(record)
        if time.monotonic() - saved >= interval:
            run.write_checkpoint(current.state(), record.iteration)
            saved = time.monotonic()

    try:
        history: History = solver.solve(build_stop(config.stop), [keep, *callbacks])
        reason = solver.stop_reason or ""
        if len(history):
            run.write_checkpoint(solver.state(), len(history))
        result = Result.of(solver.fidelity.model, solver.x, history, reason, run.config(), run.provenance())
        result.write_into(run)
        run.write_status("interrupted" if reason == "interrupted" else "finished", reason)
        run.close()
    except OSError as error:
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        raise RunFolderError(
            f"{run.path}: cannot be written ({cause.strerror or cause}); make room, then: fouriscope resume {run.path}"
        ) from error
    except FouriscopeError as error:
        with contextlib.suppress(OSError):  # the error itself matters more than a note of it
            run.write_status("failed", str(error))
        raise
    finally:
        with contextlib.suppress(OSError):
            run.close()
    return result
