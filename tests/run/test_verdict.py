"""The verdict of a run on disk: the same sentence everywhere, and only where it is asked for."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from fouriscope.cli.reconstruct import run_reconstruction
from fouriscope.plots import result_figure
from fouriscope.run import load_config, resume_run, start_run
from fouriscope.solvers import INTERRUPTED, Record, Solver
from fouriscope.verdict import Verdict
from fouriscope.viewer.runs import ViewedRun
from tests.run.problems import write_acquisition


def summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result" / "summary.json").read_text(encoding="utf-8"))
    return found


def printed(configuration: Path, folder: Path) -> str:
    """What `fouriscope reconstruct` prints."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert run_reconstruction(configuration, folder) == 0
    return said.getvalue()


def test_terminal_summary_and_page_say_the_same_sentence(tmp_path: Path) -> None:
    path = write_acquisition(tmp_path, verdict={"enabled": True})
    said = printed(path, tmp_path / "run")
    verdict = summary(tmp_path / "run")["verdict"]
    assert verdict["level"] in ("good", "doubtful", "bad")
    assert verdict["held_out"]["leds"]
    assert said.index("figure.png") < said.index(verdict["sentence"])
    described = ViewedRun(tmp_path / "run", "run").describe()
    assert described["message"] == "20 iterations"
    assert described["verdict"]["sentence"] == verdict["sentence"]


def test_a_resumed_run_gets_the_same_verdict_and_an_interrupted_one_none(tmp_path: Path) -> None:
    path = write_acquisition(tmp_path, verdict={"enabled": True})
    whole = start_run(load_config(path), tmp_path, tmp_path / "whole")

    def at_seven(_: Solver, record: Record) -> str | None:
        return INTERRUPTED if record.iteration == 7 else None

    parts = start_run(load_config(path), tmp_path, tmp_path / "parts", callbacks=[at_seven])
    assert isinstance(whole.verdict, Verdict)
    assert parts.verdict is None
    assert "verdict" not in summary(tmp_path / "parts")
    assert resume_run(tmp_path / "parts").verdict == whole.verdict
    assert summary(tmp_path / "parts")["verdict"] == summary(tmp_path / "whole")["verdict"]


def test_nobody_is_judged_who_does_not_want_to(tmp_path: Path) -> None:
    path = write_acquisition(tmp_path, verdict={"enabled": False})
    said = printed(path, tmp_path / "run")
    assert "verdict" not in summary(tmp_path / "run")
    assert "EPRY" not in said
    assert ViewedRun(tmp_path / "run", "run").describe()["message"] == "20 iterations"


def test_the_figure_has_the_sentence() -> None:
    figure = result_figure(np.eye(16), verdict="Good: so it is.")
    assert "Good: so it is." in [text.get_text() for part in figure.subfigs for text in part.texts]
