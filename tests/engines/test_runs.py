"""Whole runs on another engine, from the beginning or from a checkpoint, and where numba is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.cli.app import main
from fouriscope.run import load_config, resume_run, start_run
from tests.engines.problems import OTHERS
from tests.run.problems import write_acquisition

CLOSE_DB = 0.02
SECTIONS: dict[str, Any] = {"stop": {"iterations": 40}, "prior": {"name": "tv"}}


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_acquisition(tmp_path_factory.mktemp("acquisition"), **SECTIONS)


@pytest.fixture(scope="module")
def compiled(configuration: Path, tmp_path_factory: pytest.TempPathFactory) -> fs.Result:
    return start_run(load_config(configuration), configuration.parent, tmp_path_factory.mktemp("runs") / "numba")


@pytest.mark.parametrize("engine", OTHERS)
def test_a_run_from_the_command_line(
    engine: str, configuration: Path, compiled: fs.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["reconstruct", str(configuration), "--out", str(tmp_path / "run"), "--engine", engine, "--quiet"]
    monkeypatch.setattr(sys, "argv", ["fouriscope", *command])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    result = fs.Result.load(tmp_path / "run")
    assert result.config["engine"]["name"] == engine
    assert result.history.last.snr == pytest.approx(compiled.history.last.snr, abs=CLOSE_DB)


@pytest.mark.parametrize("engine", OTHERS)
def test_a_checkpoint_goes_on_with_another_engine(
    engine: str, configuration: Path, compiled: fs.Result, tmp_path: Path
) -> None:
    """The state is the same, so the path is, but for rounding; the SNR differs by less than 0.02 dB."""
    folder, base = tmp_path / "run", configuration.parent
    start_run(load_config(configuration), base, folder, callbacks=[lambda _, record: record.iteration == 15])
    found = resume_run(folder, engine=engine)
    assert len(found.history) == 40
    assert found.history["snr"] == pytest.approx(compiled.history["snr"], abs=CLOSE_DB)
    scale = float(np.abs(compiled.phase).max())
    assert float(np.abs(found.phase - compiled.phase).max()) < 1e-2 * scale


@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize("method", ["spectral", "admm"])
def test_measured_frames(engine: Any, method: str) -> None:
    """The recipe for measured frames, on a small set: start by EPRY, calibrations of the pupil and of gains, a wave."""
    optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    model = fs.ForwardModel(optics, fs.LEDArray.square(7, pitch=4e-3, height=70e-3), (32, 32))
    truth = 0.3 * (np.indices(model.object_shape).sum(axis=0) % 40 < 20)
    frames = fs.simulate(model, truth, snr_db=35, seed=0).frames
    data = fs.Acquisition(optics, model.illumination, frames)
    options: dict[str, Any] = {"calibrate": ("zernike", "pixels", "gains"), "batch": 20, "iterations": 12, "align": ()}
    if method == "admm":
        options |= {"method": "admm", "object": "complex", "calibrate": (), "iterations": 4}
    ours, other = (fs.reconstruct(data, engine=name, **options) for name in ("numba", engine))
    assert fs.metrics.snr(other.phase, ours.phase) > 50
    assert other.history["misfit"] == pytest.approx(ours.history["misfit"], rel=1e-3)


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = sys.modules["rocket_fft"] = None
import numpy as np
import fouriscope as fs
from fouriscope.errors import InvalidInputError

optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
model = fs.ForwardModel(optics, fs.LEDArray.square(7, pitch=4e-3, height=70e-3), (24, 24))
assert model.engine.name == "scipy", model.engine
truth = 0.3 * (np.indices(model.object_shape).sum(axis=0) % 30 < 15)
data = fs.simulate(model, truth, snr_db=40, seed=0)
result = fs.reconstruct(data, prior="tv", batch=20, iterations=30)
assert result.snr(truth).aligned > 5, result.snr(truth)
measured = fs.Acquisition(optics, model.illumination, np.asarray(data.frames))
found = fs.reconstruct(measured, prior=None, align=(), calibrate=("zernike", "pixels", "gains"), iterations=3)
fs.reconstruct(measured, method="epry", iterations=2, align=())
for name in ("bm3d", "cnn"):
    try:
        fs.reconstruct(data, prior=name, iterations=1)
    except InvalidInputError as error:
        print(error)
    else:
        sys.exit(f"{name} runs without numba?")
"""


def test_without_numba() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("bm3d", "cnn"):
        assert f"the prior {name!r} needs numba" in done.stdout
