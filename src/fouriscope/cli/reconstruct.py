"""`fouriscope reconstruct` and `fouriscope resume`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from fouriscope.cli.progress import graceful_interrupt, shown_progress
from fouriscope.errors import RunFolderError
from fouriscope.optics import Geometry, report_geometry
from fouriscope.run import Result, RunFolder, load_config, resume_run, start_run
from fouriscope.run.assemble import build_stop
from fouriscope.run.config import parse_config
from fouriscope.run.memory import with_memory
from fouriscope.settings import Stop
from fouriscope.solvers import Callback

INTERRUPTED = 130


def run_reconstruction(
    config_path: Path,
    out: Path | None,
    checkpoint_seconds: float | None,
    memory: str | None = None,
    *,
    console: Console,
    quiet: bool,
) -> int:
    """Reconstruct into ``out``; returns the exit code."""
    config = with_memory(load_config(config_path), memory)
    folder = out if out is not None else config_path.parent / "run"

    def warn(geometry: Geometry) -> None:
        for warning in report_geometry(geometry).warnings:
            console.print(f"warning: {escape(warning)}")

    return _watched(
        folder,
        config.stop,
        lambda callbacks: start_run(
            config,
            config_path.parent,
            folder,
            callbacks=callbacks,
            checkpoint_seconds=checkpoint_seconds,
            on_start=None if quiet else warn,
            tell=lambda line: console.print(escape(line)),
        ),
        console=console,
        quiet=quiet,
    )


def run_resumption(
    folder: Path,
    iterations: int | None,
    checkpoint_seconds: float | None,
    memory: str | None = None,
    *,
    console: Console,
    quiet: bool,
) -> int:
    """Continue the run in ``folder``; returns the exit code."""
    document = RunFolder.open(folder).config()
    if "frames" not in document:
        raise RunFolderError(f"{folder} was saved from Python; only `fouriscope reconstruct` runs can be resumed")
    stop = parse_config(document, where=str(folder / "config.toml")).stop
    if iterations is not None:
        stop = stop.model_copy(update={"iterations": iterations})
    return _watched(
        folder,
        stop,
        lambda callbacks: resume_run(
            folder, callbacks=callbacks, iterations=iterations, checkpoint_seconds=checkpoint_seconds, memory=memory
        ),
        console=console,
        quiet=quiet,
    )


def _watched(
    folder: Path, stop: Stop, run: Callable[[list[Callback]], Result], *, console: Console, quiet: bool
) -> int:
    with (
        graceful_interrupt() as interrupt,
        shown_progress(console, build_stop(stop), "reconstructing", quiet=quiet) as progress,
    ):
        result = run([*progress, interrupt])
    last = result.history.last
    console.print(
        f"{result.phase.shape[0]} × {result.phase.shape[1]} pixels of {result.pixel[0] * 1e6:.4g} µm after "
        f"{last.iteration} iterations, {last.frames_seen} frames, {last.seconds:.1f} s (stopped: {result.stop_reason})"
    )
    if "snr" in last.as_dict():
        console.print(f"SNR {last.snr:.2f} dB without the constant that cannot be observed, {last.snr_raw:.2f} dB raw")
    if result.stop_reason == "interrupted":
        console.print(f"interrupted; go on with: fouriscope resume {escape(str(folder))}")
        return INTERRUPTED
    written = sorted(path.name for path in (folder / "result").iterdir())
    console.print(f"{escape(str(folder))}/result: {', '.join(written)}")
    if result.verdict is not None:
        console.print(escape(result.verdict.sentence))
        for warning in result.verdict.warnings:
            console.print(f"warning: {escape(warning)}")
    return 0
