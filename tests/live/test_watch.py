"""`fouriscope watch` from the first file to the run folder, with everything that happens to it on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from fouriscope import metrics
from fouriscope.acquisition import Acquisition
from fouriscope.errors import InvalidInputError, RunFolderError
from fouriscope.live import WatchedFolder
from fouriscope.run import RunFolder, load_config, resume_run, start_run
from tests.live.problems import COUNT, acquisition, from_the_axis, name_of, stack, write_config, write_frame

COMMAND = [sys.executable, "-m", "fouriscope.cli.app"]
STOP = {"iterations": 60}


@pytest.fixture(scope="module")
def data() -> Acquisition:
    return acquisition()


def watched(configuration: Path, out: Path, **options: Any) -> WatchedFolder:
    folder = configuration.parent / "frames"
    return WatchedFolder(
        load_config(configuration), configuration.parent, folder, out, **{"first_number": 0, **options}
    )


def filling(folder: Path, data: Acquisition, order: list[int]) -> Callable[[Any, Any], None]:
    """A callback that writes one more frame in each iteration."""
    left = iter(order)

    def write(_solver: object, _record: object) -> None:
        led = next(left, None)
        if led is not None:
            write_frame(folder, led, data.frames.frame(led))

    return write


def test_a_watched_acquisition_ends_like_one_on_disk(tmp_path: Path, data: Acquisition) -> None:
    # With a weaker prior a pixel at an edge has two minima, and the times at which frames arrive decide between them.
    sections: dict[str, dict[str, Any]] = {"prior": {"name": "tv", "strength": 3e-4}, "solver": {"batch": COUNT}}
    configuration = write_config(tmp_path, stop={"iterations": 600}, **sections)
    folder, (first, *others) = tmp_path / "frames", from_the_axis()
    write_frame(folder, first, data.frames.frame(first))
    result = watched(configuration, tmp_path / "live").run(callbacks=[filling(folder, data, others)])
    assert result is not None
    assert result.stop_reason == "600 iterations with all frames"
    assert result.provenance["live"] == {"arrived": COUNT, "expected": COUNT, "outlook": "all frames have arrived"}
    on_disk = start_run(load_config(configuration), tmp_path, tmp_path / "at_once")
    assert metrics.snr_both(result.phase, on_disk.phase).aligned > 40
    run = RunFolder.open(tmp_path / "live")
    assert run.status()["state"] == "finished"
    assert run.config()["frames"]["files"] == [name_of(led) for led in range(COUNT)]
    assert run.provenance()["input"]["checksum"] == on_disk.provenance["input"]["checksum"]
    arrived = run.history()["frames_arrived"]
    assert arrived[0] == 1
    assert arrived[-1] == COUNT
    assert np.all(np.diff(arrived) >= 0)
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "live" / "result" / "phase.ome.tif"), result.phase)


@pytest.mark.parametrize("calibration", [{}, {"gains": True, "zernike": True}])
def test_a_finished_watch_resumes_like_any_run(tmp_path: Path, data: Acquisition, calibration: dict[str, Any]) -> None:
    configuration = write_config(tmp_path, stop=STOP, calibration=calibration)
    for led in range(COUNT):
        write_frame(tmp_path / "frames", led, data.frames.frame(led))
    first = watched(configuration, tmp_path / "run").run()
    assert first is not None
    again = resume_run(tmp_path / "run", iterations=len(first.history) + 20)
    assert len(again.history) == len(first.history) + 20
    assert [r.misfit for r in again.history.records[: len(first.history)]] == list(first.history["misfit"])
    with pytest.raises(RunFolderError, match="has all its frames; continue it with: fouriscope resume"):
        watched(configuration, tmp_path / "run")


def test_a_watch_that_was_stopped_goes_on_watching(tmp_path: Path, data: Acquisition) -> None:
    configuration, order = write_config(tmp_path, stop=STOP), from_the_axis()
    for led in order[:20]:
        write_frame(tmp_path / "frames", led, data.frames.frame(led))
    first = watched(configuration, tmp_path / "run").run(
        callbacks=[lambda _, record: "interrupted" if record.iteration == 15 else None]
    )
    assert first is not None
    assert first.stop_reason == "interrupted"
    assert first.provenance["live"]["arrived"] == 20
    assert (tmp_path / "run" / "result" / "phase.ome.tif").exists()
    with pytest.raises(RunFolderError, match="continue it with the command that began it: fouriscope watch"):
        resume_run(tmp_path / "run")
    other = write_config(tmp_path, stop=STOP, solver={"batch": 13})
    with pytest.raises(RunFolderError, match="begun with another configuration"):
        watched(other, tmp_path / "run")
    configuration = write_config(tmp_path, stop=STOP)
    for led in order[20:]:
        write_frame(tmp_path / "frames", led, data.frames.frame(led))
    second = watched(configuration, tmp_path / "run").run()
    assert second is not None
    assert [r.misfit for r in second.history.records[:15]] == list(first.history["misfit"])
    assert len(second.history) >= 15 + 60
    assert second.provenance["live"]["arrived"] == COUNT


def test_a_watch_that_went_on_ends_where_it_would_have_ended(tmp_path: Path, data: Acquisition) -> None:
    configuration = write_config(tmp_path, stop=STOP)
    for led in range(COUNT):
        write_frame(tmp_path / "frames", led, data.frames.frame(led))
    straight = watched(configuration, tmp_path / "straight").run()

    def fail(_solver: object, record: Any) -> None:
        if record.iteration == 25:
            raise RuntimeError("the machine fails")

    with pytest.raises(RuntimeError, match="the machine fails"):
        watched(configuration, tmp_path / "run").run(callbacks=[fail], checkpoint_seconds=0)
    again = watched(configuration, tmp_path / "run").run()
    assert straight is not None
    assert again is not None
    assert len(again.history) == len(straight.history) == STOP["iterations"]
    np.testing.assert_array_equal(again.phase, straight.phase)


def test_silence_ends_a_watch_with_what_there_is(tmp_path: Path, data: Acquisition) -> None:
    configuration = write_config(tmp_path, stop=STOP)
    for led in from_the_axis()[:9]:
        write_frame(tmp_path / "frames", led, data.frames.frame(led))
    result = watched(configuration, tmp_path / "run", silence=0.5).run()
    assert result is not None
    assert result.stop_reason == "no frame for 0.5 s"
    assert result.provenance["live"]["arrived"] == 9
    assert RunFolder.open(tmp_path / "run").status()["state"] == "finished"


def test_nothing_is_written_where_nothing_could_begin(tmp_path: Path, data: Acquisition) -> None:
    configuration = write_config(tmp_path)
    write_frame(tmp_path / "frames", 0, data.frames.frame(0))  # dark field
    assert watched(configuration, tmp_path / "run", silence=0.3).run() is None
    assert not (tmp_path / "run").exists()


def test_a_bad_frame_is_told_of_and_the_others_go_on(tmp_path: Path, data: Acquisition) -> None:
    told: list[str] = []
    configuration, frames = write_config(tmp_path, stop=STOP), stack(data)
    write_frame(tmp_path / "frames", 24, frames[24])
    nan = frames[30].copy()
    nan[0, 0] = np.nan
    write_frame(tmp_path / "frames", 30, nan)
    write_frame(tmp_path / "frames", 31, frames[31][:20])

    def mend(_solver: object, record: Any) -> None:
        if record.iteration == 10:
            for led in range(COUNT):
                write_frame(tmp_path / "frames", led, frames[led])

    result = watched(configuration, tmp_path / "run", tell=told.append).run(callbacks=[mend])
    assert result is not None
    assert result.provenance["live"]["arrived"] == COUNT
    assert len(told) == 2
    assert any("led_30.tif is left out" in line and "NaN" in line for line in told)
    assert any("led_31.tif is left out" in line and "(20, 24)" in line for line in told)


def test_counts_are_corrected_and_cut_as_on_disk(tmp_path: Path, data: Acquisition) -> None:
    counts = np.clip(stack(data) * 1000 + 100, 0, 4095).astype(np.uint16)
    flat = np.linspace(0.9, 1.1, 24)[:, None] * np.ones((24, 24))
    np.save(tmp_path / "flat.npy", flat)
    section = {"offset": 100.0, "gain": 1000.0, "flat": "flat.npy", "roi": [2, 4, 18, 16], "saturation": 1250.0}
    configuration = write_config(tmp_path, stop=STOP, frames=section)
    for led in range(COUNT):
        write_frame(tmp_path / "frames", led, counts[led])
    result = watched(configuration, tmp_path / "run").run()
    assert result is not None
    again = resume_run(tmp_path / "run", iterations=len(result.history) + 1)
    assert again.phase.shape == result.phase.shape
    assert again.provenance["acquisition"]["microscope"] == result.provenance["acquisition"]["microscope"]


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"frames": {"saturation": "auto"}}, 'frames.saturation = "auto" needs all frames'),
        ({"frames": {"reject": "auto"}}, 'frames.reject = "auto"'),
        ({"frames": {"bad_pixels": "auto"}}, 'frames.bad_pixels = "auto"'),
        ({"frames": {"kind": "tiff"}}, "a stack that grows page by page cannot be followed"),
        ({"stop": {"iterations": "unlimited"}}, "would never stop"),
    ],
)
def test_what_needs_all_frames_is_refused(tmp_path: Path, sections: dict[str, Any], message: str) -> None:
    configuration = write_config(tmp_path, **sections)
    with pytest.raises(InvalidInputError, match=message.replace("(", r"\(")):
        watched(configuration, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_shape_in_the_configuration_is_expected(tmp_path: Path, data: Acquisition) -> None:
    told: list[str] = []
    configuration = write_config(tmp_path, frames={"path": None, "shape": [24, 24]}, stop=STOP)
    write_frame(tmp_path / "frames", 24, np.ones((30, 24), np.float32))
    write_frame(tmp_path / "frames", 25, data.frames.frame(25))
    result = watched(configuration, tmp_path / "run", silence=0.5, tell=told.append).run()
    assert result is not None
    assert result.provenance["live"]["arrived"] == 1
    assert "led_24.tif is left out" in told[0]


class Program:
    """A command in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def wait(self) -> tuple[int, str]:
        output, _ = self.process.communicate(timeout=300)
        return self.process.returncode, output


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 240
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


