"""What a person sees while a solver runs: a bar in a terminal, lines in a log, nothing if it is to be quiet."""

from __future__ import annotations

import io
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

import fouriscope as fs
from fouriscope.run import progress
from fouriscope.run.progress import duration, shown_progress
from fouriscope.solvers import Iterations
from tests.conftest import LEDS, OPTICS
from tests.solvers.problems import make_solver, phase_problem


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


class Place:
    """Where a notebook shows a line: what was shown there, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Place:
        self.update(data, raw=raw)
        return self

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        self.lines.append(data["text/plain"])


def test_a_notebook_has_one_line_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place()
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=place.display))
    solver = make_solver(phase_problem())
    with shown_progress(Console(force_jupyter=True), Iterations(3), "reconstructing") as shows:
        shows.stage("reading the frames")
        solver.solve(Iterations(3), [shows])
    assert place.lines[:2] == ["reconstructing", "reading the frames"]
    assert place.lines[-1].startswith("reconstructing: 100 %  iteration 3  misfit")


def test_progress_is_that_of_the_rule_the_solver_has() -> None:
    seen: list[float] = []

    class Fractions(progress.SolverProgress):
        def show(self, fraction: float, details: str) -> None:
            seen.append(fraction)

    make_solver(phase_problem()).solve(Iterations(4), [Fractions(Iterations(2))])
    assert seen == [0.25, 0.5, 0.75, 1.0], "unseen frames asked for more iterations than were described"


def test_reconstruct_shows_its_progress_if_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = fs.ForwardModel(OPTICS, LEDS, (24, 24))
    data = fs.simulate(model, np.zeros(model.object_shape), snr_db=30, seed=0)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    quiet = fs.reconstruct(data, batch=12, iterations=2, seed=0)
    assert capsys.readouterr() == ("", "")
    told = fs.reconstruct(data, batch=12, iterations=2, seed=0, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "reading the frames\n" in err
    assert "reconstructing: iteration 2  misfit" in err
    np.testing.assert_array_equal(told.phase, quiet.phase)
