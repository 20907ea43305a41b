"""`info` says "ready" where `reconstruct` begins, and what `reconstruct` would say where it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fouriscope.run import judged
from tests.cli.test_cli import Command, fouriscope  # noqa: F401  (a fixture)
from tests.run.problems import write_acquisition

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"frames": {"reject": list(range(49))}}, "weight"),
    ({"frames": {"weights": [0.0] * 49}}, "weight"),
    ({"frames": {"path": "white.npy", "saturation": 0.5}}, "mask leaves no pixel"),
    ({"frames": {"mask": "nothing.npy"}}, "mask leaves no pixel"),
    ({"frames": {"truth": "nothing.npy"}}, "truth"),
    ({"prior": {"name": "tvv"}}, "unknown prior 'tvv'"),
    ({"prior": {"name": "tv", "accuracy": "high"}}, "[prior]"),
    ({"prior_absorption": {"name": "tv"}}, "a phase object has no absorption"),
    ({"solver": {"start": "array"}}, 'solver.start = "array"'),
    ({"solver": {"method": "spectral"}}, "spectral"),
    ({"solver": {"method": "epry"}, "prior": {"name": "tv"}}, "EPRY takes no prior"),
    ({"frames": {"path": "holes.npy"}}, "NaN or infinite"),
    ({"frames": {"path": "dark.npy"}}, "all frames are zero"),
    ({"calibration": {"leds": True, "leds_bound": 1000.0}}, "calibration.leds needs room"),
]


@pytest.mark.parametrize(("sections", "said"), REFUSED, ids=lambda value: str(value)[:60])
def test_the_verdict_is_that_of_reconstruct(
    fouriscope: Command,  # noqa: F811
    tmp_path: Path,
    sections: dict[str, Any],
    said: str,
) -> None:
    configuration = write_acquisition(tmp_path, **sections)
    np.save(tmp_path / "nothing.npy", np.zeros((24, 24)))
    holes = np.load(tmp_path / "frames.npy")
    holes[3, 4, 5] = np.nan
    np.save(tmp_path / "holes.npy", holes)
    np.save(tmp_path / "dark.npy", np.zeros_like(holes))
    np.save(tmp_path / "white.npy", np.ones_like(holes))
    refused = fouriscope.fails("reconstruct", configuration, "--out", tmp_path / "run")
    assert said in refused
    ended = fouriscope("info", configuration)
    assert ended.code == 2
    assert refused in ended.out + ended.err
    assert "ready to reconstruct" not in ended.out


def test_large_frames_are_for_tiles(
    fouriscope: Command,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configuration = write_acquisition(tmp_path, object={"margin": "auto"})
    assert f"fouriscope reconstruct {configuration}" in fouriscope("info", configuration).out
    monkeypatch.setattr(judged, "LARGE", 24)
    assert f"fouriscope field {configuration}, because light" in fouriscope("info", configuration).out


def test_what_reconstruct_takes_is_ready(fouriscope: Command, tmp_path: Path) -> None:  # noqa: F811
    configuration = write_acquisition(tmp_path, frames={"reject": [3]}, stop={"iterations": 1})
    ended = fouriscope("info", configuration)
    assert ended.code == 0
    assert "cannot be reconstructed" not in ended.out
    assert f"fouriscope reconstruct {configuration}" in ended.out.splitlines()[-1]
    assert fouriscope("reconstruct", configuration, "--out", tmp_path / "run").code == 0
