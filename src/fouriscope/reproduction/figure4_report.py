"""What figure 4 shows, in numbers and words, for the report."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from fouriscope import __version__
from fouriscope.parallel import thread_count
from fouriscope.reproduction.pages import Block, Heading, Picture, Table, Words
from fouriscope.reproduction.protocol import BATCH
from fouriscope.reproduction.specimen_run import BASELINE, MeasuredSummary


def figure4_blocks(summary: MeasuredSummary, pictures: Sequence[Path]) -> list[Block]:
    """The section on figure 4: data, choices, misfits of held-out frames, pictures."""
    specimen = summary.specimen
    acquisition = specimen.acquisition
    rows, columns = acquisition.frame_shape
    blocks: list[Block] = [
        Heading("Figure 4: measured cells"),
        Words(
            f"`fouriscope paper --figure 4` {__version__} on {datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, "
            f"{thread_count()} threads. {specimen.name}: {len(acquisition)} frames of {rows} × {columns}, "
            f"{acquisition.optics.wavelength * 1e9:.0f} nm, NA {acquisition.optics.na:g}, pixels of "
            f"{summary.pixel * 1e6:.3f} µm in the reconstruction. {BATCH} measurements per iteration, "
            f"{summary.gradients} iterations with one denoising each, as in the paper; Batch always uses the same "
            f"{BATCH} frames, Online new ones in every iteration. The sample is not the paper's HeLa cells."
        ),
        Words(_settings(summary)),
    ]
    if specimen.notes:
        blocks.append(Words("The alignment, made once for all methods, found: " + "; ".join(specimen.notes) + "."))
    blocks += [_table(summary), Words(_verdict(summary)), Words(_score_words(summary))]
    blocks += [Picture(path.name, _caption(path.stem)) for path in pictures]
    return blocks


def figure4_page(summary: MeasuredSummary, pictures: Sequence[Path]) -> list[Block]:
    """A report of figure 4 alone."""
    title = "Regularized Fourier ptychography using an online plug-and-play algorithm: run again"
    return [Heading(title, 1), *figure4_blocks(summary, pictures)]


def _settings(summary: MeasuredSummary) -> str:
    config = summary.specimen.config
    refined = [name for name in ("zernike", "pixels", "gains", "leds") if getattr(config.calibration, name)]
    words = (
        f"Object: {config.object.model}; loss: {config.solver.loss}; calibrated during the runs: "
        f"{', '.join(refined) or 'nothing'} (EPRY recovers the pupil in its own way instead). "
    )
    assumed = summary.specimen.assumed
    if assumed:
        words += f"The configuration leaves these open, and they were chosen: {'; '.join(assumed)}. "
    written = config.prior.get("strength", "auto")
    if written == "auto":
        return words + "The strengths of the priors are automatic."
    return words + f"The strength of {config.prior.get('name')} is the configuration's, {written:g}; others automatic."


def _table(summary: MeasuredSummary) -> Table:
    rows = []
    bright = summary.bright
    for name, cell in summary.cells.items():
        shown = cell.fitted if summary.fits_brightness else cell.plain
        other = cell.plain if summary.fits_brightness else cell.fitted
        seconds = cell.curves["seconds"]
        rows.append(
            [
                name,
                f"{shown.mean():.2f}",
                *(f"{shown[which].mean():.3g}" if np.any(which) else "–" for which in (bright, ~bright)),
                f"{other.mean():.2f}",
                f"{cell.strength:.2g}" if cell.strength else "",
                f"{int(cell.curves['iteration'][-1])}",
                f"{seconds[-1]:.0f}",
            ]
        )
    other_name = "with brightness 1" if summary.fits_brightness else "with brightness fitted"
    header = ("method", "misfit of held-out frames", "of bright-field ones", "of dark-field ones", other_name)
    return Table((*header, "strength λ", "iterations", "seconds"), rows)


def _verdict(summary: MeasuredSummary) -> str:
    base = summary.score(BASELINE.name)
    parts = [
        f"{name} {100 * (summary.score(name) / base - 1):+.0f} % ({'lower' if lower else '**not lower**'})"
        for name, lower in summary.better_than_baseline().items()
    ]
    return f"Misfit of held-out frames compared with that of EPRY ({base:.2f}): {', '.join(parts)}."


def _score_words(summary: MeasuredSummary) -> str:
    held = summary.specimen.held_out
    words = (
        f"{len(held)} frames, {int(summary.bright.sum())} of them in bright field, were held out: no method and no "
        f"alignment has seen them. The misfit is the mean of the {summary.specimen.config.solver.loss} loss over them, "
        "predicted with each method's own object and pupil. "
    )
    if summary.fits_brightness:
        return words + (
            "LED gains are calibrated, so the brightness of an LED that was not seen is unknown: each held-out frame "
            "is scaled by the number that fits it best, for every method."
        )
    return words + "Nothing is fitted to them."


def _caption(stem: str) -> str:
    return (
        f"The {stem.removeprefix('figure4-')} by NoReg, TV and BM3D; above with the same {BATCH} frames in every "
        "iteration (Batch), below with new ones (Online). One grey scale for all; the close-ups are the same squares."
    )
