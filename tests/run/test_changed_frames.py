"""Frames that change while a run reads them are noticed: no result, and a state that says why."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import h5py
import numpy as np
import pytest
import tifffile
import zarr
from numpy.typing import NDArray

import fouriscope as fs
from fouriscope.acquisition.file_states import TICK
from fouriscope.cli.progress import Progress
from fouriscope.errors import FramesChangedError, RunFolderError
from fouriscope.run import RunFolder, load_config, resume_run, start_run
from fouriscope.run.described import Described
from fouriscope.run.memory import with_memory
from fouriscope.solvers import Record, Solver
from tests.cli.test_cli import Command, fouriscope  # noqa: F401  (a fixture)
from tests.run.problems import write_acquisition

SMALL = str(5 * 24 * 24 * 4)  # a tenth of the stack
Stack = NDArray[np.float32]


def write_tiff(folder: Path, stack: Stack) -> Path:
    tifffile.imwrite(folder / "stack.tif", stack, photometric="minisblack")
    return folder / "stack.tif"


def write_npy(folder: Path, stack: Stack) -> Path:
    np.save(folder / "stack.npy", stack)
    return folder / "stack.npy"


def write_npz(folder: Path, stack: Stack) -> Path:
    np.savez(folder / "stack.npz", stack=stack)
    return folder / "stack.npz"


def write_hdf5(folder: Path, stack: Stack) -> Path:
    with h5py.File(folder / "stack.h5", "w") as file:
        file["stack"] = stack
    return folder / "stack.h5"


def write_zarr(folder: Path, stack: Stack) -> Path:
    array = zarr.create_array(str(folder / "stack.zarr"), shape=stack.shape, dtype=stack.dtype, chunks=(1, 24, 24))
    array[...] = stack
    return folder / "stack.zarr"


def write_images(folder: Path, stack: Stack) -> Path:
    (folder / "stack").mkdir()
    for index, frame in enumerate(stack):
        tifffile.imwrite(folder / "stack" / f"{index}.tif", frame)
    return folder / "stack"


WRITERS = [write_tiff, write_npy, write_npz, write_hdf5, write_zarr, write_images]


def damage(path: Path) -> None:
    """Overwrite the middle of every file of some size, in place."""
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if file.is_file() and (size := file.stat().st_size) > 2000:
            with file.open("r+b") as opened:
                opened.seek(size // 2)
                opened.write(bytes(500))


def damage_in_secret(path: Path) -> None:
    """The same, with the times that the file had."""
    before = path.stat()
    damage(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def after(iterations: int, change: Callable[[Path], None], path: Path) -> Callable[[Solver, Record], None]:
    def callback(_: Solver, record: Record) -> None:
        if record.iteration == iterations:
            change(path)

    return callback


def acquired(folder: Path, write: Callable[[Path, Stack], Path]) -> tuple[Path, Path]:
    configuration = write_acquisition(folder)
    path = write(folder, np.load(folder / "frames.npy"))
    text = configuration.read_text(encoding="utf-8").replace("frames.npy", path.name)
    configuration.write_text(text, encoding="utf-8")
    return configuration, path


@pytest.mark.parametrize("write", WRITERS)
def test_a_run_stops_and_says_why(tmp_path: Path, write: Callable[[Path, Stack], Path]) -> None:
    configuration, path = acquired(tmp_path, write)
    config = with_memory(load_config(configuration), SMALL)
    with pytest.raises(FramesChangedError, match="was changed while its frames were in use") as said:
        start_run(config, tmp_path, tmp_path / "run", callbacks=[after(8, damage, path)])
    assert str(path) in str(said.value)
    run = RunFolder.open(tmp_path / "run")
    assert run.status() == {"state": "failed", "reason": str(said.value)}
    assert not (run.path / "result").exists()


def test_the_old_frames_put_back_let_it_go_on(tmp_path: Path) -> None:
    configuration, path = acquired(tmp_path, write_tiff)
    config = with_memory(load_config(configuration), SMALL)
    whole = start_run(config, tmp_path, tmp_path / "whole")
    shutil.copy2(path, tmp_path / "kept")
    with pytest.raises(FramesChangedError):
        start_run(config, tmp_path, tmp_path / "run", checkpoint_seconds=0, callbacks=[after(8, damage, path)])
    with pytest.raises(RunFolderError, match="are not those that"):
        resume_run(tmp_path / "run")
    shutil.copy2(tmp_path / "kept", path)
    with pytest.raises(FramesChangedError):
        resume_run(tmp_path / "run", callbacks=[after(12, damage, path)])
    shutil.copy2(tmp_path / "kept", path)
    np.testing.assert_array_equal(resume_run(tmp_path / "run").phase, whole.phase)


def test_a_change_that_no_time_tells_is_found_before_the_result(tmp_path: Path) -> None:
    """The checkpoint may have seen other frames, so the run begins anew when the old ones are back."""
    configuration, path = acquired(tmp_path, write_npy)
    config = with_memory(load_config(configuration), SMALL)
    whole = start_run(config, tmp_path, tmp_path / "whole")
    shutil.copy2(path, tmp_path / "kept")
    with pytest.raises(FramesChangedError, match="its frames were changed"):
        start_run(config, tmp_path, tmp_path / "run", callbacks=[after(8, damage_in_secret, path)])
    run = RunFolder.open(tmp_path / "run")
    assert run.status()["state"] == "failed"
    assert not (run.path / "result").exists()
    shutil.copy2(tmp_path / "kept", path)
    np.testing.assert_array_equal(resume_run(tmp_path / "run").phase, whole.phase)


def test_what_was_read_once_may_change_afterwards(tmp_path: Path) -> None:
    configuration, path = acquired(tmp_path, write_tiff)
    whole = start_run(load_config(configuration), tmp_path, tmp_path / "whole")
    again = start_run(load_config(configuration), tmp_path, tmp_path / "run", callbacks=[after(8, damage, path)])
    np.testing.assert_array_equal(again.phase, whole.phase)


@pytest.mark.parametrize("change", [damage, damage_in_secret, Path.touch])
def test_python_is_told_too(tmp_path: Path, change: Callable[[Path], None]) -> None:
    _, path = acquired(tmp_path, write_npy)
    optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    leds = fs.LEDArray.square(7, pitch=4e-3, height=70e-3)
    data = fs.Acquisition(optics, leds, fs.open_frames(path), periodic=True)
    with pytest.raises(FramesChangedError, match="changed"):
        fs.reconstruct(data, iterations=20, batch=12, callbacks=[after(5, change, path)])


@pytest.mark.parametrize("write", WRITERS)
def test_a_file_that_is_replaced_is_another_file(tmp_path: Path, write: Callable[[Path, Stack], Path]) -> None:
    path = write(tmp_path, np.random.default_rng(0).random((5, 24, 24), np.float32))
    frames = fs.open_frames(path)
    np.testing.assert_array_equal(frames[1], frames[1])
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    for file in files:
        before = file.stat()
        other = file.with_name(f".{file.name}")
        shutil.copyfile(file, other)
        os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
        other.replace(file)
    time.sleep(2 * TICK)
    with pytest.raises(FramesChangedError):
        frames.frame(1)


def test_the_command_says_it_in_one_line(tmp_path: Path, fouriscope: Command, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    configuration, path = acquired(tmp_path, write_tiff)
    damaging = Progress()
    damage_then = after(8, damage, path)
    monkeypatch.setattr(Progress, "__call__", lambda _, solver, record: damage_then(solver, record))
    monkeypatch.setattr("fouriscope.cli.reconstruct.shown_progress", lambda *_: nullcontext(damaging))
    said = fouriscope.fails("reconstruct", configuration, "--memory", SMALL, "--out", tmp_path / "run", "--quiet")
    assert said.startswith(f"{path} was changed while its frames were in use")


def test_a_change_between_alignment_and_run_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration, path = acquired(tmp_path, write_npy)
    document = load_config(configuration).model_copy(update={"alignment": fs.settings.Alignment(exposure=True)})
    document = document.model_copy(update={"frames": document.frames.model_copy(update={"memory": 5000})})
    seen_anew = Described.seen_anew

    def change(self: Described, acquisition: fs.Acquisition) -> fs.Acquisition:
        path.touch()
        return seen_anew(self, acquisition)

    monkeypatch.setattr(Described, "seen_anew", change)
    with pytest.raises(FramesChangedError):
        start_run(document, tmp_path, tmp_path / "run")
    assert not (tmp_path / "run").exists()
