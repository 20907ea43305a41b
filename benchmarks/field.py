"""Whole fields in tiles: how well two workers share them, what it costs beside the bare solver, seams, memory.

``python -m benchmarks field`` measures everything, ``python -m benchmarks.field speed seams`` two of the parts: speed,
seams, memory.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.field_problems import (
    CURVATURE,
    PHOTONS,
    SIDE,
    Recorded,
    copies,
    mosaic,
    peak_of_workers,
    record,
    run,
    stitched,
)
from benchmarks.field_seams import Seams, score, seam_ratios
from benchmarks.report import bar, summary, table
from fouriscope.field import FieldFolder, connected, forecast
from fouriscope.field.local import LocalWorkers
from fouriscope.run import load_config

SPEED_UP_BAR, OVERHEAD_BAR, FORECAST_BAR = 1.8, 0.10, 0.25
SNR_BAR_DB, MEMORY_BAR = 0.2, 0.10
MB = 1e6

# 4 × 4 tiles of the default size, in the middle of the frames.
SIXTEEN_TILES = (48, 48, 416, 416)
FOUR_TILES = (48, 48, 224, 224)
TILES = 16
TURNS = 3
SPEED_ITERATIONS = 150  # what `fouriscope import` writes
SEAM_ITERATIONS = 60
MEMORY_ITERATIONS = 3
# Tiles of 32 frame pixels that take a fraction of a second.

Rows = list[list[str]]


def main(parts: Sequence[str] = ()) -> None:
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        sys.exit(f"no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory() as name:
        recorded = record(Path(name) / "flat")
        print(
            f"{recorded.leds} frames of {SIDE}² uint16 ({PHOTONS} electrons) simulated and written as Zarr "
            f"in {recorded.seconds:.0f} s, {recorded.scale} object pixels per frame pixel\n",
            flush=True,
        )
        for part in parts or PARTS:
            began = time.perf_counter()
            PARTS[part](recorded)
            print(f"({part}: {time.perf_counter() - began:.0f} s)\n", flush=True)


def speed(recorded: Recorded) -> None:
    """One worker, two workers and none take turns at the same 16 tiles."""
    configuration = recorded.configuration("speed", iterations=SPEED_ITERATIONS, roi=SIXTEEN_TILES)
    warming = recorded.configuration("warming", iterations=2, roi=FOUR_TILES)
    folder = recorded.folder / "speed"
    expected = forecast(load_config(configuration), configuration.parent, workers=2)
    began = time.perf_counter()
    options = ["--out", str(folder / "command"), "--workers", "2", "--quiet"]
    command = [sys.executable, "-m", "benchmarks.peak", "field", str(configuration), *options]
    subprocess.run(command, check=True, capture_output=True)
    whole = time.perf_counter() - began
    starts: dict[int, float] = {}
    seconds: dict[str, float] = {}
    core_seconds: dict[str, float] = {}

    def keep(name: str, taken: float) -> bool:
        fastest = taken < seconds.get(name, float("inf"))
        seconds[name] = min(taken, seconds.get(name, float("inf")))
        return fastest

    everything = [str(index) for index in range(TILES)]
    with ExitStack() as opened:
        clients: dict[int, Any] = {}
        for workers in (1, 2):
            began = time.perf_counter()
            clients[workers] = opened.enter_context(connected(workers=workers))
            starts[workers] = time.perf_counter() - began
            for turn in range(2):  # the second for a worker that the first left idle
                run(warming, folder / f"warming-{workers}-{turn}", clients[workers])
        for turn in range(TURNS):
            if turn == 0:  # and once more at the end: the machine's own share of what is lost
                keep("bare", bare(folder / "command", [everything]))
            for workers, name in ((1, "one"), (2, "two")):
                out = folder / f"{name}-{turn}"
                began = time.perf_counter()
                run(configuration, out, clients[workers])
                if keep(name, time.perf_counter() - began):
                    store = FieldFolder.open(out).store
                    records = [store.record(index) for index in range(TILES)]
                    core_seconds[name] = sum(record.seconds for record in records if record is not None)
        keep("two bare", bare(folder / "command", [everything[::2], everything[1::2]]))
        keep("bare", bare(folder / "command", [everything]))
    speed_up = seconds["one"] / seconds["two"]
    overhead = seconds["one"] / seconds["bare"] - 1
    without_cluster = expected.seconds - starts_expected()
    rows = [
        ["bare solver, one process", f"{seconds['bare']:.1f} s", "", ""],
        ["… two processes, half the tiles each", f"{seconds['two bare']:.1f} s", "", ""],
        ["field, one worker", f"{seconds['one']:.1f} s", "", ""],
        ["… of it in tiles, as workers note it", f"{core_seconds['one']:.1f} s", "", ""],
        ["field, two workers", f"{seconds['two']:.1f} s", "", ""],
        ["… in tiles, both workers together", f"{core_seconds['two']:.1f} s", "", ""],
        ["starting a cluster of one, of two (in no other row)", f"{starts[1]:.1f}, {starts[2]:.1f} s", "", ""],
        [
            "speed-up by the second worker",
            f"{speed_up:.2f}",
            *bar("field, speed-up", speed_up, SPEED_UP_BAR, at_least=True),
        ],
        ["… of the bare solver by a second process", f"{seconds['bare'] / seconds['two bare']:.2f}", "", ""],
        [
            "overhead over the bare solver, one worker",
            f"{100 * overhead:.1f} %",
            *bar("field, overhead over the bare solver", overhead, OVERHEAD_BAR),
        ],
        [
            "… with the start of the cluster",
            f"{100 * ((seconds['one'] + starts[1]) / seconds['bare'] - 1):.1f} %",
            "",
            "",
        ],
        ["`fouriscope field`, two workers, from command to end", f"{whole:.1f} s", "", ""],
        [
            "… `--plan` had said",
            f"{expected.seconds:.1f} s",
            *off("field, forecast of the time", expected.seconds, whole),
        ],
        [
            "… without cluster and loading, beside two warm workers",
            f"{without_cluster:.1f} s: {100 * (without_cluster / seconds['two'] - 1):+.0f} %",
            "",
            "",
        ],
    ]
    title = (
        f"{TILES} tiles of 128², {recorded.leds} LEDs, TV, {SPEED_ITERATIONS} iterations, fastest of {TURNS} turns each"
    )
    table(title, ["what", "measured", "bar", ""], rows)


def starts_expected() -> float:
    """What a forecast adds for a cluster and for loading compiled kernels."""
    from fouriscope.field.planner import CLUSTER_SECONDS, WORKER_SECONDS

    return CLUSTER_SECONDS + WORKER_SECONDS


def off(name: str, expected: float, measured: float) -> list[str]:
    """Cells of a bar: by which part of what was measured a forecast is wrong."""
    limit, reached = bar(name, abs(expected / measured - 1), FORECAST_BAR)
    return [f"{limit} off", f"{reached} ({100 * (expected / measured - 1):+.0f} %)"]


def bare(field: Path, shares: Sequence[Sequence[str]]) -> float:
    """Seconds until the last of some processes is through its share of the tiles; see :mod:`benchmarks.field_bare`."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.field_bare", str(field), *share],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for share in shares
    ]
    for process in processes:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("a process of bare tiles ended before it began")
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return max(float(process.communicate()[0]) for process in processes)


