"""Whatever happens, a command ends with one line and an exit code, and the details are in a file."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fouriscope.cli.last_resort import LONGEST_LINE
from fouriscope.errors import InvalidInputError
from fouriscope.run import RunFolder
from tests.cli.test_cli import Command, Ended, fouriscope  # noqa: F401  (a fixture)
from tests.run.problems import write_acquisition


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where details go that belong to no run."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("FOURISCOPE_DEBUG", raising=False)
    return tmp_path / "state" / "fouriscope"


def ended_with(error: BaseException, fouriscope: Command, *arguments: object, place: str = "") -> Ended:  # noqa: F811
    def fail(*_: Any, **__: Any) -> None:
        raise error

    fouriscope.monkeypatch.setattr(place or "fouriscope.cli.info.load_config", fail)
    return fouriscope(*(arguments or ("info", "some.toml")))


def endless() -> int:
    return endless() + 1


UNEXPECTED = [
    ValueError("shapes (3,) (4,)\nnot aligned"),
    KeyError("x"),
    RecursionError("maximum recursion depth exceeded"),
    AssertionError(),
    EOFError("no more"),
    OSError("without a number"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
]


@pytest.mark.parametrize("error", UNEXPECTED, ids=lambda error: type(error).__name__)
def test_the_unexpected_is_one_line_and_a_file(error: Exception, fouriscope: Command, state: Path) -> None:  # noqa: F811
    ended = ended_with(error, fouriscope)
    assert (ended.code, ended.out, ended.err.count("\n")) == (70, "", 1)
    assert ended.err.startswith(f"error: {type(error).__name__} (")
    (file,) = state.iterdir()
    assert str(file) in ended.err
    text = file.read_text(encoding="utf-8")
    for part in ("fouriscope info some.toml", "Traceback", type(error).__name__, "numpy ", sys.version.split()[0]):
        assert part in text
    assert file.stat().st_mode & 0o077 == 0


def test_a_recursion_without_end(fouriscope: Command) -> None:  # noqa: F811
    fouriscope.monkeypatch.setattr("fouriscope.cli.info.load_config", lambda _: endless())
    ended = fouriscope("info", "some.toml")
    assert ended.code == 70
    assert ended.err.startswith("error: RecursionError (maximum recursion depth exceeded")


REFUSED = [
    (MemoryError("Unable to allocate 8 EiB"), "not enough memory (Unable to allocate 8 EiB)"),
    (MemoryError(), "not enough memory (no details)"),
    (
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "a.tif"),
        "a.tif: cannot be written (No space left on device); the disk is full: make room, then give the same command",
    ),
    (OSError(errno.EFBIG, os.strerror(errno.EFBIG)), "raise the limit (ulimit -f), or use another disk, then give"),
    (OSError(errno.EACCES, os.strerror(errno.EACCES), "a.tif"), "a.tif: Permission denied"),
    (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), "output: Too many open files"),
    (BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)), "output: Broken pipe"),
    (InvalidInputError("one\ntwo"), "one two"),
]


@pytest.mark.parametrize(("error", "said"), REFUSED, ids=lambda value: repr(value)[:40])
def test_what_the_system_refuses_is_one_line(
    error: Exception,
    said: str,
    fouriscope: Command,  # noqa: F811
    state: Path,
) -> None:
    ended = ended_with(error, fouriscope)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert said in ended.err
    assert not state.exists()


def test_ctrl_c(fouriscope: Command) -> None:  # noqa: F811
    ended = ended_with(KeyboardInterrupt(), fouriscope)
    assert (ended.code, ended.err) == (130, "stopped\n")


def test_a_line_has_an_end(fouriscope: Command) -> None:  # noqa: F811
    ended = ended_with(InvalidInputError("begins " + "x" * 10_000 + " ends"), fouriscope)
    assert len(ended.err) < LONGEST_LINE + 20
    assert "begins" in ended.err
    assert "ends" in ended.err


def test_the_traceback_is_there_for_who_asks(fouriscope: Command) -> None:  # noqa: F811
    fouriscope.monkeypatch.setenv("FOURISCOPE_DEBUG", "1")
    ended = ended_with(ValueError("odd"), fouriscope)
    assert ended.code == 70
    assert "Traceback (most recent call last)" in ended.err


def test_details_go_elsewhere_if_the_first_place_cannot_be_written(
    fouriscope: Command,  # noqa: F811
    tmp_path: Path,
) -> None:
    (tmp_path / "state").touch()
    fouriscope.monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert f"details are in {tmp_path}/error-" in ended_with(ValueError("odd"), fouriscope).err
    fouriscope.monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "state" / "none"))
    ended = ended_with(ValueError("odd"), fouriscope)
    assert ended.code == 70
    assert "its details could not be written (" in ended.err


@pytest.mark.parametrize(("error", "code"), [(ValueError("odd"), 70), (MemoryError(), 2), (OSError(28, "full"), 2)])
@pytest.mark.parametrize("place", ["solvers.pnp.PnP.iterate", "run.result_files.write_ome_zarr"])
def test_a_run_is_left_without_half_a_result(
    error: Exception,
    code: int,
    place: str,
    fouriscope: Command,  # noqa: F811
    tmp_path: Path,
    state: Path,
) -> None:
    configuration, run = write_acquisition(tmp_path / "data"), tmp_path / "run"
    ended = ended_with(error, fouriscope, "reconstruct", configuration, "--out", run, place=f"fouriscope.{place}")
    assert (ended.code, ended.err.count("\n")) == (code, 1)
    assert not (run / "result").exists()
    assert not [file.name for file in run.rglob("*.part")]
    assert RunFolder.open(run).status()["state"] == "failed"
    assert len(list(run.glob("error-*.txt"))) == (code == 70), "the details are beside what they are about"
    assert not state.exists()


def test_a_command_that_fails_before_there_is_a_run_leaves_no_folder(
    fouriscope: Command,  # noqa: F811
    tmp_path: Path,
    state: Path,
) -> None:
    configuration, run = write_acquisition(tmp_path / "data"), tmp_path / "run"
    place = "fouriscope.run.execute.build_acquisition"
    assert ended_with(ValueError("odd"), fouriscope, "reconstruct", configuration, "--out", run, place=place).code == 70
    assert not run.exists()
    assert len(list(state.iterdir())) == 1


def test_nobody_reads_the_output() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "fouriscope.cli.app", "priors"]
    ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    command: list[str | bytes] = [
        sys.executable,
        "-m",
        "fouriscope.cli.app",
        "info",
        os.fsencode(tmp_path) + b"/\xff.toml",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert (
        ended.stderr
        == f"error: {tmp_path}/\\udcff.toml: no such file; `fouriscope simulate` writes an example to start from\n"
    )
