"""A run within a small budget is the run with everything in memory, and says what it cannot do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from fouriscope.acquisition import FrameMasks, StreamedFrames, stream_below
from fouriscope.errors import InvalidInputError
from fouriscope.run import Result, RunFolder, load_config, resume_run, start_run
from fouriscope.run.assemble import build_acquisition
from fouriscope.run.memory import default_budget, memory_needed, with_memory
from fouriscope.run.provenance import FrameDigest, describe_acquisition
from fouriscope.solvers import Callback
from tests.cli.test_cli import Command, fouriscope  # noqa: F401  (a fixture)
from tests.run.problems import write_acquisition

FRAME = 24 * 24 * 2  # bytes, as it is stored
SMALL = str(5 * FRAME)  # a tenth of the stack


def counted(folder: Path, **sections: Any) -> Path:
    """The small problem as camera counts in a compressed TIFF, some of them saturated."""
    frames = {"path": "counts.tif", "gain": 1000.0, "offset": 100.0, "saturation": 1250.0, "truth": None}
    path = write_acquisition(folder, frames=frames, **sections)
    counts = np.rint(np.load(folder / "frames.npy") * 1000 + 100).clip(0, 1250).astype(np.uint16)
    tifffile.imwrite(folder / "counts.tif", counts, compression="zlib", photometric="minisblack")
    return path


def run(path: Path, folder: Path, memory: str | None, *callbacks: Callback) -> Result:
    return start_run(with_memory(load_config(path), memory), path.parent, folder, callbacks=callbacks)


def assert_same(result: Result, expected: Result) -> None:
    np.testing.assert_array_equal(result.phase, expected.phase)
    np.testing.assert_array_equal(result.history["misfit"], expected.history["misfit"])


@pytest.mark.parametrize(
    "solver",
    [
        *({"sampler": sampler} for sampler in ("all", "uniform", "epochs", "stratified")),
        {"method": "admm"},
        {"method": "epry", "order": "random"},
        {"start": "linear"},
    ],
    ids=str,
)
def test_the_budget_changes_nothing_but_memory(tmp_path: Path, solver: dict[str, Any]) -> None:
    prior = {"name": "none" if solver.get("method") == "epry" else "tv"}
    path = counted(tmp_path, solver=solver, stop={"iterations": 12}, prior=prior)
    whole = run(path, tmp_path / "whole", None)
    assert_same(run(path, tmp_path / "small", SMALL), whole)
    run(path, tmp_path / "parts", SMALL, lambda _, record: record.iteration == 5)
    assert RunFolder.open(tmp_path / "parts").config()["frames"]["memory"] == SMALL
    assert_same(resume_run(tmp_path / "parts", memory="1MB"), whole)
    assert RunFolder.open(tmp_path / "parts").config()["frames"]["memory"] == SMALL
    sums = [RunFolder.open(tmp_path / name).provenance() for name in ("whole", "small", "parts")]
    assert all(other["input"]["checksum"] == sums[0]["input"]["checksum"] for other in sums)
    assert all(other["acquisition"]["mask"] == sums[0]["acquisition"]["mask"] for other in sums)


def test_stored_counts_are_streamed_below_corrections_and_masks(tmp_path: Path) -> None:
    acquisition = build_acquisition(with_memory(load_config(counted(tmp_path)), SMALL), tmp_path)
    stream = stream_below(acquisition.frames)
    assert isinstance(stream, StreamedFrames)
    assert stream.dtype == np.uint16
    assert isinstance(acquisition.mask, FrameMasks)
    assert stream_below(acquisition.mask) is stream
    before = stream.reads
    digest = FrameDigest(acquisition.frames.shape)
    acquisition.check_frames(digest.add)
    assert stream.reads - before <= len(acquisition), "one pass for the check, the sum and the masks"
    # Masks on demand have the checksum of the array that they are.
    array = np.asarray(acquisition.mask)
    held = type(acquisition)(acquisition.optics, acquisition.illumination, acquisition.frames, mask=array)
    assert describe_acquisition(acquisition, digest)["mask"] == describe_acquisition(held, digest)["mask"]


def test_the_cache_counts_as_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fouriscope.forward import ForwardModel

    config = load_config(counted(tmp_path))
    acquisition = build_acquisition(with_memory(config, SMALL), tmp_path)
    geometry = ForwardModel(acquisition.optics, acquisition.illumination, (24, 24)).geometry
    assert memory_needed(geometry, config, frames=10**9) - memory_needed(geometry, config) == 10**9
    monkeypatch.setattr("fouriscope.run.memory.memory_available", lambda: 4000)
    assert default_budget() == 1000
    monkeypatch.setattr("fouriscope.run.memory.memory_available", lambda: 2**40)
    assert default_budget() == 2**30


def test_a_size_that_is_none(fouriscope: Command, tmp_path: Path) -> None:  # noqa: F811
    path = counted(tmp_path)
    message = fouriscope.fails("reconstruct", path, "--memory", "64 elephants")
    assert "such as 64MB, 512MiB or 2GB, got '64 elephants'" in message
    assert "cannot hold two frames of 24 × 24 uint16" in fouriscope.fails("reconstruct", path, "--memory", "1kB")
    assert not (tmp_path / "run").exists()
    wrong = counted(tmp_path / "wrong")
    wrong.write_text(wrong.read_text().replace("[frames]", '[frames]\nmemory = "much"'), encoding="utf-8")
    assert "frames.memory: memory must be a number" in fouriscope.fails("reconstruct", wrong)


def test_the_command_line_takes_a_budget(fouriscope: Command, tmp_path: Path) -> None:  # noqa: F811
    path = counted(tmp_path, stop={"iterations": 3})
    assert fouriscope("reconstruct", path, "--memory", "64 kB", "-q").code == 0
    assert load_config(tmp_path / "run" / "config.toml").frames.memory == "64 kB"
    assert fouriscope("resume", tmp_path / "run", "--iterations", 5, "--memory", SMALL, "-q").code == 0
    assert "got 'x'" in fouriscope.fails("resume", tmp_path / "run", "--iterations", 6, "--memory", "x")


def test_frames_that_break_in_the_background_are_named(tmp_path: Path) -> None:
    path = counted(tmp_path, stop={"iterations": 30})
    data = (tmp_path / "counts.tif").read_bytes()

    def damage(_: Any, record: Any) -> None:
        if record.iteration == 3:
            (tmp_path / "counts.tif").write_bytes(b"\0" * len(data))

    with pytest.raises(InvalidInputError, match=r"counts.tif was changed while its frames were in use"):
        run(path, tmp_path / "run", SMALL, damage)
