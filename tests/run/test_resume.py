"""A run that was stopped in any way goes on to the same numbers as one that was not."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from fouriscope.acquisition import ArrayFrames, open_frames
from fouriscope.errors import DivergenceError, InvalidInputError, RunFolderError
from fouriscope.run import Result, RunFolder, load_config, resume_run, start_run
from fouriscope.run.files import write_arrays
from fouriscope.run.inputs import input_files
from fouriscope.run.provenance import checksum
from fouriscope.run.stored_arrays import read_arrays
from fouriscope.solvers import INTERRUPTED, Callback, History
from tests.run.problems import config, write_acquisition

ITERATIONS = 40
# Crosses the iterations at which the temperature of the noise is measured again.
SECTIONS: dict[str, Any] = {"stop": {"iterations": ITERATIONS}, "prior": {"name": "tv"}}


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_acquisition(tmp_path_factory.mktemp("acquisition"), **SECTIONS)


@pytest.fixture(scope="module")
def uninterrupted(configuration: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return run(configuration, tmp_path_factory.mktemp("reference") / "run")


def run(configuration: Path, folder: Path, *callbacks: Callback, **options: Any) -> Result:
    return start_run(load_config(configuration), configuration.parent, folder, callbacks=callbacks, **options)


def stop_at(iteration: int) -> Callback:
    return lambda _, record: INTERRUPTED if record.iteration == iteration else None


def but_for_the_clock(history: History) -> list[dict[str, Any]]:
    return [{key: value for key, value in record.as_dict().items() if key != "seconds"} for record in history]


def assert_equal_runs(result: Result, expected: Result, folder: Path) -> None:
    np.testing.assert_array_equal(result.phase, expected.phase)
    assert but_for_the_clock(result.history) == but_for_the_clock(expected.history)
    on_disk = RunFolder.open(folder)
    assert but_for_the_clock(on_disk.history()) == but_for_the_clock(expected.history)
    assert on_disk.status()["state"] == "finished"
    np.testing.assert_array_equal(tifffile.imread(folder / "result" / "phase.ome.tif"), expected.phase)
    assert np.all(np.diff(result.history["seconds"]) > 0), "the clock goes on, too"
    assert not list(folder.glob(".*")), "leftovers of the killed writer"


def test_a_calibrated_run_goes_on_from_its_file(tmp_path: Path) -> None:
    """Its checkpoint holds a single number as an array, which must come back as one."""
    configuration = write_acquisition(
        tmp_path / "acquisition", calibration={"zernike": True}, pupil={"defocus": 5e-6}, stop={"iterations": 12}
    )
    expected = run(configuration, tmp_path / "expected")
    run(configuration, tmp_path / "run", stop_at(5))
    assert_equal_runs(resume_run(tmp_path / "run"), expected, tmp_path / "run")


@pytest.mark.parametrize("stopped_at", [1, 10, 33])
def test_a_stopped_run_goes_on(configuration: Path, uninterrupted: Result, tmp_path: Path, stopped_at: int) -> None:
    first = run(configuration, tmp_path / "run", stop_at(stopped_at))
    assert first.stop_reason == "interrupted"
    assert RunFolder.open(tmp_path / "run").status()["state"] == "interrupted"
    assert (tmp_path / "run" / "result" / "phase.ome.tif").exists(), "what there is so far"
    assert_equal_runs(resume_run(tmp_path / "run"), uninterrupted, tmp_path / "run")


@pytest.mark.parametrize(
    "solver",
    [
        {"sampler": "all"},
        {"sampler": "fixed"},
        {"sampler": "epochs", "acceleration": False},
        {"sampler": "uniform", "start": "linear", "loss": "amplitude"},
        {"sampler": "stratified", "loss": "poisson", "step": 1.0},
        {"sampler": "epochs", "steps_per_denoising": 3},
        {"method": "admm", "sampler": "all", "data_steps": 2},
        {"method": "admm"},
        {"method": "red", "sampler": "all"},
        {"method": "red", "denoiser_weight": 1.0},
    ],
    ids=str,
)
def test_every_method_and_sampler_goes_on(tmp_path: Path, solver: dict[str, Any]) -> None:
    configuration = write_acquisition(
        tmp_path, solver=solver, stop={"iterations": 16}, object={"model": "complex"}, prior={"name": "tv"}
    )
    whole = run(configuration, tmp_path / "whole")
    run(configuration, tmp_path / "parts", stop_at(5))
    run_again = resume_run(tmp_path / "parts", callbacks=[stop_at(11)])
    assert run_again.stop_reason == "interrupted"
    result = resume_run(tmp_path / "parts")
    assert_equal_runs(result, whole, tmp_path / "parts")
    np.testing.assert_array_equal(result.absorption, whole.absorption)


def test_a_checkpoint_of_another_method_is_refused(tmp_path: Path) -> None:
    for method in ("pnp", "admm"):
        configuration = write_acquisition(tmp_path / method, solver={"method": method}, stop={"iterations": 4})
        run(configuration, tmp_path / method / "run", stop_at(2))
    foreign = RunFolder.open(tmp_path / "admm" / "run").read_checkpoint()
    assert foreign is not None
    RunFolder.open(tmp_path / "pnp" / "run").write_checkpoint(*foreign)
    with pytest.raises(RunFolderError, match="delete it to start this run from the beginning"):
        resume_run(tmp_path / "pnp" / "run")


def test_a_checkpoint_without_a_version_goes_on_and_one_of_another_is_refused(
    configuration: Path, uninterrupted: Result, tmp_path: Path
) -> None:
    run(configuration, tmp_path / "run", stop_at(7))
    path = tmp_path / "run" / "checkpoint.npz"
    arrays, values = read_arrays(path)
    write_arrays(path, arrays, values | {"version": 99})
    with pytest.raises(RunFolderError, match="format 99, this one reads 1"):
        resume_run(tmp_path / "run")
    assert len(RunFolder.open(tmp_path / "run").history()) == 7, "nothing is lost by asking"
    del values["version"]
    write_arrays(path, arrays, values)
    assert_equal_runs(resume_run(tmp_path / "run"), uninterrupted, tmp_path / "run")


def test_a_finished_run_goes_on_with_a_new_total(configuration: Path, uninterrupted: Result, tmp_path: Path) -> None:
    shorter = write_acquisition(tmp_path / "short", **(SECTIONS | {"stop": {"iterations": 12}}))
    run(shorter, tmp_path / "run")
    part = resume_run(tmp_path / "run", iterations=ITERATIONS, callbacks=[stop_at(20)])
    assert part.config["stop"]["iterations"] == ITERATIONS, "the folder knows of the new total"
    assert_equal_runs(resume_run(tmp_path / "run"), uninterrupted, tmp_path / "run")
    done = resume_run(tmp_path / "run")
    assert len(done.history) == ITERATIONS
    with pytest.raises(InvalidInputError, match=f"already has {ITERATIONS} iterations"):
        resume_run(tmp_path / "run", iterations=5)
    assert RunFolder.open(tmp_path / "run").config()["stop"]["iterations"] == ITERATIONS


def test_without_a_checkpoint_it_starts_again(configuration: Path, uninterrupted: Result, tmp_path: Path) -> None:
    run(configuration, tmp_path / "run", stop_at(7))
    (tmp_path / "run" / "checkpoint.npz").unlink()
    assert_equal_runs(resume_run(tmp_path / "run"), uninterrupted, tmp_path / "run")


def test_other_frames_are_refused(tmp_path: Path) -> None:
    configuration = write_acquisition(tmp_path, **SECTIONS)
    run(configuration, tmp_path / "run", stop_at(3))
    frames = np.load(tmp_path / "frames.npy")
    frames[3, 4, 5] += 1e-3
    np.save(tmp_path / "frames.npy", frames)
    with pytest.raises(RunFolderError, match=r"the frames are not those that .*run was started with"):
        resume_run(tmp_path / "run")
    assert len(RunFolder.open(tmp_path / "run").history()) == 3, "nothing is lost by asking"
    (tmp_path / "frames.npy").unlink()
    with pytest.raises(InvalidInputError, match="no such file"):
        resume_run(tmp_path / "run")


@pytest.mark.parametrize("key", ["frames.mask", "frames.truth", "pupil.array"])
def test_other_files_are_refused_by_name(tmp_path: Path, key: str) -> None:
    pupil = np.ones((24, 24), complex)
    configuration = write_acquisition(
        tmp_path, frames={"mask": "mask.npy"}, pupil={"array": "pupil.npy"}, stop={"iterations": 4}
    )
    np.save(tmp_path / "mask.npy", np.ones((24, 24), np.uint8))
    np.save(tmp_path / "pupil.npy", pupil)
    run(configuration, tmp_path / "run", stop_at(2))
    path = tmp_path / f"{key.split('.')[1].replace('array', 'pupil')}.npy"
    before = path.read_bytes()
    changed = np.load(path)
    changed[12, 12] = 0.5
    np.save(path, changed)
    with pytest.raises(RunFolderError, match=rf"{path.name} \({key}\) is not the file that .* restore the old one"):
        resume_run(tmp_path / "run")
    path.unlink()
    with pytest.raises(InvalidInputError, match=rf"{path.name}"):
        resume_run(tmp_path / "run")
    path.write_bytes(before)
    assert len(resume_run(tmp_path / "run").history) == 4


def test_weights_are_among_the_files() -> None:
    learned = config(
        object={"model": "complex"},
        prior={"name": "deepinv", "weights": "phase.pth"},
        prior_absorption={"name": "deepinv", "weights": "/net/absorption.pth"},
    )
    files = input_files(learned, Path("/data"))
    assert files["prior.weights"] == Path("/data/phase.pth")
    assert files["prior_absorption.weights"] == Path("/net/absorption.pth")


def test_a_checksum_sees_every_bit_and_no_byte_order(tmp_path: Path) -> None:
    frames = np.random.default_rng(0).random((3, 8, 8))
    np.save(tmp_path / "frames.npy", frames)
    np.save(tmp_path / "swapped.npy", frames.astype(">f8"))
    known = checksum(ArrayFrames(frames))
    for name in ("frames.npy", "swapped.npy"):
        assert checksum(open_frames(tmp_path / name)) == known
    other = frames.copy()
    other[2, 7, 7] = np.nextafter(other[2, 7, 7], 2)
    assert other.astype(np.float32).tobytes() == frames.astype(np.float32).tobytes()
    assert checksum(ArrayFrames(other)) != known
    assert checksum(ArrayFrames(frames.astype(np.float32))) != known


def test_a_checkpoint_of_something_else_is_refused(configuration: Path, tmp_path: Path) -> None:
    run(configuration, tmp_path / "run", stop_at(3))
    folder = RunFolder.open(tmp_path / "run")
    checkpoint = folder.read_checkpoint()
    assert checkpoint is not None
    state, done = checkpoint
    del state.values["rng"]
    folder.write_checkpoint(state, done)
    with pytest.raises(RunFolderError, match=r"'rng' is missing.*delete it to start this run from the beginning"):
        resume_run(tmp_path / "run")
    assert len(folder.history()) == 3


def test_a_failed_run_says_why(tmp_path: Path) -> None:
    configuration = write_acquisition(tmp_path, solver={"step": 1e4, "sampler": "all"}, prior={"name": "none"})
    with pytest.raises(DivergenceError):
        run(configuration, tmp_path / "run")
    status = RunFolder.open(tmp_path / "run").status()
    assert status["state"] == "failed"
    assert "diverged" in status["reason"]


def failing(error: BaseException) -> Callback:
    def callback(_: Any, record: Any) -> None:
        if record.iteration == 3:
            raise error

    return callback


@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [
        (ZeroDivisionError("a mistake of ours"), "failed", "ZeroDivisionError: a mistake of ours"),
        (MemoryError(), "failed", "MemoryError"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "failed", "Broken pipe"),
        (KeyboardInterrupt(), "interrupted", "in the middle of an iteration"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_ends_a_run_is_noted(
    configuration: Path, uninterrupted: Result, tmp_path: Path, error: BaseException, state: str, reason: str
) -> None:
    with pytest.raises(type(error)) as caught:
        run(configuration, tmp_path / "run", failing(error))
    assert caught.value is error, "the error itself, not one about the folder"
    status = RunFolder.open(tmp_path / "run").status()
    assert status["state"] == state
    assert reason in status["reason"]
    assert_equal_runs(resume_run(tmp_path / "run"), uninterrupted, tmp_path / "run")


def test_frames_that_vanish_are_named(tmp_path: Path) -> None:
    # Three frames at most in memory, so that the file is needed all the time.
    configuration = write_acquisition(tmp_path, **SECTIONS, frames={"memory": 3 * 24 * 24 * 4})
    frames = (tmp_path / "frames.npy").read_bytes()

    def vanish(_: Any, record: Any) -> None:
        if record.iteration == 3:
            (tmp_path / "frames.npy").unlink()

    with pytest.raises(InvalidInputError, match=r"frames.npy: frame \d+ cannot be read .*No such file") as caught:
        run(configuration, tmp_path / "run", vanish)
    assert "make room" not in str(caught.value)
    assert RunFolder.open(tmp_path / "run").status()["state"] == "failed"
    (tmp_path / "frames.npy").write_bytes(frames)
    assert len(resume_run(tmp_path / "run").history) == ITERATIONS


def test_a_run_that_is_alive_is_left_alone(configuration: Path, uninterrupted: Result, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    refused: list[str] = []

    def meddle(_: Any, record: Any) -> None:
        if record.iteration == 3:
            (folder / ".checkpoint.npz.mine.part").touch()
            with pytest.raises(RunFolderError) as caught:
                resume_run(folder)
            refused.append(str(caught.value))
            (folder / ".checkpoint.npz.mine.part").unlink()

    result = run(configuration, folder, meddle)
    assert len(refused) == 1
    assert f"{folder} is being written by process {os.getpid()}" in refused[0]
    assert_equal_runs(result, uninterrupted, folder)


# ---------------------------------------------------------------------------------------------------------------------
# A full disk


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_after(calls: int, original: Any) -> Any:
    count = 0

    def limited(*arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        return original(*arguments, **options) if count <= calls else full()

    return limited


@pytest.mark.parametrize("calls", [5, 12, 30])
def test_a_full_disk_is_said_and_the_run_goes_on_later(
    configuration: Path, uninterrupted: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_after(calls, os.fsync))
        with pytest.raises(
            RunFolderError, match=r"run: cannot be written \(No space left.*make room, then: fouriscope"
        ):
            run(configuration, tmp_path / "run", checkpoint_seconds=0)
    assert_equal_runs(resume_run(tmp_path / "run"), uninterrupted, tmp_path / "run")


def test_a_disk_that_is_full_for_the_result_alone(
    configuration: Path, uninterrupted: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("fouriscope.plots.save_figure", full)
        with pytest.raises(RunFolderError, match=r"No space left.*make room, then: fouriscope resume"):
            run(configuration, tmp_path / "run")
    assert_equal_runs(resume_run(tmp_path / "run"), uninterrupted, tmp_path / "run")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_is_full_for_the_metrics(
    configuration: Path, uninterrupted: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = RunFolder.create

    def create(*arguments: Any) -> RunFolder:
        folder = original(*arguments)
        (folder.path / "metrics.jsonl").symlink_to("/dev/full")
        return folder

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "create", create)
        with pytest.raises(RunFolderError, match=r"No space left.*make room"):
            run(configuration, tmp_path / "run")
    (tmp_path / "run" / "metrics.jsonl").unlink()
    assert_equal_runs(resume_run(tmp_path / "run"), uninterrupted, tmp_path / "run")


def test_a_full_disk_at_the_start_leaves_no_run(
    configuration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunFolderError, match=r"cannot be written \(No space left"):
        run(configuration, tmp_path / "run")
    assert not list((tmp_path / "run").iterdir())


# ---------------------------------------------------------------------------------------------------------------------
# Signals

CLI = [sys.executable, "-m", "fouriscope.cli.app"]
# Runs the command line, and kills itself at the n-th call of a function, before the call.
SUICIDE = """
import importlib, os, signal, sys
module, function, calls = sys.argv[1], sys.argv[2], int(sys.argv[3])
owner = importlib.import_module(module)
original = getattr(owner, function)
def deadly(*arguments, **options):
    global calls
    calls -= 1
    if not calls:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*arguments, **options)
