"""The reference of the configuration, written from the settings themselves.

``python -m fouriscope.settings.reference docs/configuration.md`` puts it between the two marks of that file.
"""

from __future__ import annotations

import re
import sys
import types
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from fouriscope.settings import (
    ILLUMINATIONS,
    METHODS,
    Alignment,
    Calibration,
    Engine,
    FramesSection,
    MicroscopeSection,
    Object,
    Output,
    PupilSection,
    Section,
    Stop,
    Verdict,
)
from fouriscope.settings.colour import Channel, ColourSection

START, END = "<!-- reference: begin -->", "<!-- reference: end -->"

# Every section, with its kinds.
SECTIONS: dict[str, Sequence[type[Section]]] = {
    "[frames]": [FramesSection],
    "[microscope]": [MicroscopeSection],
    "[illumination]": list(ILLUMINATIONS.values()),
    "[pupil]": [PupilSection],
    "[object]": [Object],
    "[alignment]": [Alignment],
    "[calibration]": [Calibration],
    "[solver]": list(METHODS.values()),
    "[stop]": [Stop],
    "[output]": [Output],
    "[verdict]": [Verdict],
    "[engine]": [Engine],
    "[colour]": [ColourSection],
    "[colour.red], [colour.green], [colour.blue]": [Channel],
}


def reference() -> str:
    """All sections as Markdown, with one table each, or one for each kind of a section that has several."""
    return "\n".join(_section(title, kinds) for title, kinds in SECTIONS.items())


def _section(title: str, kinds: Sequence[type[Section]]) -> str:
    if len(kinds) == 1:
        return f"### `{title}`\n\n{_summary(kinds[0])}\n\n{_table(kinds[0].model_fields)}"
    tag = next(name for name in kinds[0].model_fields if name in ("kind", "method"))
    default = kinds[0].model_fields[tag].default
    start = f' The default is "{default}".' if isinstance(default, str) else ""
    names = ", ".join(f'"{_tag(kind, tag)}"' for kind in kinds)
    parts, told = [f"### `{title}`\n\n`{tag}` is one of {names}.{start}\n"], dict[str, str]()
    for kind in kinds:
        rows = {name: _row(name, field) for name, field in kind.model_fields.items() if name != tag}
        again = [f"`{name}`" for name, row in rows.items() if told.get(name) == row]
        new = {
            name: field for name, field in kind.model_fields.items() if name in rows and told.get(name) != rows[name]
        }
        told = rows | told
        parts.append(f'`{tag} = "{_tag(kind, tag)}"`: {_summary(kind)}\n\n{_table(new)}')
        if again:
            parts.append(f"And as above: {', '.join(again)}.\n")
    return "\n".join(parts)


def _tag(kind: type[Section], tag: str) -> str:
    return str(get_args(kind.model_fields[tag].annotation)[0])


def _summary(section: type[Section]) -> str:
    """The first sentence of its docstring, without the title of the section."""
    text = " ".join((section.__doc__ or "").split("\n\n")[0].split())
    text = re.sub(r":(?:class|func|mod):`([^`]+)`", r"`\1`", text.split("]: ", 1)[-1])
    return text[0].upper() + text[1:]


def _table(fields: dict[str, FieldInfo]) -> str:
    rows = ["| key | default | values | meaning |", "|---|---|---|---|"]
    return "\n".join([*rows, *(_row(name, field) for name, field in fields.items())]) + "\n"


def _row(name: str, field: FieldInfo) -> str:
    return f"| `{name}` | {_default(field)} | {_values(field.annotation)} | {field.description} |"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "" if value in (None, {}, ()) else f"`{_toml(value)}`"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else f"{value!r}"


def _values(annotation: Any) -> str:
    """What may be written, in a few words."""
    if get_origin(annotation) is typing.Annotated:
        return _values(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return ", ".join(f'`"{value}"`' for value in get_args(annotation))
    if get_origin(annotation) in (typing.Union, types.UnionType):
        found = dict.fromkeys(_values(one) for one in get_args(annotation) if one is not type(None))
        return ", ".join(found)
    if get_origin(annotation) is tuple:
        inner = [one for one in get_args(annotation) if one is not Ellipsis]
        many, one = Ellipsis in get_args(annotation), _values(inner[0])
        if one[0].isdigit():
            return f"lists of {one}" if many else f"{len(inner)} × {one}"
        return _plural(one) if many else f"{len(inner)} {_plural(one)}"
    names = {bool: "true, false", int: "whole number", float: "number", str: "text"}
    return names.get(annotation, "table")


def _plural(words: str) -> str:
    return words if words.startswith("`") else words + ("" if words.endswith("s") else "s")


if __name__ == "__main__":
    path = Path(sys.argv[1])
    before, _, rest = path.read_text(encoding="utf-8").partition(START)
    path.write_text(f"{before}{START}\n\n{reference()}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
