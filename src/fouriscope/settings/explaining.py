"""What is wrong with settings, in one line."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from fouriscope.settings.illumination import ILLUMINATIONS
from fouriscope.settings.methods import DEFAULT_METHOD, METHODS

# Sections of several kinds: the key that tells them apart, and the kinds.
TAGS: dict[str, tuple[str, Mapping[str, type[BaseModel]]]] = {
    "illumination": ("kind", ILLUMINATIONS),
    "solver": ("method", METHODS),
}


def explain(error: ValidationError, model: type[BaseModel], document: dict[str, Any]) -> str:
    """The first problem of a validation error, in one line that says what to do. A misspelt key comes first."""
    # A union reports each of its alternatives. One problem per key is enough.
    problems = {".".join(_keys(problem["loc"])): problem for problem in reversed(error.errors())}
    key, first = min(reversed(problems.items()), key=lambda item: item[1]["type"] != "extra_forbidden")
    kind = first["type"]
    if kind == "extra_forbidden":
        *path, name = _keys(first["loc"])
        known = sorted(_known_keys(model, path, document))
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(known)}"
        message = f"unknown key {key!r}; {hint}"
    elif kind == "missing":
        message = f"{key} is missing"
    elif kind == "union_tag_not_found":
        message = f"{key}.{TAGS[key][0]} is missing: one of {', '.join(TAGS[key][1])}"
    elif kind == "union_tag_invalid":
        tag, known_tags = TAGS[key]
        message = f"{key}.{tag} must be one of {', '.join(known_tags)}, got {first['input'].get(tag)!r}"
    else:
        came = "" if isinstance(first["input"], dict) else f", got {first['input']!r}"
        message = f"{key}{key and ': '}{first['msg'].removeprefix('Value error, ')}{came}"
    return message + (f" (and {len(problems) - 1} more)" if len(problems) > 1 else "")


def _keys(location: tuple[int | str, ...]) -> list[str]:
    """The keys of the file that lead to a problem, without the names of alternatives that pydantic puts in between."""
    parts = [str(part) for part in location]
    if parts and parts[0] in TAGS:
        del parts[1:2]  # the kind that was chosen
    inserted = ("literal[", "tuple[", "constrained-", "function-", "[key]")
    return [part for part in parts if not part.startswith(inserted) and part not in ("float", "int")]


def _known_keys(model: type[BaseModel], path: list[str], document: dict[str, Any]) -> set[str]:
    if not path:
        return set(model.model_fields)
    if path[0] in TAGS:
        tag, kinds = TAGS[path[0]]
        chosen = kinds.get(str(document[path[0]].get(tag, DEFAULT_METHOD)))
        return set(chosen.model_fields) if chosen else {tag}
    field = model.model_fields.get(path[0])
    section = field.annotation if field else None
    if isinstance(section, type) and issubclass(section, BaseModel):
        return set(section.model_fields)
    return set()
