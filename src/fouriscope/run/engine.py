"""From [engine] to the engine of a model."""

from __future__ import annotations

from dataclasses import replace

from pydantic import ValidationError

from fouriscope import settings
from fouriscope.acquisition.byte_sizes import parse_bytes
from fouriscope.engines import Engine, as_engine
from fouriscope.errors import InvalidInputError
from fouriscope.settings import RunConfig
from fouriscope.settings.explaining import explain


def build_engine(section: settings.Engine) -> Engine:
    """The engine of a configuration; raises if this machine does not have it.

    >>> build_engine(settings.Engine(name="scipy")).name
    'scipy'
    """
    memory = None if section.memory is None else parse_bytes(section.memory)
    return replace(as_engine(section.name, section.device), deterministic=section.deterministic, memory=memory)


def with_engine(config: RunConfig, engine: str | None = None, device: str | None = None) -> RunConfig:
    """The configuration with another engine or device; None leaves it as it is."""
    chosen = {"name": engine, "device": device}
    keys = config.engine.model_dump() | {key: value for key, value in chosen.items() if value is not None}
    if engine is not None and engine != "torch" and device is None:
        keys["device"] = "cpu"  # of another engine than the file names, its device would be an error
    try:
        section = settings.Engine.model_validate(keys)
    except ValidationError as error:
        raise InvalidInputError(f"engine: {explain(error, settings.Engine, keys)}") from error
    return config.model_copy(update={"engine": section})
