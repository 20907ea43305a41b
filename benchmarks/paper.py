"""The paper's experiments with stored strengths: every bar of `fouriscope paper`, and how long it all takes."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.report import bar, table
from fouriscope.reproduction.experiment import Listener
from fouriscope.reproduction.paper_run import FIGURES, run_paper
from fouriscope.reproduction.protocol import Protocol

IMAGES = Path(__file__).resolve().parents[2] / "shared" / "data" / "images"


def main() -> None:
    if not IMAGES.is_dir():
        print(f"{IMAGES} is not there: strengths are stored for the paper's images only, so nothing is measured")
        return
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        summary = run_paper(
            Path(folder) / "paper",
            images=IMAGES,
            figures=set(FIGURES),
            protocol=Protocol(),
            listener=Listener(print, lambda total: None, lambda done, what: None, lambda solver, record: False),
        )
        minutes = (time.perf_counter() - began) / 60
    rows = [
        [b.what, b.paper, b.measured, b.wanted, bar(b.what, float(b.reached), 1, at_least=True)[1]]
        for b in summary.bars()
    ]
    rows.append(["the whole of it, minutes", "", f"{minutes:.1f}", *bar("paper: minutes", minutes, 30)])
    table("fouriscope paper --figure all", ("what", "paper", "measured", "bar", ""), rows)
