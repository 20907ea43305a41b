"""`fouriscope denoise` and `fouriscope priors`: formats, units, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tifffile
from PIL import Image

from fouriscope.cli.app import main
from fouriscope.cli.denoise import parse_options
from fouriscope.errors import InvalidInputError
from fouriscope.priors import NLM, TV, Wavelet, available_priors

Array = npt.NDArray[Any]


class Run:
    """Runs a command in this process and keeps what it printed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        self.monkeypatch.setattr(sys, "argv", ["fouriscope", *map(str, arguments)])
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        out, err = self.capsys.readouterr()
        return int(end.value.code or 0), out, err

    def refuses(self, *arguments: object) -> str:
        code, out, err = self(*arguments)
        assert (code, out) == (2, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        return err


@pytest.fixture(name="run")
def _run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(monkeypatch, capsys)


def noisy(dtype: npt.DTypeLike, scale: float = 1.0, shape: tuple[int, int] = (24, 30)) -> Array:
    columns = np.arange(shape[1]) > shape[1] // 2
    image = scale * (0.3 + 0.4 * columns + 0.1 * np.random.default_rng(0).normal(size=shape))
    return np.asarray(np.clip(image, 0, scale), dtype)


def write(path: Path, image: Array) -> Path:
    if path.suffix == ".png":
        Image.fromarray(image).save(path)
    elif path.suffix == ".npy":
        np.save(path, image)
    else:
        tifffile.imwrite(path, image)
    return path


def read(path: Path) -> Array:
    if path.suffix == ".png":
        with Image.open(path) as picture:
            return np.asarray(picture)
    return np.asarray(np.load(path) if path.suffix == ".npy" else tifffile.imread(path))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("out", ["out.tif", "out.tiff", "out.npy"])
@pytest.mark.parametrize("name", ["in.tif", "in.npy"])
def test_float_stays_float(run: Run, tmp_path: Path, name: str, out: str, dtype: npt.DTypeLike) -> None:
    image = noisy(dtype, 3.0)
    source = write(tmp_path / name, image)
    code, printed, _ = run("denoise", source, "--prior", "nlm", "--sigma", 0.3, "-o", tmp_path / out)
    assert code == 0
    assert "24 × 30 pixels, nlm at sigma = 0.3" in printed
    written = read(tmp_path / out)
    assert written.dtype == dtype
    np.testing.assert_array_equal(written, NLM().denoise(image, 0.3))
    assert {path.name for path in tmp_path.iterdir()} == {name, out}


@pytest.mark.parametrize(("dtype", "top"), [(np.uint8, 255), (np.uint16, 65535)])
def test_a_png_keeps_its_scale_and_depth(run: Run, tmp_path: Path, dtype: npt.DTypeLike, top: int) -> None:
    image = noisy(dtype, top)
    source = write(tmp_path / "in.png", image)
    expected = Wavelet().denoise(image.astype(np.float32), 0.1 * top)
    assert run("denoise", source, "--prior", "wavelet", "--sigma", 0.1 * top, "-o", tmp_path / "out.png")[0] == 0
    written = read(tmp_path / "out.png")
    assert written.dtype == dtype
    np.testing.assert_array_equal(written, np.clip(np.rint(expected), 0, top))
    assert run("denoise", source, "--prior", "wavelet", "--sigma", 0.1 * top, "-o", tmp_path / "out.tif")[0] == 0
    np.testing.assert_array_equal(read(tmp_path / "out.tif"), expected)


def test_values_beyond_the_depth_are_clipped(run: Run, tmp_path: Path) -> None:
    image = np.array([[0, 255, 250]], np.uint8)
    source = write(tmp_path / "in.png", image)
    options = ("--option", "lower=-300.0", "--option", "upper=100.4")
    assert run("denoise", source, "--prior", "box", "--sigma", 1, *options, "-o", tmp_path / "o.png")[0] == 0
    np.testing.assert_array_equal(read(tmp_path / "o.png"), [[0, 100, 100]])


def test_whole_numbers_of_a_camera(run: Run, tmp_path: Path) -> None:
    image = noisy(np.uint16, 4000).astype(">u2")
    for name, out in (("in.tif", "out.png"), ("in.npy", "out.npy")):
        source = write(tmp_path / name, image)
        assert run("denoise", source, "--prior", "none", "--sigma", 100, "-o", tmp_path / out)[0] == 0
        np.testing.assert_array_equal(read(tmp_path / out), image)


def test_options_reach_the_prior(run: Run, tmp_path: Path) -> None:
    image = noisy(np.float64)
    source = write(tmp_path / "in.npy", image)
    options = ("--option", "isotropic=false", "--option", "accuracy=1e-4")
    assert run("denoise", source, "--prior", "TV", "--sigma", 0.3, *options, "-o", tmp_path / "o.npy", "-q")[:2] == (
        0,
        "",
    )
    expected = TV(isotropic=False, accuracy=1e-4).denoise(image, 0.3)
    np.testing.assert_array_equal(read(tmp_path / "o.npy"), expected)


def test_parsing_of_options() -> None:
    given = ["a=1", "b = 0.5", "c=true", 'd="x y"', "e=hard", "f=/a/b=c.pth", "g=1\nh=2"]
    parsed = {"a": 1, "b": 0.5, "c": True, "d": "x y", "e": "hard", "f": "/a/b=c.pth", "g": "1\nh=2"}
    assert parse_options(given) == parsed
    for bad in (["levels"], ["=3"], ["a b=3"], ["name=tv"], ["a=1", "a=2"]):
        with pytest.raises(InvalidInputError, match="--option"):
            parse_options(bad)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prior", "tvv", "--sigma", 1], "unknown prior 'tvv'; did you mean 'tv'"),
        (["--prior", "nlm", "--sigma", -1], "noise level sigma >= 0, got -1.0"),
        (["--prior", "nlm", "--sigma", "nan"], "noise level sigma >= 0, got nan"),
        (["--prior", "nlm", "--sigma", 1, "--option", "size=3"], "no parameter 'size'; known:"),
        (["--prior", "nlm", "--sigma", 1, "--option", "patch_size=4"], "odd patch_size"),
        (["--prior", "nlm", "--sigma", 1, "--option", "patch_size=[4]"], "patch_size must be a whole number"),
        (["--prior", "nlm", "--sigma", 1, "--option", "patch_size=large"], "patch_size"),
        (["--prior", "nlm", "--sigma", 1, "--option", "three"], "--option expects key=value"),
        (["--prior", "torch", "--sigma", 1], "pass the module itself"),
        (["--prior", "deepinv", "--sigma", 1], "needs a file of weights"),
    ],
)
def test_what_cannot_be_asked(run: Run, tmp_path: Path, arguments: list[object], message: str) -> None:
    source = write(tmp_path / "in.npy", noisy(np.float32))
    assert message in run.refuses("denoise", source, "-o", tmp_path / "out.npy", *arguments)
    assert not (tmp_path / "out.npy").exists()


