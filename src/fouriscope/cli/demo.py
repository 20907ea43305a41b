"""`fouriscope demo`: the whole way from an object to a picture of it, on a simulated microscope."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fouriscope import plots
from fouriscope.acquisition import Acquisition
from fouriscope.choices import Choices
from fouriscope.cli.options import Quiet, console_of
from fouriscope.cli.progress import graceful_interrupt, shown_progress
from fouriscope.cli.simulated_files import write_acquisition
from fouriscope.errors import InvalidInputError
from fouriscope.paper import PAPER_LEDS, PAPER_RADIUS, paper_model, phase_image
from fouriscope.priors import as_prior
from fouriscope.reconstruction import reconstruct
from fouriscope.run import Result, RunConfig, start_run
from fouriscope.run.config import parse_config
from fouriscope.settings import EPRY
from fouriscope.simulation import simulate
from fouriscope.solvers import Callback, Iterations

METHODS: dict[str, Choices] = {
    "EPRY": {"prior": None, "method": EPRY(decay=0.3)},
    "NoReg-Online": {"prior": None},
    "TV-Online": {"prior": "tv"},
    "BM3D-Online": {"prior": {"name": "bm3d", "profile": "fast"}},
}
# An iteration of EPRY is a sweep over all frames; after this many it no longer gets better.
SWEEPS = 20
PHASE_RANGE = 0.3
SNR_DB = 40.0
MARKER = "made-by-fouriscope-demo"


def run_demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the pictures and runs. The folder of an earlier demo is replaced.")
    ] = Path("demo"),
    iterations: Annotated[int, typer.Option(min=1, help="Iterations of each reconstruction.")] = 150,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the noise and of the minibatches.")] = 0,
    view: Annotated[bool, typer.Option("--view", help="Show the progress in the browser.")] = False,
    quiet: Quiet = False,
) -> None:
    """Simulate a microscope, reconstruct its frames with and without a prior, and draw the results."""
    console = console_of(quiet)
    if out.exists() and not (out.is_dir() and ((out / MARKER).exists() or not any(out.iterdir()))):
        raise InvalidInputError(f"{out} exists and was not made by a demo; choose another folder with --out")
    model = paper_model()
    truth = phase_image(model.object_shape, PHASE_RANGE)
    console.print(
        f"simulating {len(model)} LEDs, NA {model.optics.na} → {model.synthetic_na:.3f}, "
        f"{model.frame_shape[0]}² frames → {model.object_shape[0]}² object, {SNR_DB:g} dB over the stack"
    )
    data = simulate(model, truth, snr_db=SNR_DB, noise="stack", seed=seed)
    if not view:
        results = _every_method(
            lambda name, choices, callbacks: reconstruct(data, **choices, callbacks=callbacks),
            iterations,
            seed,
            console,
        )
        _make_room(out)
        for name, result in results.items():
            result.save(out / name)
        _report(out, data, truth, results, console)
        return
    # The page needs run folders while they are filled, and frames on the disk.
    from fouriscope.cli.view import asked_to_end, served

    _make_room(out)
    frames = out / "acquisition"
    frames.mkdir()
    write_acquisition(frames, data, {"kind": "disc", **PAPER_LEDS, "radius": PAPER_RADIUS})
    with served([out / name for name in METHODS], console=console):
        results = _every_method(
            lambda name, choices, callbacks: start_run(
                _config(frames, choices), frames, out / name, callbacks=callbacks
            ),
            iterations,
            seed,
            console,
        )
        _report(out, data, truth, results, console)
        console.print("press Ctrl-C to close the page")
        with asked_to_end() as ended:
            ended.wait()


def _every_method(
    run: Callable[[str, Choices, list[Callback]], Result], iterations: int, seed: int, console: Console
) -> dict[str, Result]:
    results: dict[str, Result] = {}
    for name, choices in METHODS.items():
        count = min(iterations, SWEEPS) if "method" in choices else iterations
        with (
            graceful_interrupt() as interrupt,
            shown_progress(console, Iterations(count), f"{name:<14}") as progress,
        ):
            results[name] = run(name, {**choices, "iterations": count, "seed": seed}, [progress, interrupt])
        if results[name].stop_reason == "interrupted":
            raise KeyboardInterrupt
    return results


def _config(folder: Path, choices: Choices) -> RunConfig:
    """What a file would say of one method; the rest is as in the acquisition's own configuration."""
    path = folder / "config.toml"
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    method = choices.get("method")
    document |= {
        "prior": as_prior(choices["prior"]).spec(),
        "solver": (method.model_dump() if isinstance(method, EPRY) else {}) | {"seed": choices["seed"]},
        "stop": {"iterations": choices["iterations"]},
        "verdict": {"enabled": False},  # the truth is known
    }
    return parse_config(document, where=str(path))


def _make_room(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for child in out.iterdir():  # what the folder holds, not the folder: it may be "." or a link
        shutil.rmtree(child) if child.is_dir() else child.unlink()
    (out / MARKER).touch()


def _report(out: Path, data: Acquisition, truth: NDArray[Any], results: dict[str, Result], console: Console) -> None:
    """The figures and the table."""
    model = paper_model()
    # The outermost bright-field LED shows the phase best: half of it passes the pupil's edge.
    illumination_na = np.where(model.geometry.bright_field, model.geometry.illumination_na, 0)
    led = int(np.argmax(illumination_na))
    panels = [
        plots.Panel(
            "one camera frame",
            data.frames.frame(led),
            f"1 of {len(data)}, LED at {illumination_na[led]:.2f} NA",
            own_scale=True,
        ),
        plots.Panel("truth", truth, f"phase 0 … {PHASE_RANGE:g} rad"),
        *(plots.snr_panel(name, result.phase, truth) for name, result in results.items()),
    ]
    figure = plots.comparison_figure(panels, pixel=model.object_pixel[0], zoom=(90, 190, 120))
    plots.save_figure(figure, out / "demo.png")
    curves = {
        name: (result.history["frames_seen"] / len(data), result.history["snr"]) for name, result in results.items()
    }
    plots.save_figure(plots.convergence_figure(curves, xlabel="passes over all frames"), out / "convergence.png")
    table = Table("method", "SNR (dB)", "raw SNR (dB)", "passes", "seconds")
    for name, result in results.items():
        last = result.history.last
        table.add_row(
            name,
            f"{last.snr:.2f}",
            f"{last.snr_raw:.2f}",
            f"{last.frames_seen / len(data):.1f}",
            f"{last.seconds:.1f}",
        )
    console.print(table)
    console.print("The SNR leaves out a constant phase, which no frame shows. The raw SNR includes it; 1 dB is normal.")
    console.print(
        "EPRY is the method that laboratories usually use. NoReg has no prior. A pass uses as many frames as there are."
    )
    console.print(f"look at {escape(str(out / 'demo.png'))} and {escape(str(out / 'convergence.png'))}")
