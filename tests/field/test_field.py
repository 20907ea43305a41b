"""A field on a real cluster: what comes out, and what it does not depend on."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr

from fouriscope.errors import InvalidInputError, RunFolderError
from fouriscope.field import FieldFolder, FieldPlan, connected
from fouriscope.field.identity import check_same
from fouriscope.field.tile_task import reconstruct_tile
from fouriscope.run import load_config, start_run
from tests.field.problems import LATTICE, TILE, assert_same_result, levels, run, stitched, write_field
from tests.run.ngff import check_ngff

pytestmark = pytest.mark.slow


def test_each_tile_is_the_reconstruction_of_its_window(configuration: Path, undisturbed: Path, tmp_path: Path) -> None:
    """Bit for bit what `reconstruct` makes of the same region of interest."""
    field = FieldFolder.open(undisturbed)
    assert field.plan.tiling.lattice == LATTICE
    for index in (0, 7):
        tile = field.plan.tiling[index]
        alone = start_run(field.plan.tile_config(field.config(), tile), field.path, tmp_path / str(index))
        np.testing.assert_array_equal(field.store.images(index)[0], alone.phase)
        height, width = alone.config["frames"]["roi"][2:]
        assert (height, width) == (TILE, TILE)


def test_the_result_is_one_image_with_its_scale(undisturbed: Path) -> None:
    field = FieldFolder.open(undisturbed)
    found = stitched(undisturbed)
    assert found.shape == field.plan.field_shape
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.angle(found), np.angle(np.exp(1j * levels(undisturbed)[0][0])), atol=1e-6)
    check_ngff(undisturbed / "result" / "field.ome.zarr")
    fine = levels(undisturbed)[0]
    labels = zarr.open_group(undisturbed / "result" / "field.ome.zarr", mode="r").attrs["ome"]["omero"]["channels"]
    assert [channel["label"] for channel in labels] == ["phase", "phase_flat"]
    difference = fine[0] - fine[1]
    assert np.abs(np.diff(difference, n=3, axis=0)).max() < 1e-4, "a polynomial of second order, over all tiles"
    summary = json.loads((undisturbed / "result" / "summary.json").read_text(encoding="utf-8"))
    assert summary["phase_background"] == "curved"
    rows = list(csv.DictReader((undisturbed / "result" / "tiles.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["state"] for row in rows] == ["done"] * 12
    quality = tifffile.imread(undisturbed / "result" / "quality.ome.tif")
    assert quality.shape == (3, *LATTICE)
    assert (quality[1] == 12).all()
    assert (undisturbed / "result" / "figure.png").stat().st_size > 1000
    assert (undisturbed / "thumbnail.png").stat().st_size > 100


def test_the_result_does_not_depend_on_the_workers(configuration: Path, undisturbed: Path, tmp_path: Path) -> None:
    with connected(workers=1) as alone:
        run(configuration, tmp_path / "field", alone, memory=10**9)
    assert_same_result(tmp_path / "field", undisturbed)


def test_a_finished_field_is_left_alone(configuration: Path, undisturbed: Path, client: Any) -> None:
    before = (undisturbed / "result" / "summary.json").stat().st_mtime_ns
    run(configuration, undisturbed, client, tile=None)
    assert (undisturbed / "result" / "summary.json").stat().st_mtime_ns == before


def test_another_configuration_is_refused(undisturbed: Path, client: Any, tmp_path: Path) -> None:
    other = write_field(tmp_path, stop={"iterations": 13})
    with pytest.raises(InvalidInputError, match=r"frames\.path differs"):
        run(other, undisturbed, client)


def test_a_field_of_an_earlier_version_is_the_same_field(configuration: Path, undisturbed: Path) -> None:
    """Keys that have come since have their defaults."""
    field = FieldFolder.open(undisturbed)
    before = json.loads((undisturbed / "provenance.json").read_text(encoding="utf-8"))
    del before["request"]["frames"]["floor"], before["request"]["alignment"]["na"]
    check_same(before, load_config(configuration), configuration.parent, field.plan, undisturbed)
    before["request"]["solver"]["batch"] = 7
    with pytest.raises(InvalidInputError, match=r"solver\.batch differs"):
        check_same(before, load_config(configuration), configuration.parent, field.plan, undisturbed)


def test_another_tile_size_is_refused(configuration: Path, undisturbed: Path, client: Any) -> None:
    with pytest.raises(InvalidInputError, match="begun with --tile 32, got 48"):
        run(configuration, undisturbed, client, tile=48)


def test_changed_frames_are_refused(client: Any, tmp_path: Path) -> None:
    configuration = write_field(tmp_path / "data", stop={"iterations": 1})
    run(configuration, tmp_path / "field", client, tile=64)
    frames = np.load(tmp_path / "data" / "frames.npy")
    np.save(tmp_path / "data" / "frames.npy", frames[:, ::-1])
    with pytest.raises(InvalidInputError, match="not those that"):
        run(configuration, tmp_path / "field", client, tile=64)


def test_broken_tiles_are_found_and_done_again(
    configuration: Path, undisturbed: Path, client: Any, tmp_path: Path
) -> None:
    import shutil

    folder = tmp_path / "field"
    shutil.copytree(undisturbed, folder)
    chunk = folder / "tiles" / "images.zarr" / "c" / "5" / "0" / "0" / "0"
    flipped = bytearray(chunk.read_bytes())
    flipped[1000] ^= 0x40
    chunk.write_bytes(flipped)
    (folder / "tiles" / "00003.json").write_text('{"index": 3, "req', encoding="utf-8")
    (folder / "tiles" / "images.zarr" / "c" / "8" / "0" / "0" / "0").unlink()
    times = {n: (folder / "tiles" / f"{n:05d}.json").stat().st_mtime_ns for n in range(12)}
    run(configuration, folder, client)
    assert_same_result(folder, undisturbed)
    redone = {n for n in range(12) if (folder / "tiles" / f"{n:05d}.json").stat().st_mtime_ns != times[n]}
    assert redone == {3, 5, 8}


def test_a_tile_that_breaks_before_the_stitching_is_done_again(
    configuration: Path, undisturbed: Path, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After all tiles are checked, and before they are read to be put together."""
    from fouriscope.field import stitch

    broken: list[int] = []
    compare = stitch.Stitching._compare

    def spoil(self: stitch.Stitching) -> Any:
        if not broken:
            chunk = self.field.store.path / "images.zarr" / "c" / "4" / "0" / "0" / "0"
            chunk.write_bytes(chunk.read_bytes()[::-1])
            broken.append(4)
        return compare(self)

    monkeypatch.setattr(stitch.Stitching, "_compare", spoil)
    run(configuration, tmp_path / "field", client)
    assert broken
    assert_same_result(tmp_path / "field", undisturbed)


