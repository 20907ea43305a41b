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
TURNS, PAIRS, WORKER_TURNS, IMPORTS = 60, 5, {"gradient of 60": 200, "gradient of 293": 50, "pass": 40}, 15
# (side of the frames, of the object; LEDs of a gradient; bound in MiB): memory is measured in a process of its own.
SIZES = (
    *((100, 500, 293, None), (256, 1024, 60, None), (512, 2048, 24, None)),
    *((100, 500, 293, 80), (100, 500, 293, 60), (100, 500, 293, 30), (256, 1024, 60, 40), (512, 2048, 24, 150)),
)


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
from fouriscope.engines import Engine
from fouriscope.fidelity import CameraLoss, DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.parallel import thread_count

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

def problem(frame, side, memory):
    optics, leds, engine = microscope.optics(), microscope.leds(), Engine("torch", memory=memory)
    model = ForwardModel(optics, leds, (frame, frame), object_shape=(side, side), engine=engine)
    model.pupils(np.arange(len(model)))
    return DataFidelity(model, np.ones((len(model), frame, frame), np.float32), loss=CameraLoss(0.01))

frame, side, count, bound = map(json.loads, sys.argv[1:])
memory = None if bound is None else bound * 2**20
small = problem(16, 80, memory)
small.gradient(np.zeros(small.model.x_shape, np.float32))  # loads libraries, starts threads
fidelity = problem(frame, side, memory)
x, leds = np.zeros(fidelity.model.x_shape, np.float32), np.arange(count)
fidelity._stack.sum(), x.sum()
before = resident()
Path("/proc/self/clear_refs").write_text("5")
for seed in range(10):  # what is freed and kept grows
    fidelity.gradient(x, np.random.default_rng(seed).permutation(leds))
shares, needed = fidelity._pipeline._shares, fidelity._pipeline.needed()
share = count / len(fidelity)
needed = needed._replace(pupils=int(needed.pupils * share), frames=int(needed.frames * share))
at_once = min(shares.group * thread_count(), count)
stated = needed.total(at_once, keeps_frames=shares.keeps_frames)
print(json.dumps([peak_bytes() - before + x.nbytes, stated, shares.group, shares.keeps_frames]))
"""


def _memory() -> None:
    rows, misses = [], []
    for frame, side, count, bound in SIZES:
        command = [sys.executable, "-c", MEASURE, *map(json.dumps, (frame, side, count, bound))]
        answers = [
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)
            for _ in range(3)
        ]
        measured, stated, group, keeps = sorted(answers)[1]
        off = abs(stated / measured - 1)
        name = f"frames {frame}², object {side}², {count} LEDs"
        cells = [str(group), "yes" if keeps else "no", *(f"{value / 2**20:.1f}" for value in (stated, measured))]
        name_of_bar = f"engines, memory, {name}, {bound}"
        rows.append([name, str(bound or ""), *cells, f"{off:.2f}", *bar(name_of_bar, off, MEMORY)])
        if bound is not None:
            most = max(answers)[0] / 2**20
            misses.append([name, f"{most:.1f}", *bar(f"{name_of_bar}, obeyed", most, bound)])
    header = [
        "gradients",
        "bound / MiB",
        "group",
        "frames kept",
        "formula / MiB",
        "measured / MiB",
        "off by",
        "bar",
        "",
    ]
    table("Memory of ten gradients by torch on the CPU beyond what was there, median of three processes", header, rows)
    table("The most of three processes beside the bound", ["gradients", "MiB", "bar", ""], misses)


def _before_and_after(commit: str) -> None:
    """CPU time of one thread in several pairs of processes: two that run the same code differ by some percent, so one
    pair tells little."""
    ratios: dict[str, list[float]] = {what: [] for what in (*WORKER_TURNS, "import")}
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["git", "archive", commit, "src"], check=True, capture_output=True, cwd=ROOT).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        sources = {"before": Path(folder) / "src", "after": ROOT / "src"}
        for pair in range(PAIRS):
            order = list(sources.items())[:: -1 if pair % 2 else 1]
            workers = {name: _worker(path) for name, path in order}
            for what, count in WORKER_TURNS.items():
                turns = [{name: _turn(worker, what) for name, worker in workers.items()} for _ in range(count)]
                ratios[what].append(_fastest(turns, "after") / _fastest(turns, "before"))
            for worker in workers.values():
                worker.communicate()
            turns = [{name: _import_seconds(path) for name, path in order} for _ in range(IMPORTS)]
            ratios["import"].append(_fastest(turns, "after") / _fastest(turns, "before"))
    rows = []
    for what, found in ratios.items():
        median = float(np.median(found))
        every = ", ".join(f"{ratio:.3f}" for ratio in found)
        rows.append([what, every, f"{median:.3f}", *bar(f"engines, {what}", median, SAME)])
    title = f"The compiled engine now beside {commit}: CPU times of the fastest turns in {PAIRS} pairs of processes"
    table(title, ["numba", "each pair", "median", "bar", ""], rows)


def _environment(source: Path) -> dict[str, str]:
    """One thread, and compiled modules are kept and found again, as users have them."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return inherited | {"PYTHONPATH": str(source), "FOURISCOPE_THREADS": "1"}


def _worker(source: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "engine_worker.py")]
    worker = subprocess.Popen(
        command, env=_environment(source), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=source
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    return worker


def _turn(worker: subprocess.Popen[str], what: str) -> float:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{what}\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


def _fastest(turns: list[dict[str, float]], name: str) -> float:
    return min(turn[name] for turn in turns)


def _import_seconds(source: Path) -> float:
    timed = "import fouriscope; fouriscope.ForwardModel"
    program = f"import time; start = time.process_time(); {timed}; print(time.process_time() - start)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=_environment(source), check=True, capture_output=True, text=True, cwd=source)
    return float(done.stdout)