setattr(owner, function, deadly)
sys.argv = ["fouriscope", *sys.argv[4:]]
from fouriscope.cli.app import main
main()
"""

# Runs the command line, and after an iteration sets a timer of its own CPU time, which kills it as SIGKILL would: a
# random moment soon after, however busy the machine is.
TIMED = """
import signal, sys
from fouriscope.run import RunFolder
iteration, seconds = int(sys.argv[1]), float(sys.argv[2])
append = RunFolder.append
def last(folder, record):
    append(folder, record)
    if record.iteration == iteration:
        signal.setitimer(signal.ITIMER_PROF, seconds)
RunFolder.append = last
sys.argv = ["fouriscope", *sys.argv[3:]]
from fouriscope.cli.app import main
main()
"""


def wait_for_iterations(folder: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 240
    while len(RunFolder(folder).history()) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)


def assert_resumes_or_says_that_nothing_began(folder: Path, expected: Result) -> None:
    if (folder / "config.toml").exists():
        assert_equal_runs(resume_run(folder), expected, folder)
        return
    with pytest.raises(RunFolderError, match="delete the folder and start again"):
        resume_run(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "function", "call"),
    [
        ("os", "fsync", 1),  # while the folder is being made
        ("os", "replace", 2),
        ("os", "replace", 3),  # all but config.toml
        ("os", "fsync", 5),  # in the first checkpoint
        ("os", "replace", 4),  # the first checkpoint is whole, but not yet under its name
        ("os", "fsync", 40),
        ("os", "replace", 25),
        ("fouriscope.plots", "save_figure", 1),  # in the middle of the result
    ],
)
def test_killed_at_a_chosen_moment(
    configuration: Path, uninterrupted: Result, tmp_path: Path, module: str, function: str, call: int
) -> None:
    folder = tmp_path / "run"
    command = ["reconstruct", str(configuration), "--out", str(folder), "--checkpoint-seconds", "0", "--quiet"]
    killed = subprocess.run(
        [sys.executable, "-c", SUICIDE, module, function, str(call), *command], check=False, timeout=240
    )
    assert killed.returncode == -signal.SIGKILL
    assert_resumes_or_says_that_nothing_began(folder, uninterrupted)
    assert (folder / "config.toml").exists() == (
        (module, function, call)
        not in [
            ("os", "fsync", 1),
            ("os", "replace", 2),
            ("os", "replace", 3),
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "there"),
    [
        (1, ["result", ".result.part"]),  # the new result is whole, the old one still in its place
        (2, [".result.old.part", ".result.part"]),  # between the two renames
    ],
)
def test_killed_while_a_result_is_replaced(
    configuration: Path, uninterrupted: Result, tmp_path: Path, call: int, there: list[str]
) -> None:
    folder = tmp_path / "run"
    before = run(configuration, folder, stop_at(12))
    command = ["resume", str(folder), "--quiet"]
    killed = subprocess.run(
        [sys.executable, "-c", SUICIDE, "os", "rename", str(call), *command], check=False, timeout=240
    )
    assert killed.returncode == -signal.SIGKILL
    assert sorted(child.name for child in folder.iterdir() if "result" in child.name) == sorted(there)
    seen: list[Any] = []

    def look(_: Any, record: Any) -> None:
        seen.append(tifffile.imread(folder / "result" / "phase.ome.tif"))

    result = resume_run(folder, callbacks=[look], iterations=ITERATIONS + 1)
    np.testing.assert_array_equal(seen[0], before.phase, "the old result is back while the run goes on")
    assert len(result.history) == ITERATIONS + 1
    assert not list(folder.glob(".*"))
    assert but_for_the_clock(result.history)[:-1] == but_for_the_clock(uninterrupted.history)


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path: Path) -> None:
    """Killed again and again: each time it goes on from where it was. A tick of the timer is some iterations."""
    configuration = write_acquisition(tmp_path / "data", **(SECTIONS | {"stop": {"iterations": 300}}))
    uninterrupted = run(configuration, tmp_path / "reference")
    chance = random.Random(0)
    folder = tmp_path / "run"
    command = ["reconstruct", str(configuration), "--out", str(folder), "--checkpoint-seconds", "0", "-q"]
    done = 0
    for _ in range(3):
        when = [str(done + chance.randint(2, 6)), str(chance.uniform(1e-6, 0.01))]
        killed = subprocess.run([sys.executable, "-c", TIMED, *when, *command], check=False, timeout=240)
        assert killed.returncode == -signal.SIGPROF
        checkpoint = RunFolder.open(folder).read_checkpoint()
        assert checkpoint is not None
        assert checkpoint[1] > done
        done = checkpoint[1]
        command = ["resume", str(folder), "--checkpoint-seconds", "0", "-q"]
    assert done < 300
    assert_equal_runs(resume_run(folder), uninterrupted, folder)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_asked_to_stop(tmp_path: Path, number: signal.Signals) -> None:
    configuration = write_acquisition(tmp_path / "data", **(SECTIONS | {"stop": {"iterations": 100_000}}))
    folder = tmp_path / "run"
    with subprocess.Popen(
        [*CLI, "reconstruct", str(configuration), "--out", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_for_iterations(folder, 3, process)
        process.send_signal(number)
        out, err = process.communicate(timeout=240)
    assert process.returncode == 130
    assert f"interrupted; to continue: fouriscope resume {folder}" in out
    assert err == ""
    stopped = RunFolder.open(folder)
    assert stopped.status()["state"] == "interrupted"
    assert not (folder / ".lock").exists()
    total = len(stopped.history()) + 5
    whole = write_acquisition(tmp_path / "whole", **(SECTIONS | {"stop": {"iterations": total}}))
    assert_equal_runs(resume_run(folder, iterations=total), run(whole, tmp_path / "whole" / "run"), folder)


def test_a_run_that_settles_ends_the_same_after_an_interrupt_and_goes_on_if_asked(tmp_path: Path) -> None:
    """Interrupted while the ways of the estimate are compared, and while estimates are averaged."""
    path = write_acquisition(tmp_path / "data", stop={"iterations": None}, prior={"name": "tv"}, solver={"batch": None})
    frames = np.load(path.parent / "frames.npy")
    noise = np.random.default_rng(1).normal(0.0, 0.05, frames.shape)  # what is slow to come is hidden in it
    np.save(path.parent / "frames.npy", (frames + noise).astype(np.float32))
    whole = run(path, tmp_path / "whole")
    assert whole.stop_reason.startswith("settled")
    ends = len(whole.history)
    assert ends < 300
    for iteration in (150, ends - 20):
        folder = tmp_path / f"run{iteration}"
        run(path, folder, stop_at(iteration))
        resumed = resume_run(folder)
        assert resumed.stop_reason == whole.stop_reason
        assert_equal_runs(resumed, whole, folder)
    longer = resume_run(tmp_path / "whole", iterations=ends + 3)
    assert (len(longer.history), longer.stop_reason) == (ends + 3, f"{ends + 3} iterations")
