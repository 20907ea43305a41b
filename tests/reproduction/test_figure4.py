"""Figure 4 in small: every method on one acquisition, nothing computed twice, held-out frames seen by none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

import fouriscope as fs
from fouriscope.acquisition import ArrayFrames
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import AllLEDs, DataFidelity
from fouriscope.reproduction import paper_run
from fouriscope.reproduction.experiment import Listener
from fouriscope.reproduction.figure4 import lively_squares
from fouriscope.reproduction.figure4_report import figure4_blocks, figure4_page
from fouriscope.reproduction.pages import Table, Words, write_pages
from fouriscope.reproduction.paper_run import run_figure4
from fouriscope.reproduction.protocol import method
from fouriscope.reproduction.specimen import Specimen
from fouriscope.reproduction.specimen_run import BASELINE, FIGURE_4, MeasuredSummary, predict
from fouriscope.run.files import write_text
from fouriscope.run.provenance import FrameDigest
from fouriscope.solvers import EPRY, Iterations, Record, Solver

DATA = Path(os.environ.get("FOURISCOPE_DATA", Path(__file__).parents[2].parent / "shared" / "data")) / "fpm"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"the real acquisitions are not here: {DATA}")

GRADIENTS = 6
MICROSCOPE: dict[str, Any] = {"wavelength": 513e-9, "na": 0.2, "magnification": 8.1485, "camera_pixel": 6.5e-6}
NAMES = [f"{prior}-{data}" for prior in ("NoReg", "TV", "BM3D") for data in ("Batch", "Online")]


def go_on(solver: Solver, record: Record) -> bool:
    return False


def write_acquisition(folder: Path, *, side: int = 9, **sections: Any) -> Path:
    """A stained sample that goes on beyond its frames, as TOML and .npy; 10 µm out of focus, which nobody tells."""
    leds = fs.LEDArray.square(side, pitch=4e-3, height=70e-3)
    lens = fs.Pupil(defocus=10e-6)
    model = fs.ForwardModel(fs.Optics(**MICROSCOPE), leds, (20, 20), object="complex", margin=6, pupil=lens)
    rows, columns = np.indices(model.object_shape)
    cells = (np.hypot(rows % 31 - 15, columns % 37 - 18) < 10).astype(float)
    data = fs.simulate(model, np.stack([0.5 * cells, 0.3 * cells]), snr_db=35, seed=0)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "frames.npy", np.stack([data.frames.frame(index) for index in range(len(data))]))
    document = {
        "frames": {"path": "frames.npy"},
        "microscope": MICROSCOPE,
        "illumination": {"kind": "square", "shape": [side, side], "pitch": 4e-3, "height": 70e-3},
        **sections,
    }
    write_text(folder / "sample.toml", tomli_w.dumps(document))
    return folder / "sample.toml"


@dataclass
class Outcome:
    summary: MeasuredSummary
    pictures: list[Path]
    said: list[str]


def run(specimen: Specimen, out: Path, *, interrupt: Callable[[Solver, Record], bool] = go_on) -> Outcome:
    said: list[str] = []
    summary, pictures = run_figure4(
        out,
        specimen,
        gradients=GRADIENTS,
        zooms=(),
        listener=Listener(said.append, lambda total: None, lambda done, what: None, interrupt),
    )
    return Outcome(summary, pictures, said)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_acquisition(tmp_path_factory.mktemp("sample"), alignment={"focus": True})


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed is asked for, not its pictures, which take longer."""
    monkeypatch.setattr(paper_run, "draw_figure4", lambda *_: [])