def bad_input(folder: Path, name: str) -> None:
    """One file that is not a grey image, by its name."""
    path = folder / name
    arrays: dict[str, Array] = {
        "nan.npy": np.array([[1.0, np.nan]]),
        "nan.tif": np.array([[1.0, np.inf]]),
        "complex.npy": np.ones((3, 3), complex),
        "truth.npy": np.ones((3, 3), bool),
        "words.npy": np.array([["a", "b"]]),
        "empty.npy": np.ones((0, 3)),
        "line.npy": np.ones(3),
        "stack.tif": np.ones((5, 6, 7), np.float32),
        "colour.tif": np.ones((5, 6, 3), np.uint8),
        "colour.png": np.ones((5, 6, 3), np.uint8),
    }
    if name in arrays:
        write(path, arrays[name])
    elif name == "palette.png":
        Image.fromarray(np.ones((5, 6), np.uint8)).convert("P").save(path)
    elif name == "archive.npy":
        with path.open("wb") as file:
            np.savez(file, a=np.ones(3))
    elif name == "cut.png":
        write(path, noisy(np.uint8, 255))
        path.write_bytes(path.read_bytes()[:100])
    elif name.startswith("nothing."):
        path.touch()
    elif not name.startswith("missing."):
        path.write_text("this is text")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.png", "no such image"),
        ("missing.jpg", "expected a file that ends in .tif, .tiff, .png, .npy"),
        ("text.png", "cannot be read as a PNG"),
        ("text.tif", "cannot be read as a TIFF"),
        ("text.npy", "cannot be read as a .npy array"),
        ("nothing.png", "cannot be read as a PNG"),
        ("nothing.tif", "cannot be read as a TIFF"),
        ("nothing.npy", "cannot be read as a .npy array"),
        ("cut.png", "cannot be read as a PNG"),
        ("archive.npy", "an archive of several"),
        ("nan.npy", "finite pixels, got 1 of 2"),
        ("nan.tif", "finite pixels, got 1 of 2"),
        ("complex.npy", "denoise phase and absorption separately"),
        ("truth.npy", "got only true and false"),
        ("words.npy", "image must be an array of numbers"),
        ("empty.npy", "at least one pixel"),
        ("line.npy", "2-D image"),
        ("stack.tif", "one by one"),
        ("colour.tif", "got colour"),
        ("colour.png", "mode RGB"),
        ("palette.png", "mode P"),
    ],
)
def test_what_is_not_a_grey_image(run: Run, tmp_path: Path, name: str, message: str) -> None:
    bad_input(tmp_path, name)
    error = run.refuses("denoise", tmp_path / name, "--prior", "nlm", "--sigma", 1, "-o", tmp_path / "out.tif")
    assert name in error
    assert message in error
    assert not (tmp_path / "out.tif").exists()


def test_nothing_is_overwritten_unless_told(run: Run, tmp_path: Path) -> None:
    source = write(tmp_path / "in.npy", noisy(np.float32))
    out = tmp_path / "out.npy"
    out.write_text("precious")
    assert "exists" in run.refuses("denoise", source, "--prior", "nlm", "--sigma", 1, "-o", out)
    assert out.read_text() == "precious"
    assert run("denoise", source, "--prior", "nlm", "--sigma", 1, "-o", out, "--force")[0] == 0
    assert read(out).shape == (24, 30)
    assert run("denoise", source, "--prior", "nlm", "--sigma", 1, "-o", source, "--force")[0] == 0


def test_where_it_cannot_be_written(run: Run, tmp_path: Path) -> None:
    source = write(tmp_path / "in.npy", noisy(np.float32))
    arguments = ("denoise", source, "--prior", "nlm", "--sigma", 1, "-o")
    assert "there is no folder" in run.refuses(*arguments, tmp_path / "none" / "out.npy")
    assert "ends in .tif" in run.refuses(*arguments, tmp_path / "out.jpg")
    assert "a PNG holds 8 or 16 bits, but in.npy holds float32" in run.refuses(*arguments, tmp_path / "out.png")


def test_priors_are_listed(run: Run) -> None:
    code, out, _ = run("priors")
    assert code == 0
    names = [line.split()[0] for line in out.splitlines() if line[:1].strip()]
    assert names[0] == "name"
    assert {*available_priors(), "torch", "callable"} == set(names[1:])
    assert "available" in out
