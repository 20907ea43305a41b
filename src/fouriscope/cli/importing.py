"""`fouriscope import`: from files as they are to the acquisition.toml that describes them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

from fouriscope.acquisition import Acquisition, CorrectedFrames, Frames, survey_frames
from fouriscope.acquisition.description import Description, Missing
from fouriscope.acquisition.readers import describe
from fouriscope.acquisition.suggestions import Suggestion, suggest
from fouriscope.acquisition.survey import Survey
from fouriscope.cli.options import Force, Quiet, console_of
from fouriscope.cli.rewriting import STORAGE, rewrite_frames
from fouriscope.cli.settings import Document, assignment, set_keys, toml_value
from fouriscope.errors import InvalidInputError
from fouriscope.run.config import parse_config
from fouriscope.run.described import Described
from fouriscope.run.files import write_text
from fouriscope.run.image_files import load_image
from fouriscope.run.recipe import MEASURED
from fouriscope.settings import RunConfig

# A whole reconstruction of larger frames takes its time: a part shows whether all is well.
LARGE_FRAME = 512
FIRST_REGION = 256

HEARD = tuple(f"frames.{key}" for key in STORAGE)


def run_import(
    path: Annotated[Path, typer.Argument(help="A file or folder with frames, of any format that is understood.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The description to write.")] = Path("acquisition.toml"),
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="section.key=value for what the files do not say; can be repeated."),
    ] = None,
    force: Force = False,
    to_zarr: Annotated[
        bool,
        typer.Option("--to-zarr", help="Rewrite the frames as Zarr beside OUT, from which tiles are read quickly."),
    ] = False,
    memory: Annotated[str | None, typer.Option(help="For --to-zarr, such as 64MB or 2GB; 256MB otherwise.")] = None,
    quiet: Quiet = False,
) -> int:
    """Recognise an acquisition, say what was found and what is missing, and write its acquisition.toml.

    Exit code 1 means that keys are missing: they stand in the file as comments to fill in.
    """
    console, sets = console_of(quiet), sets or []
    if memory is not None and not to_zarr:
        raise InvalidInputError("--memory is for rewriting the frames: give --to-zarr with it, or leave it out")
    leds_path, store = out.with_name(f"{out.stem}_leds.csv"), out.with_name(f"{out.stem}_frames.zarr")
    for file in (out, leds_path, *([store] if to_zarr else [])):
        if file.exists() and not force:
            raise InvalidInputError(f"{file} exists; choose another name with --out, or replace it with --force")
    if not out.parent.is_dir():
        raise InvalidInputError(f"{out}: there is no folder {out.parent}; make it first")
    chosen: Document = {"frames": {}}
    set_keys(chosen, sets)
    description = describe(path, **{key: chosen["frames"].get(key) for key in STORAGE})
    document = description.document(out.parent, leds_path.name)
    # How the frames are stored, the description has heard, and said in its own words.
    set_keys(document, [text for text in sets if text.partition("=")[0].strip() not in HEARD])
    if "kind" in chosen.get("illumination", {}):
        kind = str(chosen["illumination"]["kind"])
        document["illumination"] = {"kind": kind} | description.lighting_of(kind) | document["illumination"]
    new_leds = description.leds_file() == "new" and document["illumination"].get("path") == leds_path.name
    missing = [lack for lack in description.missing() if not _is_set(document, lack.key)]
    config = _checked(document, missing, where=str(path))
    frames, survey = _surveyed(description, document)
    powers = [suggestion for suggestion in suggest(survey) if suggestion.key == "power"]
    if {"power", "amplitude"} & set(document["frames"]):
        powers = []
    if powers:
        document["frames"]["power"] = powers[0].value
        config = _checked(document, missing, where=str(path))
        frames, survey = _surveyed(description, document)
    with ExitStack() as undo:  # nothing is left behind by an import that failed
        if new_leds and description.leds is not None:
            undo.callback(leds_path.unlink, missing_ok=True)
            write_text(leds_path, description.leds.text())
        found = _suggestions(config, frames, survey, out.parent, description.dark)
        # What was set by hand stands, and a dark frame contains the offset.
        taken = {*document["frames"], *(["offset"] if description.dark else [])}
        found = [*powers, *(suggestion for suggestion in found if suggestion.key not in taken)]
        document["frames"] |= {suggestion.key: suggestion.value for suggestion in found}
        if to_zarr:
            if not store.exists():
                undo.callback(shutil.rmtree, store, ignore_errors=True)
            document["frames"], rewritten = rewrite_frames(document["frames"], store, memory, force, console)
        described = {section: keys for section, keys in document.items() if section not in MEASURED}
        text = toml_text(described, missing, found, source=path)
        write_text(out, f"{text}\n{reconstruction_text(document, frames.shape[1:])}")
        undo.pop_all()
    show(description, document, frames, survey, found, console)
    if to_zarr:
        console.print(f"{'rewritten':<25}{escape(f'{store}, verified, {rewritten}')}")
    for lack in missing:
        console.print(f"[bold]missing[/]                  {escape(f'--set {lack.key}={lack.example}  {lack.meaning}')}")
    if missing:
        console.print(f"{escape(str(out))}: written; fill in the {len(missing)} lines that begin with # ? there")
        return 1
    console.print(f"{escape(str(out))}: complete\nnext: fouriscope info {escape(str(out))} --sheet frames.png")
    return 0


def _surveyed(description: Description, document: Document) -> tuple[Frames, Survey]:
    """The frames in counts, after what is known of their power, and a look at each."""
    keys = document["frames"]
    source = replace(description.frames, amplitude=bool(keys.get("amplitude")), power=keys.get("power"))
    frames = source.open()
    return frames, survey_frames(frames, dtype=getattr(getattr(frames, "frames", frames), "dtype", None))


def _suggestions(
    config: RunConfig | None, frames: Frames, survey: Survey, folder: Path, dark: Sequence[Path]
) -> list[Suggestion]:
    if config is None:
        return suggest(survey)
    seen = Described(config, folder)
    Acquisition(seen.optics, seen.illumination, frames)  # raises unless there is one LED a frame
    CorrectedFrames(seen.stored, seen.corrections())
    exposures = None if config.frames.exposures is None else np.array(config.frames.exposures)
    offset = float(np.mean([load_image(path).mean() for path in dark])) if dark else None
    return suggest(survey, seen.directions, seen.optics.na, exposures, offset)


def _is_set(document: Document, dotted: str) -> bool:
    section, key = dotted.split(".")
    if dotted.startswith("illumination.") and "kind" in document["illumination"] and key == "path":
        return True  # another kind than the one that the hint proposed, and its own keys are checked with it
    return key in document.get(section, {})


def _checked(document: Document, missing: Sequence[Missing], where: str) -> RunConfig | None:
    """The configuration, if it is whole; wrong keys are errors even while others are missing."""
    try:
        config = parse_config(document, where=where)
    except InvalidInputError as error:
        if missing and "is missing" in str(error):
            return None
        raise
    return None if missing else config


def toml_text(document: Document, missing: Sequence[Missing], found: Sequence[Suggestion], source: Path) -> str:
    """The acquisition as TOML: what was found, why the frames suggest what they do, and `# ?` lines to fill in."""
    reasons = {f"frames.{suggestion.key}": suggestion.why for suggestion in found}
    lines = [f"# Written by `fouriscope import` from {source}", ""]
    for section in dict.fromkeys([*document, "illumination"]):
        lines.append(f"[{section}]")
        for key, value in document.get(section, {}).items():
            if f"{section}.{key}" in reasons:
                lines.append(f"# {key}: {reasons[f'{section}.{key}']}")
            lines.append(assignment(key, value))
        for lack in missing:
            if lack.key.startswith(f"{section}."):
                example = assignment(lack.key.partition(".")[2], toml_value(lack.example))
                lines.append(f"# ? {example}{lack.meaning and f'  # {lack.meaning}'}")
        lines.append("")
    return "\n".join(lines)


def reconstruction_text(document: Document, frame_shape: tuple[int, int]) -> str:
    """The sections of the recipe for measured frames, but for what was set by hand, and a hint for large frames."""
    lines = []
    if max(frame_shape) > LARGE_FRAME and "roi" not in document["frames"]:
        corner = [(size - min(size, FIRST_REGION)) // 2 for size in frame_shape]
        region = [*corner, *(min(size, FIRST_REGION) for size in frame_shape)]
        lines += [f"# large frames: to begin with a part of them, add to [frames]: roi = {region}", ""]
    for section, (reason, keys) in MEASURED.items():
        chosen = keys | document.get(section, {})  # what was set by hand stands
        lines += [*([f"# {reason}"] if reason else []), f"[{section}]"]
        lines += [*(assignment(key, value) for key, value in chosen.items()), ""]
    return "\n".join(lines)


def show(
    description: Description,
    document: Document,
    frames: Frames,
    survey: Survey,
    found: Sequence[Suggestion],
    console: Console,
) -> None:
    """What was found, one line each."""
    count, rows, columns = frames.shape
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
        *(("suggested", f"frames.{s.key} = {_shortened(s.value)}  ({s.why})") for s in found),
    ]
    for name, value in lines:
        console.print(f"{name:<25}{escape(str(value))}")


def _shortened(value: Any) -> str:
    """A list of many numbers as the range they have; what is short as it is."""
    if isinstance(value, list) and len(value) > 12:
        return f"{len(value)} numbers, {min(value):.4g} … {max(value):.4g}"
    return str(value)


_KINDS = {"na": "directions", "positions": "positions", "grid": "rows and columns of a lattice"}