@pytest.fixture(scope="module")
def finished(path: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    out = tmp_path_factory.mktemp("figure4")
    return out, run(Specimen.load(path), out)


def test_six_cells_and_epry(finished: tuple[Path, Outcome]) -> None:
    out, outcome = finished
    summary = outcome.summary
    assert list(summary.cells) == [*NAMES, "EPRY"]
    for cell in summary.cells.values():
        assert cell.amplitude is not None
        assert cell.phase.shape == cell.amplitude.shape == summary.specimen.field
        assert cell.plain.shape == cell.fitted.shape == summary.specimen.held_out.shape
        # One number a frame, the best there is, cannot make a frame fit worse.
        assert np.all(cell.fitted <= cell.plain * (1 + 1e-5))
    assert [picture.name for picture in outcome.pictures] == ["figure4-amplitude.png", "figure4-phase.png"]
    for picture in outcome.pictures:
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    results = json.loads((out / "figure4.json").read_text())
    assert results["methods"]["TV-Online"]["held_out_misfit"] == pytest.approx(summary.score("TV-Online"))
    assert any(line.startswith("focus: ") for line in outcome.said)


def test_batch_keeps_its_frames_and_online_does_not(path: Path) -> None:
    specimen = Specimen.load(path)
    rng = np.random.default_rng(0)
    subsets = []
    for one in FIGURE_4:
        solver, iterations = specimen.solver(one, GRADIENTS)
        draws = [frozenset(solver.sampler.draw(rng).leds.tolist()) for _ in range(4)]
        assert iterations == GRADIENTS
        assert {len(draw) for draw in draws} == {60}
        assert (len(set(draws)) == 1) == (one.data == "Batch")
        assert not set.union(*map(set, draws)) & set(specimen.held_out.tolist())
        subsets += draws[:1] if one.data == "Batch" else []
    assert len(set(subsets)) == 1, "Batch is the same sixty for every prior"
    epry, _ = specimen.solver(BASELINE, GRADIENTS)
    assert set(epry.sampler.draw(rng).leds.tolist()) == set(range(81)) - set(specimen.held_out.tolist())


def test_held_out_frames_are_seen_by_none(path: Path) -> None:
    """Whatever stands in them, alignment and reconstruction stay as they are, to the last bit."""
    specimen = Specimen.load(path)
    assert len(specimen.held_out) == 6
    assert np.all(np.asarray(specimen.acquisition.weights)[specimen.held_out] == 0)
    frames = np.stack([specimen.acquisition.frames.frame(index) for index in range(81)])
    frames[specimen.held_out] = frames[specimen.held_out][:, ::-1] + 1
    other = replace(specimen, acquisition=replace(specimen.acquisition, frames=ArrayFrames(frames)))
    for name in ("TV-Online", "EPRY"):
        results = []
        for one in (specimen, other):
            solver, _ = one.solver(method(name), GRADIENTS)
            solver.solve(Iterations(GRADIENTS))
            results.append(solver.x)
        np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.usefixtures("undrawn")
def test_a_second_run_computes_nothing(finished: tuple[Path, Outcome], path: Path) -> None:
    out, before = finished
    kept = {file: file.stat().st_mtime_ns for file in (out / "cells").rglob("*.*")}
    assert len(kept) == 8, "seven cells and the alignment"

    def not_again(solver: Solver, record: Record) -> bool:
        raise AssertionError("an iteration was computed again")

    after = run(Specimen.load(path), out, interrupt=not_again)
    assert {file: file.stat().st_mtime_ns for file in (out / "cells").rglob("*.*")} == kept
    assert after.said == []
    assert after.summary.as_json() == before.summary.as_json()


@pytest.mark.usefixtures("undrawn")
def test_an_interrupted_run_goes_on(finished: tuple[Path, Outcome], path: Path, tmp_path: Path) -> None:
    count = 0

    def stop_in_the_third_cell(solver: Solver, record: Record) -> bool:
        nonlocal count
        count += 1
        return count == 2 * GRADIENTS + 3

    with pytest.raises(KeyboardInterrupt):
        run(Specimen.load(path), tmp_path / "out", interrupt=stop_in_the_third_cell)
    assert len(list((tmp_path / "out" / "cells").rglob("*.npz"))) == 2
    summary = run(Specimen.load(path), tmp_path / "out").summary
    for name, cell in finished[1].summary.cells.items():
        np.testing.assert_array_equal(summary.cells[name].phase, cell.phase)


def test_other_frames_or_settings_are_another_result(path: Path) -> None:
    specimen = Specimen.load(path)
    same = Specimen.load(path)
    assert specimen.fingerprint() == same.fingerprint()
    louder = replace(specimen, digest=FrameDigest((1, 2, 3)))
    solver = specimen.config.solver.model_copy(update={"loss": "intensity"})
    other_loss = replace(specimen, config=specimen.config.model_copy(update={"solver": solver}))
    assert len({one.fingerprint() for one in (specimen, louder, other_loss)}) == 3


def test_eprys_own_pupil_predicts() -> None:
    """A lens out of focus, which only EPRY's pupil knows: with it frames are explained, without it they are not."""
    optics, leds = fs.Optics(**MICROSCOPE), fs.LEDArray.square(7, pitch=4e-3, height=70e-3)
    lens = fs.ForwardModel(optics, leds, (32, 32), pupil=fs.Pupil(defocus=10e-6))
    data = fs.simulate(lens, 0.4 * (np.indices(lens.object_shape).sum(axis=0) % 40 < 20), seed=0)
    fidelity = DataFidelity.of(data, fs.ForwardModel(optics, leds, (32, 32), object="complex"), loss="amplitude")
    held_out = np.array([10, 24, 40])
    solver = EPRY(fidelity, AllLEDs(np.setdiff1d(np.arange(49), held_out)), pupil_step=1.0)
    solver.solve(Iterations(40))
    prediction = predict(solver, data, held_out)
    assert prediction.plain.mean() < 0.3 * fidelity.misfits(solver.x, held_out).mean()


def test_the_file_decides_and_the_rest_is_chosen(tmp_path: Path) -> None:
    plain = Specimen.load(write_acquisition(tmp_path / "plain"))
    assert len(plain.assumed) == 5
    assert (plain.config.object.model, plain.config.solver.loss) == ("complex", "amplitude")
    assert plain.config.alignment.focus
    assert plain.config.alignment.array
    assert plain.config.calibration.zernike
    assert plain.config.calibration.gains
    told = Specimen.load(
        write_acquisition(
            tmp_path / "told",
            object={"model": "phase"},
            solver={"loss": "poisson", "method": "red", "start": "flat", "batch": 10, "seed": 3},
            calibration={"leds": True},
            alignment={"circles": True},
            prior={"name": "tv", "strength": 1e-5},
        )
    )
    assert told.assumed == ()
    solver, _ = told.solver(method("TV-Batch"), GRADIENTS)
    assert isinstance(solver, fs.PnP)
    assert (solver.fidelity.loss.name, solver.fidelity.model.object.channels) == ("poisson", ("phase",))
    assert told.strength(method("TV-Online")) == 1e-5
    assert told.strength(method("BM3D-Online")) is None, "the number is that of the prior which the file names"


def test_the_report(finished: tuple[Path, Outcome], tmp_path: Path) -> None:
    _, outcome = finished
    summary = outcome.summary
    blocks = figure4_blocks(summary, outcome.pictures)
    table = next(block for block in blocks if isinstance(block, Table))
    assert [row[0] for row in table.rows] == [*NAMES, "EPRY"]
    assert float(table.rows[3][1]) == pytest.approx(summary.score("TV-Online"), abs=0.005)
    words = " ".join(block.text for block in blocks if isinstance(block, Words))
    for said in (
        "a complex object",
        "the amplitude loss",
        "a start by a few sweeps of EPRY",
        "focus: ",
        "6 frames",
        "strengths of the priors are automatic",
    ):
        assert said in words
    write_pages(tmp_path, figure4_page(summary, outcome.pictures))
    assert (tmp_path / "report.html").read_text().count("<img") == (tmp_path / "report.md").read_text().count("![") == 2


def test_squares_do_not_overlap() -> None:
    image = np.random.default_rng(0).normal(size=(90, 120)).astype(np.float32)
    (row, column, size), (other_row, other_column, _) = lively_squares(image, 2)
    assert max(abs(row - other_row), abs(column - other_column)) >= size
    with pytest.raises(InvalidInputError, match="no room for 80 squares"):
        lively_squares(image, 80)


def test_too_few_frames(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="more than 60 are needed besides the 6 held out, but 43 are left"):
        Specimen.load(write_acquisition(tmp_path, side=7))


@needs_data
@pytest.mark.usefixtures("undrawn")
def test_the_real_blood_smear(tmp_path: Path) -> None:
    """64 × 64 pixels and a few iterations: everything is there and finite, and predicts better than an empty slide."""
    folder = DATA / "uconn_bloodsmear_green"
    document = {
        "frames": {
            "path": str(folder / "bloodsmear_green.mat"),
            "dataset": "imlow_HDR",
            "amplitude": True,
            "gain": 1.76,
            "roi": [32, 32, 64, 64],
        },
        "microscope": {"wavelength": 532e-9, "na": 0.1, "magnification": 1.0, "camera_pixel": 1.845e-6},
        "illumination": {"kind": "file", "path": str(folder / "illumination_na.csv"), "height": 0.09088},
        "alignment": {"focus": True, "focus_reach": 20e-6},
    }
    write_text(tmp_path / "smear.toml", tomli_w.dumps(document))
    specimen = Specimen.load(tmp_path / "smear.toml")
    summary = run(specimen, tmp_path / "out").summary
    solver, _ = specimen.solver(method("NoReg-Online"), 1)
    empty = solver.fidelity.misfits(solver.x, specimen.held_out).mean()
    assert len(specimen.held_out) == 18
    for name in summary.cells:
        assert summary.score(name) < empty
