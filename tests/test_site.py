"""The site: its reference leaves nothing public out, its examples are cells, and docstrings become Markdown."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from pathlib import Path

import pytest
from tools.site import examples, reference
from tools.site.markdown import as_markdown

import fouriscope as fs

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "docs").rglob("*.py"))
# What no user imports: the commands, the page, the paper's experiments.
INTERNAL = {"cli", "viewer", "reproduction"}


def test_every_public_name_has_a_page() -> None:
    assert set(reference.public_names()) == set(fs.__all__)
    index = reference.reference_index()
    assert [name for name in fs.__all__ if f"[`fs.{name}`]" not in index] == []


def test_every_public_package_has_a_page() -> None:
    packages = {info.name for info in pkgutil.iter_modules(fs.__path__) if info.ispkg} - INTERNAL
    assert {f"fouriscope.{name}" for name in packages} <= set(reference.REFERENCE)
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [m for m in reference.REFERENCE if f"reference/{m.rpartition('.')[2]}.md" not in nav] == []


def test_a_name_without_a_place_is_found() -> None:
    everything = set()
    for module in reference.REFERENCE:
        everything |= {reference.anchor(module, name) for name in reference.exported(importlib.import_module(module))}
    assert reference.missing(everything) == []
    assert reference.missing(everything - {"fouriscope.priors.TV"}) == ["fouriscope.priors.TV"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_notebook(path: Path) -> None:
    cells = examples.read_cells(path.read_text(encoding="utf-8"))
    title, summary = examples.title_and_summary(cells)
    assert cells[0].kind == "markdown"
    assert title
    assert summary.endswith(".")
    notebook = json.loads(examples.as_notebook(cells))
    assert [cell["cell_type"] for cell in notebook["cells"]] == [cell.kind for cell in cells]
    for cell in cells:
        if cell.kind == "code" and not cell.text.startswith("!"):
            compile(cell.text, str(path), "exec")


def test_cells_run_in_one_namespace_and_show_what_they_return(tmp_path: Path) -> None:
    source = "# %% [markdown]\n# # Title\n# Text.\n\n# %%\na = 2\nprint(a)\n\n# %%\na + 1\n\n# %%\n# !echo hello\n"
    cells = examples.read_cells(source)
    examples.execute(cells, tmp_path, "title")
    assert [cell.outputs for cell in cells] == [[], [("text", "2")], [("text", "3")], [("text", "hello")]]
    page = examples.as_page(cells, "title", "Title")
    assert "```sh\necho hello\n```" in page


def test_an_example_that_fails_or_warns_is_an_error(tmp_path: Path) -> None:
    warns = examples.read_cells("# %%\nimport warnings\nwarnings.warn('no')\n")
    with pytest.raises(UserWarning, match="no"):
        examples.execute(warns, tmp_path, "warns")
    with pytest.raises(RuntimeError, match="exit code 3"):
        examples.execute(examples.read_cells("# %%\n# !exit 3\n"), tmp_path, "fails")


def test_an_example_that_lacks_something_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "ROOT", tmp_path)
    path = tmp_path / "learned.py"
    path.write_text("# needs: json, not_a_module\n# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nprint(1)\n")
    assert examples.absent(path.read_text()) == ["not_a_module"]
    cells, _ = examples.executed(path, tmp_path / "cache")
    assert [cell.outputs for cell in cells] == [[], [], []]
    page = examples.as_page(cells, "learned", "Title")
    assert "not executed.** Where this site was built, not_a_module could not be imported" in page
    assert page.index("Title") < page.index("not executed") < page.index("print(1)")
    path.write_text(path.read_text().replace(", not_a_module", ""))
    cells, _ = examples.executed(path, tmp_path / "cache")
    assert [list(output) for cell in cells for output in cell.outputs] == [["text", "1"]]


def test_docstrings_become_markdown() -> None:
    assert as_markdown("See :class:`~priors.TV` and :class:`L1`.") == "See `TV` and `L1`."
    link = '<autoref identifier="fouriscope.load" optional><code>load</code></autoref>'
    assert as_markdown(":func:`~fouriscope.load`") == link
    assert as_markdown("a :math:`x`\n\n.. math:: x =\n   y\n\nb") == "a $x$\n\n\n$$\nx = y\n$$\n\nb"
    table = as_markdown("===  ===\na    b\n===  ===\n1    2\n===  ===")
    assert table == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert as_markdown("===== ==\na a   b\n===== ==") == "|  |  |\n| --- | --- |\n| a a | b |"
    assert as_markdown("One.\n\n>>> 1 + 1\n2") == "One.\n\n\n```pycon\n>>> 1 + 1\n2\n```"
    together = "Parameters\n----------\na, b\n    Both.\n\n    And more.\n\nNotes"
    apart = "Parameters\n----------\na\n    Both.\n\n    And more.\nb\n    Both.\n\n    And more.\n\nNotes"
    assert as_markdown(together) == apart
    inside = "One.\n\nExamples\n--------\n>>> 1 + 1\n2"
    assert as_markdown(inside) == inside


def test_no_docstring_keeps_markup_of_another_language() -> None:
    """Every role and directive in a docstring is one that the site understands."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src" / "fouriscope").rglob("*.py")]
    directives = {name for text in texts for name in re.findall(r"^\s*\.\. ([a-z-]+)::", text, re.MULTILINE)}
    assert directives <= {"math"}
