"""How long ``import fouriscope`` takes in a fresh process, and what it drags in."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.report import bar, table

LIMIT = 0.3
TURNS = 7
UNWANTED = ("matplotlib", "dask", "torch", "starlette", "uvicorn", "numba", "scipy")
STATEMENTS = (
    "import fouriscope",
    "import numpy",
    "from fouriscope import Optics, LEDArray, ForwardModel, DataFidelity",
)
PROGRAM = f"""
import json, sys, time
start = time.perf_counter()
{{statement}}
seconds = time.perf_counter() - start
print(json.dumps([seconds, [name for name in {UNWANTED} if name in sys.modules]]))
"""


def fresh_process(statement: str) -> tuple[float, list[str]]:
    """Seconds of the statement, and the unwanted modules that are loaded after it."""
    program = PROGRAM.format(statement=statement)
    finished = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    seconds, loaded = json.loads(finished.stdout)
    return float(seconds), list(loaded)


def main() -> None:
    seconds = dict.fromkeys(STATEMENTS, float("inf"))
    loaded: dict[str, list[str]] = {}
    for _ in range(TURNS):
        for statement in STATEMENTS:
            taken, loaded[statement] = fresh_process(statement)
            seconds[statement] = min(seconds[statement], taken)
    rows = []
    for statement, taken in seconds.items():
        ours = "fouriscope" in statement
        cells = bar(f"importing, {statement}", taken, LIMIT) if ours else ["", ""]
        dragged = ", ".join(loaded[statement]) or "none"
        rows.append([f"`{statement}`", f"{taken:.3f}", *cells, dragged])
    bar("importing, unwanted modules", len(loaded[STATEMENTS[0]]), 0)
    table(f"Import, fastest of {TURNS} fresh processes", ["statement", "seconds", "bar", "", "unwanted modules"], rows)


if __name__ == "__main__":
    main()
