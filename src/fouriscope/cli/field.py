"""`fouriscope field`: the whole field of view, in tiles, on this machine's cores or on a Dask cluster."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape

from fouriscope.acquisition.byte_sizes import format_bytes, parse_bytes
from fouriscope.cli.field_progress import shown_field
from fouriscope.cli.progress import duration, terminated_as_interrupted
from fouriscope.errors import InvalidInputError
from fouriscope.field.cluster import connected
from fouriscope.field.planner import Forecast, forecast
from fouriscope.field.reconstruct import FieldResult, reconstruct_tiles
from fouriscope.run import load_config

INTERRUPTED = 130
SHOWN_FAILURES = 5


def run_field(
    config_path: Path,
    out: Path | None,
    *,
    scheduler: str | None,
    workers: int | None,
    memory: str | None,
    tile: int | None,
    overlap: float | None,
    attempts: int,
    console: Console,
    quiet: bool,
) -> int:
    """Reconstruct the field into ``out``, or go on with it; returns the exit code."""
    config = load_config(config_path)
    folder = out if out is not None else config_path.parent / "field"
    if memory is not None:
        parse_bytes(memory)
    try:
        with (
            terminated_as_interrupted(),
            connected(scheduler, workers=workers, memory=memory) as client,
            shown_field(console, quiet=quiet) as watch,
        ):
            if client.dashboard_link:
                console.print(f"dashboard: {escape(client.dashboard_link)}")
            result = reconstruct_tiles(
                config,
                config_path.parent,
                folder,
                client,
                tile=tile,
                overlap=overlap,
                memory=None if memory is None else parse_bytes(memory),
                attempts=attempts,
                watch=watch,
                tell=lambda line: console.print(escape(line)),
            )
    except KeyboardInterrupt:
        again = f"fouriscope field {config_path}{f' --out {out}' if out is not None else ''}"
        console.print(f"interrupted; tiles that are done are kept, go on with: {escape(again)}")
        return INTERRUPTED
    _report(result, console)
    return 1 if result.failed else 0


def _report(result: FieldResult, console: Console) -> None:
    rows, columns = result.plan.field_shape
    console.print(
        f"{rows} × {columns} pixels of {result.plan.pixel * 1e6:.4g} µm from {len(result.plan.tiling)} tiles "
        f"in {duration(result.seconds)}"
    )
    for index, reason in list(result.failed.items())[:SHOWN_FAILURES]:
        tile = result.plan.tiling[index]
        console.print(
            f"[bold red]failed[/]: tile {index} (frame rows {tile.top} to {tile.top + tile.height}, "
            f"columns {tile.left} to {tile.left + tile.width}): {escape(reason)}"
        )
    if len(result.failed) > SHOWN_FAILURES:
        console.print(f"and {len(result.failed) - SHOWN_FAILURES} more; all are in {escape(str(result.path))}/result")
    if result.failed:
        console.print("the same command tries them again; where no neighbour covers them the result is NaN")
    written = sorted(path.name for path in (result.path / "result").iterdir())
    console.print(f"{escape(str(result.path))}/result: {', '.join(written)}")


def run_plan(
    config_path: Path,
    *,
    workers: int | None,
    memory: str | None,
    tile: int | None,
    overlap: float | None,
    console: Console,
) -> None:
    """Say what a field would take, from a short measurement on this machine."""
    config = load_config(config_path)
    plan = forecast(
        config,
        config_path.parent,
        workers=workers,
        tile=tile if tile is not None else 128,
        overlap=overlap if overlap is not None else 0.2,
    )
    for name, value in forecast_lines(plan):
        console.print(f"{name:<25}{escape(value)}")
    if memory is not None and parse_bytes(memory) < plan.worker_bytes:
        raise InvalidInputError(
            f"a worker needs about {format_bytes(plan.worker_bytes)}, --memory gives it {memory}; give more, or "
            "smaller tiles with --tile"
        )


def forecast_lines(plan: Forecast) -> list[tuple[str, str]]:
    """A forecast in words, one line each."""
    tiling, tile_rows = plan.field.tiling, plan.field.tiling.tile_shape[0]
    rows, columns = plan.field.field_shape
    setup, iteration, whole = (
        f"{seconds:.3g} s" for seconds in (plan.setup_seconds, plan.iteration_seconds, plan.tile_seconds)
    )
    return [
        ("tiles", f"{len(tiling)} ({tiling.lattice[0]} × {tiling.lattice[1]}) of {tile_rows} frame pixels"),
        ("object", f"{rows} × {columns} pixels of {plan.field.pixel * 1e6:.4g} µm"),
        ("measured here", f"{iteration} an iteration, {setup} to begin"),
        ("a tile", f"{plan.iterations} iterations, {whole} on one core"),
        (
            "time",
            f"{duration(plan.seconds)} with {plan.workers} workers, {duration(plan.stitch_seconds)} of it stitching",
        ),
        ("core-hours", f"{plan.core_seconds / 3600:.3g}"),
        ("memory of a worker", format_bytes(plan.worker_bytes)),
        ("frames on disk", format_bytes(plan.frames_bytes)),
        ("tiles on disk", format_bytes(plan.tiles_bytes)),
        ("result on disk", format_bytes(plan.result_bytes)),
        ("read from storage", format_bytes(plan.read_bytes)),
    ]
