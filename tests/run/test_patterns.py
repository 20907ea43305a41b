"""Multiplexed frames from files to a result: description, run, resume, live, field, viewer, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

import fouriscope as fs
from fouriscope.acquisition.pattern_table import pattern_text
from fouriscope.choices import choose
from fouriscope.errors import InvalidInputError, RunFolderError
from fouriscope.field.tile_acquisition import tile_acquisition
from fouriscope.optics import Multiplexed, half_circles, random_patterns
from fouriscope.run import Result, RunFolder, load_config, resume_run, start_run
from fouriscope.run.aligned import aligned
from fouriscope.run.assemble import build_acquisition
from fouriscope.run.folder_files import FolderFiles
from fouriscope.run.importing import import_acquisition
from fouriscope.viewer.predictions import Predictions
from tests.conftest import LEDS, OPTICS
from tests.run.problems import document
from tests.solvers.problems import shapes

PATTERNS = random_patterns(LEDS, OPTICS, 4, seed=0)


def write(folder: Path, patterns: np.ndarray = PATTERNS, **sections: dict[str, Any]) -> Path:
    """frames.npy, patterns.csv and config.toml."""
    model = fs.ForwardModel(OPTICS, Multiplexed(LEDS, patterns), (24, 24))
    truth = shapes(model.object_shape, 0.3).astype(np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    frames = model.intensity(truth)
    frames += np.random.default_rng(0).normal(0.0, 0.003, frames.shape).astype(np.float32)
    np.save(folder / "frames.npy", frames)
    np.save(folder / "truth.npy", truth)
    (folder / "patterns.csv").write_text(pattern_text(patterns), encoding="utf-8")
    keys = document(**sections)
    keys["illumination"]["patterns"] = "patterns.csv"
    path = folder / "config.toml"
    path.write_text(tomli_w.dumps(keys), encoding="utf-8")
    return path


def test_a_run_and_its_result(tmp_path: Path) -> None:
    path = write(tmp_path, solver={"batch": 20}, prior={"name": "tv"}, calibration={"gains": True, "zernike": True})
    result = start_run(load_config(path), tmp_path, tmp_path / "run")
    assert result.history.last.snr > 8
    read = Result.load(tmp_path / "run")
    for geometry in (result.geometry, read.geometry):
        assert geometry is not None
        assert geometry.patterns is not None
        assert geometry.led_na is not None
        assert geometry.positions is not None
        assert np.array_equal(geometry.patterns, PATTERNS)
        assert np.array_equal(geometry.led_na, LEDS.directions())
        assert np.array_equal(geometry.positions, LEDS.positions)
        assert geometry.synthetic_na == fs.ForwardModel(OPTICS, LEDS, (24, 24)).synthetic_na
    told = RunFolder.open(tmp_path / "run").provenance()
    assert told["acquisition"]["illumination"]["patterns"]["shape"] == list(PATTERNS.shape)
    assert "illumination.patterns" in told["input"]["files"]
    written = load_config(tmp_path / "run" / "config.toml")
    assert written.illumination.patterns == str(tmp_path / "patterns.csv")


def test_an_interrupted_run_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, stop={"iterations": 12}, calibration={"gains": True})
    whole = start_run(load_config(path), tmp_path, tmp_path / "whole")
    start_run(load_config(path), tmp_path, tmp_path / "half", callbacks=[lambda _, record: record.iteration == 5])
    assert np.array_equal(resume_run(tmp_path / "half").phase, whole.phase)


def test_other_patterns_are_not_resumed(tmp_path: Path) -> None:
    path = write(tmp_path, stop={"iterations": 12})
    start_run(load_config(path), tmp_path, tmp_path / "run", callbacks=[lambda _, record: record.iteration == 5])
    (tmp_path / "patterns.csv").write_text(pattern_text(2 * PATTERNS), encoding="utf-8")
    with pytest.raises(RunFolderError, match=r"illumination\.patterns"):
        resume_run(tmp_path / "run")


@pytest.mark.parametrize("method", ["admm", "red", "spectral", "epry"])
def test_every_method_takes_patterns(method: Any) -> None:
    lights = Multiplexed(LEDS, PATTERNS)
    kind: Any = "wave" if method in ("spectral", "epry") else "phase"
    model = fs.ForwardModel(OPTICS, lights, (24, 24))
    phase = shapes(model.object_shape, 0.3)
    data = replace(fs.simulate(model, phase, snr_db=40, seed=0), truth=None)
    flat = fs.reconstruct(data, method=method, object=kind, loss="amplitude", prior=None, iterations=1, batch=None)
    found = fs.reconstruct(data, method=method, object=kind, loss="amplitude", prior=None, iterations=15, batch=None)
    assert found.history.last.misfit < 0.7 * flat.history.last.misfit


def test_the_recipe_for_measured_frames_aligns_what_patterns_tell() -> None:
    model = fs.ForwardModel(OPTICS, Multiplexed(LEDS, PATTERNS), (24, 24))
    data = replace(fs.simulate(model, shapes(model.object_shape, 0.3), snr_db=40, seed=0), periodic=False, truth=None)
    chosen = choose(data, measured=True).config.alignment
    assert [key for key, value in chosen.model_dump().items() if value is True] == ["exposure", "focus"]
    with pytest.raises(InvalidInputError, match="alignment by circles needs frames of one LED each"):
        fs.reconstruct(data, align=("circles", "focus"), iterations=2)
    with pytest.raises(InvalidInputError, match="one LED per frame"):
        fs.align(data)
    with pytest.raises(InvalidInputError, match="leave it out"):
        fs.reconstruct(data, calibrate="leds", iterations=2)


def test_a_wrong_number_of_frames(tmp_path: Path) -> None:
    path = write(tmp_path)
    np.save(tmp_path / "frames.npy", np.load(tmp_path / "frames.npy")[:-1])
    with pytest.raises(InvalidInputError, match=f"the illumination has {len(PATTERNS)} patterns"):
        build_acquisition(load_config(path), tmp_path)


def test_sequential_frames_added_up_are_multiplexed_ones() -> None:
    alone, gains = fs.ForwardModel(OPTICS, LEDS, (24, 24)), np.linspace(0.5, 2, len(LEDS))
    phase = shapes(alone.object_shape, 0.3)
    frames = alone.revised(gains=gains).intensity(phase)
    mask = np.ones(frames.shape, bool)
    mask[3, 5, 6] = mask[40, 7, 8] = False
    data = fs.Acquisition(OPTICS, LEDS, frames, gains=gains, mask=mask)
    sums = fs.multiplex(data, PATTERNS)
    assert isinstance(sums.illumination, Multiplexed)
    model = fs.ForwardModel(OPTICS, sums.illumination, (24, 24))
    np.testing.assert_allclose(np.asarray(sums.frames), model.intensity(phase), rtol=1e-4, atol=1e-6)
    assert sums.gains is None
    where = {frame: sums.mask.frame(frame) for frame in range(len(sums))}  # type: ignore[union-attr]
    for led, place in ((3, (5, 6)), (40, (7, 8))):
        frame = int(np.argmax(PATTERNS[:, led]))
        assert not where[frame][place]
    assert sum(int((~counts).sum()) for counts in where.values()) == 2
    sums.check_frames()
    with pytest.raises(InvalidInputError, match="already multiplexed"):
        fs.multiplex(sums, np.eye(len(sums)))
    weights = np.ones(len(LEDS))
    weights[7] = 0
    with pytest.raises(InvalidInputError, match="patterns use LED 7"):
        fs.multiplex(replace(data, weights=weights), PATTERNS)


def test_tiles_leave_out_frames_whose_direct_light_comes_and_goes(tmp_path: Path) -> None:
    both = np.concatenate([PATTERNS, half_circles(LEDS, OPTICS)])
    path = write(tmp_path, both, illumination={"height": 2e-3, "pitch": 0.114e-3})  # near, so that angles change
    data = tile_acquisition(load_config(path), tmp_path, margin=16)
    lit, kept = both > 0, data.frame_weights > 0
    single = fs.LEDArray.square(7, 0.114e-3, 2e-3)
    rows = (24 / 2 + 16) * OPTICS.pixel
    corners = [(y * rows, x * rows) for y in (-1, 1) for x in (-1, 1)]
    passes = np.array([OPTICS.passes(np.hypot(*single.directions(corner).T)) for corner in corners])
    sure = (passes.all(axis=0) | ~passes.any(axis=0)).astype(bool)
    assert not sure.all()
    one, together = lit.sum(axis=1) == 1, np.arange(len(both)) < len(PATTERNS)
    assert np.array_equal(kept[one], sure[np.argmax(lit[one], axis=1)])
    assert kept[one | ~together].any()
    assert kept[~together].all()  # a half circle loses little


def test_a_stream_takes_frames_of_patterns() -> None:
    lights = Multiplexed(LEDS, PATTERNS)
    model = fs.ForwardModel(OPTICS, lights, (24, 24))
    phase = shapes(model.object_shape, 0.3)
    camera = fs.simulate(model, phase, snr_db=40, seed=0).frames
    live = fs.stream(OPTICS, lights, (24, 24), periodic=True, batch=20, seed=0)
    for frame in reversed(range(len(lights))):
        live.add(camera.frame(frame), frame)
        live.step()
    live.advance(iterations=40)
    assert live.outlook().sentence == "all frames have arrived"
    assert live.result().snr(phase).aligned > 8


def test_the_page_predicts_frames_of_patterns(tmp_path: Path) -> None:
    path = write(tmp_path, stop={"iterations": 60})
    start_run(load_config(path), tmp_path, tmp_path / "run")
    shown, frames = Predictions(FolderFiles(tmp_path / "run")), np.load(tmp_path / "frames.npy")
    assert len(shown.misfits()) == len(PATTERNS)
    assert np.array_equal(shown.frame(len(PATTERNS) - 1, "measured"), frames[-1])
    assert np.sqrt(np.mean(shown.frame(0, "difference") ** 2)) < 0.03


def test_the_focus_is_found_from_patterns() -> None:
    lights = Multiplexed(LEDS, PATTERNS)
    model = fs.ForwardModel(OPTICS, lights, (32, 32), pupil=fs.Pupil(defocus=30e-6), object="complex")
    phase = shapes(model.object_shape, 0.8)
    data = replace(fs.simulate(model, np.stack([phase, 0.2 * phase]), snr_db=50, seed=0), pupil=fs.Pupil())
    found = aligned(data, fs.settings.Alignment(focus=True, focus_reach=60e-6)).acquisition
    assert found.pupil.defocus == pytest.approx(30e-6, abs=4e-6)


def test_import_and_info_of_patterns(tmp_path: Path) -> None:
    both = np.concatenate([PATTERNS, half_circles(LEDS, OPTICS)])
    write(tmp_path, both)
    sets = document()
    chosen = {key: sets[key] for key in ("microscope", "illumination")}
    chosen["illumination"] |= {"patterns": str(tmp_path / "patterns.csv")}
    imported = import_acquisition(tmp_path / "frames.npy", tmp_path / "acquisition.toml", chosen=chosen)
    assert not imported.missing
    gain = next(found.value for found in imported.found if found.key == "gain")
    assert gain == pytest.approx(1, abs=0.02)  # of one LED, though half circles are 18 times as bright
    config = load_config(tmp_path / "acquisition.toml")
    assert config.alignment.focus
    assert not config.alignment.circles
    assert build_acquisition(config, tmp_path).frames.shape == (len(both), 24, 24)
    loaded = fs.load(tmp_path / "frames.npy", **chosen)
    assert isinstance(loaded.illumination, Multiplexed)
