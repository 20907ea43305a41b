"""The paper's figures 1 to 3, from what was measured here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fouriscope import plots
from fouriscope.reproduction.experiment import Experiment
from fouriscope.reproduction.protocol import FAST
from fouriscope.reproduction.summary import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_1 = ("NoReg-Batch", "NoReg-Online", "TV-Online", "BM3D-Online", "BM3D-Full")
FIGURE_2 = ("NoReg-Batch", "NoReg-Online", "TV-Batch", "TV-Online", "BM3D-Batch", "BM3D-Online", "BM3D-Full")
BEYOND = ("NoReg-Full", "TV-Full", "BM3D-Full", "BM3D-Online", FAST, "BM3D-ADMM", "BM3D-RED", "EPRY")
FIGURE_3 = ("BM3D-Full", "BM3D-Online", FAST, "TV-Online")


def methods_of(figure: str) -> set[str]:
    """The names of the methods that a figure ("1", "2", "3") needs; "all" has more, for the tables."""
    return set({"1": FIGURE_1, "2": (*FIGURE_2, *BEYOND), "3": FIGURE_3}[figure])


def draw_figures(experiment: Experiment, summary: Summary, figures: set[str], out: Path) -> list[Path]:
    """Write the wanted figures as PNG and PDF; returns the PNGs."""
    drawn: list[Path] = []
    if "1" in figures:
        for number, name in enumerate(summary.images):
            drawn.append(_images(experiment, summary, number, out / ("figure1" if not number else f"figure1-{name}")))
    if "2" in figures:
        drawn.append(_curves(summary, FIGURE_2, "iteration", out / "figure2", "Figure 2"))
        drawn.append(_curves(summary, BEYOND, "gradients", out / "figure2-beyond", "Beyond the paper"))
    if "3" in figures:
        drawn.append(_curves(summary, FIGURE_3, "seconds", out / "figure3", "Figure 3"))
    return drawn


def _images(experiment: Experiment, summary: Summary, number: int, path: Path) -> Path:
    image = experiment.images[number]
    truth = experiment.truth(image)
    panels = [plots.Panel("Original", truth, f"phase 0 … {experiment.phase_range:.2g} rad")]
    panels += [
        plots.snr_panel(name, summary[name].cells[number].phase, truth) for name in FIGURE_1 if name in summary.averages
    ]
    side = truth.shape[0]
    zoom = (round(0.18 * side), round(0.38 * side), round(0.24 * side))
    figure = plots.comparison_figure(
        panels, pixel=experiment.model.object_pixel[0], zoom=zoom, title=f"Figure 1: {image.name}"
    )
    return _save(figure, path)


def _curves(summary: Summary, names: tuple[str, ...], against: str, path: Path, title: str) -> Path:
    curves = {}
    for name in names:
        if name not in summary.averages:
            continue
        average = summary[name]
        if against == "gradients":
            horizontal = average.curve("iteration") * average.method.gradients_per_iteration
        else:
            horizontal = average.curve(against)
        curves[name] = (horizontal, average.curve("snr"))
    count = len(summary.images)
    words = {"iteration": "iteration", "gradients": "gradients over a minibatch", "seconds": "seconds"}
    figure = plots.convergence_figure(
        curves,
        xlabel=words[against],
        ylabel="SNR (dB)",
        title=f"{title}: average of {count} image{'s' if count > 1 else ''}",
    )
    return _save(figure, path)


def _save(figure: Figure, path: Path) -> Path:
    plots.save_figure(figure, path.with_name(path.name + ".pdf"))
    return plots.save_figure(figure, path.with_name(path.name + ".png"))
