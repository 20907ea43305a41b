"""The run folder: a reader never sees half a file, and what was saved comes back."""

from __future__ import annotations

import errno
import gc
import json
import math
import os
import signal
import socket
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr

from fouriscope.errors import InvalidInputError, RunFolderError
from fouriscope.run import Result, RunFolder
from fouriscope.run.checkpoint import CHECKPOINT_VERSION
from fouriscope.run.files import atomic_write, remove_leftovers, write_arrays, write_json, write_text
from fouriscope.run.folder import FORMAT
from fouriscope.run.lock import FolderLock
from fouriscope.run.stored_arrays import read_arrays
from fouriscope.solvers import History, Record, SolverState

RECORDS = [Record(k, 12 * k, 0.1 * k, 1.0 / k, 0.5, 3.0, 0.1, 10.0 + k, math.nan) for k in range(1, 6)]


def new_folder(path: Path, records: list[Record] = RECORDS) -> RunFolder:
    folder = RunFolder.create(path, {"solver": {"batch": 3}}, {"input": {"checksum": "sha256:0"}})
    for record in records:
        folder.append(record)
    return folder


def columns(history: History) -> Any:
    return [record.as_dict() for record in history]


# ---------------------------------------------------------------------------------------------------------------------
# Files


def test_atomic_write_keeps_the_old_file_when_the_block_fails(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_text(path, "old")

    def interrupted() -> None:
        with atomic_write(path) as file:
            file.write(b"half of the new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text(encoding="utf-8") == "old"
    assert [child.name for child in tmp_path.iterdir()] == ["file.txt"]


def test_atomic_write_replaces_and_is_readable_as_the_umask_says(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    before = os.umask(0o027)
    try:
        write_text(path, "old")
        write_text(path, "new µ")
    finally:
        os.umask(before)
    assert path.read_text(encoding="utf-8") == "new µ"
    assert path.stat().st_mode & 0o777 == 0o640


def test_the_new_file_is_invisible_until_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    with atomic_write(path) as file:
        file.write(b"half")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == b"half"


def test_arrays_come_back_without_pickle(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        "x": np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32),
        "prior0.dual": np.arange(12.0).reshape(2, 3, 2)[:, ::-1],
        "deck": np.array([], np.int64),
        "complex": np.array([1 + 2j]),
    }
    values = {"q": 0.1 + 0.2, "rng": np.random.default_rng(0).bit_generator.state, "temperature": math.nan}
    write_arrays(tmp_path / "state.npz", arrays, values)
    found, numbers = read_arrays(tmp_path / "state.npz")
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    assert numbers["q"] == values["q"]
    assert numbers["rng"] == values["rng"]
    assert math.isnan(float(numbers["temperature"]))  # JSON has no NaN: it is kept as text
    with np.load(tmp_path / "state.npz", allow_pickle=False) as archive:  # others can read it, too
        np.testing.assert_array_equal(archive["x"], arrays["x"])


def test_objects_are_never_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        write_arrays(tmp_path / "state.npz", {"x": np.array([object()])}, {})
    assert not list(tmp_path.iterdir())


def test_leftovers_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".checkpoint.npz.abc.part").write_text("half", encoding="utf-8")
    (tmp_path / ".result.part").mkdir()
    (tmp_path / ".result.part" / "phase.ome.tif").touch()
    (tmp_path / "metrics.jsonl").touch()
    (tmp_path / ".hidden").touch()
    remove_leftovers(tmp_path)
    assert {child.name for child in tmp_path.iterdir()} == {"metrics.jsonl", ".hidden"}


# ---------------------------------------------------------------------------------------------------------------------
# The folder


def test_create_and_open(tmp_path: Path) -> None:
    new_folder(tmp_path / "deep" / "run").close()
    folder = RunFolder.open(tmp_path / "deep" / "run")
    assert folder.config() == {"solver": {"batch": 3}}
    assert folder.provenance()["format"] == FORMAT
    assert folder.status() == {"state": "running", "reason": "", "pid": os.getpid(), "host": socket.gethostname()}
    assert columns(folder.history()) == columns(History(RECORDS))


def test_metrics_can_be_read_while_a_run_writes_them(tmp_path: Path) -> None:
    folder = new_folder(tmp_path / "run")
    assert len(RunFolder.open(tmp_path / "run").history()) == len(RECORDS)
    folder.close()


def test_create_leaves_what_is_there_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(RunFolderError, match=r"exists and is not empty; choose another folder or delete it$"):
        new_folder(tmp_path)
    assert [child.name for child in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(RunFolderError, match="exists and is not empty"):
        new_folder(tmp_path / "thesis.txt")
    new_folder(tmp_path / "run").close()
    with pytest.raises(RunFolderError, match=r"or continue it with: fouriscope resume .*run$"):
        new_folder(tmp_path / "run")
    (tmp_path / "empty").mkdir()
    new_folder(tmp_path / "empty").close()


def test_open_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="no such folder"):
        RunFolder.open(tmp_path / "run")
    with pytest.raises(RunFolderError, match=r"not a run folder .* delete the folder and start again"):
        RunFolder.open(tmp_path)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match="cannot be written"):
        new_folder(tmp_path / "file" / "run")


