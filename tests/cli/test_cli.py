"""The command line as people meet it: what it prints, what it leaves behind, and how it ends."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tifffile

from fouriscope import __version__
from fouriscope.cli import demo
from fouriscope.cli.app import COMMANDS, main
from fouriscope.run import Result, RunFolder, load_config
from tests.run.problems import write_acquisition


class Ended(NamedTuple):
    code: int
    out: str
    err: str


class Command:
    """Runs ``fouriscope`` in this process, through its entry point."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: object) -> Ended:
        self.monkeypatch.setattr(sys, "argv", ["fouriscope", *map(str, arguments)])
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        out, err = self.capsys.readouterr()
        code = end.value.code
        return Ended(code if isinstance(code, int) else 0, out, err)

    def fails(self, *arguments: object) -> str:
        """The one line of an error that was foreseen."""
        ended = self(*arguments)
        assert ended.code == 2
        assert ended.out == ""
        assert ended.err.startswith("error: ")
        assert ended.err.count("\n") == 1
        assert ended.err.endswith("\n")
        return ended.err.removeprefix("error: ").rstrip("\n")


@pytest.fixture
def fouriscope(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


@pytest.mark.parametrize(("place", "line"), COMMANDS.values())
def test_the_list_of_commands_says_what_their_own_help_says(place: str, line: str) -> None:
    assert pkgutil.resolve_name(f"fouriscope.cli.{place}").__doc__.splitlines()[0] == line


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_names_parameters_plainly(fouriscope: Command, name: str) -> None:
    """A flag has no type, and no type is one of Python's."""
    ended = fouriscope(*name.split(), "--help")
    assert ended.code == 0
    assert "--help" in ended.out
    assert "<bool>" not in ended.out
    assert "<list[str]>" not in ended.out


# ---------------------------------------------------------------------------------------------------------------------
# The way from an object to its picture


def test_simulate_info_reconstruct_resume(fouriscope: Command, tmp_path: Path) -> None:
    data, run = tmp_path / "data", tmp_path / "data" / "run"
    ended = fouriscope("simulate", data, "--frame", 24, "--radius", 3.2)
    assert ended == Ended(0, ended.out, "")
    assert "37 frames of 24 × 24, object 72 × 72" in ended.out
    assert f"next: fouriscope reconstruct {data / 'config.toml'}" in ended.out
    assert {child.name for child in data.iterdir()} == {"frames.tif", "truth.tif", "config.toml"}
    assert tifffile.imread(data / "frames.tif").shape == (37, 24, 24)
    truth = tifffile.imread(data / "truth.tif")
    assert truth.min() == 0
    assert truth.max() == pytest.approx(0.3)

    ended = fouriscope("info", data / "config.toml")
    assert ended.code == 0
    assert "37 bright-field" in ended.out
    assert "72 × 72" in ended.out
    assert "MiB" in ended.out
    assert {child.name for child in data.iterdir()} == {"frames.tif", "truth.tif", "config.toml"}

    text = (data / "config.toml").read_text(encoding="utf-8")
    (data / "config.toml").write_text(f"{text}\n[stop]\niterations = 12\n", encoding="utf-8")
    ended = fouriscope("reconstruct", data / "config.toml")
    assert ended.code == 0
    assert ended.err == ""
    assert "72 × 72 pixels of 0.2659 µm after 12 iterations, 360 frames" in ended.out
    assert "dB" in ended.out
    (line,) = [line for line in ended.out.splitlines() if line.startswith(f"{run}/result: ")]
    assert set(line.removeprefix(f"{run}/result: ").split(", ")) == {path.name for path in (run / "result").iterdir()}
    assert {"phase.ome.tif", "result.ome.zarr", "figure.png"} <= {path.name for path in (run / "result").iterdir()}
    assert tifffile.imread(run / "result" / "phase.ome.tif").shape == (72, 72)

    ended = fouriscope("resume", run, "--iterations", 15)
    assert ended.code == 0
    assert "after 15 iterations" in ended.out
    assert len(RunFolder.open(run).history()) == 15
    assert "already has 15 iterations" in fouriscope.fails("resume", run, "--iterations", 3)


def test_info_before_there_are_frames(fouriscope: Command, tmp_path: Path) -> None:
    configuration = write_acquisition(tmp_path, frames={"path": None, "truth": None, "shape": [24, 24]})
    (tmp_path / "frames.npy").unlink()
    ended = fouriscope("info", configuration)
    assert ended.code == 0
    assert "72 × 72" in ended.out
    assert "frames.path is missing" in fouriscope.fails("reconstruct", configuration, "--quiet")
    assert not (tmp_path / "run").exists()


def test_reconstruct_warns_of_a_set_up_that_cannot_work_well(fouriscope: Command, tmp_path: Path) -> None:
    aside = {"offset": [12e-3, 0.0]}  # the array reaches far to one side only
    configuration = write_acquisition(tmp_path, frames={"truth": None}, illumination=aside, stop={"iterations": 1})
    shown = fouriscope("reconstruct", configuration)
    assert shown.code == 0
    warnings = [line for line in shown.out.splitlines() if line.startswith("warning: ")]
    assert warnings
    # `info` looks at the frames as well, which are not those of such an array.
    told = [line for line in fouriscope("info", configuration).out.splitlines() if "warning: " in line]
    assert warnings == told[: len(warnings)]
    assert "note: " not in shown.out
    assert fouriscope("reconstruct", configuration, "--out", tmp_path / "quiet", "-q") == Ended(0, "", "")


def test_quiet_prints_nothing(fouriscope: Command, tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert fouriscope("simulate", data, "--frame", 24, "--radius", 1.5, "--quiet") == Ended(0, "", "")
    configuration = write_acquisition(tmp_path / "other", stop={"iterations": 2})
    assert fouriscope("reconstruct", configuration, "--out", tmp_path / "run", "-q") == Ended(0, "", "")
    assert fouriscope("resume", tmp_path / "run", "--iterations", 3, "-q") == Ended(0, "", "")


def test_version(fouriscope: Command) -> None:
    assert fouriscope("--version") == Ended(0, f"fouriscope {__version__}\n", "")


def test_simulate_an_image_of_ones_own(fouriscope: Command, tmp_path: Path) -> None:
    image = np.zeros((90, 60, 3), np.uint8)
    image[:30, :, 1] = 200
    tifffile.imwrite(tmp_path / "image.tif", image, photometric="rgb")
    for name in ("image.tif", "image.npy"):
        if name.endswith("npy"):
            np.save(tmp_path / name, image.mean(axis=2))
        arguments = ("--image", tmp_path / name, "--frame", 24, "--radius", 1.5, "--phase-range", 0.7)
        assert fouriscope("simulate", tmp_path / f"from {name}", *arguments).code == 0
    one, other = (tifffile.imread(tmp_path / f"from image.{kind}" / "truth.tif") for kind in ("tif", "npy"))
    np.testing.assert_allclose(one, other, atol=1e-6)
    assert one.max() == pytest.approx(0.7)
    assert one[2].mean() > 0.6
    assert one[-2].mean() < 0.05


def test_simulate_and_reconstruct_leds_with_a_size(fouriscope: Command, tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert fouriscope("simulate", data, "--die", 0.5e-3, "--frame", 24, "--radius", 4.2).code == 0
    lights = load_config(data / "config.toml").illumination
    assert (getattr(lights, "die", None), getattr(lights, "die_shape", None)) == (0.5e-3, "square")
    text = (data / "config.toml").read_text(encoding="utf-8") + "\n[stop]\niterations = 4\n"
    calibration = "[calibration]\nzernike = true\npixels = true\ngains = true\nleds = true\n"
    (data / "config.toml").write_text(f"{text}\n{calibration}", encoding="utf-8")
    assert fouriscope("reconstruct", data / "config.toml").code == 0
    assert fouriscope("resume", data / "run", "--iterations", 6).code == 0
    geometry = Result.load(data / "run").geometry
    assert geometry is not None
    assert geometry.die == 0.5e-3
    assert "larger than the distance from LED to LED" in fouriscope.fails("simulate", tmp_path / "b", "--die", 0.5)


def test_simulate_photons(fouriscope: Command, tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert fouriscope("simulate", data, "--photons", 1000, "--frame", 24, "--radius", 1.5, "--seed", 3).code == 0
    counts = tifffile.imread(data / "frames.tif")
    assert counts.dtype == np.uint16
    frames = load_config(data / "config.toml").frames
    intensity = (counts - frames.offset) / frames.gain
    assert intensity.mean() == pytest.approx(1, abs=0.02), "the configuration turns counts into intensity"
    # Photon noise of 1000 electrons on top of a contrast that this weak phase gives to few pixels.
    assert np.median(intensity.std(axis=(1, 2))) > 0.9 / np.sqrt(1000)
    again = tmp_path / "again"
    fouriscope("simulate", again, "--photons", 1000, "--frame", 24, "--radius", 1.5, "--seed", 3)
    np.testing.assert_array_equal(tifffile.imread(again / "frames.tif"), counts)


@pytest.mark.parametrize("options", [(), ("--noise", "frame"), ("--photons", 1000, "--field-curvature", 20e-6)])
def test_simulate_a_field(fouriscope: Command, tmp_path: Path, options: tuple[object, ...]) -> None:
    data, again = tmp_path / "data", tmp_path / "again"
    arguments = ("--field", "--frame", 48, "--radius", 3.2, "--seed", 3, *options)
    ended = fouriscope("simulate", data, *arguments)
    assert ended == Ended(0, ended.out, "")
    assert "37 frames of 48 × 48, object 144 × 144" in ended.out
    assert ended.out.splitlines()[-1] == f"next: fouriscope field {data / 'config.toml'}"
    assert {child.name for child in data.iterdir()} == {"frames.tif", "truth.tif", "config.toml"}
    stored, truth = tifffile.imread(data / "frames.tif"), tifffile.imread(data / "truth.tif")
    assert stored.shape == (37, 48, 48)
    assert stored.dtype == (np.uint16 if "--photons" in options else np.float32)
    assert truth.shape == (144, 144)
    assert truth.dtype == np.float32
    assert 0 <= truth.min() < truth.max() <= 0.3

    config = load_config(data / "config.toml")
    assert config.object.margin == "auto", "the field is not periodic"
    assert (config.solver.batch, config.solver.start, config.stop.iterations) == ("auto", "epry", 150)
    assert config.calibration.zernike == ("--field-curvature" in options)
    intensity = (stored - config.frames.offset) / config.frames.gain
    assert intensity.mean() == pytest.approx(1, abs=0.02)
    assert fouriscope("info", data / "config.toml").code == 0

    fouriscope("simulate", again, *arguments)
    np.testing.assert_array_equal(tifffile.imread(again / "frames.tif"), stored)


def test_frames_of_a_field_have_the_snr_that_was_asked_for(fouriscope: Command, tmp_path: Path) -> None:
    for name, decibel in (("noisy", 20), ("clean", 300)):
        arguments = ("--field", "--frame", 48, "--radius", 1.5, "--snr", decibel)
        assert fouriscope("simulate", tmp_path / name, *arguments).code == 0
    noisy, clean = (tifffile.imread(tmp_path / name / "frames.tif") for name in ("noisy", "clean"))
    assert 10 * np.log10(np.sum(clean**2) / np.sum((noisy - clean) ** 2)) == pytest.approx(20, abs=0.2)


# ---------------------------------------------------------------------------------------------------------------------
# Wrong input: one line, exit code 2, nothing half-written


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"solver": {"bacth": 3}}, "unknown key 'solver.bacth'; did you mean 'batch'?"),
        ({"microscope": {"na": -0.2}}, "microscope.na: Input should be greater than 0, got -0.2"),
        ({"illumination": {"shape": [5, 5]}}, "the illumination has 25 LEDs, the stack has 49 frames"),
        ({"frames": {"path": "none.npy"}}, "none.npy: no such file"),
        ({"frames": {"path": "config.toml"}}, "frames must be a folder of images or a file that ends in .npy"),
        ({"object": {"shape": [26, 26]}}, "reaches outside the object's spectrum"),
        ({"object": {"shape": [8, 8]}}, "object_shape must be at least the frame"),
        ({"object": {"shape": [90000, 90000]}}, "object needs about"),
        ({"microscope": {"magnification": 2.0}}, "undersamples"),
        ({"frames": {"weights": [1.0, 2.0]}}, "weights: one per frame is needed, 49"),
        ({"frames": {"mask": "truth.npy"}}, "a mask must have the shape (24, 24)"),
        ({"frames": {"gain": 1e300, "offset": float("nan")}}, "frames.offset: Input should be"),
        ({"prior": {"name": "tvv"}}, "unknown prior 'tvv'"),
        ({"prior": {"name": "tv", "accuracy": "high"}}, "[prior]"),
        ({"prior_absorption": {"name": "tv"}}, "a phase object has no absorption"),
        ({"illumination": {"rotation": float("nan")}}, "rotation: Input should be a finite number"),
        ({"pupil": {"zernike": {"0": 1.0}}}, "pupil.zernike.0: Input should be greater than or equal to 1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_configurations(fouriscope: Command, tmp_path: Path, sections: dict[str, Any], message: str) -> None:
    configuration = write_acquisition(tmp_path / "data", **sections)
    before = sorted((tmp_path / "data").iterdir())
    assert message in fouriscope.fails("reconstruct", configuration, "--out", tmp_path / "deep" / "run")
    assert [child.name for child in tmp_path.iterdir()] == ["data"], "nothing is left behind"
    assert sorted((tmp_path / "data").iterdir()) == before


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_frames_that_are_no_numbers(fouriscope: Command, tmp_path: Path, value: float) -> None:
    configuration = write_acquisition(tmp_path, solver={"start": "linear"})
    frames = np.load(tmp_path / "frames.npy")
    frames[17, 3, 3:5] = value
    np.save(tmp_path / "frames.npy", frames)
    message = fouriscope.fails("reconstruct", configuration)
    assert message.startswith("frame 17 holds 2 NaN or infinite pixels of 576")
    assert not (tmp_path / "run").exists()


def test_frames_cut_short(fouriscope: Command, tmp_path: Path) -> None:
    configuration = write_acquisition(tmp_path)
    whole = (tmp_path / "frames.npy").read_bytes()
    (tmp_path / "frames.npy").write_bytes(whole[: len(whole) // 2])
    assert "frames.npy" in fouriscope.fails("reconstruct", configuration)
    assert not (tmp_path / "run").exists()


def test_not_enough_memory(fouriscope: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = write_acquisition(tmp_path)
    monkeypatch.setattr("fouriscope.run.memory.memory_available", lambda: 2**18)
    message = fouriscope.fails("reconstruct", configuration)
    assert "a 72 × 72 object needs about" in message
    assert "give a smaller object shape" in message
    assert not (tmp_path / "run").exists()


def test_not_enough_memory_to_simulate(fouriscope: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fouriscope.cli.simulate.memory_available", lambda: 2**37)
    message = fouriscope.fails("simulate", tmp_path / "data", "--frame", 8000)
    assert message.startswith("293 frames of 8000 × 8000 and their object need about 347")
    assert "128.0 GiB are free; give a smaller --frame" in message
    assert not (tmp_path / "data").exists()


def test_a_field_needs_memory_for_its_object_alone(
    fouriscope: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fouriscope.cli.simulate.memory_available", lambda: 2**33)
    message = fouriscope.fails("simulate", tmp_path / "data", "--field", "--frame", 8000)
    assert message.startswith("293 frames of 8000 × 8000 and their object need about 59.9 GiB, but 8.0 GiB are free")
    assert not (tmp_path / "data").exists()


def test_curvature_without_a_field(fouriscope: Command, tmp_path: Path) -> None:
    message = fouriscope.fails("simulate", tmp_path / "data", "--field-curvature", 1e-5)
    assert message == "--field-curvature needs a field: give --field too"
    assert "defocus at the corner" in fouriscope.fails(
        "simulate", tmp_path / "data", "--field", "--field-curvature", "nan", "--frame", 48, "--radius", 1.5
    )
    assert not (tmp_path / "data").exists()


def test_memory_that_runs_out_all_the_same(
    fouriscope: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def greedy(*_: Any, **__: Any) -> None:
        raise MemoryError("Unable to allocate 7 TiB")

    monkeypatch.setattr("fouriscope.cli.simulate.simulate", greedy)
    message = fouriscope.fails("simulate", tmp_path / "data", "--frame", 24, "--radius", 1.5)
    assert "not enough memory (Unable to allocate 7 TiB); use smaller" in message
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("command", ["reconstruct", "resume"])
def test_threads_that_are_no_number(
    fouriscope: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    configuration = write_acquisition(tmp_path, stop={"iterations": 2})
    if command == "resume":
        assert fouriscope("reconstruct", configuration).code == 0
    monkeypatch.setenv("FOURISCOPE_THREADS", "two")
    argument = configuration if command == "reconstruct" else tmp_path / "run"
    assert "FOURISCOPE_THREADS" in fouriscope.fails(command, argument)
    assert (tmp_path / "run").exists() == (command == "resume")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda truth: np.exp(1j * truth), "give the phase of a transmittance: np.angle(truth)"),
        (lambda truth: np.where(truth > 0.1, np.nan, truth), "NaN or infinite pixels of 5184; replace them"),
        (lambda truth: truth > 0.1, "the truth must be a real phase in radians, got bool"),
        (lambda truth: truth[:-1], "the truth has shape (71, 72)"),
    ],
)
def test_a_truth_that_is_none(fouriscope: Command, tmp_path: Path, change: Any, message: str) -> None:
    configuration = write_acquisition(tmp_path)
    np.save(tmp_path / "truth.npy", change(np.load(tmp_path / "truth.npy")))
    assert message in fouriscope.fails("reconstruct", configuration)
    assert not (tmp_path / "run").exists()


def test_a_folder_in_use(fouriscope: Command, tmp_path: Path) -> None:
    configuration = write_acquisition(tmp_path / "data")
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    assert "exists and is not empty" in fouriscope.fails("reconstruct", configuration, "--out", tmp_path)
    assert "exists and is not empty" in fouriscope.fails("simulate", tmp_path)
    assert "exists and is not empty" in fouriscope.fails("simulate", tmp_path / "thesis.txt")
    assert "was not made by a demo" in fouriscope.fails("demo", "--out", tmp_path)
    assert {child.name for child in tmp_path.iterdir()} == {"data", "thesis.txt"}


def test_no_configuration_and_no_run(fouriscope: Command, tmp_path: Path) -> None:
    for command in ("reconstruct", "info"):
        assert "no such file" in fouriscope.fails(command, tmp_path / "no.toml")
        assert "is a folder; give the configuration file" in fouriscope.fails(command, tmp_path)
    assert "no such folder" in fouriscope.fails("resume", tmp_path / "no")
    write_acquisition(tmp_path)
    assert "not a run folder" in fouriscope.fails("resume", tmp_path), "an acquisition has a config.toml, too"


def test_a_result_from_python_cannot_be_resumed(fouriscope: Command, tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "run", {"solver": {"batch": 3}}, {})
    assert "was saved from Python" in fouriscope.fails("resume", tmp_path / "run")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--noise", "pink"], "--noise must be 'stack' or 'frame', got 'pink'"),
        (["--phase-range", "0"], "--phase-range must be positive"),
        (["--phase-range", "nan"], "--phase-range must be positive"),
        (["--snr", "nan"], "snr_db must be a finite number or None, got nan"),
        (["--snr", "4000"], "snr_db must lie between -100 and 300 dB, got 4000"),
        (["--snr=-4000"], "snr_db must lie between -100 and 300 dB, got -4000"),
        (["--photons", "-5"], "must be positive and at most 1e+12, got -5.0"),
        (["--radius", "-1"], "radius must be positive"),
        (["--image", "nowhere.png"], "nowhere.png: no such image"),
    ],
)
def test_wrong_simulations(fouriscope: Command, tmp_path: Path, arguments: list[str], message: str) -> None:
    assert message in fouriscope.fails("simulate", tmp_path / "data", "--frame", 24, *arguments)
    assert not (tmp_path / "data").exists()


def test_images_that_are_none(fouriscope: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "grey.npy", np.full((20, 20), 7.0))
    np.save(tmp_path / "line.npy", np.arange(20.0))
    np.save(tmp_path / "holes.npy", np.full((20, 20), np.nan))
    (tmp_path / "words.tif").write_text("this is no image", encoding="utf-8")
    for name, message in (
        ("grey.npy", "the image is constant"),
        ("line.npy", "got shape (20,)"),
        ("holes.npy", "NaN or infinite pixels"),
        ("words.tif", "cannot be read as an image"),
    ):
        assert message in fouriscope.fails("simulate", tmp_path / "data", "--image", tmp_path / name)
    assert not (tmp_path / "data").exists()


def test_a_place_that_cannot_be_written(fouriscope: Command, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    arguments = ("simulate", tmp_path / "file" / "data", "--frame", 24, "--radius", 1)
    assert "file" in fouriscope.fails(*arguments)
    configuration = write_acquisition(tmp_path / "data")
    assert "cannot be written" in fouriscope.fails("reconstruct", configuration, "--out", tmp_path / "file" / "run")


def test_brackets_and_colons_in_names_are_printed_as_they_are(fouriscope: Command, tmp_path: Path) -> None:
    name = "[bold]:smile:[" + 40 * "long " + "]"
    assert f"{name}/no.toml: no such file" in fouriscope.fails("reconstruct", tmp_path / name / "no.toml")
    configuration = write_acquisition(tmp_path / name, stop={"iterations": 1})
    assert f"{name}/run/result: figure.png, geometry.csv" in fouriscope("reconstruct", configuration).out


@pytest.mark.parametrize("arguments", [["nonsense"], ["resume"], ["reconstruct", "a", "--iterations"], ["simulate"]])
def test_wrong_usage(fouriscope: Command, arguments: list[str]) -> None:
    ended = fouriscope(*arguments)
    assert ended.code == 2
    assert "Traceback" not in ended.err


def test_in_a_process_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fouriscope.cli.app"]
    ended = subprocess.run(
        [*command, "reconstruct", "no.toml"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr == "error: no.toml: no such file; `fouriscope simulate` writes an example to start from\n"
    assert ended.stdout == ""


# ---------------------------------------------------------------------------------------------------------------------
# The demo


@pytest.mark.slow
def test_demo(fouriscope: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    monkeypatch.chdir(folder)
    ended = fouriscope("demo", "--out", ".", "--iterations", 2)
    assert ended.code == 0
    assert "NoReg-Online" in ended.out
    assert "TV-Online" in ended.out
    assert "293 LEDs" in ended.out
    for name in ("demo.png", "convergence.png"):
        assert (folder / name).stat().st_size > 10_000
    for name in ("EPRY", "NoReg-Online", "TV-Online"):
        run = RunFolder.open(folder / name)
        assert run.status()["state"] == "finished"
        assert len(run.history()) == 2
        assert (run.path / "result" / "phase.ome.tif").exists()
    # A second one replaces the first, in place.
    (folder / "stray").mkdir()
    monkeypatch.setattr(demo, "METHODS", {"NoReg-Online": {"prior": None}})
    assert fouriscope("demo", "--out", ".", "--iterations", 1).code == 0
    assert not {"stray", "TV-Online"} & {child.name for child in folder.iterdir()}
    assert len(RunFolder.open(folder / "NoReg-Online").history()) == 1
