"""The whole of `fouriscope paper`: images, calibration, strengths, reconstructions, figures, report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from fouriscope.errors import InvalidInputError
from fouriscope.reproduction.bandwidth import SHOWN, run_bandwidth
from fouriscope.reproduction.experiment import Experiment, Listener, model_of, planned, run_all
from fouriscope.reproduction.figure4 import Zoom, draw_figure4
from fouriscope.reproduction.figures import draw_figures, methods_of
from fouriscope.reproduction.images import PAPER_NAMES, load_images
from fouriscope.reproduction.pages import Block
from fouriscope.reproduction.protocol import METHODS, PAPER_PHASE_RANGE, Method, Protocol
from fouriscope.reproduction.report import write_report
from fouriscope.reproduction.specimen import Specimen
from fouriscope.reproduction.specimen_run import MeasuredSummary, run_specimen
from fouriscope.reproduction.strengths import StrengthBook, calibrate_phase_range, find_strengths
from fouriscope.reproduction.summary import Summary
from fouriscope.run.files import write_json

FIGURES = ("1", "2", "3")
MARKER = "made-by-fouriscope-paper"


def run_paper(
    out: Path,
    *,
    images: Path | None,
    figures: set[str],
    protocol: Protocol,
    listener: Listener,
    bandwidth: float = 0.0,
    more: Callable[[], Sequence[Block]] = tuple,
) -> Summary:
    """Run figures 1 to 3 into ``out``; what an earlier run left there is used, not computed again.

    With a ``bandwidth`` the best-known methods are run once more on such light, with and without a model of it; the
    report says what it changes. ``more`` is called before the report is written, and gives what is to stand at its end:
    figure 4.
    """
    check_folder(out)
    model = model_of(protocol)
    pictures = load_images(images, model.object_shape, protocol.images)
    make_folder(out)
    book = StrengthBook(out)
    phase_range = book.phase_range(pictures, protocol)
    if phase_range is None and not protocol.search:
        phase_range = PAPER_PHASE_RANGE
    if phase_range is None:
        listener.tell("calibrating the phase range, which the paper does not state")
        phase_range = calibrate_phase_range(lambda value: Experiment(protocol, pictures, value, out), listener)
        book.note_phase_range(pictures, protocol, phase_range)
    experiment = Experiment(protocol, pictures, phase_range, out)
    methods = wanted_methods(figures)
    strengths = find_strengths(experiment, methods, book, listener)
    automatic = [
        one.name
        for one in methods
        if one.needs_strength and any(one.strength_key not in known for known in strengths.values())
    ]
    if automatic:
        listener.tell("no strengths are stored for these images and none were searched for: they are automatic")
    again = [method for method in methods if method.name in SHOWN] if bandwidth else []
    listener.plan(planned(protocol, [*methods, *again, *again], len(pictures)))
    cells = run_all(experiment, methods, strengths, listener)
    summary = Summary.of(cells, phase_range)
    changed = None
    if again:
        changed = run_bandwidth(experiment, summary, again, strengths, out, bandwidth=bandwidth, listener=listener)
    drawn = draw_figures(experiment, summary, figures, out)
    paper_images = [picture.name for picture in pictures] == list(PAPER_NAMES)
    write_report(
        *(experiment, summary, drawn, out),
        paper_images=paper_images,
        automatic=automatic,
        changed=changed,
        more=more(),
    )
    return summary


def run_figure4(
    out: Path, specimen: Specimen, *, gradients: int, zooms: Sequence[Zoom], listener: Listener
) -> tuple[MeasuredSummary, list[Path]]:
    """Run figure 4 into ``out``: ``figure4.json`` and the pictures, which are returned with the numbers."""
    check_folder(out)
    make_folder(out)
    summary = run_specimen(specimen, out, gradients, listener)
    write_json(out / "figure4.json", summary.as_json())
    return summary, draw_figure4(summary, out, zooms)


def check_folder(out: Path) -> None:
    """Raise if ``out`` holds somebody else's files."""
    if out.exists() and not (out.is_dir() and ((out / MARKER).exists() or not any(out.iterdir()))):
        raise InvalidInputError(
            f"{out} exists and was not made by `fouriscope paper`; choose another folder with --out"
        )


def make_folder(out: Path) -> None:
    """``out``, marked as ours."""
    out.mkdir(parents=True, exist_ok=True)
    (out / MARKER).touch()


def wanted_methods(figures: set[str]) -> list[Method]:
    """Those that the figures show; all of them for all figures."""
    if figures == set(FIGURES):
        return list(METHODS)
    names = set().union(*(methods_of(figure) for figure in figures))
    return [method for method in METHODS if method.name in names]
