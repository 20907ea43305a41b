"""`fouriscope reconstruct` and `fouriscope resume`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from fouriscope.cli.as_json import AsJson, consoles, print_json
from fouriscope.cli.last_resort import keep_details_in
from fouriscope.cli.options import INTERRUPTED, CheckpointSeconds, Config, Device, EngineOf, Memory, Quiet
from fouriscope.cli.progress import duration, graceful_interrupt, shown_progress, snr_line
from fouriscope.errors import RunFolderError
from fouriscope.optics import Geometry, report_geometry
from fouriscope.run import Result, RunFolder, load_config, resume_run, start_run
from fouriscope.run.assemble import build_stop
from fouriscope.run.config import parse_config
from fouriscope.run.engine import with_engine
from fouriscope.run.memory import with_memory
from fouriscope.settings import Stop
from fouriscope.solvers import Callback


def run_reconstruction(
    config: Config,
    out: Annotated[
        Path | None, typer.Option(help="The run folder. Default: the folder run beside the configuration.")
    ] = None,
    checkpoint_seconds: CheckpointSeconds = None,
    memory: Memory = None,
    engine: EngineOf = None,
    device: Device = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> int:
    """Reconstruct an image from the frames that a configuration describes."""
    (console, progress), base = consoles(quiet, as_json), config.parent
    described = with_memory(with_engine(load_config(config), engine, device), memory)
    folder = out if out is not None else base / "run"

    def warn(geometry: Geometry) -> None:
        for warning in report_geometry(geometry).warnings:
            console.print(f"warning: {escape(warning)}")

    return _watched(
        folder,
        described.stop,
        lambda callbacks, stage: start_run(
            described,
            base,
            folder,
            callbacks=callbacks,
            checkpoint_seconds=checkpoint_seconds,
            on_start=None if console.quiet else warn,
            tell=lambda line: console.print(escape(line)),
            stage=stage,
        ),
        console,
        progress,
        as_json="reconstruct" if as_json else None,
    )


def run_resumption(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    iterations: Annotated[
        int | None, typer.Option(min=1, help="New total number of iterations, to continue a finished run.")
    ] = None,
    checkpoint_seconds: CheckpointSeconds = None,
    memory: Memory = None,
    engine: EngineOf = None,
    device: Device = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> int:
    """Continue an interrupted run from its last checkpoint."""
    document = RunFolder.open(run).config()
    if "frames" not in document:
        raise RunFolderError(f"{run} was saved from Python; only `fouriscope reconstruct` runs can be resumed")
    stop = parse_config(document, where=str(run / "config.toml"), is_record=True).stop
    if iterations is not None:
        stop = stop.model_copy(update={"iterations": iterations, "settled": False})
    return _watched(
        run,
        stop,
        lambda callbacks, stage: resume_run(
            run,
            callbacks=callbacks,
            iterations=iterations,
            checkpoint_seconds=checkpoint_seconds,
            memory=memory,
            engine=engine,
            device=device,
            stage=stage,
        ),
        *consoles(quiet, as_json),
        as_json="resume" if as_json else None,
    )


def _watched(
    folder: Path,
    stop: Stop,
    run: Callable[[list[Callback], Callable[[str], object]], Result],
    console: Console,
    progress_console: Console,
    *,
    as_json: str | None,
) -> int:
    """Run, with its progress, and say what came of it, ``as_json`` of the command of that name; the exit code."""
    keep_details_in(folder)
    began = time.monotonic()
    with (
        graceful_interrupt() as interrupt,
        shown_progress(progress_console, build_stop(stop), "reconstructing") as progress,
    ):
        result = run([progress, interrupt], progress.stage)
    last, seconds = result.history.last, time.monotonic() - began
    if as_json is not None:
        print_json(as_json, _summary(result, folder, seconds))
        return INTERRUPTED if result.stop_reason == "interrupted" else 0
    console.print(
        f"{result.phase.shape[0]} × {result.phase.shape[1]} pixels of {result.pixel[0] * 1e6:.4g} µm after "
        f"{last.iteration} iterations, {last.frames_seen} frames, {duration(seconds)}, "
        f"{duration(last.seconds)} of it in iterations (stopped: {result.stop_reason})"
    )
    if "snr" in last.as_dict():
        console.print(snr_line(last))
    if result.stop_reason == "interrupted":
        console.print(f"interrupted; to continue: fouriscope resume {escape(str(folder))}")
        return INTERRUPTED
    written = sorted(path.name for path in (folder / "result").iterdir())
    console.print(f"{escape(str(folder))}/result: {', '.join(written)}")
    if result.verdict is not None:
        console.print(escape(result.verdict.sentence))
        for warning in result.verdict.warnings:
            console.print(f"warning: {escape(warning)}")
    return 0


def _summary(result: Result, folder: Path, seconds: float) -> dict[str, Any]:
    """What came of a run, for scripts."""
    last, geometry = result.history.last, result.geometry
    return {
        "run": folder,
        "files": sorted(path.name for path in (folder / "result").iterdir()),
        "shape": result.phase.shape,
        "pixel_size_m": result.pixel,
        "iterations": last.iteration,
        "frames_seen": last.frames_seen,
        "seconds": seconds,
        "seconds_in_iterations": last.seconds,
        "stopped": result.stop_reason,
        "interrupted": result.stop_reason == "interrupted",
        "misfit": last.misfit,
        "snr_db": last.snr,
        "snr_raw_db": last.snr_raw,
        "na": None if geometry is None else geometry.objective_na,
        "alignment": result.provenance.get("alignment", {}).get("notes", []),
        "verdict": None if result.verdict is None else result.verdict.as_json(),
    }