def test_a_tile_without_data_fails_alone(client: Any, tmp_path: Path) -> None:
    configuration = write_field(tmp_path / "data", stop={"iterations": 2})
    frames = np.load(tmp_path / "data" / "frames.npy")
    frames[3, 2, 2] = np.nan  # in tile 0 only
    np.save(tmp_path / "data" / "frames.npy", frames)
    result = run(configuration, tmp_path / "field", client)
    assert list(result.failed) == [0]
    assert "NaN" in result.failed[0]
    found = stitched(tmp_path / "field")
    assert np.isnan(found[0, 0])
    assert np.isfinite(found[found.shape[0] // 2 :]).all()
    summary = json.loads((tmp_path / "field" / "result" / "summary.json").read_text(encoding="utf-8"))
    assert list(summary["failed"]) == ["0"]
    assert summary["tiles"]["done"] == 11


def test_a_field_in_which_every_tile_fails_is_an_error(client: Any, tmp_path: Path) -> None:
    configuration = write_field(tmp_path / "data", stop={"iterations": 2})
    frames = np.load(tmp_path / "data" / "frames.npy")
    frames[3] = np.nan
    np.save(tmp_path / "data" / "frames.npy", frames)
    with pytest.raises(InvalidInputError, match="frame 3 holds"):  # told before anything is written
        run(configuration, tmp_path / "field", client)
    assert not (tmp_path / "field").exists()


def test_complex_objects_with_free_pupils_and_brightnesses(client: Any, tmp_path: Path) -> None:
    configuration = write_field(
        tmp_path / "data",
        object={"model": "complex", "margin": 4},
        calibration={"zernike": True, "gains": True},
        solver={"loss": "amplitude"},
    )
    assert not run(configuration, tmp_path / "field", client).failed
    field = FieldFolder.open(tmp_path / "field")
    pyramid = levels(tmp_path / "field")[0]
    np.testing.assert_allclose(pyramid[1], np.abs(stitched(tmp_path / "field")), rtol=1e-5)
    learnt = field.store.record(1)
    assert learnt is not None
    assert set(learnt.zernike) >= {"4", "5", "6"}


def test_a_tile_reads_its_window_of_every_frame_once(
    configuration: Path, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fouriscope.acquisition.stacks import NpyFrames

    read: list[tuple[int, slice, slice]] = []
    plain = NpyFrames._read

    def spy(self: NpyFrames, index: int, rows: slice, columns: slice) -> Any:
        read.append((index, rows, columns))
        return plain(self, index, rows, columns)

    monkeypatch.setattr(NpyFrames, "_read", spy)
    field = FieldFolder.open(undisturbed)
    before = field.store.images(6)
    field.store.discard(6)
    assert reconstruct_tile(str(undisturbed), 6).state == "done"
    tile = field.plan.tiling[6]
    window = (slice(tile.top, tile.top + tile.height), slice(tile.left, tile.left + tile.width))
    assert all((rows, columns) == window for _, rows, columns in read)
    assert sorted(index for index, _, _ in read) == list(range(49))
    np.testing.assert_array_equal(field.store.images(6), before)


def test_a_tile_that_is_done_is_not_done_again(undisturbed: Path) -> None:
    """Dask repeats a task whose worker died before it could answer."""
    record = undisturbed / "tiles" / "00001.json"
    before = record.stat().st_mtime_ns
    assert reconstruct_tile(str(undisturbed), 1).state == "done"
    assert record.stat().st_mtime_ns == before


def test_directions_are_those_at_the_centre_of_the_tile(configuration: Path) -> None:
    from fouriscope.run.assemble import build_acquisition

    config = load_config(configuration)
    plan = FieldPlan.of(config, configuration.parent, tile=TILE)
    whole = build_acquisition(config, configuration.parent)
    pixel = whole.optics.pixel
    for tile in plan.tiling:
        part = build_acquisition(plan.tile_config(config, tile), configuration.parent)
        y, x = (tile.top + TILE / 2 - 44) * pixel, (tile.left + TILE / 2 - 32) * pixel
        assert part.patch_center == pytest.approx((y, x))


def test_an_object_shape_that_fits_no_grid_is_refused(configuration: Path) -> None:
    config = load_config(configuration)
    odd = config.model_copy(update={"object": config.object.model_copy(update={"shape": (300, 300)})})
    with pytest.raises(InvalidInputError, match="whole multiple"):
        FieldPlan.of(odd, configuration.parent, tile=TILE)
    fine = config.model_copy(update={"object": config.object.model_copy(update={"shape": (88 * 7, 64 * 7)})})
    assert FieldPlan.of(fine, configuration.parent, tile=TILE).scale == 7


def test_plans_survive_json(configuration: Path) -> None:
    plan = FieldPlan.of(load_config(configuration), configuration.parent, tile=TILE)
    assert FieldPlan.from_dict(json.loads(json.dumps(plan.as_dict()))) == plan
    assert replace(plan, scale=9) != plan


def test_a_folder_that_is_no_field_is_left_alone(configuration: Path, client: Any, tmp_path: Path) -> None:
    (tmp_path / "field").mkdir()
    (tmp_path / "field" / "precious.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(RunFolderError, match="not empty"):
        run(configuration, tmp_path / "field", client)
    assert (tmp_path / "field" / "precious.txt").read_text(encoding="utf-8") == "mine"
