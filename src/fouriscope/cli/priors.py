"""`fouriscope priors`: what can be used here, and what is missing for the rest."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fouriscope.priors import PriorInfo, installed_priors


def show_priors(*, console: Console) -> None:
    """Print one line for each prior: its name, what it is, whether it can be used."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("name", "what it is", "objective", "here"):
        table.add_column(column, overflow="fold", no_wrap=column in ("name", "objective"))
    for info in installed_priors():
        table.add_row(info.name, escape(info.description), "yes" if info.has_objective else "no", escape(_state(info)))
    console.print(table, soft_wrap=False)


def _state(info: PriorInfo) -> str:
    if info.missing is not None:
        return info.missing
    return "available, from Python" if info.from_python else "available"