# ---------------------------------------------------------------------------------------------------------------------
# One writer


def test_only_one_writes(tmp_path: Path) -> None:
    writer = new_folder(tmp_path / "run")
    with pytest.raises(RunFolderError, match=rf"run is being written by process {os.getpid()}; wait until it ends"):
        RunFolder.open(tmp_path / "run").lock()
    assert len(RunFolder.open(tmp_path / "run").history()) == len(RECORDS), "readers are welcome"
    writer.close()
    assert not (tmp_path / "run" / ".lock").exists()
    next_writer = RunFolder.open(tmp_path / "run")
    next_writer.lock()
    next_writer.lock()
    next_writer.close()


def test_a_forgotten_writer_locks_nobody_out(tmp_path: Path) -> None:
    writer = new_folder(tmp_path / "run", [])
    del writer
    gc.collect()
    RunFolder.open(tmp_path / "run").lock()


def test_a_folder_that_is_just_being_made_is_taken(tmp_path: Path) -> None:
    held = FolderLock(tmp_path)
    with pytest.raises(RunFolderError, match="is being written by process"):
        new_folder(tmp_path)
    held.release()
    assert not list(tmp_path.iterdir())
    new_folder(tmp_path).close()


def test_a_killed_writer_locks_nobody_out(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from fouriscope.run.lock import FolderLock
from fouriscope.run.stored_arrays import read_arrays
lock = FolderLock(Path({str(tmp_path)!r}))
print("locked", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(RunFolderError, match=f"is being written by process {process.pid}"):
            FolderLock(tmp_path)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (tmp_path / ".lock").exists()
    FolderLock(tmp_path).release()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_leaves_the_lock_to_its_parent(tmp_path: Path) -> None:
    code = f"""
import os
from pathlib import Path
from fouriscope.run.lock import FolderLock
from fouriscope.run.stored_arrays import read_arrays
lock = FolderLock(Path({str(tmp_path)!r}))
child = os.fork()
if child:
    os.waitpid(child, 0)
    print(lock.path.exists())
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "True\n"
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_folder(tmp_path / "run").close()
    folder = RunFolder.open(tmp_path / "run")

    def read_only(*_: Any) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(RunFolderError, match=r"run: cannot be written \(Read-only file system\)"):
        folder.lock()


def test_a_file_system_without_locks_locks_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refused(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    one, other = FolderLock(tmp_path), FolderLock(tmp_path)
    one.release()
    other.release()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("cut", [b'{"iteration": 6, "frames', b"\x00\x00\x00", b"\xff\xfe", b"17\n", b"{}}\n"])
def test_a_last_line_cut_short_is_ignored(tmp_path: Path, cut: bytes) -> None:
    folder = new_folder(tmp_path / "run")
    folder.close()
    with (tmp_path / "run" / "metrics.jsonl").open("ab") as file:
        file.write(cut)
    assert columns(folder.history()) == columns(History(RECORDS))
    folder.rewind(5)
    folder.append(RECORDS[0])
    folder.close()
    assert len(folder.history()) == 6, "the next line starts on a line of its own"


def test_a_record_without_a_residual_is_still_a_record(tmp_path: Path) -> None:
    folder = new_folder(tmp_path / "run", [Record(1, 12, 0.1, 1.0, math.inf, 3.0, 0.0)])
    folder.close()
    assert len(folder.history()) == 1
    for line in (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_rewind_drops_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    folder = new_folder(tmp_path / "run")
    (tmp_path / "run" / ".result.part").mkdir()
    kept = folder.rewind(3)
    assert columns(kept) == columns(History(RECORDS[:3])) == columns(folder.history())
    assert not (tmp_path / "run" / ".result.part").exists()
    assert len(folder.rewind(0)) == 0
    with pytest.raises(RunFolderError, match="holds 0 iterations, but the checkpoint holds 4"):
        folder.rewind(4)


def test_a_checkpoint_comes_back(tmp_path: Path) -> None:
    folder = new_folder(tmp_path / "run")
    assert folder.read_checkpoint() is None
    state = SolverState({"x": np.arange(6.0).reshape(2, 3)}, {"q": 1.5})
    folder.write_checkpoint(state, 5)
    folder.close()
    read = folder.read_checkpoint()
    assert read is not None
    np.testing.assert_array_equal(read[0].arrays["x"], state.arrays["x"])
    assert read[0].values == state.values
    assert read[1] == 5


def test_a_damaged_checkpoint_is_said_to_be_one(tmp_path: Path) -> None:
    folder = new_folder(tmp_path / "run")
    path = tmp_path / "run" / "checkpoint.npz"
    folder.write_checkpoint(SolverState({"x": np.zeros((50, 50))}, {"q": 1.5}), 5)
    folder.close()
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as archive:
        archive.writestr("state.json", "{}")
    for damaged in (whole[: len(whole) // 2], b"", bytes(flipped), (tmp_path / "other.npz").read_bytes()):
        path.write_bytes(damaged)
        with pytest.raises(RunFolderError, match=r"checkpoint.npz: damaged .*delete it to start .* from the beginning"):
            folder.read_checkpoint()


def test_a_checkpoint_carries_its_version_and_another_is_refused(tmp_path: Path) -> None:
    folder = new_folder(tmp_path / "run")
    path = tmp_path / "run" / "checkpoint.npz"
    folder.write_checkpoint(SolverState({"x": np.zeros((2, 3))}, {"q": 1.5}), 5)
    folder.close()
    arrays, values = read_arrays(path)
    assert values["version"] == CHECKPOINT_VERSION == 1
    for version in (0, 2, "next"):
        write_arrays(path, arrays, values | {"version": version})
        with pytest.raises(
            RunFolderError,
            match=rf"checkpoint.npz: written by another version .*format {version}, this one reads 1\); "
            "delete it to start this run again, or continue with the version that wrote it",
        ):
            folder.read_checkpoint()


def test_a_checkpoint_from_before_there_were_versions_is_read(tmp_path: Path) -> None:
    folder = new_folder(tmp_path / "run")
    folder.close()
    write_arrays(tmp_path / "run" / "checkpoint.npz", {"x": np.ones(3)}, {"iterations": 4, "solver": {"q": 1.5}})
    states: list[SolverState] = []
    assert folder.restore(states.append) == 4
    np.testing.assert_array_equal(states[0].arrays["x"], np.ones(3))
    assert states[0].values == {"q": 1.5}


def test_nothing_is_restored_without_a_checkpoint_and_what_it_lacks_is_said(tmp_path: Path) -> None:
    folder = new_folder(tmp_path / "run")
    states: list[SolverState] = []
    assert folder.restore(states.append) == 0
    assert not states
    folder.write_checkpoint(SolverState({}, {}), 5)
    folder.close()
    with pytest.raises(RunFolderError, match=r"checkpoint.npz: 'x' is missing.*delete it to start this run"):
        folder.restore(lambda state: state.arrays["x"])


@pytest.mark.parametrize("name", ["status.json", "provenance.json", "config.toml"])
def test_damaged_text_is_said_to_be_damaged(tmp_path: Path, name: str) -> None:
    folder = new_folder(tmp_path / "run")
    folder.close()
    (tmp_path / "run" / name).write_text("{ half a fi", encoding="utf-8")
    read = {"status.json": folder.status, "provenance.json": folder.provenance, "config.toml": folder.config}[name]
    with pytest.raises(RunFolderError, match=rf"{name}: not readable"):
        read()


# ---------------------------------------------------------------------------------------------------------------------
# Results


def some_result(absorption: bool) -> Result:
    rng = np.random.default_rng(0)
    phase = rng.standard_normal((30, 40)).astype(np.float32)
    return Result(
        phase,
        0.1 * rng.random((30, 40), np.float32) if absorption else None,
        History(RECORDS),
        (0.16e-6, 0.2e-6),
        "5 iterations",
        {"object": {"model": "phase"}},
        {"input": {"checksum": "sha256:0"}},
    )


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("absorption", [False, True])
def test_a_result_comes_back(tmp_path: Path, absorption: bool) -> None:
    result = some_result(absorption)
    path = result.save(tmp_path / "saved")
    np.testing.assert_array_equal(tifffile.imread(path / "result" / "phase.ome.tif"), result.phase)
    assert (path / "result" / "amplitude.ome.tif").exists() == absorption
    if absorption:
        np.testing.assert_allclose(tifffile.imread(path / "result" / "amplitude.ome.tif"), np.exp(-result.absorption))  # type: ignore[operator]
    field = zarr.open_array(str(path / "result" / "object.zarr"), mode="r")
    assert field.dtype == np.complex64
    np.testing.assert_array_equal(field[...], result.transmittance)
    np.testing.assert_allclose(field.attrs["pixel_size_m"], result.pixel)
    np.testing.assert_allclose(np.angle(field[...]), (result.phase + np.pi) % (2 * np.pi) - np.pi, atol=1e-5)
    summary = json.loads((path / "result" / "summary.json").read_text(encoding="utf-8"))
    assert summary["stopped"] == "5 iterations"
    assert summary["snr"] == 15.0
    assert (path / "result" / "figure.png").stat().st_size > 1000
    folder = RunFolder.open(path)
    assert folder.status() == {"state": "finished", "reason": "5 iterations"}
    assert columns(folder.history()) == columns(result.history)
    assert not list(path.glob(".*")), "no temporary files"


def test_a_result_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = some_result(True), some_result(False)
    path = first.save(tmp_path / "saved")
    folder = RunFolder.open(path)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("fouriscope.plots.save_figure", full)
        with pytest.raises(RunFolderError, match=r"result: cannot be written \(No space left on device\)"):
            second.write_into(folder)
    assert (path / "result" / "amplitude.ome.tif").exists(), "the old result is still whole"
    assert not (path / ".result.part").exists()
    second.write_into(folder)
    assert not (path / "result" / "amplitude.ome.tif").exists()
    assert not list(path.glob(".*"))


def test_a_result_that_cannot_be_renamed_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = some_result(True), some_result(False)
    path = first.save(tmp_path / "saved")
    original = os.rename

    def stubborn(source: Any, target: Any) -> None:
        if Path(source).name == ".result.part":
            raise OSError(13, "Permission denied")
        original(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", stubborn)
        with pytest.raises(RunFolderError, match=r"result: cannot be written \(Permission denied\)"):
            second.write_into(RunFolder.open(path))
    assert (path / "result" / "amplitude.ome.tif").exists()
    assert not list(path.glob(".*"))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (KeyboardInterrupt(), {"state": "interrupted", "reason": "by the user"}),
        (InvalidInputError("no such file"), {"state": "failed", "reason": "no such file"}),
        (ValueError("a bug"), {"state": "failed", "reason": "ValueError: a bug"}),
    ],
    ids=lambda one: type(one).__name__,
)
def test_the_end_of_a_run_is_noted_and_its_folder_closed(
    tmp_path: Path, error: BaseException, status: dict[str, str]
) -> None:
    folder = RunFolder.create(tmp_path / "run", {}, {})
    folder.write_status("running")
    with pytest.raises(type(error)), folder.ending("by the user"):
        raise error
    assert RunFolder.open(tmp_path / "run").status() == status
    RunFolder.open(tmp_path / "run").lock()


def test_json_is_written_as_text_for_people(tmp_path: Path) -> None:
    write_json(tmp_path / "file.json", {"unit": "µm"})
    assert "µm" in (tmp_path / "file.json").read_text(encoding="utf-8")


def test_a_folder_of_another_format_is_not_read(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", {"stop": {"iterations": 1}}, {})
    (folder.path / "provenance.json").write_text('{"format": 99}', encoding="utf-8")
    with pytest.raises(RunFolderError, match="format 99"):
        RunFolder.open(folder.path)
