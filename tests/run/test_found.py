"""What a run has found, asked of its folder by somebody who looks on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fouriscope.errors import RunFolderError
from fouriscope.run import RunFolder, load_config, start_run
from fouriscope.run.found import found_so_far
from fouriscope.solvers import Record, Solver
from tests.run.problems import write_acquisition

EPRY: dict[str, Any] = {
    "solver": {"method": "epry", "pupil_step": 1.0, "batch": 49},
    "object": {"model": "complex"},
    "prior": {"name": "none"},
}
SPECTRAL: dict[str, Any] = {
    "frames": {"truth": None},
    "solver": {"method": "spectral", "loss": "amplitude", "start": "epry", "batch": 12},
    "object": {"model": "wave", "margin": 2},
    "calibration": {"gains": True, "zernike": True},
}
RUNS: dict[str, dict[str, Any]] = {
    "pnp with a prior that keeps a state": {"prior": {"name": "tv"}},
    "a fixed subset": {"solver": {"sampler": "fixed"}},
    "admm, poisson": {"solver": {"method": "admm", "loss": "poisson"}},
    "spectral, calibrated": SPECTRAL,
    "epry": EPRY,
    "epry, gains calibrated": EPRY | {"calibration": {"gains": True}},
}


@pytest.mark.parametrize("name", RUNS)
def test_it_is_what_the_solver_had(tmp_path: Path, name: str) -> None:
    seen: list[Solver] = []
    config = load_config(write_acquisition(tmp_path, **RUNS[name], stop={"iterations": 6}))

    def keep(solver: Solver, record: Record) -> None:
        seen[:] = [solver]

    start_run(config, tmp_path, tmp_path / "run", callbacks=[keep])
    fidelity, x = found_so_far(RunFolder.open(tmp_path / "run"))
    np.testing.assert_array_equal(x, seen[0].x)
    np.testing.assert_array_equal(fidelity.model.intensity(x, [3, 24]), seen[0].model.intensity(x, [3, 24]))
    assert fidelity.loss == seen[0].fidelity.loss
    np.testing.assert_array_equal(fidelity.frames.frame(3), seen[0].fidelity.frames.frame(3))


def test_no_prior_is_built_and_no_frame_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start_run(load_config(write_acquisition(tmp_path)), tmp_path, tmp_path / "run")
    monkeypatch.setattr("fouriscope.acquisition.Acquisition.check_frames", None)
    monkeypatch.setattr("fouriscope.priors.TV.__init__", None)
    found_so_far(RunFolder.open(tmp_path / "run"))


def test_without_a_checkpoint_or_frames_it_says_what_is_missing(tmp_path: Path) -> None:
    result = start_run(load_config(write_acquisition(tmp_path)), tmp_path, tmp_path / "run")
    (tmp_path / "run" / "checkpoint.npz").unlink()
    with pytest.raises(RunFolderError, match="needs a checkpoint, which a run writes every ten seconds"):
        found_so_far(RunFolder.open(tmp_path / "run"))
    del result.config["frames"]
    result.save(tmp_path / "saved")
    with pytest.raises(RunFolderError, match="saved from Python"):
        found_so_far(RunFolder.open(tmp_path / "saved"))
