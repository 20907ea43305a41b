"""`fouriscope import`: from files as they are to the acquisition.toml that describes them."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

from fouriscope.cli.as_json import AsJson, consoles, print_json
from fouriscope.cli.options import Force, Quiet
from fouriscope.cli.rewriting import rewrite_frames
from fouriscope.errors import InvalidInputError
from fouriscope.run.importing import Imported, import_acquisition
from fouriscope.run.toml_lines import parsed_sets


def run_import(
    path: Annotated[
        Path, typer.Argument(help="A file or folder with frames, in any supported format (docs/formats.md).")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The configuration to write.")] = Path("acquisition.toml"),
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A value that the files do not state, as section.key=value. Can be repeated.",
        ),
    ] = None,
    force: Force = False,
    to_zarr: Annotated[
        bool,
        typer.Option("--to-zarr", help="Also store the frames as Zarr beside OUT, so that tiles can be read quickly."),
    ] = False,
    memory: Annotated[
        str | None, typer.Option(help="Memory for --to-zarr, such as 64MB or 2GB. Default: 256MB.")
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> int:
    """Recognise the files of an acquisition and write a configuration for them.

    Exit code 1 means that the files do not state everything. Fill in the commented keys of the configuration.
    """
    (console, progress), sets = consoles(quiet, as_json), sets or []
    if memory is not None and not to_zarr:
        raise InvalidInputError("--memory is for rewriting the frames: give --to-zarr too, or leave it out")
    store, checksum = out.with_name(f"{out.stem}_frames.zarr"), ""
    if to_zarr and store.exists() and not force:
        raise InvalidInputError(f"{store} exists; choose another name with --out, or replace it with --force")

    def rewrite(undo: ExitStack, section: dict[str, Any]) -> dict[str, Any]:
        nonlocal checksum
        if not store.exists():
            undo.callback(shutil.rmtree, store, ignore_errors=True)
        section, checksum = rewrite_frames(section, store, memory, force, progress)
        return section

    imported = import_acquisition(
        path, out, chosen=parsed_sets(sets), force=force, rewrite=rewrite if to_zarr else None
    )
    if as_json:
        print_json("import", _found(imported, out) | {"rewritten": store if to_zarr else None})
        return 1 if imported.missing else 0
    show(imported, console)
    if to_zarr:
        console.print(f"{'rewritten':<25}{escape(f'{store}, verified, {checksum}')}")
    missing = imported.missing
    for lack in missing:
        console.print(f"[bold]missing[/]                  {escape(f'--set {lack.key}={lack.example}  {lack.meaning}')}")
    if missing:
        console.print(f"{escape(str(out))}: written; fill in the {len(missing)} lines that begin with # ? there")
        return 1
    console.print(f"{escape(str(out))}: complete\nnext: fouriscope info {escape(str(out))} --sheet frames.png")
    return 0


def _found(imported: Imported, out: Path) -> dict[str, Any]:
    """What was found, for scripts."""
    description, document, survey = imported.description, imported.document, imported.survey
    return {
        "config": out,
        "complete": not imported.missing,
        "format": description.format,
        "frames": {
            "path": description.frames.path,
            "shape": imported.frames.shape,
            "dtype": str(survey.dtype),
            "low": survey.low.min(),
            "high": survey.high.max(),
        },
        "leds": len(description.leds) if description.leds else None,
        "microscope": document.get("microscope", {}),
        "illumination": document.get("illumination", {}),
        "pupil": document.get("pupil", {}),
        "notes": description.notes,
        "assumed": description.assumed,
        "suggested": [asdict(suggestion) for suggestion in imported.found],
        "missing": [asdict(lack) for lack in imported.missing],
    }


def show(imported: Imported, console: Console) -> None:
    """What was found, one line each."""
    description, document, survey = imported.description, imported.document, imported.survey
    count, rows, columns = imported.frames.shape
    lights = {key: value for key, value in document.get("illumination", {}).items() if np.ndim(value) < 2}
    scope = {key: value for key, value in document.get("microscope", {}).items() if np.ndim(value) == 0}
    lines = [
        ("format", description.format),
        ("frames", f"{count} of {rows} × {columns}, {survey.dtype}, {survey.low.min():.4g} … {survey.high.max():.4g}"),
        ("in", description.frames.path),
        *(("microscope", f"{key} = {value}") for key, value in scope.items()),
        ("LEDs", f"{len(description.leds)}, as {_KINDS[description.leds.kind]}" if description.leds else "unknown"),
        *(("illumination", f"{key} = {value}") for key, value in lights.items()),
        *(("pupil", f"{key} = {value}") for key, value in document.get("pupil", {}).items()),
        *(("note", note) for note in description.notes),
        *(("assumed", text) for text in description.assumed),
        *(("suggested", f"frames.{s.key} = {_shortened(s.value)}  ({s.why})") for s in imported.found),
    ]
    for name, value in lines:
        console.print(f"{name:<25}{escape(str(value))}")


def _shortened(value: Any) -> str:
    """A long list of numbers as its range; a short one as it is."""
    if isinstance(value, list) and len(value) > 12:
        return f"{len(value)} numbers, {min(value):.4g} … {max(value):.4g}"
    return str(value)


_KINDS = {"na": "directions", "positions": "positions", "grid": "rows and columns of a lattice"}
