"""The gallery of real sets: ``python -m benchmarks real [names …] [--out DIR]``.

Every set goes through ``fouriscope import`` and ``fouriscope reconstruct`` with nothing set, as a user would begin, and
through plain EPRY with the geometry that was found. Pictures are to be looked at; the numbers stand in their titles.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.gallery import Strip, draw, share_outside
from benchmarks.heldout import HeldOut, edge_beside_points, held_out
from benchmarks.report import bar, table
from fouriscope.acquisition import Acquisition
from fouriscope.run.assemble import build_acquisition
from fouriscope.run.config import load_config

ROOT = Path(os.environ.get("FOURISCOPE_DATA", Path(__file__).parents[2] / "shared" / "data"))
DATA, REFERENCE = ROOT / "fpm", ROOT.parent / "tools" / "epry_reference.py"
# Of frames that are larger, the middle is enough for a picture.
LARGEST = 256
DRAWS = 3
EDGE = "frames across the pupil's edge, beside points"
LIMITS = {"share outside the band": 0.01, "held out, bright": 0.85, "held out, dark": 0.97, EDGE: 0.8}


@dataclass(frozen=True)
class Outcome:
    """What one set came to."""

    strip: Strip
    share: float
    epry_share: float
    held: HeldOut | None
    edge: float | None
    seconds: float


class StageError(Exception):
    """A command that a user would have typed failed; the message is what it said."""


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks real", description=__doc__)
    parser.add_argument("names", nargs="*", help="the sets, all by default")
    parser.add_argument("--out", type=Path, help="folder of the pictures and of the runs")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of held-out LEDs; 0 leaves that out")
    chosen = parser.parse_args(arguments)
    there = sorted(path.name for path in DATA.iterdir() if path.is_dir()) if DATA.is_dir() else []
    if not there:
        print(f"skipped: no data in {DATA} (FOURISCOPE_DATA says where to look)")
        return
    unknown = sorted(set(chosen.names) - set(there))
    if unknown:
        sys.exit(f"there is no set called {', '.join(unknown)} in {DATA}; there are {', '.join(there)}")
    out = chosen.out or Path(tempfile.mkdtemp(prefix="fouriscope_real_"))
    out.mkdir(parents=True, exist_ok=True)
    outcomes: dict[str, Outcome] = {}
    for name in chosen.names or there:
        try:
            outcomes[name] = gallery_of(name, out, range(chosen.draws))
        except StageError as error:
            print(f"{name}: failed\n{error}\n", flush=True)
            bar(f"real, {name}: reconstructed", 0, 1, at_least=True)
            continue
        draw([outcomes[name].strip], out / f"{name}.png")
        print(f"{name}: {out / f'{name}.png'} after {outcomes[name].seconds:.0f} s", flush=True)
    if outcomes:
        draw([outcome.strip for outcome in outcomes.values()], out / "overview.png")
        print(f"all of them: {out / 'overview.png'}\n")
        _report(outcomes)


def gallery_of(name: str, out: Path, draws: Sequence[int]) -> Outcome:
    """Import, reconstruct, EPRY, held-out frames."""
    started, run = time.perf_counter(), _default_run(name, out)
    seconds = time.perf_counter() - started
    config = load_config(run / "config.toml")
    data = build_acquisition(config, run)
    numbers, directions, ours = result_of(run)
    extent = tuple(size * data.optics.pixel for size in data.frame_shape)
    optics = (numbers["wavelength_m"], numbers["objective_na"])
    share = share_outside(ours, extent, *optics, directions)  # type: ignore[arg-type]
    epry, epry_share, note = None, float("nan"), f"left out: there is no {REFERENCE}"
    if REFERENCE.is_file():
        epry = reference_epry(data, directions, optics, numbers["defocus_m"])
        epry_share = share_outside(epry, extent, *optics, directions)  # type: ignore[arg-type]
        note = f"outside the band {epry_share:.4f}"
    held = held_out(config, run, draws) if draws else None
    edge = edge_beside_points(config, run) if draws else None
    title = f"outside the band {share:.4f}, {seconds:.0f} s"
    if held is not None:
        bright, dark, epry_bright, epry_dark = held.means
        title += f"\nheld out: bright {bright:.4f}, dark {dark:.3f}"
        note += f"\nheld out (our EPRY): bright {epry_bright:.4f}, dark {epry_dark:.3f}"
    central = int(np.hypot(*directions.T).argmin())
    raw = np.asarray(data.frames.frame(central), np.float64)
    return Outcome(Strip(name, raw, epry, ours, note, title), share, epry_share, held, edge, seconds)


def _default_run(name: str, out: Path) -> Path:
    """The folder of a run with nothing set but, of large frames, the region."""
    described, run = out / f"{name}.toml", out / "runs" / name
    shutil.rmtree(run, ignore_errors=True)  # of an earlier gallery
    run.parent.mkdir(exist_ok=True)
    fouriscope("import", DATA / name, "--out", described, "--force")
    shape = build_acquisition(load_config(described), out).frame_shape
    if max(shape) > LARGEST:
        rows, columns = (min(LARGEST, size) for size in shape)
        roi = [(shape[0] - rows) // 2, (shape[1] - columns) // 2, rows, columns]
        fouriscope("import", DATA / name, "--out", described, "--force", "--set", f"frames.roi={roi}")
    fouriscope("reconstruct", described, "--out", run)
    return run


def fouriscope(*arguments: object) -> None:
    """A command of ours in a process of its own."""
    program = "import sys; from fouriscope.cli.app import main; sys.argv[0] = 'fouriscope'; main()"
    command = [sys.executable, "-c", program, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise StageError(f"fouriscope {' '.join(map(str, arguments))}\n{ended.stdout}{ended.stderr}")


def result_of(run: Path) -> tuple[dict[str, Any], NDArray[np.float64], NDArray[Any]]:
    """geometry.json, the directions and the complex object of a run."""
    import zarr

    result = run / "result"
    numbers = json.loads((result / "geometry.json").read_text())
    leds = np.genfromtxt(result / "geometry.csv", delimiter=",", names=True)
    directions = np.stack([leds["na_y"], leds["na_x"]], axis=1)
    return numbers, directions, np.asarray(zarr.open_array(result / "object.zarr", mode="r")[...])


def reference_epry(
    data: Acquisition, directions: NDArray[np.float64], optics: tuple[float, float], defocus: float
) -> NDArray[Any]:
    """The object of the plain EPRY that shares no code with us, from the frames that have weight."""
    used = np.flatnonzero(np.ones(len(data)) if data.weights is None else np.asarray(data.weights) > 0)
    frames = np.stack([np.asarray(data.frames.frame(int(led)), np.float64) for led in used])
    side = min(frames.shape[1:])
    found = reference().epry(frames[:, :side, :side], directions[used], *optics, data.optics.pixel, defocus)[0]
    return np.asarray(found)


def reference() -> ModuleType:
    """The yardstick as a module."""
    spec = importlib.util.spec_from_file_location("epry_reference", REFERENCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _report(outcomes: dict[str, Outcome]) -> None:
    rows = []
    for name, outcome in outcomes.items():
        measured = {"share outside the band": outcome.share}
        if outcome.held is not None:
            bright, dark = outcome.held.ratios
            measured |= {"held out, bright": bright, "held out, dark": dark}
        if outcome.edge is not None:
            measured[EDGE] = outcome.edge
        for what, value in measured.items():
            epry = f"{outcome.epry_share:.4f}" if what.startswith("share") else "1"
            cells = bar(f"real, {name}: {what}", value, LIMITS[what])
            rows.append([name, what, f"{value:.4f}", epry, *cells, f"{outcome.seconds:.0f}"])
        if outcome.held is not None:
            for whom, ratios in (
                ("EPRY without our gains", outcome.held.plain_ratios),
                ("a perfect prediction", outcome.held.perfect_ratios),
            ):
                for what, value in zip(("bright", "dark"), ratios, strict=True):
                    rows.append([name, f"{what}, {whom}", f"{value:.4f}", "1", "", "", f"{outcome.seconds:.0f}"])
    held = [outcome.held for outcome in outcomes.values() if outcome.held is not None]
    if held:
        for what, pairs in (
            ("held out", [one.ratios for one in held]),
            ("without our gains", [one.plain_ratios for one in held]),
            ("a perfect prediction", [one.perfect_ratios for one in held]),
        ):
            bright, dark = np.mean(pairs, axis=0)
            rows.append(["average", f"{what}, bright and dark", f"{bright:.3f}, {dark:.3f}", "1", "", "", ""])
    table("Real sets, default beside EPRY", ["set", "what", "default", "EPRY", "bar", "", "seconds"], rows)


if __name__ == "__main__":
    main(sys.argv[1:])
