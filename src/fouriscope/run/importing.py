"""From files as they are to the description that `fouriscope import` writes and `fs.load` uses at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fouriscope.acquisition import Acquisition, CorrectedFrames, Frames, survey_frames
from fouriscope.acquisition.description import Description, Missing
from fouriscope.acquisition.input_files import require_name, require_replaceable
from fouriscope.acquisition.readers import describe
from fouriscope.acquisition.suggestions import Suggestion, suggest
from fouriscope.acquisition.survey import Survey
from fouriscope.errors import InvalidInputError
from fouriscope.run.aligned import WITH_PATTERNS
from fouriscope.run.config import parse_config
from fouriscope.run.described import STORAGE, Described
from fouriscope.run.files import write_text
from fouriscope.run.image_files import load_image
from fouriscope.run.recipe import MEASURED
from fouriscope.run.toml_lines import Document, assignment, overruled, value_or_word
from fouriscope.settings import RunConfig

# A whole reconstruction of larger frames takes its time: a part shows whether all is well.
LARGE_FRAME = 512
FIRST_REGION = 256

# Takes [frames] and gives that of a copy: see ``rewrite`` below.
Rewrite = Callable[[ExitStack, dict[str, object]], dict[str, object]]


@dataclass(frozen=True, eq=False)
class Imported:
    """What was found in files, what the frames suggest, and which keys could not be inferred."""

    description: Description
    document: Document
    missing: list[Missing]
    found: list[Suggestion]
    frames: Frames
    survey: Survey


def import_acquisition(
    path: Path, out: Path, *, chosen: Document, force: bool = False, rewrite: Rewrite | None = None
) -> Imported:
    """Describe the files of ``path`` in ``out``, and their LEDs beside it; what is ``chosen`` by hand is used.

    With ``rewrite`` the frames are copied, and ``out`` names the copy. An import that fails leaves nothing behind.
    """
    leds_path = out.with_name(f"{out.stem}_leds.csv")
    for file in (out, leds_path):
        require_name(file)
        require_replaceable(file)
        if file.exists() and not force:
            raise InvalidInputError(f"{file} exists; choose another name with --out, or replace it with --force")
    if not out.parent.is_dir():
        raise InvalidInputError(f"{out}: there is no folder {out.parent}; make it first")
    storage = {key: chosen.get("frames", {}).get(key) for key in STORAGE}
    description = describe(path, **storage)
    document = description.document(out.parent, leds_path.name)
    # How the frames are stored, the description has heard, and said in its own words.
    rest = chosen | {"frames": {key: value for key, value in chosen.get("frames", {}).items() if key not in STORAGE}}
    document = overruled(document, rest)
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
    with ExitStack() as undo:
        if new_leds and description.leds is not None:
            undo.callback(leds_path.unlink, missing_ok=True)
            write_text(leds_path, description.leds.text())
        found = _suggestions(config, frames, survey, out.parent, description.dark)
        # What was set by hand stands, and a dark frame contains the offset.
        taken = {*document["frames"], *(["offset"] if description.dark else [])}
        found = [*powers, *(suggestion for suggestion in found if suggestion.key not in taken)]
        document["frames"] |= {suggestion.key: suggestion.value for suggestion in found}
        if rewrite is not None:
            document["frames"] = rewrite(undo, document["frames"])
        described = {section: keys for section, keys in document.items() if section not in MEASURED}
        text = toml_text(described, missing, found, source=path)
        write_text(out, f"{text}\n{reconstruction_text(document, frames.shape[1:])}")
        undo.pop_all()
    return Imported(description, document, missing, found, frames, survey)


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
    Acquisition(seen.optics, seen.illumination, frames)  # raises unless there is one LED per frame
    CorrectedFrames(seen.stored, seen.corrections())
    exposures = None if config.frames.exposures is None else np.array(config.frames.exposures)
    offset = float(np.mean([load_image(path).mean() for path in dark])) if dark else None
    return suggest(survey, seen.directions, seen.optics.na, exposures, offset, seen.levels)


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
                example = assignment(lack.key.partition(".")[2], value_or_word(lack.example))
                lines.append(f"# ? {example}{lack.meaning and f'  # {lack.meaning}'}")
        lines.append("")
    return "\n".join(lines)


def reconstruction_text(document: Document, frame_shape: tuple[int, int]) -> str:
    """The sections of the recipe for measured frames, but for what was set by hand, and a hint for large frames."""
    lines = []
    if max(frame_shape) > LARGE_FRAME and "roi" not in document["frames"]:
        corner = [(size - min(size, FIRST_REGION)) // 2 for size in frame_shape]
        region = [*corner, *(min(size, FIRST_REGION) for size in frame_shape)]
        lines += [f"# large frames: to begin with a part of them, add this to [frames]: roi = {region}", ""]
    for section, (reason, keys) in MEASURED.items():
        if section == "alignment" and "patterns" in document["illumination"]:
            reason, keys = "what can be found from frames of several LEDs", dict.fromkeys(WITH_PATTERNS, True)
        chosen = keys | document.get(section, {})  # what was set by hand stands
        lines += [*([f"# {reason}"] if reason else []), f"[{section}]"]
        lines += [*(assignment(key, value) for key, value in chosen.items()), ""]
    return "\n".join(lines)
