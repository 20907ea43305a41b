"""An extension of Griffe, which reads docstrings for mkdocstrings."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.site.markdown import as_markdown


class AsMarkdown(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called by Griffe for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """A setting is described by its field, where no docstring is."""
        call = attr.value
        if attr.docstring is None and isinstance(call, griffe.ExprCall) and str(call.function) == "Field":
            given = {str(item.name): item.value for item in call.arguments if isinstance(item, griffe.ExprKeyword)}
            if "description" in given:
                attr.docstring = griffe.Docstring(ast.literal_eval(str(given["description"])), parent=attr)
                attr.value = given.get("default")
