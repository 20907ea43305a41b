"""With napari itself, without its windows: our runs open, and nobody else's files are ours.

napari is no dependency of the tests: it brings a hundred packages. `pip install napari`, or `.ci/run`, brings it.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from tests.viewer.served import real_run, show, written_run

if TYPE_CHECKING:
    from napari.components import ViewerModel

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("napari") is None, reason="napari is not installed; pip install napari brings it"),
    # Of napari and what it brings, which are not ours to mend.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture
def viewer() -> ViewerModel:
    from napari.components import ViewerModel
    from napari.plugins import _initialize_plugins

    _initialize_plugins()
    return ViewerModel()


def test_a_run_opens_with_its_scale(viewer: ViewerModel, tmp_path: Path) -> None:
    run = written_run(tmp_path / "run")
    snapshot = show(run, seed=3)
    layers = viewer.open(str(run), plugin="fouriscope")  # napari itself claims every folder, so one has to choose
    assert [layer.name for layer in layers][-1] == "run phase"
    assert np.array_equal(layers[-1].data, snapshot.phase)
    assert tuple(layers[-1].scale) == pytest.approx((0.2, 0.2))
    assert [layer.visible for layer in layers] == [False] * 4 + [True]


@pytest.mark.parametrize("inside", ["", "result", "result/result.ome.zarr"])
def test_the_folders_of_a_real_run_open(viewer: ViewerModel, tmp_path: Path, inside: str) -> None:
    run = real_run(tmp_path, stop={"iterations": 3})
    layers = viewer.open(str(run / inside), plugin="fouriscope")
    assert layers[-1].name == "run phase"
    assert layers[-1].data.shape == (72, 72)


@pytest.mark.parametrize("plugin", ["napari", None])
def test_other_peoples_pictures_are_not_ours(viewer: ViewerModel, tmp_path: Path, plugin: str | None) -> None:
    holiday = tmp_path / "holiday.png"
    Image.fromarray(np.zeros((8, 9), np.uint8)).save(holiday)
    (layer,) = viewer.open(str(holiday), plugin=plugin)
    assert layer.data.shape[:2] == (8, 9)


def test_the_manifest_is_valid() -> None:
    from npe2 import PluginManager, PluginManifest

    manifest = PluginManifest.from_distribution("fouriscope")
    manifest.validate_imports()
    manager = PluginManager.instance()
    manager.discover()
    claims = [one.command for one in manager.iter_compatible_readers(["holiday.png"])]
    assert "fouriscope.read_run" not in claims
