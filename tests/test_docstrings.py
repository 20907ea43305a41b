"""Every parameter of what the API reference shows is described there."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, get_args

import pytest
from tools.site import reference

import fouriscope as fs
from fouriscope.errors import InvalidInputError
from fouriscope.priors import BM3DParameters

# Parameters that one description covers.
TOGETHER = {"overrides": set(BM3DParameters().flat())}


def shown_things() -> dict[str, Any]:
    """Every function and class of the reference, except protocols, which nobody calls."""
    found = {}
    for module in map(importlib.import_module, reference.REFERENCE):
        for name in reference.exported(module):
            try:
                thing = getattr(module, name)
            except InvalidInputError:  # it needs a package that is not installed
                continue
            if inspect.isfunction(thing) or (inspect.isclass(thing) and not getattr(thing, "_is_protocol", False)):
                found[f"{module.__name__}.{name}"] = thing
    return found


def names_in_sections(text: str) -> Iterator[str]:
    """Names in the sections of parameters and attributes.

    >>> list(names_in_sections("A.\\n\\nParameters\\n----------\\na, **b\\n    Two.\\n\\nNotes\\n-----\\nNone."))
    ['a', 'b']
    """
    title = ""
    for line, after in pairwise([*inspect.cleandoc(text).splitlines(), ""]):
        if after and not after.strip("-"):
            title = line
        elif title in ("Parameters", "Attributes") and line.strip("-") and not line.startswith(" "):
            yield from (name.strip("* ") for name in line.split(","))


def fields_with_docstrings(kind: type) -> Iterator[str]:
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, TypeError):  # not written in Python
        return
    assert isinstance(definition, ast.ClassDef)
    for line, after in pairwise(definition.body):
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if is_text and isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            yield line.target.id


def described(thing: Any) -> set[str]:
    """Parameters with a place in a docstring, a docstring of their own, or the description of a setting."""
    found: set[str] = set()
    for part in thing.__mro__ if inspect.isclass(thing) else [thing]:
        found.update(names_in_sections(part.__doc__ or ""))
        if inspect.isclass(part):
            found.update(names_in_sections(getattr(vars(part).get("__init__"), "__doc__", None) or ""))
            found.update(fields_with_docstrings(part))
            found.update(
                name
                for name, field in getattr(part, "model_fields", {}).items()
                if field.description or len(get_args(field.annotation)) == 1  # a tag that has only one value
            )
    return found.union(*(names for name, names in TOGETHER.items() if name in found))


def undescribed(thing: Any) -> set[str]:
    try:
        parameters = inspect.signature(thing).parameters
    except ValueError:  # of an exception
        return set()
    return {name for name in parameters if not name.startswith("_")} - described(thing)


THINGS = shown_things()


def test_the_reference_is_looked_at() -> None:
    shown = set(map(id, THINGS.values()))
    public = [getattr(fs, name) for name in fs.__all__ if name not in ("TorchDenoiser", "DeepinvDenoiser")]
    assert [thing for thing in public if callable(thing) and id(thing) not in shown] == []


@pytest.mark.parametrize("name", THINGS)
def test_every_parameter_is_described(name: str) -> None:
    assert undescribed(THINGS[name]) == set()


def test_a_parameter_without_a_description_is_found() -> None:
    def function(a: int, b: int) -> None:
        """Nothing.

        Parameters
        ----------
        a
            One.
        """

    assert undescribed(function) == {"b"}
