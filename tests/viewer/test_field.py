"""A whole field on the page: its thumbnail while tiles are done, a level of its pyramid afterwards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fouriscope.errors import RunFolderError
from fouriscope.field.plan import FieldPlan
from fouriscope.field.pyramid import Pyramid
from fouriscope.field.tiling import Tiling
from fouriscope.run.files import write_json
from fouriscope.viewer.runs import ViewedRun
from tests.viewer.served import written_run

SIDE = 1500


@pytest.fixture
def field(tmp_path: Path) -> Path:
    path = written_run(tmp_path / "field", state="running")
    (path / "snapshot.npz").unlink()
    plan = FieldPlan(Tiling((SIDE // 5, SIDE // 5), 128, 0.2), (0, 0), 5, 16, ("phase",), 2e-7)
    write_json(path / "plan.json", plan.as_dict())
    (path / "tiles").mkdir()
    return path


def test_the_thumbnail_is_shown_while_tiles_are_done(field: Path) -> None:
    run = ViewedRun(field, "field")
    with pytest.raises(RunFolderError, match="no picture yet"):
        run.images.image("phase")
    grey = np.array([[0, 100], [200, 255]], np.uint8)
    Image.fromarray(grey).save(field / "thumbnail.png")
    (field / "tiles" / "00003.json").write_text("{}", encoding="utf-8")
    about = run.describe()
    assert (about["kind"], about["images"], about["tiles"][0]) == ("field", ["phase"], 1)
    shown = run.images.image("phase")
    assert np.isnan(shown.values[0, 0]), "no tile is done there"
    assert shown.values[1, 1] == 255
    assert shown.step == pytest.approx((SIDE * 0.2 / 2, SIDE * 0.2 / 2))


def test_the_level_that_fits_is_shown_afterwards(field: Path, tmp_path: Path) -> None:
    (field / "result").mkdir()
    pyramid = Pyramid(field / "result" / "field.ome.zarr", ("phase",), (SIDE, SIDE), (2e-7, 2e-7), "field")
    pyramid.create()
    for level in range(len(pyramid.shapes)):
        for block in pyramid.blocks(level):
            if level:
                pyramid.coarsen_block(level, block)
            else:
                pyramid.write_block(0, block, {"phase": np.full((block.height, block.width), 0.5, np.float32)})
    pyramid.finish()
    run = ViewedRun(field, "field")
    shown = run.images.image("phase")
    assert shown.values.shape == (SIDE // 2, SIDE // 2)
    assert shown.step == pytest.approx((0.4, 0.4))
    assert np.allclose(shown.values, 0.5)
    with pytest.raises(RunFolderError, match="no amplitude"):
        run.images.image("amplitude")
    (tmp_path / "secret").write_bytes(b"secret")
    (field / "result" / "field.ome.zarr" / "1" / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(RunFolderError, match="symbolic link"):
        run.images.image("phase")
