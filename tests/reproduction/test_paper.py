"""The paper's experiments in small: everything is made, kept, resumed and told; wrong input is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skimage.io import imsave

from fouriscope.errors import InvalidInputError
from fouriscope.reproduction import paper_run
from fouriscope.reproduction.experiment import Cell, Experiment, Listener, model_of
from fouriscope.reproduction.figures import BEYOND, FIGURE_1, FIGURE_2, FIGURE_3
from fouriscope.reproduction.images import PAPER_NAMES, STANDARD_NAMES, load_images
from fouriscope.reproduction.paper_run import FIGURES, MARKER, run_paper, wanted_methods
from fouriscope.reproduction.protocol import CALIBRATION_TARGET, FAST, METHODS, Protocol, method
from fouriscope.reproduction.strengths import StrengthBook, calibrate_phase_range
from fouriscope.reproduction.summary import Summary
from fouriscope.solvers import Record, Solver

SMALL = Protocol(frame=24, radius=4.5, gradients=12, images=2)


def go_on(solver: Solver, record: Record) -> bool:
    return False


def run(out: Path, images: Path | None, figures: set[str], *, interrupt: Any = go_on) -> tuple[Summary, list[str]]:
    """The whole command, and what it said."""
    said: list[str] = []
    summary = run_paper(
        out,
        images=images,
        figures=figures,
        protocol=SMALL,
        listener=Listener(
            tell=said.append,
            plan=lambda total: said.append(f"plan {total:.0f}"),
            progress=lambda done, what: said.append(what),
            interrupt=interrupt,
        ),
    )
    return summary, said


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two little pictures, one of them in colour."""
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    blocks = np.kron(rng.integers(0, 255, (6, 6)), np.ones((12, 12))).astype(np.uint8)
    imsave(folder / "blocks.png", blocks, check_contrast=False)
    imsave(folder / "colours.png", np.stack([blocks, blocks.T, 255 - blocks], axis=-1), check_contrast=False)
    (folder / "notes.txt").write_text("not an image")
    return folder


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed is asked for, not its pictures, which take longer."""
    monkeypatch.setattr(paper_run, "draw_figures", lambda *_: [])


@pytest.fixture(scope="module")
def finished(images: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary]:
    out = tmp_path_factory.mktemp("paper") / "out"
    out.mkdir()
    (out / MARKER).touch()
    # Twelve gradients reach 18.48 dB at no phase range: one that was "calibrated before" stands in.
    StrengthBook(out).note_phase_range(load_images(images, model_of(SMALL).object_shape, 2), SMALL, 0.3)
    summary, said = run(out, images, set(FIGURES))
    assert summary.phase_range == 0.3
    assert not any("calibrating" in words for words in said)
    return out, summary


def test_everything_is_made(finished: tuple[Path, Summary]) -> None:
    out, summary = finished
    assert set(summary.averages) == {method.name for method in METHODS}
    assert summary.images == ["blocks", "colours"]
    for name in ("figure1", "figure1-colours", "figure2", "figure2-beyond", "figure3"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (out / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    results = json.loads((out / "results.json").read_text())
    assert results["images"] == ["blocks", "colours"]
    assert results["phase_range_rad"] == summary.phase_range
    for name, average in summary.averages.items():
        assert results["methods"][name]["snr_db"] == pytest.approx(average.final)
    report = (out / "report.md").read_text()
    page = (out / "report.html").read_text()
    for bar in summary.bars():
        assert f"| {bar.what} | {bar.paper} |" in report
    assert "not the paper's six images" in report
    assert page.count("<img") == report.count("![") == 5
    assert "**" not in page.replace("</b>", "")


@pytest.mark.usefixtures("undrawn")
def test_a_second_run_computes_nothing_and_says_the_same(finished: tuple[Path, Summary], images: Path) -> None:
    out, before = finished
    times = {path: path.stat().st_mtime_ns for path in (out / "cells").rglob("*.npz")}
    summary, said = run(out, images, set(FIGURES))
    assert not any("searching" in words or "calibrating" in words for words in said)
    assert {path: path.stat().st_mtime_ns for path in (out / "cells").rglob("*.npz")} == times
    assert summary.as_json() == before.as_json()


@pytest.mark.usefixtures("undrawn")
def test_a_cell_that_was_damaged_or_removed_is_computed_again(
    finished: tuple[Path, Summary], images: Path, tmp_path: Path
) -> None:
    out = tmp_path / "copy"
    shutil.copytree(finished[0], out)
    files = sorted((out / "cells").rglob("*.npz"))
    files[0].write_bytes(files[0].read_bytes()[:100])
    files[1].unlink()
    summary, _ = run(out, images, set(FIGURES))
    for name, average in finished[1].averages.items():
        for mine, theirs in zip(summary[name].cells, average.cells, strict=True):
            np.testing.assert_array_equal(mine.phase, theirs.phase)


@pytest.mark.usefixtures("undrawn")
def test_an_interrupted_run_goes_on(images: Path, tmp_path: Path, finished: tuple[Path, Summary]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    shutil.copy(finished[0] / "strengths.toml", out)
    (out / MARKER).touch()
    iterations = 0

    def stop_in_the_middle(solver: Solver, record: Record) -> bool:
        nonlocal iterations
        iterations += 1
        return iterations == 30

    with pytest.raises(KeyboardInterrupt):
        run(out, images, {"1"}, interrupt=stop_in_the_middle)
    kept = len(list((out / "cells").rglob("*.npz")))
    assert kept == 2, "30 iterations of 12 each"
    summary, said = run(out, images, {"1"})
    for cell in summary["BM3D-Full"].cells:
        reference = next(c for c in finished[1]["BM3D-Full"].cells if c.image == cell.image)
        np.testing.assert_array_equal(cell.phase, reference.phase)
    assert said[-1] == "done"


def test_strengths_are_those_that_were_searched(finished: tuple[Path, Summary]) -> None:
    out, summary = finished
    book = StrengthBook(out)
    tables = book.own["strength"].values()
    assert {table["image"] for table in tables} == {"blocks", "colours"}
    for table in tables:
        assert set(table) - {"image"} == {m.strength_key for m in METHODS if m.needs_strength}
        cell = next(c for c in summary["TV-Online"].cells if c.image == table["image"])
        assert cell.strength == pytest.approx(table["TV-Online"])


@pytest.mark.usefixtures("undrawn")
def test_one_figure_runs_only_what_it_shows(images: Path, tmp_path: Path, finished: tuple[Path, Summary]) -> None:
    out = tmp_path / "out"
    shutil.copytree(finished[0], out)
    summary, _ = run(out, images, {"3"})
    assert set(summary.averages) == set(FIGURE_3)


def test_every_figure_names_methods_that_exist() -> None:
    names = {method.name for method in METHODS}
    assert set(FIGURE_1) | set(FIGURE_2) | set(FIGURE_3) | set(BEYOND) <= names
    assert {m.name for m in wanted_methods(set(FIGURES))} == names
    assert [m.name for m in METHODS if m.in_paper] == list(FIGURE_2)


# ---------------------------------------------------------------------------------------------------------------------
# The summary against numbers worked out by hand


def cell(name: str, image: str, snr: list[float], seconds: list[float]) -> Cell:
    curves = {
        "iteration": np.arange(1.0, len(snr) + 1),
        "frames_seen": np.arange(1.0, len(snr) + 1) * 60,
        "seconds": np.array(seconds),
        "misfit": np.ones(len(snr)),
        "residual": np.ones(len(snr)),
        "snr": np.array(snr),
        "snr_raw": np.array(snr) - 10,
    }
    return Cell(image, name, 1e-6, np.zeros((2, 2), np.float32), curves)


def test_averages_and_bars() -> None:
    cells = [
        cell("NoReg-Online", "a", [10.0, 19.0, 18.0], [1.0, 2.0, 3.0]),
        cell("NoReg-Online", "b", [10.0, 17.0, 19.0], [1.0, 2.0, 3.0]),
        cell("BM3D-Online", "a", [10.0, 25.0, 26.0], [0.2, 0.3, 0.4]),
        cell("BM3D-Online", "b", [10.0, 25.0, 25.0], [0.2, 0.3, 0.4]),
        cell("BM3D-Batch", "a", [10.0, 20.0, 20.0], [0.2, 0.3, 0.4]),
        cell("BM3D-Batch", "b", [10.0, 25.0, 25.5], [0.2, 0.3, 0.4]),
        cell("BM3D-Full", "a", [10.0, 25.0, 26.0], [10.0, 20.0, 30.0]),
        cell("BM3D-Full", "b", [10.0, 25.0, 26.0], [10.0, 20.0, 30.0]),
        cell(FAST, "a", [10.0, 26.0, 27.0], [3.0, 6.0, 9.0]),
        cell(FAST, "b", [10.0, 26.0, 27.0], [3.0, 6.0, 9.0]),
    ]
    summary = Summary.of(cells, 0.3)
    assert summary["NoReg-Online"].final == 18.5
    assert summary["NoReg-Online"].best == 19.0
    assert summary["NoReg-Online"].final_raw == 8.5
    assert summary["BM3D-Online"].milliseconds == pytest.approx(100)
    bars = {bar.what: bar for bar in summary.bars()}
    assert bars["NoReg-Online"].reached
    gain = bars["BM3D-Online over NoReg-Online, at convergence"]
    assert (gain.measured, gain.reached) == ("+7.00 dB", True)
    assert bars["BM3D-Online over NoReg-Online, each at its best iteration"].measured == "+6.50 dB"
    full = bars["BM3D-Full over BM3D-Online"]
    assert (full.measured, full.reached) == ("+0.50 dB", False)
    batch = bars["BM3D-Online over BM3D-Batch, the image that gains least"]
    assert (batch.measured, batch.reached) == ("-0.50 dB", False)
    speed = bars["BM3D-Online, per iteration"]
    assert (speed.measured, speed.reached) == ("91 × faster", True)
    # BM3D-Full ends at 26 dB and passes 25.75 in its third iteration, FAST in its second: 6 s of 30 s.
    share = next(bar for what, bar in bars.items() if what.startswith(f"{FAST}: seconds"))
    assert (share.measured, share.reached) == ("0.20", True)


def test_a_level_that_is_never_reached() -> None:
    summary = Summary.of([cell("NoReg-Online", "a", [1.0, 2.0], [1.0, 2.0])], 0.3)
    assert summary["NoReg-Online"].seconds_to(3.0) == np.inf


# ---------------------------------------------------------------------------------------------------------------------
# Images and calibration


def test_calibration_lands_at_the_papers_number(images: Path, tmp_path: Path) -> None:
    protocol = Protocol(frame=24, radius=4.5, gradients=60, images=2)
    pictures = load_images(images, model_of(protocol).object_shape, 2)
    told: list[str] = []
    listener = Listener(told.append, lambda total: None, lambda done, what: None, go_on)
    value = calibrate_phase_range(lambda phase_range: Experiment(protocol, pictures, phase_range, tmp_path), listener)
    experiment = Experiment(protocol, pictures, value, tmp_path)
    ends = [experiment.run(p, method("NoReg-Online"), None).final for p in pictures]
    assert np.mean(ends) == pytest.approx(CALIBRATION_TARGET, abs=1.0)
    assert all("wanted: 18.48 dB" in words for words in told)


def test_the_papers_images_are_taken_by_name(tmp_path: Path) -> None:
    for name in (*PAPER_NAMES, "another", "woman_blonde"):
        imsave(tmp_path / f"{name}.png", np.eye(16, dtype=np.uint8) * 200, check_contrast=False)
    assert [image.name for image in load_images(tmp_path, (20, 20), 6)] == list(PAPER_NAMES)
    assert [image.name for image in load_images(tmp_path, (20, 20), 2)] == list(PAPER_NAMES[:2])


def test_images_that_come_with_scikit_image() -> None:
    pictures = load_images(None, (40, 40), 6)
    assert [picture.name for picture in pictures] == list(STANDARD_NAMES)
    for picture in pictures:
        assert (picture.grey.min(), picture.grey.max()) == (0, 1)
    assert len({picture.checksum for picture in pictures}) == 6


def test_wrong_folders(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="is not a folder"):
        load_images(tmp_path / "nowhere", (20, 20), 6)
    with pytest.raises(InvalidInputError, match="holds no image"):
        load_images(tmp_path, (20, 20), 6)
    (tmp_path / "broken.png").write_bytes(b"\x89PNG and then nothing")
    with pytest.raises(InvalidInputError, match=r"broken\.png: cannot be read"):
        load_images(tmp_path, (20, 20), 6)


def test_a_folder_of_somebody_else_is_left_alone(images: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InvalidInputError, match="was not made by"):
        run(tmp_path, images, {"1"})
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_book_of_strengths_that_is_not_toml(tmp_path: Path) -> None:
    (tmp_path / "strengths.toml").write_text("= nonsense")
    with pytest.raises(InvalidInputError, match="delete it to search again"):
        StrengthBook(tmp_path)


def test_a_bandwidth_is_run_with_and_without_a_model_of_it(
    finished: tuple[Path, Summary], images: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(finished[0], out)
    run_paper(
        out,
        images=images,
        figures=set(FIGURES),
        protocol=SMALL,
        listener=Listener(tell=str, plan=str, progress=lambda done, what: None, interrupt=go_on),
        bandwidth=40e-9,
    )
    told = json.loads((out / "results.json").read_text(encoding="utf-8"))["bandwidth"]
    assert told["bandwidth_m"] == 40e-9
    assert set(told["snr_db"]) == {"NoReg-Online", "TV-Online", "BM3D-Online"}
    for name, found in told["snr_db"].items():
        assert found["one_wavelength"] == pytest.approx(finished[1][name].final)
        assert found["ignored"] != found["modelled"]
    assert "40 nm of bandwidth" in (out / "report.md").read_text(encoding="utf-8")
