"""A result that was saved comes back."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.acquisition import Acquisition, ArrayFrames
from fouriscope.cli.app import main
from fouriscope.errors import RunFolderError
from fouriscope.run import ResultGeometry, load_config, start_run
from fouriscope.solvers import History
from fouriscope.verdict import Contradiction, HeldOut, Resolution, Verdict
from tests.conftest import LEDS, OPTICS
from tests.run.problems import write_acquisition

VERDICT = Verdict(
    level="good",
    sentence="Good: all.",
    warnings=("one", "two"),
    held_out=HeldOut((1, 2), 0.1, None, 0.2, 0.3, 0.4, 0.5, 3),
    resolution=Resolution(None, 5e-7, 7e-7),
    outside_band=0.01,
    gains_at_bounds=1,
    gains=49,
    contradicting=(Contradiction(3, 0.5, 0.1, "dead"),),
    slow_background_rad=0.2,
)


def same_geometry(a: ResultGeometry | None, b: ResultGeometry | None) -> None:
    assert a is not None
    assert b is not None
    for field in fields(ResultGeometry):
        np.testing.assert_equal(getattr(a, field.name), getattr(b, field.name), err_msg=field.name)


def same(loaded: fs.Result, result: fs.Result, *, exact: bool = True) -> None:
    compare: Any = np.testing.assert_array_equal if exact else np.testing.assert_allclose
    compare(loaded.phase, result.phase, strict=True)
    np.testing.assert_allclose(loaded.amplitude, result.amplitude, rtol=1e-6, strict=True)
    np.testing.assert_allclose(loaded.transmittance, result.transmittance, atol=1e-6, strict=True)
    np.testing.assert_array_equal(loaded.pupil, result.pupil, strict=True)
    same_geometry(loaded.geometry, result.geometry)
    assert [record.as_dict() for record in loaded.history] == [record.as_dict() for record in result.history]
    for name in ("pixel", "stop_reason", "pupil_na_step", "pupil_recovered", "verdict"):
        assert getattr(loaded, name) == getattr(result, name), name
    assert loaded.config == json.loads(json.dumps(result.config))
    assert loaded.provenance == {"format": 1} | json.loads(json.dumps(result.provenance))


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("kind", ["phase", "complex", "wave"])
def test_what_was_saved_comes_back(tmp_path: Path, kind: Any, precision: Any) -> None:
    slide = fs.GlassSlide(1e-3, 1.5)
    leds = fs.LEDArray.square(7, 4e-3, 70e-3, rotation=0.01, offset=(1e-4, 2e-4), slide=slide)
    frames = ArrayFrames(np.random.default_rng(0).random((49, 16, 16)))
    data = Acquisition(OPTICS, leds, frames, pupil=fs.Pupil({5: 0.3}, defocus=1e-6), gains=np.linspace(1, 2, 49))
    options: Any = {"align": (), "calibrate": ("leds",), "object": fs.settings.Object(model=kind, precision=precision)}
    result = replace(fs.reconstruct(data, batch=12, iterations=3, seed=0, **options), verdict=VERDICT)
    loaded = fs.Result.load(result.save(tmp_path / "run"))
    same(loaded, result, exact=precision == "single")
    assert "Good: all." in repr(loaded)


def test_a_result_without_a_model_comes_back(tmp_path: Path) -> None:
    phase = np.array([[0.0, 7.0], [np.nan, -4.0]], np.float32)
    bare = fs.Result(phase, None, History(), (1e-6, 2e-6), "enough", {}, {})
    loaded = fs.Result.load(bare.save(tmp_path / "run"))
    np.testing.assert_array_equal(loaded.phase, phase)
    assert (loaded.pupil, loaded.geometry, loaded.verdict, loaded.absorption) == (None, None, None, None)


def test_a_run_of_the_command_line_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write_acquisition(tmp_path)
    monkeypatch.setattr("sys.argv", ["fouriscope", "reconstruct", str(config), "--out", str(tmp_path / "run")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    again = start_run(load_config(config), tmp_path, tmp_path / "again")
    loaded = fs.Result.load(str(tmp_path / "run"))
    np.testing.assert_array_equal(loaded.phase, again.phase)
    same_geometry(loaded.geometry, again.geometry)
    same(fs.Result.load(tmp_path / "again"), again)


def test_what_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"nothing: no such folder"):
        fs.Result.load(tmp_path / "nothing")
    with pytest.raises(RunFolderError, match=r"not a run folder"):
        fs.Result.load(tmp_path)
    started = fs.RunFolder.create(tmp_path / "started", {}, {})
    started.close()
    with pytest.raises(RunFolderError, match=r"started: the run is running and has no result yet; .*resume .*started$"):
        fs.Result.load(started.path)
    field = fs.RunFolder.create(tmp_path / "field", {}, {"kind": "field"})
    field.close()
    with pytest.raises(RunFolderError, match=r"field is a whole field, .*open its result/field\.ome\.zarr"):
        fs.Result.load(field.path)


@pytest.mark.parametrize("name", ["summary.json", "phase.ome.tif", "geometry.csv", "pupil.npy"])
def test_a_damaged_result_is_told_in_one_sentence(tmp_path: Path, name: str) -> None:
    frames = ArrayFrames(np.random.default_rng(0).random((49, 16, 16), np.float32))
    data = Acquisition(OPTICS, LEDS, frames, periodic=True)
    run = fs.reconstruct(data, batch=12, iterations=1, seed=0).save(tmp_path / "run")
    (run / "result" / name).write_bytes(b"[]")
    with pytest.raises(RunFolderError, match=r"result(/.*)?: (cannot be read as a result|not readable) \(.+\)$"):
        fs.Result.load(run)
