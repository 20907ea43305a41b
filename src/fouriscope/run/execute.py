"""Runs: started from a description, or continued after any kind of end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fouriscope.acquisition import Acquisition, stream_below
from fouriscope.acquisition.digest import check_unchanged
from fouriscope.errors import FramesChangedError, InvalidInputError, RunFolderError
from fouriscope.optics import Geometry
from fouriscope.parallel import thread_count
from fouriscope.run.aligned import aligned, with_alignment
from fouriscope.run.assemble import beginning_of, build_acquisition, build_solver, build_stop
from fouriscope.run.config import parse_config
from fouriscope.run.described import Described
from fouriscope.run.doubt import AS_A_WAVE, BEGINS_AGAIN, Doubt, as_a_wave, may_be_doubted
from fouriscope.run.engine import with_engine
from fouriscope.run.first_look import why_no_phase
from fouriscope.run.folder import RunFolder
from fouriscope.run.inputs import check_same_files, check_same_frames, input_files, resolved
from fouriscope.run.judged import judge
from fouriscope.run.memory import with_memory
from fouriscope.run.provenance import FrameDigest, provenance
from fouriscope.run.rehearsal import rehearsed
from fouriscope.run.result import Result
from fouriscope.run.solving import solve_into
from fouriscope.settings import RunConfig
from fouriscope.solvers import Callback, Solver
from fouriscope.verdict import Verdict


def ignore_stage(name: str) -> None:
    """Shows no stage."""


def start_run(
    config: RunConfig,
    base: Path,
    folder: str | Path,
    *,
    callbacks: Sequence[Callback] = (),
    checkpoint_seconds: float | None = None,
    on_start: Callable[[Geometry], object] | None = None,
    tell: Callable[[str], object] | None = None,
    stage: Callable[[str], object] = ignore_stage,
) -> Result:
    """Reconstruct what a configuration describes into a new run folder.

    Parameters
    ----------
    config, base
        The configuration, and where its relative paths start.
    folder
        The run folder, which must be new or empty.
    callbacks
        Called after each iteration. One that returns True, or a reason, ends the run.
    checkpoint_seconds
        Time between checkpoints; with 0, every iteration writes one.
    on_start
        Called after all checks, before the first iteration.
    tell
        Called with each finding of the alignment and of the solver.
    stage
        Called with what is being done.
    """
    RunFolder(folder).check_free()
    stage("reading the description")
    acquisition = ready_acquisition(config, base)
    notes: tuple[str, ...] = ()
    nominal = acquisition.illumination.directions(acquisition.patch_center)
    if config.alignment.is_wanted:
        stage("aligning the microscope")
        alignment = aligned(acquisition, config.alignment, tell, stage)
        notes = alignment.notes
        config = parse_config(with_alignment(resolved(config, base), alignment), where="after the alignment")
        acquisition = Described(config, base).seen_anew(alignment.acquisition)
    stage("reading the frames")
    digest = FrameDigest(acquisition.frames.shape)
    acquisition.check_frames(digest.add)
    otherwise = unless_a_phase(config, acquisition, base)
    if otherwise is not None and (reason := why_no_phase(acquisition, config.engine)) is not None:
        config, otherwise = parse_config(otherwise, where="a wave", is_record=True), None
        (stage if tell is None else tell)(f"{reason}: {AS_A_WAVE}")
    config = rehearsed(acquisition, config, tell=tell, stage=stage)
    solver = build_solver(acquisition, config)
    origin = provenance(acquisition, input_files(config, base), digest=digest) | {
        "alignment": {"notes": list(notes), "nominal_na": nominal.tolist()},
        **({} if otherwise is None else {"unless_a_phase": otherwise}),
    }
    run = RunFolder.create(folder, resolved(config, base), origin)
    return _solve(run, solver, acquisition, digest, config, callbacks, checkpoint_seconds, stage, on_start, tell)


def unless_a_phase(config: RunConfig, acquisition: Acquisition, base: Path) -> dict[str, Any] | None:
    """The configuration with which a run begins again if a phase does not explain its frames.

    None if the file says what the object is, or how it is found: that is used. :func:`fouriscope.reconstruct` has the
    same rule for its arguments.
    """
    if not may_be_doubted(config):
        return None
    said = config.model_dump(mode="json", exclude_unset=True)
    return resolved(parse_config(as_a_wave(said, acquisition.truth), where="a wave"), base)


def ready_acquisition(config: RunConfig, base: Path) -> Acquisition:
    """The acquisition of a run after all checks except those of its frames: bad input is reported before they are read,
    and nothing is left behind."""
    thread_count()  # raises where the environment asks for a number of threads that is none
    acquisition = build_acquisition(config, base)
    build_stop(config.stop)
    beginning_of(config, None)
    build_solver(acquisition, config)
    return acquisition


def check_ready(config: RunConfig, base: Path) -> None:
    """Raise what a run of ``config`` would raise before its first iteration; its frames are read, not aligned."""
    acquisition = ready_acquisition(config, base)
    try:
        acquisition.check_frames()
    finally:
        close_stream(acquisition)


def close_stream(acquisition: Acquisition) -> None:
    """Give back the memory of frames that were read from disk; they are read again if needed."""
    stream = stream_below(acquisition.frames)
    if stream is not None:
        stream.close()


def resume_run(
    folder: str | Path,
    *,
    callbacks: Sequence[Callback] = (),
    iterations: int | None = None,
    checkpoint_seconds: float | None = None,
    memory: str | None = None,
    engine: str | None = None,
    device: str | None = None,
    stage: Callable[[str], object] = ignore_stage,
) -> Result:
    """Continue from the last checkpoint, to the same numbers as a run that was never interrupted.

    Parameters
    ----------
    folder
        The run folder.
    callbacks
        Called after each iteration. One that returns True, or a reason, ends the run.
    iterations
        A new total, so that a finished run can be continued. ``config.toml`` is changed accordingly.
    checkpoint_seconds
        Time between checkpoints; with 0, every iteration writes one.
    memory, engine, device
        Used this time instead of those of the configuration. Another engine continues from the same state, with other
        last digits (docs/engines.md).
    stage
        Called with what is being done.
    """
    run = RunFolder.open(folder)
    if run.provenance().get("kind") == "field":
        raise RunFolderError(
            f"{run.path} is a whole field; continue it with the command that began it: fouriscope field CONFIG "
            f"--out {run.path}"
        )
    if run.provenance().get("kind") == "colour":
        raise RunFolderError(
            f"{run.path} has three channels; continue them with the command that began them: fouriscope colour CONFIG "
            f"--out {run.path}"
        )
    if run.provenance().get("watch", {}).get("complete") is False:
        raise RunFolderError(
            f"{run.path} is a watch that was stopped before all frames had arrived; continue it with the command that "
            f"began it: fouriscope watch FOLDER --config CONFIG --out {run.path}"
        )
    thread_count()
    run.lock()
    try:
        return _resume(run, callbacks, iterations, checkpoint_seconds, memory, (engine, device), stage)
    finally:
        run.close()


def _resume(
    run: RunFolder,
    callbacks: Sequence[Callback],
    iterations: int | None,
    checkpoint_seconds: float | None,
    memory: str | None,
    engine: tuple[str | None, str | None],
    stage: Callable[[str], object],
) -> Result:
    document = run.config()
    if iterations is not None:
        document["stop"] = document.get("stop", {}) | {"iterations": iterations, "settled": False}
    if "frames" not in document:
        raise RunFolderError(
            f"{run.path} was saved from Python with data in memory; only `fouriscope reconstruct` runs can be resumed"
        )
    described = parse_config(document, where=str(run.path / "config.toml"), is_record=True)
    config = with_memory(with_engine(described, *engine), memory)
    check_same_files(run, config)
    stage("reading the frames")
    acquisition = build_acquisition(config, run.path)
    digest = FrameDigest(acquisition.frames.shape)
    acquisition.check_frames(digest.add)
    check_same_frames(run, digest)
    solver = build_solver(acquisition, config)
    done = run.restore(solver.load_state)
    if iterations is not None and iterations < done:
        raise InvalidInputError(f"{run.path} already has {done} iterations; give a new total of at least as many")
    solver.history = run.rewind(done)
    if iterations is not None:
        run.write_config(document)
    run.write_status("running")
    return _solve(run, solver, acquisition, digest, config, callbacks, checkpoint_seconds, stage)


def _solve(
    run: RunFolder,
    solver: Solver,
    acquisition: Acquisition,
    digest: FrameDigest,
    config: RunConfig,
    callbacks: Sequence[Callback],
    checkpoint_seconds: float | None,
    stage: Callable[[str], object],
    on_start: Callable[[Geometry], object] | None = None,
    tell: Callable[[str], object] | None = None,
) -> Result:
    otherwise = run.provenance().get("unless_a_phase") if config.object.model == "phase" else None
    doubt = None if otherwise is None else Doubt()

    def solve(keep: Callback) -> Solver:
        nonlocal solver, config
        if on_start is not None:
            on_start(solver.fidelity.model.geometry)
        stage("starting the solver (on a new machine it is compiled first)")
        solver.begin()
        if tell is not None:
            for finding in solver.findings:
                tell(finding)
        rule = build_stop(config.stop)
        solver.solve(rule, [keep, *callbacks] if doubt is None else [keep, *callbacks, doubt])
        if otherwise is not None and doubt is not None and doubt.asks_again(solver, rule):
            stage(BEGINS_AGAIN)
            if tell is not None:
                tell(BEGINS_AGAIN)
            config = parse_config(otherwise, where="a wave", is_record=True)
            solver = build_solver(acquisition, config)
            run.begin_again(otherwise)
            solver.solve(build_stop(config.stop), [keep, *callbacks])
        return solver

    def judged() -> Verdict | None:
        stage("checking the result against frames that it has not seen")
        verdict = judge(solver, acquisition, config) if config.verdict.enabled else None
        try:
            check_unchanged(acquisition.frames, digest.checksum)
        except FramesChangedError:
            run.forget_checkpoint()  # it is unknown which iterations saw other frames
            raise
        stage("writing the result")
        return verdict

    return solve_into(run, solve, checkpoint_seconds, judged)
