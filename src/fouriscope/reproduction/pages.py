"""A report as blocks (headings, words, tables, pictures), written as Markdown and as a page for the browser."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fouriscope.run.files import write_text


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Words:
    text: str


@dataclass(frozen=True)
class Table:
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    path: str
    caption: str


Block = Heading | Words | Table | Picture


def write_pages(out: Path, blocks: Sequence[Block]) -> None:
    """``report.md`` and ``report.html`` in ``out``; pictures are named relative to it."""
    write_text(out / "report.md", "\n\n".join(_markdown(block) for block in blocks) + "\n")
    write_text(out / "report.html", _page(blocks))


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return "#" * block.level + " " + block.text
    if isinstance(block, Words):
        return block.text
    if isinstance(block, Picture):
        return f"![{block.caption}]({block.path})\n\n*{block.caption}*"
    lines = ["| " + " | ".join(block.header) + " |", "|" + "---|" * len(block.header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in block.rows)])


_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#1f2430}
table{border-collapse:collapse;font-size:.9rem}
td,th{padding:.3rem .6rem;border-bottom:1px solid #d6d9de;text-align:left}
img{max-width:100%;height:auto}figcaption{color:#6b7280}.table{overflow-x:auto}"""


def _page(blocks: Sequence[Block]) -> str:
    body = "\n".join(_html(block) for block in blocks)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>fouriscope paper</title>'
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{html.escape(block.text)}</h{block.level}>"
    if isinstance(block, Words):
        return f"<p>{_inline(block.text)}</p>"
    if isinstance(block, Picture):
        words = html.escape(block.caption, quote=True)
        return f'<figure><img src="{html.escape(block.path)}" alt="{words}"><figcaption>{words}</figcaption></figure>'
    head = "".join(f"<th>{_inline(cell)}</th>" for cell in block.header)
    rows = "".join("<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in row) + "</tr>" for row in block.rows)
    return f'<div class="table"><table><tr>{head}</tr>{rows}</table></div>'


def _inline(text: str) -> str:
    """Bold and code, the only marks that the report uses."""
    escaped = html.escape(text)
    for mark, tag in (("**", "b"), ("`", "code")):
        pieces = escaped.split(mark)
        escaped = "".join(
            piece if number % 2 == 0 else f"<{tag}>{piece}</{tag}>" for number, piece in enumerate(pieces)
        )
    return escaped
