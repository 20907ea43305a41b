"""The picture of a run while it runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fouriscope.errors import RunFolderError
from fouriscope.run import load_config, start_run
from fouriscope.run.snapshot import SNAPSHOT_NAME, Snapshot, read_snapshot, write_snapshot
from fouriscope.solvers import Record, Solver
from tests.run.problems import write_acquisition


def test_a_run_writes_snapshots_that_hold_its_picture(tmp_path: Path) -> None:
    config = write_acquisition(tmp_path, object={"margin": 2, "model": "complex"})
    early: list[Snapshot | None] = []

    def look(solver: Solver, record: Record) -> None:
        if record.iteration == 1:
            early.append(read_snapshot(tmp_path / "run"))

    result = start_run(load_config(config), tmp_path, tmp_path / "run", callbacks=[look])
    late = read_snapshot(tmp_path / "run")
    assert early[0] is not None
    assert late is not None
    assert (early[0].iteration, late.iteration, late.frames_seen) == (1, 20, result.history.last.frames_seen)
    assert np.array_equal(late.phase, result.phase.astype(np.float32))
    assert late.absorption is not None
    assert np.array_equal(late.absorption, np.asarray(result.absorption, np.float32))
    assert not np.array_equal(late.phase, early[0].phase)
    assert late.pupil is not None
    assert late.led_na is not None
    assert np.array_equal(late.pupil, np.asarray(result.pupil, np.complex64))
    assert late.pixel == result.pixel
    assert late.led_na.shape == (49, 2)
    assert late.led_weight.shape == late.led_arrived.shape == (49,)
    assert late.led_arrived.all()
    assert early[0].written <= late.written


def test_no_snapshot_is_none_and_a_broken_one_is_told(tmp_path: Path) -> None:
    assert read_snapshot(tmp_path) is None
    (tmp_path / SNAPSHOT_NAME).write_bytes(b"PK\x03\x04 half of a file")
    with pytest.raises(RunFolderError, match=r"not a readable snapshot.*delete it"):
        read_snapshot(tmp_path)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    snapshot = Snapshot(
        phase=np.arange(6, dtype=np.float32).reshape(2, 3),
        led_weight=np.ones(2),
        led_arrived=np.array([True, False]),
        iteration=3,
        seconds=0.25,
        frames_seen=6,
        pixel=(1e-7, 2e-7),
    )
    write_snapshot(tmp_path, snapshot)
    back = read_snapshot(tmp_path)
    assert back is not None
    assert (back.absorption, back.pupil, back.led_na) == (None, None, None)
    assert (back.iteration, back.seconds, back.frames_seen, back.pixel) == (3, 0.25, 6, (1e-7, 2e-7))
    assert back.written == snapshot.written
    for name in ("phase", "led_weight", "led_arrived"):
        assert np.array_equal(getattr(back, name), getattr(snapshot, name))
