"""Examples of the site: Python files in cells, executed when the site is built.

A cell begins with ``# %%``. A cell that begins with ``# %% [markdown]`` is text, in comments. A line of code that
begins with ``# !`` is a command of the shell, as in a notebook. Jupytext, VS Code, PyCharm and Spyder read this format
too. Each example becomes a page with its output and pictures, and a notebook to download.

An example whose first line is ``# needs: torch`` is executed where torch is installed. Elsewhere its page says that it
was not.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import html
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# What an example prints depends on these files. Nothing is executed again while they stay as they are.
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), Path(__file__)])


@dataclass
class Cell:
    """A piece of an example; ``outputs`` are (kind, content), filled in when it has run."""

    kind: str  # "markdown" or "code"
    text: str
    outputs: list[tuple[str, Any]] = field(default_factory=list)


def read_cells(source: str) -> list[Cell]:
    """The cells of an example."""
    cells = []
    for piece in re.split(r"^# %%", source, flags=re.MULTILINE)[1:]:
        first, _, text = piece.partition("\n")
        if "[markdown]" in first:
            lines = [line.removeprefix("#").removeprefix(" ") for line in text.strip().splitlines()]
            cells.append(Cell("markdown", "\n".join(lines)))
        else:
            cells.append(Cell("code", re.sub(r"^# !", "!", text.strip(), flags=re.MULTILINE)))
    return cells


def absent(source: str) -> list[str]:
    """The modules that an example needs and that are not installed."""
    needs = re.match(r"# needs: (.+)", source)
    return [name for name in re.split(r",\s*", needs[1]) if find_spec(name) is None] if needs else []


def as_notebook(cells: list[Cell]) -> str:
    """The cells as a Jupyter notebook without outputs."""
    written: list[dict[str, Any]] = []
    for number, cell in enumerate(cells):
        entry: dict[str, Any] = {"cell_type": cell.kind, "id": f"cell-{number}", "metadata": {}}
        entry["source"] = cell.text.splitlines(keepends=True)
        if cell.kind == "code":
            entry |= {"execution_count": None, "outputs": []}
        written.append(entry)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps({"cells": written, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5})


def execute(cells: list[Cell], pictures: Path, stem: str) -> None:
    """Run the cells one after the other in an empty folder; a warning is an error."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("error")
        for cell in cells:
            if cell.kind == "code":
                _run(cell, names)
                _keep_pictures(cell, pictures, stem)


def _run(cell: Cell, names: dict[str, Any]) -> None:
    printed = io.StringIO()
    value: Any = None
    if cell.text.startswith("!"):
        for command in cell.text.splitlines():
            printed.write(_shell(command.removeprefix("!")))
    else:
        tree = ast.parse(cell.text)
        shows = isinstance(tree.body[-1], ast.Expr) and not cell.text.endswith(";")
        last = tree.body.pop() if shows else None
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, "<example>", "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "<example>", "eval"), names)
    if printed.getvalue():
        cell.outputs.append(("text", printed.getvalue().rstrip()))
    if hasattr(value, "savefig") or hasattr(value, "_repr_png_"):
        cell.outputs.append(("figure", value))
    elif hasattr(value, "_repr_html_"):
        cell.outputs.append(("html", value._repr_html_()))
    elif value is not None:
        cell.outputs.append(("text", repr(value)))


def _shell(command: str) -> str:
    """What a command prints, in a terminal of 100 columns; an exit code other than 0 is an error."""
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, shell=True, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command!r} ended with exit code {done.returncode}:\n{done.stdout}")
    return done.stdout


def _keep_pictures(cell: Cell, pictures: Path, stem: str) -> None:
    """Save the figures that the cell drew, and the figure or picture that it returned."""
    import matplotlib.pyplot as plt

    drawn = [("figure", plt.figure(number)) for number in plt.get_fignums()]
    kept: list[tuple[str, Any]] = []
    for kind, content in [*drawn, *cell.outputs]:
        if kind == "figure":
            count = len(list(pictures.glob(f"{stem}-*.png")))
            name = f"{stem}-{count + 1}.png"
            if hasattr(content, "savefig"):
                content.savefig(pictures / name, dpi=110, bbox_inches="tight")
            else:
                (pictures / name).write_bytes(content._repr_png_())
            kept.append(("picture", name))
        else:
            kept.append((kind, content))
    cell.outputs = sorted(kept, key=lambda output: output[0] == "picture")
    plt.close("all")


def executed(path: Path, cache: Path) -> tuple[list[Cell], Path]:
    """The executed cells of an example and the folder of its pictures, from the cache if nothing has changed."""
    source = path.read_text(encoding="utf-8")
    lacking = absent(source)
    digest = hashlib.sha256(f"{source}{lacking}".encode())
    for file in SOURCES:
        digest.update(file.read_bytes())
    folder = cache / f"{path.stem}-{digest.hexdigest()[:12]}"
    record = folder / "cells.json"
    if not record.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        cells = read_cells(source)
        began = sum(os.times()[:4])
        try:
            if lacking:
                cells.insert(1, Cell("markdown", not_executed(lacking)))
            else:
                execute(cells, folder, path.stem)
        except Exception as error:
            raise RuntimeError(f"{path.relative_to(ROOT)} failed: {error!r}") from error
        print(f"executed {path.relative_to(ROOT)} in {sum(os.times()[:4]) - began:.1f} CPU-seconds", file=sys.stderr)
        record.write_text(json.dumps([vars(cell) for cell in cells]), encoding="utf-8")
    return [Cell(**cell) for cell in json.loads(record.read_text(encoding="utf-8"))], folder


def not_executed(lacking: list[str]) -> str:
    """What the page says of an example that could not run."""
    return (
        f"**This example was not executed.** Where this site was built, {' and '.join(lacking)} could not be imported. "
        "The code is complete; what it prints and draws is not shown."
    )


def as_page(cells: list[Cell], stem: str, description: str) -> str:
    """The executed cells in Markdown."""
    parts = []
    for number, cell in enumerate(cells):
        if cell.kind == "markdown":
            paragraphs = cell.text.split("\n\n")
            if number == 0:
                links = f"[Notebook]({stem}.ipynb){{ download }} · [Python]({stem}.py){{ download }}"
                paragraphs.insert(2, links)  # below the heading and the first paragraph
            parts += paragraphs
            continue
        if cell.text.startswith("!"):
            commands = "\n".join(line.removeprefix("!") for line in cell.text.splitlines())
            parts.append(f"```sh\n{commands}\n```")
        else:
            parts.append(f"```python\n{cell.text}\n```")
        for kind, content in cell.outputs:
            if kind == "picture":
                parts.append(f"![{html.escape(description)}]({content}){{ .output-picture }}")
            elif kind == "html":
                parts.append(f'<div class="output">{content}</div>')
            else:
                parts.append(f'```text {{ .output title="prints" }}\n{content}\n```')
    return "\n\n".join(parts) + "\n"


def title_and_summary(cells: list[Cell]) -> tuple[str, str]:
    """The heading of an example, and the sentence below it."""
    heading, _, rest = cells[0].text.partition("\n")
    return heading.lstrip("# "), rest.strip().split("\n\n")[0].replace("\n", " ")
