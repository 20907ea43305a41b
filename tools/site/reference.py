"""The pages of the API reference: which there are, and what stands on them."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from tools.site.markdown import as_markdown

from fouriscope.errors import InvalidInputError

ROOT = Path(__file__).parents[2]
STUB = ROOT / "src" / "fouriscope" / "__init__.pyi"
# Public modules, each with a page; `fouriscope` itself is the page of all names of `fs`.
REFERENCE = {
    "fouriscope.reconstruction": "Reconstruction",
    "fouriscope.loading": "Acquisitions from disk",
    "fouriscope.optics": "Objective, LEDs, pupil",
    "fouriscope.acquisition": "Frames and acquisitions",
    "fouriscope.forward": "The forward model",
    "fouriscope.fidelity": "Losses and samplers",
    "fouriscope.priors": "Priors",
    "fouriscope.solvers": "Solvers and stop rules",
    "fouriscope.alignment": "Alignment",
    "fouriscope.calibration": "Calibration",
    "fouriscope.simulation": "Simulation",
    "fouriscope.torch": "For users of torch",
    "fouriscope.live": "Live reconstruction",
    "fouriscope.field": "The whole field",
    "fouriscope.colour": "Colour",
    "fouriscope.tuning": "Tuning",
    "fouriscope.run": "Results and run folders",
    "fouriscope.verdict": "The verdict",
    "fouriscope.settings": "Settings",
    "fouriscope.metrics": "Metrics",
    "fouriscope.plots": "Figures",
    "fouriscope.errors": "Errors",
}


def public_names() -> dict[str, str]:
    """Each name of ``fs``, with the module that it comes from."""
    found: dict[str, str] = {}
    for line in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(line, ast.ImportFrom):
            found |= {
                name.asname or name.name: f"fouriscope.{line.module}" if line.module else "" for name in line.names
            }
    return found


def reference_index() -> str:
    """A table of everything in ``fs``, ordered by the pages of the reference."""
    import fouriscope as fs

    names = public_names()
    parts = [
        "# API reference",
        "`import fouriscope as fs` gives all names of this page. Each belongs to a module, whose page has its full "
        "description and further names.",
    ]
    for module, heading in REFERENCE.items():
        short = module.rpartition(".")[2]
        rows = [
            f"| {_link(name, home, short)} | {_first_sentence(getattr(fs, name))} |"
            for name, home in names.items()
            if home == module or (not home and name == short)
        ]
        parts.append(f"## [{heading}]({short}.md)")
        parts.append("| name | what it is |\n|---|---|\n" + "\n".join(rows) if rows else f"`{module}`")
    return "\n\n".join(parts) + "\n"


def _link(name: str, home: str, page: str) -> str:
    return f"[`fs.{name}`][{anchor(home, name)}]" if home else f"[`fs.{name}`]({page}.md)"


def anchor(module: str, name: str) -> str:
    """Where mkdocstrings puts a name; a module of the same name hides it, and then it is found in that module."""
    hidden = (ROOT / "src" / Path(*module.split(".")) / f"{name}.py").is_file()
    return f"{module}.{name}.{name}" if hidden else f"{module}.{name}"


def _first_sentence(thing: Any) -> str:
    text = as_markdown(inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ").replace("\\|", "|")
    return re.split(r"(?<=[.?:]) (?=[A-Z])", text)[0].replace("|", "&#124;")


def reference_page(module: str) -> str:
    """A page of the reference; mkdocstrings fills it in."""
    parts = [f"# {REFERENCE[module]}", f"::: {module}"]
    for name in exported(importlib.import_module(module)):
        if anchor(module, name) != f"{module}.{name}":
            parts.append(f"::: {anchor(module, name)}\n    options:\n      show_root_heading: true")
    return "\n\n".join(parts) + "\n"


def exported(module: ModuleType) -> list[str]:
    """The names that a module offers."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return list(getattr(module, "__all__", [name for name in own if not name.startswith("_")]))


def missing(anchors: set[str]) -> list[str]:
    """Public names that have a docstring but no place on a page."""
    found = []
    for module in REFERENCE:
        loaded = importlib.import_module(module)
        for name in exported(loaded):
            if _is_described(loaded, name) and anchor(module, name) not in anchors:
                found.append(f"{module}.{name}")
    return found


def _is_described(module: ModuleType, name: str) -> bool:
    try:
        thing = getattr(module, name)
    except InvalidInputError:  # it needs a package that is not installed here: what does so are classes
        return True
    return inspect.isclass(thing) or inspect.isfunction(thing)
