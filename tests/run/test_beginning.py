"""Building a solver computes nothing; the start is found when a run begins from nothing, and only then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fouriscope.solvers.epry
from fouriscope.run import load_config, resume_run, start_run
from fouriscope.run.assemble import build_acquisition, build_solver
from fouriscope.run.config import parse_config
from fouriscope.solvers import Iterations
from tests.run.problems import document, write_acquisition

SPECTRAL: dict[str, Any] = {
    "frames": {"truth": None},
    "prior": {"name": "none"},
    "object": {"model": "wave"},
    "solver": {"method": "spectral", "loss": "amplitude", "start": "epry", "batch": 12},
    "stop": {"iterations": 6},
}
REFINED = SPECTRAL | {"calibration": {"zernike": True}}


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each sweep of EPRY."""
    sweeps: list[int] = []
    step = fouriscope.solvers.epry.EPRY.step

    def counted(self: Any) -> Any:
        sweeps.append(len(sweeps))
        return step(self)

    monkeypatch.setattr(fouriscope.solvers.epry.EPRY, "step", counted)
    return sweeps


@pytest.mark.parametrize("sections", [SPECTRAL, REFINED], ids=["known pupil", "pupil refined"])
def test_a_resumed_run_does_not_look_for_a_start(tmp_path: Path, swept: list[int], sections: dict[str, Any]) -> None:
    path = write_acquisition(tmp_path, **sections)
    start_run(load_config(path), tmp_path, tmp_path / "run", callbacks=[lambda _, record: record.iteration == 3])
    begun = len(swept)
    assert begun > 0, "a fresh run does"
    resumed = resume_run(tmp_path / "run")
    assert len(swept) == begun
    whole = start_run(load_config(path), tmp_path, tmp_path / "whole")
    assert len(swept) == 2 * begun, "once, though a solver is built beforehand to tell what is wrong"
    np.testing.assert_array_equal(resumed.phase, whole.phase)


@pytest.mark.parametrize("solver", [SPECTRAL["solver"], {"start": "linear"}, {"method": "epry", "start": "linear"}])
def test_building_and_printing_read_no_frame(
    tmp_path: Path, solver: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_acquisition(tmp_path)
    config = parse_config(document(**SPECTRAL | {"solver": solver}), where="test")
    acquisition = build_acquisition(config, tmp_path)
    read: list[int] = []
    frame = type(acquisition.frames).frame

    def spy(self: Any, index: int) -> Any:
        read.append(index)
        return frame(self, index)

    monkeypatch.setattr(type(acquisition.frames), "frame", spy)
    built = build_solver(acquisition, config)
    assert "×" in repr(built)
    assert not read
    began, asked = built.x, len(read)
    assert asked, "whoever asks for the estimate gets the start"
    built.begin()
    assert built.x is began
    assert len(read) == asked
    built.solve(Iterations(1))
    assert built.x is not began
