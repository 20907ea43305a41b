"""Running a solver inside a run folder: metrics, checkpoints, results, and going on after an end of any kind."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fouriscope.acquisition import Acquisition, stream_below
from fouriscope.errors import FouriscopeError, InvalidInputError, RunFolderError
from fouriscope.optics import Geometry
from fouriscope.parallel import thread_count
from fouriscope.priors import as_prior
from fouriscope.run.aligned import aligned, with_alignment
from fouriscope.run.assemble import build_acquisition, build_solver, build_stop
from fouriscope.run.config import absolute_paths, parse_config
from fouriscope.run.folder import RunFolder
from fouriscope.run.judged import judge
from fouriscope.run.memory import return_free_memory, with_memory
from fouriscope.run.provenance import FrameDigest, file_checksums, provenance
from fouriscope.run.result import Result
from fouriscope.run.snapshot import Snapshot, SnapshotWriter, write_snapshot
from fouriscope.settings import RunConfig
from fouriscope.solvers import Callback, History, Record, Solver
from fouriscope.verdict import Verdict

CHECKPOINT_SECONDS = 10.0


def resolved(config: RunConfig, base: Path) -> dict[str, Any]:
    """The configuration with its defaults and absolute paths, as ``config.toml`` of a run folder holds it."""
    document = absolute_paths(config.model_dump(mode="json", exclude_none=True), base)
    document["prior"] = as_prior(config.prior).spec()
    if config.prior_absorption is not None:
        document["prior_absorption"] = as_prior(config.prior_absorption).spec()
    document["pupil"]["zernike"] = {str(index): value for index, value in config.pupil.zernike.items()}
    return document


def start_run(
    config: RunConfig,
    base: Path,
    folder: str | Path,
    *,
    callbacks: Sequence[Callback] = (),
    checkpoint_seconds: float | None = None,
    on_start: Callable[[Geometry], object] | None = None,
    tell: Callable[[str], object] | None = None,
) -> Result:
    """Reconstruct what ``config`` describes (its relative paths start at ``base``) into a new run folder.

    ``on_start`` is called once nothing stands in the way any more, before the first iteration; ``tell`` with each
    finding of the alignment.
    """
    RunFolder(folder).check_free()
    thread_count()  # raises where the environment asks for a number of threads that is none
    acquisition = build_acquisition(config, base)
    build_stop(config.stop)
    notes: tuple[str, ...] = ()
    nominal = acquisition.illumination.directions(acquisition.patch_center)
    build_solver(acquisition, with_flat_start(config))  # bad input is told before frames are read, and nothing is left
    if config.alignment.is_wanted:
        alignment = aligned(acquisition, config.alignment, tell)
        notes = alignment.notes
        config = parse_config(with_alignment(resolved(config, base), alignment), where="after the alignment")
        close_stream(acquisition)
        acquisition = build_acquisition(config, base)
        del alignment
    digest = FrameDigest(acquisition.frames.shape)
    acquisition.check_frames(digest.add)
    solver = build_solver(acquisition, config)
    origin = provenance(acquisition, input_files(config, base), digest=digest) | {
        "alignment": {"notes": list(notes), "nominal_na": nominal.tolist()}
    }
    run = RunFolder.create(folder, resolved(config, base), origin)
    return _solve(run, solver, acquisition, config, callbacks, checkpoint_seconds, on_start)


def with_flat_start(config: RunConfig) -> RunConfig:
    """The configuration with a flat start, for a solver whose start is not used."""
    return config.model_copy(update={"solver": config.solver.model_copy(update={"start": "flat"})})


def close_stream(acquisition: Acquisition) -> None:
    """Give back the memory of frames that were read from disk; they are read again if somebody asks."""
    stream = stream_below(acquisition.frames)
    if stream is not None:
        stream.close()


def input_files(config: RunConfig, base: Path) -> dict[str, Path]:
    """The files beside the frames that a configuration names, by their keys."""
    darks = (config.frames.dark,) if isinstance(config.frames.dark, str) else config.frames.dark or ()
    named = {
        **{f"frames.dark.{number}": path for number, path in enumerate(darks)},
        "frames.flat": config.frames.flat,
        "frames.mask": config.frames.mask,
        "frames.truth": config.frames.truth,
        "illumination.path": getattr(config.illumination, "path", None),
        "pupil.array": config.pupil.array,
        "prior.weights": config.prior.get("weights"),
        "prior_absorption.weights": (config.prior_absorption or {}).get("weights"),
    }
    return {key: base / path for key, path in named.items() if path is not None}


def resume_run(
    folder: str | Path,
    *,
    callbacks: Sequence[Callback] = (),
    iterations: int | None = None,
    checkpoint_seconds: float | None = None,
    memory: str | None = None,
) -> Result:
    """Go on from the last checkpoint, to the same numbers as a run that was never interrupted.

    ``iterations`` sets a new total, so that a finished run can be continued; ``config.toml`` is changed to say so.
    ``memory`` for frames stands in for that of the configuration, this time.
    """
    run = RunFolder.open(folder)
    if run.provenance().get("kind") == "field":
        raise RunFolderError(
            f"{run.path} is a whole field, which goes on with the command that began it: fouriscope field CONFIG "
            f"--out {run.path}"
        )
    if run.provenance().get("watch", {}).get("complete") is False:
        raise RunFolderError(
            f"{run.path} was watching frames arrive and was stopped before all were in it; it goes on with the command "
            f"that began it: fouriscope watch FOLDER --config CONFIG --out {run.path}"
        )
    thread_count()
    run.lock()
    try:
        return _resume(run, callbacks, iterations, checkpoint_seconds, memory)
    finally:
        run.close()


def _resume(
    run: RunFolder,
    callbacks: Sequence[Callback],
    iterations: int | None,
    checkpoint_seconds: float | None,
    memory: str | None,
) -> Result:
    document = run.config()
    if iterations is not None:
        document.setdefault("stop", {})["iterations"] = iterations
    if "frames" not in document:
        raise RunFolderError(
            f"{run.path} was saved from Python with data that lay in memory; only `fouriscope reconstruct` runs resume"
        )
    config = with_memory(parse_config(document, where=str(run.path / "config.toml")), memory)
    _check_same_files(run, config)
    acquisition = build_acquisition(config, run.path)
    digest = FrameDigest(acquisition.frames.shape)
    acquisition.check_frames(digest.add)
    _check_same_frames(run, digest)
    solver = build_solver(acquisition, config)
    done = run.restore(solver.load_state)
    if iterations is not None and iterations < done:
        raise InvalidInputError(f"{run.path} has {done} iterations already; a new total must not be less")
    solver.history = run.rewind(done)
    if iterations is not None:
        run.write_config(document)
    run.write_status("running")
    return _solve(run, solver, acquisition, config, callbacks, checkpoint_seconds)


def _check_same_files(run: RunFolder, config: RunConfig) -> None:
    known = run.provenance().get("input", {})
    files = input_files(config, run.path)
    for key, now in file_checksums(files).items():
        if known.get("files", {}).get(key) != now:
            raise RunFolderError(
                f"{files[key]} ({key}) is not the file that {run.path} was started with; "
                "put the old one back, or start a new run"
            )


def _check_same_frames(run: RunFolder, digest: FrameDigest) -> None:
    before, now = run.provenance().get("input", {}).get("checksum"), digest.checksum
    if before != now:
        raise RunFolderError(
            f"the frames are not those that {run.path} was started with (checksum {now[:19]}…, was "
            f"{str(before)[:19]}…); put the old ones back, or start a new run"
        )


def _solve(
    run: RunFolder,
    solver: Solver,
    acquisition: Acquisition,
    config: RunConfig,
    callbacks: Sequence[Callback],
    checkpoint_seconds: float | None,
    on_start: Callable[[Geometry], object] | None = None,
) -> Result:
    def solve(keep: Callback) -> Solver:
        if on_start is not None:
            on_start(solver.fidelity.model.geometry)
        solver.solve(build_stop(config.stop), [keep, *callbacks])
        return solver

    asked = config.verdict.enabled
    return solve_into(run, solve, checkpoint_seconds, (lambda: judge(solver, acquisition, config)) if asked else None)


def solve_into(
    run: RunFolder,
    solve: Callable[[Callback], Solver],
    checkpoint_seconds: float | None = None,
    judged: Callable[[], Verdict] | None = None,
) -> Result:
    """Let ``solve(keep)`` run a solver and return it when it has stopped; ``keep`` must see every iteration.

    Metrics and checkpoints are written on the way, the result at the end, and how it ended, however that was. A run
    that came to its end is ``judged``, if that is given.
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

    try:
        solver = solve(keep)
        history: History = solver.history
        reason = solver.stop_reason or ""
        if len(history):
            with _writing(run):
                run.write_checkpoint(solver.state(), len(history))
                picture.now(solver)
        verdict = judged() if judged is not None and reason != "interrupted" else None
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
            run.write_status("interrupted" if reason == "interrupted" else "finished", reason)
            run.close()
    except KeyboardInterrupt:
        _note(run, "interrupted", "in the middle of an iteration")
        raise
    except FouriscopeError as error:
        _note(run, "failed", str(error))
        raise
    except Exception as error:
        _note(run, "failed", f"{type(error).__name__}: {error}")
        raise
    finally:
        with contextlib.suppress(OSError):
            run.close()
    return result


@contextlib.contextmanager
def _writing(run: RunFolder) -> Iterator[None]:
    """Whatever the system refuses inside the block is a failure to write the run folder."""
    try:
        yield
    except OSError as error:
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        raise RunFolderError(
            f"{run.path}: cannot be written ({cause.strerror or cause}); make room, then: fouriscope resume {run.path}"
        ) from error


def _note(run: RunFolder, state: str, reason: str) -> None:
    with contextlib.suppress(OSError):  # the error itself matters more than a note of it
        run.write_status(state, reason)
