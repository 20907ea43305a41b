"""Docstrings as Markdown: roles, formulas and tables of reStructuredText, and examples without a heading."""

from __future__ import annotations

import re
from itertools import pairwise

# :func:`~fouriscope.simulate` and the like; `~` shows the last part of the name alone.
ROLE = re.compile(r":(?:func|class|meth|mod|attr|data|obj|exc):`(~?)([^`]+)`")
INLINE_FORMULA = re.compile(r":math:`([^`]+)`")
FORMULA = re.compile(r"^( *)\.\. math::[ ]*(.*\n(?:\1 +.+\n|[ ]*\n(?=\1 +\S))*)", re.MULTILINE)
# [1]_ in the text, and `.. [1]` in the list of references.
CITATION = re.compile(r"(\[\d+\])_")
REFERENCE = re.compile(r"^( *)\.\. (\[\d+\])", re.MULTILINE)
# Several parameters with one description. Griffe would give all of them the type of the first.
GROUP = re.compile(r"^(\w+(?:, \w+)+)\n((?: +\S.*(?:\n|$)|\n(?= +\S))+)", re.MULTILINE)
RULE = re.compile(r" *=+(?: +=+)+")


def as_markdown(text: str) -> str:
    """A docstring in Markdown.

    >>> as_markdown("See :class:`TV` [1]_.")
    'See `TV` [1].'
    """
    text = ROLE.sub(_name, text)
    text = INLINE_FORMULA.sub(r"$\1$", text)
    text = FORMULA.sub(lambda match: f"\n$$\n{' '.join(match[2].split())}\n$$\n", text + "\n").rstrip("\n")
    text = REFERENCE.sub(r"\n\1\2", CITATION.sub(r"\1", text))
    before, heading, sections = text.partition("----------\n")
    text = before + heading + GROUP.sub(_one_by_one, sections)
    return _fenced(_tables(text))


def _name(match: re.Match[str]) -> str:
    """A name as code; a full one is a link, if it is on a page."""
    shown = match[2].rpartition(".")[2] if match[1] else match[2]
    if not match[2].startswith("fouriscope."):
        return f"`{shown}`"
    return f'<autoref identifier="{match[2]}" optional><code>{shown}</code></autoref>'


def _one_by_one(match: re.Match[str]) -> str:
    described = match[2].rstrip("\n")
    ending = match[2][len(described) :]
    return "\n".join(f"{name}\n{described}" for name in match[1].split(", ")) + ending


def _tables(text: str) -> str:
    """Tables between rules of equals signs; three rules have a header between the first two."""
    lines: list[str] = []
    table: list[str] = []
    for line in [*text.splitlines(), ""]:
        if RULE.fullmatch(line) or (table and line.strip()):
            table.append(line)
            continue
        if table:
            lines += _table(table)
            table = []
        lines.append(line)
    return "\n".join(lines[:-1])


def _table(lines: list[str]) -> list[str]:
    edges = [match.start() for match in re.finditer("=+", lines[0])] + [None]
    rows = [[line[a:b].strip().replace("|", "\\|") for a, b in pairwise(edges)] for line in lines]
    rules = [number for number, line in enumerate(lines) if RULE.fullmatch(line)]
    head = rows[1] if len(rules) == 3 else [""] * (len(edges) - 1)
    body = [row for number, row in enumerate(rows) if number not in rules and row is not head]
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *body)]


def _fenced(text: str) -> str:
    """Examples outside a section of examples in fences, or Markdown takes ``>>>`` for a quotation."""
    before, heading, examples = text.partition("Examples\n--------\n")
    lines: list[str] = []
    inside = False
    for line in before.splitlines():
        if line.lstrip().startswith(">>>") and not inside:
            lines += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line.strip() if inside else line)
    if inside:
        lines.append("```")
    return "\n".join(lines) + ("\n" if heading else "") + heading + examples
