"""Engines beside each other: the compiled one before and after the seam, SciPy and torch beside it, torch's memory.

``python -m benchmarks engines`` compares engines; ``python -m benchmarks engines COMMIT`` compares the compiled engine
with that of an earlier commit as well, in processes that take turns.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks import microscope
from benchmarks.report import bar, table
from benchmarks.timing import interleaved
from fouriscope.fidelity import DataFidelity
from fouriscope.forward import ForwardModel

ROOT = Path(__file__).parents[1]
LIMITS = {"scipy": 4.0, "torch": 2.0}
SAME, MEMORY = 1.02, 0.2
TURNS, PAIRS, WORKER_TURNS, IMPORTS = 30, 5, {"gradient": 500, "pass": 25}, 8
# (side of the frames, of the object; LEDs of a gradient): memory is measured in a process of its own.
SIZES = ((100, 500, 293), (256, 1024, 60), (512, 2048, 24))


def main(arguments: list[str]) -> None:
    engines = ["numba", "scipy", *(["torch"] if find_spec("torch") else [])]
    _speed(engines)
    if "torch" in engines:
        _memory()
    else:
        print('torch is not installed, and not measured: pip install "fouriscope[torch]"\n')
    if arguments:
        _before_and_after(arguments[0])


def _speed(engines: list[str]) -> None:
    x = microscope.sample(ForwardModel(microscope.optics(), microscope.leds(), (100, 100)).x_shape)
    fidelities = {}
    for engine in engines:
        model = ForwardModel(microscope.optics(), microscope.leds(), (100, 100), engine=engine)
        fidelities[engine] = DataFidelity(model, model.intensity(np.float32(0.9) * x))
    rows = []
    for count in (60, 293):
        leds = np.random.default_rng(1).permutation(293)[:count]
        calls = {engine: partial(fidelity.gradient, x, leds) for engine, fidelity in fidelities.items()}
        seconds = interleaved(calls, TURNS)
        used = interleaved(calls, TURNS, time.process_time)  # what others do on the machine counts less
        for engine in engines:
            ratio, share = seconds[engine] / seconds["numba"], used[engine] / used["numba"]
            cells = bar(f"engines, {engine}, {count}", ratio, LIMITS[engine]) if engine in LIMITS else ["", ""]
            rows.append(
                [f"{engine}, {count} LEDs", f"{seconds[engine] * 1e3:.1f}", f"{ratio:.2f}", *cells, f"{share:.2f}"]
            )
    title = f"Gradient, object 500², frames 100², fastest of {TURNS} turns"
    table(title, ["engine", "ms", "relative to numba", "bar", "", "CPU time relative to numba"], rows)


MEASURE = """
import json, sys
import numpy as np
from pathlib import Path
from benchmarks import microscope
from benchmarks.online_run import peak_bytes
from fouriscope.fidelity import DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.parallel import thread_count

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

def problem(frame, side):
    optics, leds = microscope.optics(), microscope.leds()
    model = ForwardModel(optics, leds, (frame, frame), object_shape=(side, side), engine="torch")
    model.pupils(np.arange(len(model)))
    return DataFidelity(model, np.ones((len(model), frame, frame), np.float32))

frame, side, count = map(int, sys.argv[1:])
small = problem(16, 80)
small.gradient(np.zeros(small.model.x_shape, np.float32))  # loads libraries, starts threads
fidelity = problem(frame, side)
x, leds = np.zeros(fidelity.model.x_shape, np.float32), np.arange(count)
np.ones(x.shape, np.float32)
fidelity._stack.sum(), x.sum()
before = resident()
Path("/proc/self/clear_refs").write_text("5")
fidelity.gradient(x, leds)
shares = fidelity._pipeline._shares
memory = fidelity._pipeline.needed()
kept = memory.frames * count // len(fidelity) if shares.keeps_frames else 0
pupils = memory.pupils * count // len(fidelity)
at_once = min(shares.group * thread_count(), count)
stated = memory.total(at_once, keeps_frames=False) - memory.pupils + kept + pupils - x.nbytes
print(json.dumps([peak_bytes() - before, stated, shares.group, shares.keeps_frames]))
"""


def _memory() -> None:
    rows = []
    for frame, side, count in SIZES:
        command = [sys.executable, "-c", MEASURE, str(frame), str(side), str(count)]
        answers = [
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)
            for _ in range(3)
        ]
        measured, stated, group, keeps = sorted(answers)[1]
        off = abs(stated / measured - 1)
        name = f"frames {frame}², object {side}², {count} LEDs"
        cells = [str(group), "yes" if keeps else "no", *(f"{value / 2**20:.1f}" for value in (stated, measured))]
        rows.append([name, *cells, f"{off:.2f}", *bar(f"engines, memory, {name}", off, MEMORY)])
    header = ["gradient", "group", "frames kept", "formula / MiB", "measured / MiB", "off by", "bar", ""]
    table("Memory of torch on the CPU beyond what was there before, median of three processes", header, rows)


def _before_and_after(commit: str) -> None:
    """Several pairs of processes: two that run the same code differ by some percent, so one pair tells little."""
    ratios: dict[str, list[float]] = {what: [] for what in (*WORKER_TURNS, "import")}
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["git", "archive", commit, "src"], check=True, capture_output=True, cwd=ROOT).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        sources = {"before": Path(folder) / "src", "after": ROOT / "src"}
        for pair in range(PAIRS):
            order = list(sources.items())[:: -1 if pair % 2 else 1]
            workers = {name: _worker(path) for name, path in order}
            for what in WORKER_TURNS:
                taken = _turns(workers, what)
                ratios[what].append(taken["after"] / taken["before"])
            for worker in workers.values():
                worker.communicate()
            calls = {name: partial(_import_seconds, path) for name, path in order}
            imports = {name: min(call() for _ in range(IMPORTS)) for name, call in calls.items()}
            ratios["import"].append(imports["after"] / imports["before"])
    rows = []
    for what, found in ratios.items():
        median = float(np.median(found))
        every = ", ".join(f"{ratio:.3f}" for ratio in found)
        rows.append([what, every, f"{median:.3f}", *bar(f"engines, {what}", median, SAME)])
    title = f"The compiled engine now beside {commit}: ratios of the fastest turns in {PAIRS} pairs of processes"
    table(title, ["numba", "each pair", "median", "bar", ""], rows)


def _environment(source: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(source)}


def _worker(source: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "engine_worker.py")]
    worker = subprocess.Popen(
        command, env=_environment(source), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=source
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    return worker


def _turns(workers: dict[str, subprocess.Popen[str]], what: str) -> dict[str, float]:
    fastest = dict.fromkeys(workers, float("inf"))
    for _ in range(WORKER_TURNS[what]):
        for name, worker in workers.items():
            assert worker.stdin is not None
            assert worker.stdout is not None
            worker.stdin.write(f"{what}\n")
            worker.stdin.flush()
            fastest[name] = min(fastest[name], float(worker.stdout.readline()))
    return fastest


def _import_seconds(source: Path) -> float:
    timed = "import fouriscope; fouriscope.ForwardModel"
    program = f"import time; start = time.perf_counter(); {timed}; print(time.perf_counter() - start)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=_environment(source), check=True, capture_output=True, text=True, cwd=source)
    return float(done.stdout)