def seams(recorded: Recorded) -> None:
    """The stitched phase beside its tiles, and what can be seen of the tiles' borders."""
    folder = recorded.folder.parent
    curved = record(folder / "curved", curvature=CURVATURE)
    problems: tuple[tuple[str, Recorded, dict[str, Any]], ...] = (
        ("flat ground", recorded, {}),
        (f"flat ground, curved by {CURVATURE * 1e6:g} µm, Zernike", curved, {"calibration": {"zernike": True}}),
        ("pictures with large areas", record(folder / "pictures", mosaic), {}),
    )
    found: dict[str, Seams] = {}
    with connected(workers=2) as client:
        for name, field, sections in problems:
            sections = sections | {"solver": {"loss": "amplitude"}}
            configuration = field.configuration(f"seams-{len(found)}", iterations=SEAM_ITERATIONS, **sections)
            result = run(configuration, field.folder / f"seams-{len(found)}", client)
            found[name] = score(FieldFolder.open(result.path), stitched(result.path), field.truth)
    rows: Rows = []
    for name, seen in found.items():
        rows += [
            [f"{name}: tiles, mean", f"{seen.tiles:.2f} dB", "", ""],
            [
                "… stitched, one constant for all",
                f"{seen.whole:.2f} dB",
                *_level(f"{name}, stitched", seen.whole - seen.tiles),
            ],
            [
                "… … in the tiles' windows, mean",
                f"{seen.windows:.2f} dB",
                *_level(f"{name}, windows", seen.windows - seen.tiles),
            ],
            ["… tiles without their borders, mean", f"{seen.inner_tiles:.2f} dB", "", ""],
            [
                "… … stitched there, mean",
                f"{seen.inner_windows:.2f} dB",
                f"{seen.inner_windows - seen.inner_tiles:+.2f} dB",
                "",
            ],
            [
                "… stitched beside all tiles' errors together",
                f"{seen.pooled_tiles:.2f} dB",
                *_level(f"{name}, pooled", seen.whole - seen.pooled_tiles),
            ],
            ["… … with one constant for all", f"{seen.one_constant:.2f} dB", "", ""],
        ]
        for what, ratio in seam_ratios(seen).items():
            limit = 1 + 2 * ratio.error
            cells = bar(f"field, {name}, {what} at seams", ratio.value, round(limit, 3))
            rows.append([f"… {what}, seams / elsewhere", f"{ratio.value:.3f} ± {ratio.error:.3f}", *cells])
    title = (
        f"{SIDE}² frames, 25 tiles of 128², {recorded.leds} LEDs, phase 0 to 1 rad, TV, {SEAM_ITERATIONS} iterations"
    )
    table(title, ["what", "measured", "bar", ""], rows)


