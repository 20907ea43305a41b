"""Tables that read well in a terminal and as Markdown, and bars: numbers with the limit they should stay below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """A measured ``value`` that should be at most, or at least, ``limit``."""

    name: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def reached(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit


_bars: list[Bar] = []


def bar(name: str, value: float, limit: float, *, at_least: bool = False) -> list[str]:
    """Remember a bar for the summary; returns two cells for a table: the limit, and whether it was reached."""
    measured = Bar(name, value, limit, at_least)
    _bars.append(measured)
    return [f"{'≥' if at_least else '≤'} {limit:g}", "reached" if measured.reached else "MISSED"]


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table; the first column is text, the others are numbers."""
    widths = [max(len(line[k]) for line in (header, *rows)) for k in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        first, *others = (
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "| " + " | ".join([first, *others]) + " |"

    rule = [("-" * width if k == 0 else "-" * (width - 1) + ":") for k, width in enumerate(widths)]
    print(f"{title}\n", flush=True)
    print(*map(line, (header, rule, *rows)), sep="\n", end="\n\n", flush=True)


def summary() -> str:
    """One line: how many bars were reached, and which were missed."""
    missed = [f"{b.name} ({b.value:.3g}, bar {b.limit:g})" for b in _bars if not b.reached]
    line = f"bars: {len(_bars) - len(missed)} reached, {len(missed)} missed"
    return f"{line}: {'; '.join(missed)}" if missed else line
