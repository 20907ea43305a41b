"""What the site needs beyond MkDocs: executed examples, pages of the reference, formulas as MathML."""

from __future__ import annotations

import html
import re
import runpy
import sys
import zlib
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
# The cache of compiled code that the tests use: it is never stale, and in CI it is warm.
runpy.run_path(str(ROOT / "conftest.py"))

import matplotlib  # noqa: E402

matplotlib.use("Agg")

from tools.site import examples, reference  # noqa: E402

CACHE = ROOT / ".cache" / "site"
# Files of the repository that are pages of the site.
PAGES = {"CHANGELOG.md": "changes.md", "CONTRIBUTING.md": "contributing.md"}


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add pages that are made, not written."""
    cards = []
    for file in [file for file in files if file.src_uri.endswith(".py")]:
        path = Path(file.abs_src_path or "")
        cells, pictures = examples.executed(path, CACHE)
        page = file.src_uri.removesuffix(".py")
        title, summary = examples.title_and_summary(cells)
        _add(files, config, f"{page}.md", examples.as_page(cells, path.stem, title))
        _add(
            files, config, f"{page}.ipynb", examples.as_notebook(examples.read_cells(path.read_text(encoding="utf-8")))
        )
        names = [content for cell in cells for kind, content in cell.outputs if kind == "picture"]
        for name in names:
            _add(files, config, f"{Path(page).parent}/{name}", (pictures / name).read_bytes())
        if page.startswith("gallery/"):
            cards.append((path.stem, title, summary, names[0] if names else ""))
    order = str(config.nav)
    cards.sort(key=lambda card: order.index(f"gallery/{card[0]}.md"))
    _add(files, config, "gallery/index.md", gallery(cards))
    _add(files, config, "reference/index.md", reference.reference_index())
    for module in reference.REFERENCE:
        _add(files, config, f"reference/{module.rpartition('.')[2]}.md", reference.reference_page(module))
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        _add(files, config, page, re.sub(r"\]\(docs/", "](", text))
    return files


def _add(files: Files, config: MkDocsConfig, uri: str, content: str | bytes) -> None:
    files.append(File.generated(config, uri, content=content))


def gallery(cards: list[tuple[str, str, str, str]]) -> str:
    """The pictures of all examples, each with its sentence."""
    begin = "# Gallery\n\nEach example was executed when this site was built. Its page shows code and output.\n"
    shown = [
        f'<a class="card" href="{stem}.html" markdown="0">{_image(picture)}<b>{html.escape(title)}</b>'
        f"<span>{html.escape(re.sub('[`*]', '', summary))}</span></a>"
        for stem, title, summary, picture in cards
    ]
    paper = (
        '<a class="card" href="../paper/report.html" markdown="0"><img src="../paper/figure2.png" alt="">'
        "<b>The paper’s figures</b>"
        "<span>The experiments of Sun et al. 2018, run again by <code>fouriscope paper</code>.</span></a>"
    )
    return f'{begin}\n<div class="cards">\n{"".join([*shown, paper])}\n</div>\n'


def _image(picture: str) -> str:
    """Nothing for an example that was not executed."""
    return f'<img src="{picture}" alt="">' if picture else ""


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Blocks that the tests leave out are code like any other."""
    return markdown.replace("```python skip", "```python")


MATHS = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Formulas as MathML, which browsers draw themselves."""
    from latex2mathml.converter import convert

    def mathml(match: re.Match[str]) -> str:
        display = "block" if match[1] == "div" else "inline"
        return str(convert(html.unescape(match[2]), display=display))

    return MATHS.sub(mathml, content)


def on_post_build(*, config: MkDocsConfig) -> None:
    """Every public name has its place: the inventory that mkdocstrings writes says so."""
    _, _, packed = (Path(config.site_dir) / "objects.inv").read_bytes().partition(b"using zlib.\n")
    anchors = {line.split(" ")[0] for line in zlib.decompress(packed).decode().splitlines()}
    if absent := reference.missing(anchors):
        raise PluginError(f"the API reference lacks {', '.join(absent)}")
