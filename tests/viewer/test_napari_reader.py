"""Run folders as layers of napari, which is not needed for that."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import yaml

from fouriscope.errors import RunFolderError
from fouriscope.viewer.napari_reader import napari_get_reader, read_layers
from tests.viewer.served import show, written_run


def test_a_run_becomes_layers_with_its_scale(tmp_path: Path) -> None:
    run = written_run(tmp_path / "run")
    snapshot = show(run, seed=3)
    reader = napari_get_reader(str(run))
    assert reader is not None
    layers = reader(str(run))
    values, options, kind = layers[-1]  # napari draws the last on top
    assert (kind, options["name"], options["visible"]) == ("image", "run phase", True)
    assert np.array_equal(values, snapshot.phase)
    assert options["scale"] == pytest.approx((0.2, 0.2))
    names = [options["name"] for _, options, _ in layers]
    assert names == ["run pupil phase", "run pupil amplitude", "run spectrum", "run amplitude", "run phase"]
    assert [options["visible"] for _, options, _ in layers] == [False] * 4 + [True]


def test_several_runs_are_opened_together(tmp_path: Path) -> None:
    runs = [str(written_run(tmp_path / name)) for name in ("a", "b")]
    reader = napari_get_reader(runs)
    assert reader is not None
    assert len(reader(runs)) == 10


@pytest.mark.parametrize("inside", ["result", "result/result.ome.zarr"])
def test_the_result_of_a_run_stands_for_the_run(tmp_path: Path, inside: str) -> None:
    run = written_run(tmp_path / "run")
    (run / inside).mkdir(parents=True, exist_ok=True)
    reader = napari_get_reader(str(run / inside))
    assert reader is not None
    assert [options["name"] for _, options, _ in reader(str(run / inside))][-1] == "run phase"


def test_what_is_no_run_is_left_to_others(tmp_path: Path) -> None:
    nothing: list[str] = []
    for path in (str(tmp_path), str(tmp_path / "image.tif"), nothing):
        assert napari_get_reader(path) is None


def test_a_run_without_a_picture_says_so(tmp_path: Path) -> None:
    run = written_run(tmp_path / "run")
    (run / "snapshot.npz").unlink()
    with pytest.raises(RunFolderError, match="no picture yet"):
        read_layers(str(run))


def test_the_manifest_names_what_there_is() -> None:
    manifest = yaml.safe_load(files("fouriscope").joinpath("napari.yaml").read_text(encoding="utf-8"))
    (command,) = manifest["contributions"]["commands"]
    module, _, name = command["python_name"].partition(":")
    assert getattr(import_module(module), name) is napari_get_reader
    (reader,) = manifest["contributions"]["readers"]
    assert (reader["command"], reader["accepts_directories"]) == (command["id"], True)
    assert reader["filename_patterns"] == []  # no file of anybody's is claimed
    (point,) = [point for point in entry_points(group="napari.manifest") if point.name == "fouriscope"]
    assert point.value == "fouriscope:napari.yaml"
