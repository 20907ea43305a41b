"""`fouriscope demo`: the whole way from an object to a picture of it, on a simulated microscope."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fouriscope import plots
from fouriscope.cli.progress import graceful_interrupt, shown_progress
from fouriscope.errors import InvalidInputError
from fouriscope.paper import paper_model, phase_image
from fouriscope.priors import PriorLike
from fouriscope.reconstruction import reconstruct
from fouriscope.run import Result
from fouriscope.simulation import simulate
from fouriscope.solvers import Iterations

METHODS: dict[str, PriorLike] = {
    "NoReg-Online": None,
    "TV-Online": "tv",
    "BM3D-Online": {"name": "bm3d", "profile": "fast"},
}
PHASE_RANGE = 0.3
SNR_DB = 40.0
BATCH = 60
MARKER = "made-by-fouriscope-demo"


def run_demo(out: Path, *, iterations: int, seed: int, console: Console, quiet: bool) -> None:
    """Simulate, reconstruct with each method, print the table, write the figures and run folders."""
    if out.exists() and not (out.is_dir() and ((out / MARKER).exists() or not any(out.iterdir()))):
        raise InvalidInputError(f"{out} exists and was not made by a demo; choose another folder with --out")
    model = paper_model()
    truth = phase_image(model.object_shape, PHASE_RANGE)
    console.print(
        f"simulating {len(model)} LEDs, NA {model.optics.na} → {model.synthetic_na:.3f}, "
        f"{model.frame_shape[0]}² frames → {model.object_shape[0]}² object, {SNR_DB:g} dB over the stack"
    )
    data = simulate(model, truth, snr_db=SNR_DB, noise="stack", seed=seed)
    results: dict[str, Result] = {}
    for name, prior in METHODS.items():
        with (
            graceful_interrupt() as interrupt,
            shown_progress(console, Iterations(iterations), f"{name:<14}", quiet=quiet) as progress,
        ):
            callbacks = [*progress, interrupt]
            results[name] = reconstruct(
                data, prior=prior, batch=BATCH, iterations=iterations, seed=seed, callbacks=callbacks
            )
        if results[name].stop_reason == "interrupted":
            raise KeyboardInterrupt
    out.mkdir(parents=True, exist_ok=True)
    for child in out.iterdir():  # what the folder holds, not the folder: it may be "." or a link
        shutil.rmtree(child) if child.is_dir() else child.unlink()
    (out / MARKER).touch()
    for name, result in results.items():
        result.save(out / name)
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
    curves = {name: (result.history["iteration"], result.history["snr"]) for name, result in results.items()}
    plots.save_figure(plots.convergence_figure(curves), out / "convergence.png")
    table = Table("method", "SNR (dB)", "raw SNR (dB)", "seconds", "ms an iteration")
    for name, result in results.items():
        last = result.history.last
        table.add_row(
            name,
            f"{last.snr:.2f}",
            f"{last.snr_raw:.2f}",
            f"{last.seconds:.1f}",
            f"{1e3 * last.seconds / last.iteration:.1f}",
        )
    console.print(table)
    console.print(f"look at {escape(str(out / 'demo.png'))} and {escape(str(out / 'convergence.png'))}")
