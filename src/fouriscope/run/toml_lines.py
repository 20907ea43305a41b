"""Keys that overrule a description, ``section.key=value``, and lines of TOML."""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Sequence
from typing import Any

import numpy as np
import tomli_w

from fouriscope.errors import InvalidInputError

Document = dict[str, dict[str, Any]]

# Another value of these means another thing, to which the section's other keys do not belong.
BEGINNINGS = (("illumination", "kind"), ("prior", "name"), ("prior_absorption", "name"))
# Keys of [frames] of which only one can hold.
EITHER = (("amplitude", "power"), ("pattern", "files"), ("path", "shape"))
LINE = 110


def parsed_sets(sets: Sequence[str]) -> Document:
    """``section.key=value`` settings, values as in TOML or words, as sections.

    >>> parsed_sets(["microscope.na=0.1", "illumination.kind=file"])
    {'microscope': {'na': 0.1}, 'illumination': {'kind': 'file'}}
    """
    document: Document = {}
    for section, key, content in map(_parsed, sets):
        document.setdefault(section, {})[key] = content
    return document


def overruled(document: Document, chosen: Document) -> Document:
    """The document, with the chosen values instead of its own.

    A new illumination.kind, or another prior.name, begins a new section. Of two keys that exclude each other, the one
    that is chosen replaces the other.

    >>> document = {"prior": {"name": "tv", "accuracy": 1e-3, "strength": 0.1}, "frames": {"amplitude": True}}
    >>> overruled(document, {"prior": {"name": "bm3d"}, "frames": {"power": 0.75}})
    {'prior': {'name': 'bm3d'}, 'frames': {'power': 0.75}}
    """
    document = {section: dict(keys) for section, keys in document.items()}
    for section, key in BEGINNINGS:
        if key in (begun := chosen.get(section, {})) and document.get(section, {}).get(key) != begun[key]:
            document[section] = {}
    given = chosen.get("frames", {})
    for pair in EITHER:
        for key, other in (pair, pair[::-1]):
            if key in given and other not in given:
                document.get("frames", {}).pop(other, None)
    for section, keys in chosen.items():
        document[section] = document.get(section, {}) | keys
    return document


def _parsed(text: str) -> tuple[str, str, Any]:
    name, equals, value = text.partition("=")
    match = re.fullmatch(r"\s*([a-z_]+)\.([a-z_]+)\s*", name)
    if match is None or not equals:
        raise InvalidInputError(f"--set expects section.key=value, such as --set microscope.na=0.1, got {text!r}")
    try:
        (content,) = tomllib.loads(f"value = {value}").values()
    except ValueError:  # not TOML, or more than one value: a word that nobody wants to quote twice for the shell
        content = value.strip()
    return match[1], match[2], content


def assignment(key: str, value: Any) -> str:
    """``key = value`` in TOML, with a list of numbers or words on as few lines as it needs.

    >>> assignment("offset", [0.0, 0.002])
    'offset = [0.0, 0.002]'
    """
    if isinstance(value, list) and all(np.ndim(item) == 0 for item in value):
        inside = ", ".join(tomli_w.dumps({"x": item}).strip().removeprefix("x = ") for item in value)
        if len(inside) <= LINE:
            return f"{key} = [{inside}]"
        if any(isinstance(item, str) for item in value):  # may hold spaces at which a line must not end
            return tomli_w.dumps({key: value}).strip()
        lines = textwrap.wrap(inside, LINE, break_long_words=False, break_on_hyphens=False)
        return "\n".join([f"{key} = [", *(f"    {line}" for line in lines), "]"])
    if isinstance(value, dict):
        inside = ", ".join(tomli_w.dumps({name: item}).strip() for name, item in value.items())
        return f"{key} = {{ {inside} }}"
    return tomli_w.dumps({key: value}).strip()


def toml_value(text: str) -> Any:
    """An example as TOML has it: a number where it looks like one, else the word."""
    try:
        return float(text) if "." in text or "e-" in text else int(text)
    except ValueError:
        return text
