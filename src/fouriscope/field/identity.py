"""Whether a field can be continued: the frames and the configuration must be the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fouriscope.acquisition import Frames
from fouriscope.acquisition.tile_layout import CompleteArray
from fouriscope.errors import FramesChangedError, InvalidInputError
from fouriscope.field.plan import FieldPlan
from fouriscope.run.config import parse_config
from fouriscope.run.described import open_stored
from fouriscope.run.inputs import input_files, resolved
from fouriscope.run.provenance import file_checksums
from fouriscope.settings import RunConfig


def identity(stored: Frames) -> dict[str, Any]:
    """What identifies these frames without reading them: a checksum if the file has one, else its size and the time
    of its last change."""
    return {"shape": list(stored.shape)} | files_of(stored)


def files_of(stored: object) -> dict[str, Any]:
    """The part of the identity that is the same for every window of the frames."""
    path, array = getattr(stored, "path", None), getattr(stored, "array", None)
    if isinstance(array, CompleteArray):
        return {"checksum": array.checksum}
    if not isinstance(path, Path):
        return {}
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    states = [file.stat() for file in files]
    return {
        "files": len(files),
        "bytes": sum(state.st_size for state in states),
        "modified": max((state.st_mtime for state in states), default=0.0),
    }


def check_same(before: dict[str, Any], config: RunConfig, base: Path, plan: FieldPlan, folder: Path) -> None:
    """Raise unless ``config`` asks for the very field whose provenance is ``before``."""
    # What was begun with an earlier version does not know keys that have come since: they have their defaults.
    begun = parse_config(before["request"], where=str(folder), is_record=True)
    old, new = resolved(begun, Path()), resolved(config, base)
    for document in (old, new):
        document.pop("engine", None)  # another engine computes the same, within its rounding
        document["frames"] = {key: value for key, value in document["frames"].items() if key != "memory"}
    changed = [
        f"{section}.{key}" if isinstance(new.get(section), dict) else section
        for section in sorted({*old, *new})
        for key in sorted({*_keys(old.get(section)), *_keys(new.get(section))})
        if _value(old.get(section), key) != _value(new.get(section), key)
    ]
    if changed:
        raise InvalidInputError(
            f"{folder} was begun with another configuration ({changed[0]} differs"
            f"{f', and {len(changed) - 1} more' if len(changed) > 1 else ''}); "
            "restore it to continue, or choose another folder with --out"
        )
    asked = FieldPlan.of(config, base, tile=plan.tiling.tile, overlap=plan.tiling.overlap)
    if asked.tiling != plan.tiling:
        raise InvalidInputError(f"{folder} was begun with frames of another shape; choose another folder with --out")
    check_same_frames(before, open_stored(config, base), folder)
    if file_checksums(input_files(config, base)) != before["input"]["files"]:
        raise InvalidInputError(
            f"the files that belong to the frames are not those that {folder} was begun with; "
            "restore the old ones, or choose another folder with --out"
        )


def check_same_frames(before: dict[str, Any], stored: object, folder: Path) -> None:
    """Raise unless the frames, or a window of them, are those of the field whose provenance is ``before``."""
    if files_of(stored) != {key: value for key, value in before["input"]["frames"].items() if key != "shape"}:
        raise FramesChangedError(
            f"the frames are not those that {folder} was begun with; restore the old ones, or choose another folder "
            "with --out"
        )


def _keys(section: Any) -> set[str]:
    return set(section) if isinstance(section, dict) else {""}


def _value(section: Any, key: str) -> Any:
    return section.get(key) if isinstance(section, dict) else section
