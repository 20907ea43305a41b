"""The page of a run: how soon it shows something, how soon something new, and what it costs the solver it watches."""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from benchmarks import microscope
from benchmarks.report import bar, table
from fouriscope.forward import ForwardModel
from fouriscope.paper import PAPER_LEDS, PAPER_MICROSCOPE, PAPER_RADIUS
from fouriscope.run.snapshot import Snapshot, read_snapshot, write_snapshot

FRAME = 100  # which makes an object of 500²
ITERATIONS = 50
TURNS, TURN_SECONDS, SETTLING = 13, 12.0, 3.0
UPDATES = 15
# A desktop without a graphics card composes its windows on the processor; headless Chromium would emulate a card there
# instead, which takes three times as long.
WITHOUT_A_CARD = ["--disable-gpu", "--disable-software-rasterizer"]
LARGE, MOVES = 900, 90  # pixels along a side of the image that is moved, and how often
# Moves and zooms as a hand makes them, one for each picture that the browser shows; milliseconds between two of them.
MOVE = """
(moves) => new Promise((done) => {
  const canvas = document.querySelector('.pane canvas');
  const { left, top, width, height } = canvas.getBoundingClientRect();
  const at = (name, k, more) => canvas.dispatchEvent(new (name === 'wheel' ? WheelEvent : PointerEvent)(name, {
    clientX: left + width * (0.4 + 0.2 * Math.sin(k / 7)), clientY: top + height * (0.4 + 0.2 * Math.cos(k / 9)),
    bubbles: true, cancelable: true, pointerId: 1, button: 0, ...more,
  }));
  const times = [];
  const step = (now) => {
    times.push(now);
    const k = times.length;
    if (k > moves) return done(times.slice(1).map((time, i) => time - times[i]));
    at('wheel', k, { deltaY: k < moves / 2 ? -40 : 40 });
    at('pointermove', k, {});
    requestAnimationFrame(step);
  };
  canvas.setPointerCapture = () => {};
  at('pointerdown', 0, {});
  requestAnimationFrame(step);
})
"""
BARS = {"first picture (ms)": 1000.0, "update (ms)": 300.0, "solver while it is viewed (%)": 3.0}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = write_problem(Path(folder))
        solve(config, Path(folder) / "run")
        first = statistics.median(first_picture(Path(folder) / "run") for _ in range(5))
        updates = update_times(Path(folder) / "run")
        moving = moves(Path(folder) / "large")
        slower = slowdown(config, Path(folder))
    update = float(np.percentile(updates, 95))
    rows = [
        ["first picture after opening a 500² run", f"{first:.0f} ms", *cells("first picture (ms)", first)],
        ["a snapshot written → painted, 95 %", f"{update:.0f} ms", *cells("update (ms)", update)],
        [
            f"dragged and zoomed, {LARGE}²: between two pictures, median and 95 %",
            f"{statistics.median(moving):.0f}, {np.percentile(moving, 95):.0f} ms",
            "",
            "",
        ],
        [
            "time of the solver, viewed live / alone",
            f"{100 + slower:.1f} %",
            *cells("solver while it is viewed (%)", slower),
        ],
    ]
    table("the page, in headless Chromium on the machine of the solver", ["what", "measured", "bar", ""], rows)


def cells(name: str, value: float) -> list[str]:
    return bar(name, value, BARS[name])


def write_problem(folder: Path) -> Path:
    """293 frames of 100², as in the paper."""
    model = ForwardModel(microscope.optics(), microscope.leds(), (FRAME, FRAME))
    np.save(folder / "frames.npy", model.intensity(microscope.sample(model.x_shape)))
    document: dict[str, Any] = {
        "frames": {"path": "frames.npy"},
        "microscope": PAPER_MICROSCOPE,
        "illumination": {"kind": "disc", **PAPER_LEDS, "radius": PAPER_RADIUS},
        "object": {"margin": 0},
        "solver": {"batch": 60},
        "stop": {"iterations": ITERATIONS},
    }
    (folder / "config.toml").write_text(tomli_w.dumps(document), encoding="utf-8")
    return folder / "config.toml"


def solve(config: Path, run: Path) -> float:
    """Seconds in the solver of a run in a process of its own, without the first iteration, which compiles."""
    command = [sys.executable, "-m", "fouriscope.cli.app", "reconstruct", str(config), "--out", str(run), "--quiet"]
    subprocess.run(command, check=True)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return float(lines[-1]["seconds"] - lines[0]["seconds"])


