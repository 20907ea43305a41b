"""Frames that change while a field is made stop it: no tile of other frames, and a state that says why."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from fouriscope.errors import FramesChangedError, RunFolderError
from fouriscope.field import FieldFolder
from fouriscope.field.coordinator import FieldProgress
from fouriscope.field.tile_task import reconstruct_tile
from tests.field.problems import assert_same_result, run, write_field

pytestmark = pytest.mark.slow


def test_a_field_stops_and_goes_on_with_the_old_frames(undisturbed: Path, client: Any, tmp_path: Path) -> None:
    configuration, folder, kept = write_field(tmp_path), tmp_path / "field", tmp_path / "kept.npy"
    frames = tmp_path / "frames.npy"
    shutil.copy2(frames, kept)

    def overwrite(progress: FieldProgress) -> None:
        if progress.done == 1 and progress.stage == "tiles":
            with frames.open("r+b") as file:
                file.seek(10_000)
                file.write(bytes(100_000))

    with pytest.raises(RunFolderError, match=r"the frames are not those|was changed while its frames were in use"):
        run(configuration, folder, client, watch=overwrite)
    field = FieldFolder.open(folder)
    status = field.run.status()
    assert status["state"] == "failed"
    assert "frames" in status["reason"]
    assert not (folder / "result").exists()
    with pytest.raises(FramesChangedError, match="restore the old ones"):
        run(configuration, folder, client)
    shutil.copy2(kept, frames)
    assert not run(configuration, folder, client).failed
    assert_same_result(folder, undisturbed)


def test_a_tile_of_other_frames_is_not_made(undisturbed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "field"
    shutil.copytree(undisturbed, folder)
    field = FieldFolder.open(folder)
    field.store.discard(3)
    path = Path(field.config().frames.path or "")
    before = path.stat()
    try:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
        outcome = reconstruct_tile(str(folder), 3)
    finally:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert outcome.state == "stop"
    assert "the frames are not those" in outcome.reason
    assert field.store.record(3) is None
