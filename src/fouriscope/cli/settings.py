"""Settings of the command line, ``--set section.key=value``, and lines of TOML."""

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


def set_keys(document: Document, sets: Sequence[str]) -> None:
    """Apply ``section.key=value`` settings, values as in TOML or words, to what was read.

    A new illumination.kind, or another prior.name, begins a new section. Of two keys that exclude each other, the one
    that is set replaces the other.

    >>> document = {"microscope": {"na": 0.2}}
    >>> set_keys(document, ["microscope.na=0.1", "illumination.kind=file", "illumination.path=leds.csv"])
    >>> document
    {'microscope': {'na': 0.1}, 'illumination': {'kind': 'file', 'path': 'leds.csv'}}
    >>> document = {"prior": {"name": "tv", "accuracy": 1e-3, "strength": 0.1}, "frames": {"amplitude": True}}
    >>> set_keys(document, ["prior.name=bm3d", "frames.power=0.75"])
    >>> document
    {'prior': {'name': 'bm3d'}, 'frames': {'power': 0.75}}
    """
    parsed = [_parsed(text) for text in sets]
    for section, key, content in parsed:
        if (section, key) in BEGINNINGS and document.get(section, {}).get(key) != content:
            document[section] = {}
    given = {key for section, key, _ in parsed if section == "frames"}
    for pair in EITHER:
        for key, other in (pair, pair[::-1]):
            if key in given and other not in given:
                document.get("frames", {}).pop(other, None)
    for section, key, content in parsed:
        document.setdefault(section, {})[key] = content


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