class Browser:
    """The page in headless Chromium, which draws as a person's browser would, at most sixty times per second."""

    def __init__(self, url: str) -> None:
        from playwright.sync_api import sync_playwright
        from tests.viewer.browser import CHROMIUM

        self._playwright = sync_playwright().start()
        self._chromium = self._playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage", *WITHOUT_A_CARD]
        )
        self._url = url
        self.page = self._chromium.new_page(viewport={"width": 1440, "height": 900})

    def open(self) -> float:
        """Milliseconds from asking for the page to the first picture on it."""
        began = time.perf_counter()
        self.page.goto(self._url, wait_until="commit")
        self.painted(None)
        return 1e3 * (time.perf_counter() - began)

    def look(self, at_it: bool) -> None:
        """At the page, or at nothing."""
        if at_it:
            self.open()
        else:
            self.page.goto("about:blank")

    def painted(self, other_than: str | None) -> str:
        """Wait until another version of the first run is painted."""
        while True:
            version = self.page.evaluate("() => window.fouriscope?.version(0) ?? null")
            if version and version != other_than:
                return str(version)
            time.sleep(0.005)

    def close(self) -> None:
        self._chromium.close()
        self._playwright.stop()


class Viewing:
    """`fouriscope view` in a process of its own, and a browser that looks at it."""

    def __init__(self, run: Path) -> None:
        run.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "fouriscope.cli.app", "view", str(run), "--no-browser", "--quiet"]
        self._server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._server.stdout is not None
        url = self._server.stdout.readline().strip()
        answers(url)
        self.browser = Browser(url)

    def close(self) -> None:
        self.browser.close()
        self._server.terminate()
        self._server.wait()


def answers(url: str) -> None:
    """Wait until the server does."""
    host, path = url.removeprefix("http://").split("/", 1)
    connection = http.client.HTTPConnection(host)
    connection.request("GET", f"/{path}")
    connection.getresponse().read()
    connection.close()


def first_picture(run: Path) -> float:
    with closing(Viewing(run)) as viewing:
        return viewing.browser.open()


def update_times(run: Path) -> list[float]:
    """Milliseconds from a written snapshot to its picture on the page."""
    taken = []
    with closing(Viewing(run)) as viewing:
        viewing.browser.open()
        snapshot = read_snapshot(run)
        assert snapshot is not None
        version = viewing.browser.painted(None)
        for number in range(UPDATES):
            time.sleep(0.7 + 0.013 * number)  # at another moment of the watcher each time
            write_snapshot(run, _changed(snapshot, number))
            began = time.perf_counter()
            version = viewing.browser.painted(version)
            taken.append(1e3 * (time.perf_counter() - began))
    return taken


def moves(run: Path) -> list[float]:
    """Milliseconds between two pictures while a large image is dragged and zoomed."""
    from tests.viewer.served import written_run

    written_run(run, shape=(LARGE, LARGE))
    with closing(Viewing(run)) as viewing:
        viewing.browser.open()
        viewing.browser.page.evaluate(MOVE, 10)
        times: list[float] = viewing.browser.page.evaluate(MOVE, MOVES)
    return times


def _changed(snapshot: Snapshot, number: int) -> Snapshot:
    return replace(snapshot, phase=snapshot.phase + np.float32(0.01 * number), iteration=snapshot.iteration + number)


def slowdown(config: Path, folder: Path) -> float:
    """Percent by which an iteration takes longer while the run is viewed.

    One run, looked at and not looked at in turns of some seconds: what else the machine does meanwhile hits both alike.
    Each turn is compared with the mean of the two beside it.
    """
    document = tomllib.loads(config.read_text(encoding="utf-8"))
    document["stop"] = {"iterations": "unlimited", "seconds": 4.0 * TURN_SECONDS * TURNS}
    long = config.with_name("long.toml")
    long.write_text(tomli_w.dumps(document), encoding="utf-8")
    run = folder / "long"
    command = [sys.executable, "-m", "fouriscope.cli.app", "reconstruct", str(long), "--out", str(run), "--quiet"]
    with subprocess.Popen(command) as solver:
        while not (run / "snapshot.npz").exists():
            time.sleep(0.1)
        turns = []
        with closing(Viewing(run)) as viewing:
            for turn in range(TURNS):
                viewing.browser.look(turn % 2 == 1)
                time.sleep(SETTLING)  # opening and closing the page is not looking at it
                first, began = last_record(run)
                time.sleep(TURN_SECONDS)
                last, ended = last_record(run)
                turns.append((ended - began) / (last - first))
        solver.terminate()
    ratios = [2 * turns[k] / (turns[k - 1] + turns[k + 1]) for k in range(1, TURNS - 1, 2)]
    print(f"ratios {', '.join(f'{ratio:.3f}' for ratio in ratios)} on {os.cpu_count()} cores\n")
    return 100 * (statistics.median(ratios) - 1)


def last_record(run: Path) -> tuple[int, float]:
    """Iteration and seconds of the last complete line."""
    line = json.loads((run / "metrics.jsonl").read_bytes().split(b"\n")[-2])
    return line["iteration"], line["seconds"]
