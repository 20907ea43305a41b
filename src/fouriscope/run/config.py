"""Reading a configuration file."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fouriscope.acquisition.input_files import read_text
from fouriscope.errors import InvalidInputError
from fouriscope.priors.registry import _class_named, available_priors
from fouriscope.settings import RunConfig
from fouriscope.settings.explaining import explain
from fouriscope.settings.methods import without_other_methods


def load_config(path: str | Path) -> RunConfig:
    """Read and check a TOML configuration; paths in it are relative to the file's folder.

    Parameters
    ----------
    path
        The file.
    """
    path = Path(path)
    return config_of(read_document(path), path)


def read_document(path: Path) -> dict[str, Any]:
    """A TOML file as a dictionary; raises if it is not one."""
    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder; give the configuration file, for example {path / 'config.toml'}")
    try:
        if not path.exists():
            raise InvalidInputError(f"{path}: no such file; `fouriscope simulate` writes an example to start from")
        return tomllib.loads(read_text(path, "a TOML file"))
    except InvalidInputError:
        raise
    except (ValueError, RecursionError) as error:  # of a number with thousands of digits, or endless brackets
        raise InvalidInputError(f"{path}: not a TOML file ({error})") from error


def config_of(document: dict[str, Any], path: Path, *, where: str | None = None) -> RunConfig:
    """The configuration of a document that ``path`` holds; ``where`` names it in errors."""
    is_record = (path.parent / "provenance.json").is_file()
    config = parse_config(document, where=where or str(path), is_record=is_record)
    for section in ("prior", "prior_absorption"):
        _refuse_foreign_parameters(section, getattr(config, section), path)
    return config.model_copy(
        update={
            section: _with_absolute_weights(getattr(config, section), path.parent.resolve())
            for section in ("prior", "prior_absorption")
            if section in config.model_fields_set  # one that is left out stays so
        }
    )


def _refuse_foreign_parameters(section: str, prior: dict[str, Any] | None, path: Path) -> None:
    """Raise if another prior is named but the parameters of the old one are still there, as in the file of a run."""
    name = None if prior is None else prior.get("name")
    if prior is None or name not in available_priors():
        return  # the prior itself says what is wrong with its name
    known = _parameters_of(str(name))
    foreign = [key for key in prior if key != "name" and key not in known]
    owners = [other for other in available_priors() if other != name and set(foreign) <= set(_parameters_of(other))]
    if foreign and owners:
        keys = ", ".join(foreign)
        raise InvalidInputError(
            f"{path}: [{section}] has name = {name!r} and {keys}, but only {owners[0]!r} takes {keys}, not {name!r} "
            f"({', '.join(known) or 'it has no parameters'}); delete {keys}"
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
    ("illumination", "patterns"),
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
    if "colour" in document:
        raise InvalidInputError(f"{where}: [colour] describes three channels; use: fouriscope colour {where}")
    try:
        return RunConfig.model_validate(document)
    except ValidationError as error:
        raise InvalidInputError(f"{where}: {explain(error, RunConfig, document)}") from error