@pytest.mark.slow
def test_a_simulated_acquisition_is_watched_through_kills_and_interrupts(tmp_path: Path) -> None:
    out, run = tmp_path / "data", tmp_path / "run"
    size = ["--frame", "24", "--radius", "4.1"]
    player = Program("simulate", str(out), "--live", "--rate", "4", "--order", "random", *size)
    wait_until(lambda: len(list((out / "frames").glob("*.tif"))) >= 3)
    player.process.send_signal(signal.SIGSTOP)  # the acquisition goes on until we say so, however busy the machine is
    arguments = ["watch", str(out / "frames"), "--config", str(out / "config.toml"), "--out", str(run)]
    killed = Program(*arguments, "--checkpoint-seconds", "0")
    wait_until((run / "checkpoint.npz").exists)
    os.kill(killed.process.pid, signal.SIGKILL)
    killed.wait()
    interrupted = Program(*arguments, "--checkpoint-seconds", "0")
    before = len(RunFolder.open(run).history())
    wait_until(lambda: len(RunFolder.open(run).history()) > before + 20)
    interrupted.process.send_signal(signal.SIGINT)
    code, output = interrupted.wait()
    assert code == 130, output
    assert "stopped: interrupted" in output
    assert (run / "result" / "phase.ome.tif").exists()
    done = len(RunFolder.open(run).history())
    assert not RunFolder.open(run).provenance()["watch"]["complete"]
    player.process.send_signal(signal.SIGCONT)
    code, output = Program(*arguments).wait()
    assert code == 0, output
    assert player.wait()[0] == 0
    assert len(RunFolder.open(run).history()) > done
    code, output = Program("reconstruct", str(out / "config.toml"), "--out", str(tmp_path / "at_once")).wait()
    assert code == 0, output
    live, at_once = (RunFolder.open(folder).history().last.snr for folder in (run, tmp_path / "at_once"))
    assert live == pytest.approx(at_once, abs=0.7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--until", "tomorrow"], "--until must be 'converged' or a number of seconds"),
        (["--until", "-3"], "--until must be"),
        (["--config", "nowhere.toml"], "no such file"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    configuration = write_config(tmp_path)
    code, output = Program("watch", str(tmp_path), "--config", str(configuration), *arguments).wait()
    assert code == 2
    assert message in output
    assert output.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--rate", "0"], "--rate must be"), (["--order", "up"], "--order must be"), (["--field"], "leave out --field")],
)
def test_a_mistake_in_playing_is_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    size = ["--frame", "16", "--radius", "2"]
    code, output = Program("simulate", str(tmp_path / "out"), "--live", *size, *arguments).wait()
    assert code == 2
    assert message in output
    assert not (tmp_path / "out" / "config.toml").exists()
