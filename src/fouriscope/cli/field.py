"""`fouriscope field`: the whole field of view, in tiles, on this machine's cores or on a Dask cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from fouriscope.acquisition.byte_sizes import format_bytes, parse_bytes
from fouriscope.cli.field_progress import shown_field
from fouriscope.cli.last_resort import keep_details_in
from fouriscope.cli.options import INTERRUPTED, Config, Devices, EngineOf, Quiet, console_of
from fouriscope.cli.progress import duration, terminated_as_interrupted
from fouriscope.errors import InvalidInputError
from fouriscope.field.cluster import connected
from fouriscope.field.devices import on_devices
from fouriscope.field.planner import Forecast, forecast
from fouriscope.field.reconstruct import FieldResult, reconstruct_tiles
from fouriscope.field.remote import DaskWorkers
from fouriscope.run import load_config
from fouriscope.run.engine import build_engine

SHOWN_FAILURES = 5


def run_field(
    config: Config,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the result. Default: the folder field beside CONFIG. An unfinished field is continued."
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Address or scheduler file of a running Dask cluster. Default: workers on this machine."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Worker processes, one thread each. Default: one per core, or per device. With --scheduler: workers "
            "to wait for.",
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(help="Memory of each worker, such as 2GB. Default: an equal share of the machine's memory."),
    ] = None,
    tile: Annotated[int | None, typer.Option(min=16, help="Side of a tile in frame pixels. Default: 128.")] = None,
    overlap: Annotated[
        float | None, typer.Option(help="Share of a tile that overlaps its neighbour, from 0.05 to 0.5. Default: 0.2.")
    ] = None,
    attempts: Annotated[int, typer.Option(min=1, help="Attempts per tile before it counts as failed.")] = 5,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only estimate the time, memory and disk space that it needs.")
    ] = False,
    engine: EngineOf = None,
    device: Devices = None,
    quiet: Quiet = False,
) -> int:
    """Reconstruct the whole field of view in tiles. Run it again to continue after an interruption.

    Exit code 1 means that some tiles failed. They are named, and the others are in the result.
    """
    on_each, base, console = on_devices(load_config(config), engine, device), config.parent, console_of(quiet)
    described, devices = on_each[0], [one.engine.device for one in on_each if one.engine.device != "cpu"]
    if scheduler is None:
        for one in on_each:
            build_engine(one.engine)  # raises if this machine does not have it
    worker_bytes = None if memory is None else parse_bytes(memory)
    if plan:
        planned = forecast(described, base, workers=workers or len(devices) or None, tile=tile, overlap=overlap)
        for name, value in forecast_lines(planned):
            console.print(f"{name:<25}{escape(value)}")
        if worker_bytes is not None and worker_bytes < planned.worker_bytes:
            raise InvalidInputError(
                f"a worker needs about {format_bytes(planned.worker_bytes)}, but --memory is {memory}; give more, or "
                "use smaller tiles with --tile"
            )
        return 0
    folder = out if out is not None else base / "field"
    keep_details_in(folder)
    try:
        with (
            terminated_as_interrupted(),
            connected(scheduler, workers=workers, memory=memory, devices=devices) as client,
            shown_field(console) as watch,
        ):
            if isinstance(client, DaskWorkers) and client.dashboard:
                console.print(f"dashboard: {escape(client.dashboard)}")
            result = reconstruct_tiles(
                described,
                base,
                folder,
                client,
                tile=tile,
                overlap=overlap,
                memory=worker_bytes,
                attempts=attempts,
                watch=watch,
                tell=lambda line: console.print(escape(line)),
            )
    except KeyboardInterrupt:
        again = f"fouriscope field {config}{f' --out {out}' if out is not None else ''}"
        console.print(f"interrupted; finished tiles are kept; to continue: {escape(again)}")
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
        console.print("give the same command to try them again; the result is NaN where no neighbour covers them")
    written = sorted(path.name for path in (result.path / "result").iterdir())
    console.print(f"{escape(str(result.path))}/result: {', '.join(written)}")


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
        ("measured here", f"{iteration} per iteration, {setup} to begin"),
        ("one tile", f"{plan.iterations} iterations, {whole} on one core"),
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
