"""What a person sees while a solver runs: a bar in a terminal, lines in a log, nothing if it is to be quiet."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fouriscope.cli import progress
from fouriscope.cli.progress import duration, shown_progress
from fouriscope.solvers import Iterations


def shown(*, terminal: bool, quiet: bool = False) -> str:
    """What two stages print."""
    written = io.StringIO()
    console = Console(file=written, force_terminal=terminal, quiet=quiet, width=200)
    with shown_progress(console, Iterations(3), "reconstructing") as shows:
        shows.stage("reading the frames")
        shows.stage("aligning the microscope")
    return written.getvalue()


def test_a_terminal_shows_the_stage_that_a_command_is_in() -> None:
    assert "aligning the microscope" in shown(terminal=True)


def test_a_log_has_no_lines_of_a_short_command() -> None:
    assert shown(terminal=False) == ""


def test_a_log_has_a_line_for_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    assert shown(terminal=False) == "reading the frames\naligning the microscope\n"


def test_quiet_is_quiet() -> None:
    assert shown(terminal=True, quiet=True) == ""


@pytest.mark.parametrize(("seconds", "words"), [(3.4, "3 s"), (75, "1 min 15 s"), (3700, "1 h 01 min")])
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words
