"""Keys that overrule a description, ``section.key=value``, and lines of TOML."""

from __future__ import annotations

import re
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import tomli_w

from fouriscope.errors import InvalidInputError

Document = dict[str, dict[str, Any]]

# Another value of these means another thing, to which the section's other keys do not belong.
BEGINNINGS = (("illumination", "kind"), ("prior", "name"), ("prior_absorption", "name"))
# Keys of [frames] of which only one can hold.
EITHER = (("amplitude", "power"), ("pattern", "files"), ("path", "shape"))
LINE = 110
# What tomli_w writes of an array: one item per line, and at the beginning of a line only the bracket that closes it.
ARRAY = re.compile(r"^([^\n]+ = )\[\n(.*?)^\]$", re.MULTILINE | re.DOTALL)
NUMBERS, WORDS = re.compile(r"[-+.\w ,\[\]]*"), re.compile(r'("[^"\\]*"(, )?)*')
ROW = re.compile(rf"\[[^][]{{,{LINE - 4}}}\]")


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
    return match[1], match[2], value_or_word(value)


def toml_of(document: Mapping[str, Any]) -> str:
    """The document in TOML, with the numbers of an array side by side: places of 225 LEDs would fill 900 lines.

    >>> print(toml_of({"illumination": {"positions": [[0.0, 0.002], [0.0, 0.004]]}}), end="")
    [illumination]
    positions = [[0.0, 0.002], [0.0, 0.004]]
    """
    return ARRAY.sub(_side_by_side, tomli_w.dumps(document))


def _side_by_side(array: re.Match[str]) -> str:
    key, content = array.groups()
    inside = " ".join(line.strip() for line in content.strip().split("\n")).removesuffix(",")
    if not NUMBERS.fullmatch(inside):  # words may hold whatever is changed below
        return f"{key}[{inside}]" if WORDS.fullmatch(inside) and len(inside) <= LINE else array[0]
    inside = inside.replace("[ ", "[").replace(", ]", "]")
    if len(inside) <= LINE:
        return f"{key}[{inside}]"
    # No line ends inside a short row, such as the place of one LED.
    rows = ROW.sub(lambda row: row[0].replace(" ", "\xa0"), inside)
    lines = textwrap.wrap(rows, LINE, break_long_words=False, break_on_hyphens=False)
    return "\n".join([f"{key}[", *(f"    {line}".replace("\xa0", " ") for line in lines), "]"])


def assignment(key: str, value: Any) -> str:
    """``key = value`` in TOML, a table on one line.

    >>> assignment("offset", [0.0, 0.002])
    'offset = [0.0, 0.002]'
    """
    if isinstance(value, dict):
        inside = ", ".join(tomli_w.dumps({name: item}).strip() for name, item in value.items())
        return f"{key} = {{ {inside} }}"
    return toml_of({key: value}).strip()


def value_or_word(text: str) -> Any:
    """What is given as text, as TOML has it, or the word: nobody wants to quote it twice for the shell.

    >>> value_or_word("4e-3"), value_or_word(" hard ")
    (0.004, 'hard')
    """
    try:
        (value,) = tomllib.loads(f"value = {text}").values()
    except ValueError:  # not TOML, or more than one value
        return text.strip()
    return value
