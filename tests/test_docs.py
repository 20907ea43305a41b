"""Code in the documentation runs, and the configuration it shows is understood."""

from __future__ import annotations

import pkgutil
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from fouriscope.acquisition.frames import KINDS
from fouriscope.colour.description import ColourDescription
from fouriscope.run.config import parse_config

ENDINGS = [ending for endings in KINDS.values() for ending in endings]
ROOT = Path(__file__).parent.parent


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.slow
def test_readme_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = blocks(ROOT / "README.md", "python")
    assert len(examples) == 1
    names: dict[str, object] = {}
    exec(compile(examples[0], "README.md", "exec"), names)
    result = names["result"]
    assert result.snr(names["phase"]).aligned > 20  # type: ignore[attr-defined]
    assert (tmp_path / "runs" / "first" / "result" / "phase.ome.tif").is_file()


def test_the_example_of_how_to_open_a_result_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = blocks(ROOT / "docs" / "results.md", "python")
    names: dict[str, Any] = {}
    exec(compile(example, "docs/results.md", "exec"), names)
    assert names["scale"][1:] == pytest.approx([size * 1e6 for size in names["model"].object_pixel])
    assert names["channels"] == ["phase", "phase_unwrapped", "phase_flat"]
    np.testing.assert_allclose(names["field"], np.exp(1j * names["phase"]), atol=1e-6)
    assert names["pupil"].shape == (32, 32)


def test_the_example_for_python_users_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for example in blocks(ROOT / "docs" / "python.md", "python"):
        exec(compile(example, "docs/python.md", "exec"), names)
    assert names["few"].shape == (10, 32, 32)
    assert repr(names["data"]).startswith("Acquisition: 49 frames of 32 × 32, NA 0.2, 49 LEDs up to NA 0.236, 513 nm, ")
    assert repr(names["result"]).startswith("Result: phase of ")
    assert names["result"].stop_reason in ("20 iterations", "the misfit is small")


def test_the_example_of_a_calibration_runs() -> None:
    (example,) = blocks(ROOT / "docs" / "calibration.md", "python")
    names: dict[str, Any] = {}
    exec(compile(example, "docs/calibration.md", "exec"), names)
    assert names["found"].acquisition.illumination.offset == pytest.approx((0.5e-3, -0.3e-3), abs=0.05e-3)
    zernike = names["result"].geometry.zernike
    assert [zernike[5], zernike[7]] == pytest.approx([0.4, -0.3], abs=0.05)
    assert names["result"].snr(names["phase"]).aligned > 20


def test_the_example_of_a_live_reconstruction_runs() -> None:
    (example,) = blocks(ROOT / "docs" / "live.md", "python")
    names: dict[str, Any] = {}
    exec(compile(example, "docs/live.md", "exec"), names)
    assert names["live"].arrived.sum() > 5
    assert names["result"].snr(names["phase"]).aligned > 15


@pytest.mark.slow
def test_the_example_of_three_wavelengths_runs() -> None:
    (example,) = blocks(ROOT / "docs" / "colour.md", "python")
    names: dict[str, Any] = {}
    exec(compile(example, "docs/colour.md", "exec"), names)
    colours, microscope = names["colours"], names["microscope"]
    assert colours.focus["red"] == pytest.approx(microscope.defocus[0], abs=0.5e-6)
    found = np.array(colours.shifts["red"][:2]) * np.array(colours.pixel)
    assert found == pytest.approx(microscope.shifts[0], abs=60e-9)


def test_descriptions_of_three_wavelengths_are_understood(tmp_path: Path) -> None:
    files, camera = (tomllib.loads(block) for block in blocks(ROOT / "docs" / "colour.md", "toml"))
    path = tmp_path / "colour.toml"
    path.write_text(tomli_w.dumps(files), encoding="utf-8")
    described = ColourDescription.load(path)
    assert described.config("blue").frames.gain == 2900
    for channel in files["colour"].values():
        channel.pop("frames", None)
    path.write_text(tomli_w.dumps(files | camera), encoding="utf-8")
    assert ColourDescription.load(path).config("blue").frames.plane == "blue"


@pytest.mark.parametrize("page", ["calibration.md", "from-my-microscope-to-a-picture.md"])
def test_sections_shown_on_other_pages_are_understood(page: str) -> None:
    (described,) = blocks(ROOT / "docs" / "configuration.md", "toml")
    needed = {name: tomllib.loads(described)[name] for name in ("frames", "microscope", "illumination")}
    (block,) = blocks(ROOT / "docs" / page, "toml")
    parse_config(needed | tomllib.loads(block), where=f"docs/{page}")


def test_the_configuration_that_is_shown_is_understood() -> None:
    (document,) = (tomllib.loads(block) for block in blocks(ROOT / "docs" / "configuration.md", "toml"))
    assert parse_config(document, where="docs/configuration.md").solver.method == "spectral"


def test_what_the_architecture_names_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    walks = text[text.index("## Three walks") : text.index("## Conventions")]
    names = re.findall(r"`((?:[a-z_]+\.)+[A-Za-z_.]+)`", walks)
    names = [name for name in names if not name.endswith((".toml", ".tif", ".npz"))]
    assert len(names) > 30
    for name in names:
        try:
            pkgutil.resolve_name(f"fouriscope.{name}")
        except (ImportError, AttributeError) as error:
            raise AssertionError(f"docs/architecture.md names {name}, which is not there: {error}") from error
    told = [name for name in names if name not in ("run.described.Described", "run.result_files.write_result_files")]
    assert len(set(told)) == len(told), "nothing is visited twice"


def test_every_format_that_is_read_is_documented() -> None:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    assert all(f"`{ending}`" in page or ending in (".tiff", ".h5", ".hdf5", ".hdf", ".zarr") for ending in ENDINGS)


def test_every_page_that_the_readme_links_exists() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (ROOT / link).exists()]
    assert not missing