def _level(name: str, difference: float) -> list[str]:
    limit, reached = bar(f"field, {name} beside its tiles / dB", difference, -SNR_BAR_DB, at_least=True)
    return [f"{limit} dB", f"{reached} ({difference:+.2f} dB)"]


def memory(recorded: Recorded) -> None:
    """The peak of the workers of two fields, one of them four times as large."""
    peaks: dict[int, float] = {}
    rows: Rows = []
    predicted = 0.0
    for times in (1, 2):
        side = times * SIDE
        frames = recorded.frames if times == 1 else copies(recorded, times)
        configuration = recorded.configuration(f"{side}", iterations=MEMORY_ITERATIONS, stored=frames, side=side)
        began = time.perf_counter()
        with LocalWorkers(2) as client:
            before = peak_of_workers(client) / MB
            result = run(configuration, recorded.folder / f"memory-{side}", client)
            peaks[side] = peak_of_workers(client) / MB
        name = f"{side}² frames, {len(result.plan.tiling)} tiles, {time.perf_counter() - began:.0f} s"
        rows.append([name, f"{before:.0f}", f"{peaks[side]:.0f}", "", ""])
        if times == 1:
            predicted = forecast(load_config(configuration), configuration.parent, workers=2).worker_bytes / MB
    growth = peaks[2 * SIDE] / peaks[SIDE] - 1
    cells = bar("field, growth of a worker's peak with the field", abs(growth), MEMORY_BAR)
    rows.append(["4 × the field", "", f"{100 * growth:+.1f} %", *cells])
    cells = off("field, forecast of a worker's memory", predicted, peaks[SIDE])
    rows.append([f"`--plan` of the {SIDE}² field", "", f"{predicted:.0f}", *cells])
    title = f"Peak memory of a worker, the larger of two; tiles of 128², {recorded.leds} LEDs"
    table(title, ["field", "before / MB", "peak / MB", "bar", ""], rows)


PARTS = {"speed": speed, "seams": seams, "memory": memory}

if __name__ == "__main__":
    main(sys.argv[1:])
    print(summary())
