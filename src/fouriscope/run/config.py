"""Reading a configuration file, and saying in one line what is wrong with it."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from fouriscope.acquisition.input_files import read_text
from fouriscope.errors import InvalidInputError
from fouriscope.priors.registry import _class_named, available_priors
from fouriscope.settings import ILLUMINATIONS, METHODS, RunConfig
from fouriscope.settings.methods import DEFAULT_METHOD, without_other_methods

# Sections of several kinds: the key that tells them apart, and the kinds.
TAGS: dict[str, tuple[str, Mapping[str, type[BaseModel]]]] = {
    "illumination": ("kind", ILLUMINATIONS),
    "solver": ("method", METHODS),
}


def load_config(path: str | Path) -> RunConfig:
    """Read and check a TOML configuration; paths in it are relative to the file's folder."""
    path = Path(path)
    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder; give the configuration file, for example {path / 'config.toml'}")
    try:
        if not path.exists():
            raise InvalidInputError(f"{path}: no such file; `fouriscope simulate` writes an example to start from")
        document = tomllib.loads(read_text(path, "a TOML file"))
    except InvalidInputError:
        raise
    except (ValueError, RecursionError) as error:  # of a number with thousands of digits, or endless brackets
        raise InvalidInputError(f"{path}: not a TOML file ({error})") from error
    is_record = (path.parent / "provenance.json").is_file()
    config = parse_config(document, where=str(path), is_record=is_record)
    for section in ("prior", "prior_absorption"):
        _refuse_foreign_parameters(section, getattr(config, section), path)
    return config.model_copy(
        update={
            section: _with_absolute_weights(getattr(config, section), path.parent.resolve())
            for section in ("prior", "prior_absorption")
        }
    )


def _refuse_foreign_parameters(section: str, prior: dict[str, Any] | None, path: Path) -> None:
    """The configuration of a run has every parameter of its prior; whoever writes another name there must go on."""
    name = None if prior is None else prior.get("name")
    if prior is None or name not in available_priors():
        return  # the prior itself says what is wrong with its name
    known = _parameters_of(str(name))
    foreign = [key for key in prior if key != "name" and key not in known]
    owners = [other for other in available_priors() if other != name and set(foreign) <= set(_parameters_of(other))]
    if foreign and owners:
        keys = ", ".join(foreign)
        raise InvalidInputError(
            f"{path}: [{section}] has name = {name!r} and {keys}, which {owners[0]!r} has and {name!r} has not "
            f"({', '.join(known) or 'it has no parameters'}); with another name, delete {keys}"
        )


def _parameters_of(name: str) -> list[str]:
    return list(inspect.signature(_class_named(name)).parameters)


def _with_absolute_weights(prior: dict[str, Any] | None, folder: Path) -> dict[str, Any] | None:
    """A learned prior names a file, which like every path in the configuration starts at its folder."""
    if prior is None or not isinstance(prior.get("weights"), str):
        return prior
    return prior | {"weights": str(folder / prior["weights"])}


# Keys that name files: made absolute in the run folder, because relative ones start at the configuration's folder.
PATH_KEYS = (
    *(("frames", key) for key in ("path", "dark", "flat", "mask", "truth")),
    ("illumination", "path"),
    ("pupil", "array"),
)


def absolute_paths(document: dict[str, Any], base: Path) -> dict[str, Any]:
    """The sections with the files that they name as absolute paths; relative ones start at ``base``."""
    document = {section: dict(keys) if isinstance(keys, dict) else keys for section, keys in document.items()}
    for section, key in PATH_KEYS:
        named = document.get(section, {}).get(key)
        if isinstance(named, str):
            document[section][key] = str((base / named).resolve())
        elif named is not None:
            document[section][key] = [str((base / name).resolve()) for name in named]
    return document


def parse_config(document: dict[str, Any], *, where: str, is_record: bool = False) -> RunConfig:
    """Check a configuration that is already a dictionary; ``where`` names it in errors.

    The record of a run may hold options of other methods, which had no effect.
    """
    if is_record and isinstance(document.get("solver"), dict):
        document = document | {"solver": without_other_methods(document["solver"])}
    try:
        return RunConfig.model_validate(document)
    except ValidationError as error:
        raise InvalidInputError(f"{where}: {explain(error, RunConfig, document)}") from error


def explain(error: ValidationError, model: type[BaseModel], document: dict[str, Any]) -> str:
    """The first problem of a validation error, in one line that says what to do; a misspelt key comes first."""
    # A union reports each of its alternatives; one problem for each key is enough.
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
        message = f"{key}: {first['msg'].removeprefix('Value error, ')}{came}"
    return message + (f" (and {len(problems) - 1} more)" if len(problems) > 1 else "")


def _keys(location: tuple[int | str, ...]) -> list[str]:
    """The keys of the file on the way to a problem, without the names of alternatives that pydantic puts in between."""
    parts = [str(part) for part in location]
    if parts[0] in TAGS:
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
