"""The report on figures 1 to 3: our numbers compared with the published ones."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from fouriscope import __version__
from fouriscope.parallel import thread_count
from fouriscope.reproduction.bandwidth import BandwidthChange
from fouriscope.reproduction.experiment import Experiment
from fouriscope.reproduction.pages import Block, Heading, Picture, Table, Words, write_pages
from fouriscope.reproduction.protocol import BATCH, CALIBRATION_TARGET, FAST, PUBLISHED_SECONDS, PUBLISHED_SNR, SNR_DB
from fouriscope.reproduction.summary import Summary
from fouriscope.run.files import write_json

HELD_OUT = (
    ("TV-Online", "TV-Online, held-out λ", "TV-Online, automatic λ"),
    (FAST, f"{FAST}, held-out λ", f"{FAST}, automatic λ"),
)


def write_report(
    experiment: Experiment,
    summary: Summary,
    pictures: Sequence[Path],
    out: Path,
    *,
    paper_images: bool,
    automatic: Sequence[str],
    changed: BandwidthChange | None = None,
    more: Sequence[Block] = (),
) -> None:
    """``report.md``, ``report.html`` and ``results.json`` beside the figures; what a bandwidth ``changed``, and
    ``more`` (figure 4), come last."""
    broad = [] if changed is None else changed.blocks()
    write_pages(out, [*_blocks(experiment, summary, pictures, paper_images, automatic), *broad, *more])
    told = {} if changed is None else {"bandwidth": changed.as_json()}
    write_json(out / "results.json", summary.as_json() | told)


def _blocks(
    experiment: Experiment, summary: Summary, pictures: Sequence[Path], paper_images: bool, automatic: Sequence[str]
) -> list[Block]:
    protocol, count = experiment.protocol, len(summary.images)
    blocks: list[Block] = [
        Heading("Regularized Fourier ptychography using an online plug-and-play algorithm: run again", 1),
        Words(
            f"Made by `fouriscope paper` {__version__} on {datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, "
            f"{thread_count()} threads. {len(experiment.model)} LEDs (32 × 32 array, 4 mm pitch, 70 mm away), 513 nm, "
            f"NA 0.2 → {experiment.model.synthetic_na:.3f}, {protocol.frame}² frames, "
            f"{experiment.model.object_shape[0]}² objects, {SNR_DB:g} dB of white noise over the whole "
            f"stack, {BATCH} measurements per minibatch, {protocol.gradients} gradients per run, flat start."
        ),
    ]
    if not paper_images:
        blocks.append(Words(f"The objects are not the paper's six images but: {', '.join(summary.images)}."))
    if automatic:
        blocks.append(Words(f"These strengths were not searched for; they are automatic: {'; '.join(automatic)}."))
    blocks += [Heading("Against the paper")]
    bars = summary.bars()
    blocks.append(
        Table(
            ("what", "paper", "bar", "measured", ""),
            [[b.what, b.paper, b.wanted, b.measured, "reached" if b.reached else "**not reached**"] for b in bars],
        )
    )
    blocks += [Heading("Every method"), _methods_table(summary)]
    blocks += [Words("SNR in dB at the end, image by image:"), _images_table(summary)]
    if any(name in summary.averages for name, _, _ in HELD_OUT):
        blocks += [Heading("Strength without a truth"), Words(_HELD_OUT_WORDS), *_held_out_tables(summary)]
    blocks += [Heading("Figures")]
    blocks += [Picture(path.name, _caption(path.stem, count)) for path in pictures]
    blocks += [Heading("What differs from the paper, and why"), *(Words(text) for text in _differences(summary))]
    return blocks


_HELD_OUT_WORDS = (
    "On real data there is no truth to tune against. `fouriscope tune` holds out 8 % of the LEDs, bright and dark, and "
    "uses the strength whose reconstruction predicts their frames best. Oracle: the strength with the highest SNR "
    "against the truth. Automatic: from the noise alone, without a search. SNR in dB:"
)


def _methods_table(summary: Summary) -> Table:
    rows = []
    base = summary.averages.get("NoReg-Online")
    for name, average in summary.averages.items():
        published = PUBLISHED_SNR.get(name)
        seconds = PUBLISHED_SECONDS.get(name)
        gain = "" if base is None else f"{average.final - base.final:+.2f}"
        paper_gain = "" if published is None else f"{published - PUBLISHED_SNR['NoReg-Online']:+.2f}"
        rows.append(
            [
                name,
                f"{average.final:.2f}",
                f"{average.best:.2f}",
                f"{average.final_raw:.2f}",
                gain,
                "" if published is None else f"{published:.2f}",
                paper_gain,
                f"{average.milliseconds:.1f}",
                "" if seconds is None else f"{seconds * 1e3:.0f}",
                f"{int(average.curve('iteration')[-1])}",
                f"{average.curve('seconds')[-1]:.1f}",
            ]
        )
    header = (
        *("method", "SNR at the end", "at its best iteration", "raw SNR", "over NoReg-Online"),
        *("paper's SNR", "paper's gain", "ms per iteration", "paper's ms", "iterations", "seconds"),
    )
    return Table(header, rows)


def _images_table(summary: Summary) -> Table:
    rows = [[name, *(f"{cell.final:.2f}" for cell in average.cells)] for name, average in summary.averages.items()]
    return Table(("method", *summary.images), rows)


def _held_out_tables(summary: Summary) -> list[Block]:
    tables: list[Block] = []
    for names in HELD_OUT:
        if not all(name in summary.averages for name in names):
            continue
        rows = [
            [label, *(f"{cell.final:.2f} (λ = {cell.strength:.1e})" for cell in summary[name].cells)]
            for label, name in zip(("oracle", "held-out", "automatic"), names, strict=True)
        ]
        lost = [a.final - b.final for a, b in zip(summary[names[0]].cells, summary[names[1]].cells, strict=True)]
        rows.append(["oracle over held-out", *(f"{value:+.2f}" for value in lost)])
        tables.append(Table((names[0], *summary.images), rows))
    return tables


def _caption(stem: str, count: int) -> str:
    if stem == "figure2":
        return f"Average SNR over {count} images against iterations. The paper's figure 2."
    if stem == "figure2-beyond":
        return "The methods that the paper does not show, against gradients (those of Full see all measurements)."
    if stem == "figure3":
        return "Average SNR against seconds. The paper's figure 3, and several gradients per denoising."
    return "The phase with its SNR (and the raw SNR, which includes the unobservable constant), and a close-up."


def _differences(summary: Summary) -> list[str]:
    noreg = summary.averages.get("NoReg-Online")
    landed = "" if noreg is None else f" (it lands at {noreg.final:.2f} dB)"
    return [
        f"**Phase range.** The paper does not state it. It was calibrated so that NoReg-Online ends at the paper's "
        f"{CALIBRATION_TARGET} dB on average over its six images{landed}: phase in [0, {summary.phase_range:.3g}] rad. "
        "Gains can then be compared; absolute numbers cannot.",
        "**40 dB.** White noise with one standard deviation for all frames, 40 dB below the mean power of the whole "
        "stack. The paper does not say whether it means this or 40 dB in each frame; here most dark-field frames lie "
        "below the noise.",
        "**The loss** is the paper's, squared differences of intensities, with the gradient corrected "
        "(docs/paper-notes.md). With it, the SNR of NoReg does not rise above its final value and fall again, as "
        "it does with an amplitude loss and noise in proportion to each frame. Its best and its last iteration are "
        "close.",
        "**Gains are larger than the paper's**, because the phase is weak enough for the prior to matter and every "
        "strength was optimised for the image. The paper optimised too, in a regime that cannot be recovered.",
        "**Batch.** Sixty LEDs drawn once leave gaps in the spectrum that no prior can fill. BM3D then mistakes the "
        "traces of the gaps for texture, and ends no better than TV. In the paper, too, Online makes the difference.",
        "**BM3D-ADMM** has not converged after as many gradients as the others need: its momentum acts only once in "
        "five gradients.",
        "**SNR** is given without the best constant, which no intensity can show; raw SNR includes it.",
        "**BM3D** is this package's own (profile fast; docs/benchmarks.md compares it with `bm3d` from PyPI); "
        f"“{FAST}” denoises once after {FAST[-1]} gradients (docs/solver.md).",
        "**Seconds** are those of this machine, without loading and compiling.",
    ]
