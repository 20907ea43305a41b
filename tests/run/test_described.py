"""One way from a description to an acquisition: a region, a tile and an array of the same pixels are the same."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

import fouriscope as fs
from fouriscope.acquisition import Acquisition, ArrivingFrames
from fouriscope.acquisition.masks import mask_of
from fouriscope.acquisition.stored import StoredFrames
from fouriscope.alignment import Alignment
from fouriscope.alignment.curvature import with_curvature
from fouriscope.cli.app import main
from fouriscope.cli.importing import run_import
from fouriscope.errors import InvalidInputError
from fouriscope.field import front
from fouriscope.field.plan import FieldPlan
from fouriscope.loading import description_of
from fouriscope.run import described as described_module
from fouriscope.run import load_config, start_run
from fouriscope.run.aligned import with_alignment
from fouriscope.run.assemble import build_geometry
from fouriscope.run.config import parse_config
from fouriscope.run.described import Described
from fouriscope.run.inputs import resolved
from fouriscope.settings import RunConfig
from tests.run.problems import write_acquisition

SIDE, REGION = 64, (40, 36, 24, 24)
WHOLE = (SIDE, SIDE)
# LEDs 2 mm away: 40 µm off the axis they lie elsewhere by 0.02 in NA.
SCOPE = {"wavelength": 500e-9, "na": 0.05, "magnification": 2, "camera_pixel": 4e-6}
LEDS = {"kind": "square", "shape": [7, 7], "pitch": 50e-6, "height": 2e-3}


def described(folder: Path, **frames: Any) -> RunConfig:
    rng = np.random.default_rng(0)
    stack = rng.poisson(200.0, (49, *WHOLE)).astype(np.uint16)
    stack[::5, 50, 40] = 4095  # saturated in some frames, inside the region
    if not (folder / "frames.npy").exists():  # frames that are in use must not change
        np.save(folder / "frames.npy", stack)
    keys = {"path": "frames.npy", "background": 30.0, "floor": 5.0, "gain": 200.0, "saturation": 4095.0, "reject": [3]}
    document = {"frames": keys | frames, "microscope": SCOPE, "illumination": LEDS}
    return parse_config(document, where="test")


def same(first: Acquisition, second: Acquisition) -> None:
    assert first.frames.shape == second.frames.shape
    assert first.patch_center == pytest.approx(second.patch_center)
    np.testing.assert_array_equal(np.asarray(first.frames), np.asarray(second.frames))
    np.testing.assert_array_equal(first.weights, second.weights)
    for led in range(len(first)):
        assert first.mask is not None
        assert second.mask is not None
        np.testing.assert_array_equal(mask_of(first.mask, led), mask_of(second.mask, led))


def region(folder: Path) -> Acquisition:
    return Described(described(folder, roi=list(REGION)), folder).acquisition()


def test_bright_and_dark_are_told_at_the_patch(tmp_path: Path) -> None:
    """The sides differ between the axis and the region, and corrections, geometry and `info` all ask at the region."""
    seen = Described(described(tmp_path, roi=list(REGION)), tmp_path)
    on_axis = seen.optics.passes(np.hypot(*seen.illumination.directions().T))
    at_patch = seen.optics.passes(np.hypot(*seen.directions.T))
    assert 0 < np.count_nonzero(on_axis != at_patch) < 20
    np.testing.assert_array_equal(seen.corrections().dark_field, ~at_patch)
    geometry = build_geometry(seen.config, tmp_path)
    np.testing.assert_array_equal(geometry.bright_field, at_patch)
    assert geometry.patch_center == seen.patch_center


def test_a_region_and_an_array_of_its_pixels_are_the_same(tmp_path: Path) -> None:
    first = region(tmp_path)
    row, column, height, width = REGION
    part = np.load(tmp_path / "frames.npy")[:, row : row + height, column : column + width]
    (tmp_path / "part").mkdir()
    np.save(tmp_path / "part" / "frames.npy", part)
    alone = described(tmp_path).model_dump(mode="json", exclude_unset=True)
    alone["microscope"]["patch_center"] = first.patch_center
    second = Described(parse_config(alone, where="test"), tmp_path / "part").acquisition()
    same(first, second)
    results = [fs.reconstruct(data, align=(), calibrate=(), iterations=3) for data in (first, second)]
    np.testing.assert_array_equal(results[0].transmittance, results[1].transmittance)


def test_a_region_and_a_tile_are_the_same(tmp_path: Path) -> None:
    config = described(tmp_path)
    plan = FieldPlan.of(config, tmp_path, tile=24, overlap=0.2)
    tile = plan.tiling[len(plan.tiling) - 1]
    window = (tile.top, tile.left, tile.height, tile.width)
    first = Described(described(tmp_path, roi=list(window)), tmp_path).acquisition()
    same(first, Described(plan.tile_config(config, tile), tmp_path).acquisition())
    within = described(tmp_path, roi=[8, 8, 56, 56])  # a field that is itself a part of the frames
    part = FieldPlan.of(within, tmp_path, tile=24, overlap=0.2)
    last = part.tiling[len(part.tiling) - 1]
    inside = Described(part.tile_config(within, last), tmp_path)
    assert inside.config.frames.roi == (8 + last.top, 8 + last.left, 24, 24)
    assert inside.patch_center == pytest.approx(Described(within, tmp_path).center_of(inside.config.frames.roi))


def test_frames_that_arrive_are_the_same(tmp_path: Path) -> None:
    config = described(tmp_path, roi=list(REGION))
    layout = StoredFrames(tmp_path, 49, WHOLE, np.dtype(np.uint16), config.frames.roi)
    arriving = ArrivingFrames(layout.shape)
    data = Described(config, tmp_path, layout).acquisition(arriving)
    for led, frame in enumerate(np.load(tmp_path / "frames.npy")):
        arriving.add(frame[layout.rows, layout.columns], led)
    same(region(tmp_path), data)


def test_an_acquisition_is_seen_anew_without_reading_it_again(tmp_path: Path) -> None:
    """After an alignment: another aperture makes dark field of bright, and the rest is what it was."""
    config = described(tmp_path, roi=list(REGION), saturation="auto", reject="auto", bad_pixels="auto")
    first = Described(config, tmp_path).acquisition()
    wider = config.model_copy(update={"microscope": config.microscope.model_copy(update={"na": 0.07})})
    with pytest.MonkeyPatch.context() as patch:
        for name in ("survey_frames", "find_bad_pixels", "StreamedFrames"):
            patch.setattr(described_module, name, None)
        again = Described(wider, tmp_path).seen_anew(first)
    same(again, Described(wider, tmp_path).acquisition())
    assert again.optics.na == 0.07
    assert np.any(np.asarray(again.frames) != np.asarray(first.frames))


def test_curved_light_is_seen_anew_as_the_alignment_left_it(tmp_path: Path) -> None:
    """A region off the axis: its LEDs are where the alignment has seen them, and from pixel to pixel they move by c."""
    config = described(tmp_path, roi=list(REGION))
    first, c = Described(config, tmp_path).acquisition(), 300.0
    curved = with_curvature(first, c)
    found = Alignment(curved, ("curvature: found",))
    again = Described(parse_config(with_alignment(resolved(config, tmp_path), found), where="test"), tmp_path)
    assert again.optics.wave_curvature == c
    for seen in (again.acquisition(), again.seen_anew(curved)):
        assert seen.patch_center == pytest.approx(curved.patch_center)
        np.testing.assert_allclose(
            seen.illumination.directions(seen.patch_center), curved.illumination.directions(curved.patch_center)
        )
    row, column, height, width = REGION
    moved = again.illumination.directions(again.center_of((row, column + 3, height, width))) - again.directions
    middle = 24  # its LED is nearly on the axis, where NA is a tangent
    np.testing.assert_allclose(moved[middle], (0, -c * 3 * again.optics.pixel), rtol=2e-3, atol=2e-6)


def test_a_planned_field_asks_at_its_tiles_too(tmp_path: Path) -> None:
    config = described(tmp_path)
    planned = config.model_copy(update={"frames": config.frames.model_copy(update={"path": None, "shape": WHOLE})})
    plans = [FieldPlan.of(one, tmp_path, tile=24, overlap=0.2) for one in (config, planned)]
    assert plans[0] == plans[1]
    tiles = [Described(plans[0].tile_config(one, plans[0].tiling[3]), tmp_path) for one in (config, planned)]
    assert tiles[0].patch_center == tiles[1].patch_center
    assert tiles[0].frame_shape == tiles[1].frame_shape == (24, 24)


class TestLoad:
    def test_a_description_and_its_folder(self, tmp_path: Path) -> None:
        document = described(tmp_path, roi=list(REGION)).model_dump(mode="json", exclude_unset=True)
        (tmp_path / "acquisition.toml").write_text(tomli_w.dumps(document), encoding="utf-8")
        for path in (tmp_path, tmp_path / "acquisition.toml"):
            same(fs.load(path), region(tmp_path))

    def test_frames_are_read_as_import_reads_them(self, tmp_path: Path) -> None:
        described(tmp_path)
        loaded = fs.load(tmp_path / "frames.npy", microscope=SCOPE, illumination=LEDS)
        sets = [
            f"{section}.{key}={value}"
            for section, keys in (("microscope", SCOPE), ("illumination", LEDS))
            for key, value in keys.items()
        ]
        out = tmp_path / "acquisition.toml"
        run_import(tmp_path / "frames.npy", out, sets=sets, quiet=True)
        imported = fs.load(out)
        np.testing.assert_array_equal(np.asarray(loaded.frames), np.asarray(imported.frames))
        assert loaded.optics == imported.optics

    def test_a_run_is_loaded_by_its_folder(self, tmp_path: Path) -> None:
        path = write_acquisition(tmp_path, stop={"iterations": 1})
        start_run(load_config(path), tmp_path, tmp_path / "run")
        np.testing.assert_array_equal(np.asarray(fs.load(tmp_path / "run").frames), np.asarray(fs.load(path).frames))

    def test_sections_may_be_settings_and_arrays(self, tmp_path: Path) -> None:
        described(tmp_path)
        leds = {
            "kind": "positions",
            "positions": fs.LEDArray.square(7, 50e-6, 2e-3).positions,
            "height": np.float64(2e-3),
        }
        scope = fs.settings.MicroscopeSection.model_validate(SCOPE)
        data = fs.load(tmp_path / "frames.npy", microscope=scope, illumination=leds, frames={"dark": None})
        plain = fs.load(tmp_path / "frames.npy", microscope=SCOPE, illumination=LEDS)
        np.testing.assert_allclose(data.illumination.directions(), plain.illumination.directions())
        with pytest.raises(InvalidInputError, match=r"na is not a section that describes frames; write microscope="):
            fs.load(tmp_path / "frames.npy", na=0.1)  # type: ignore[arg-type]

    def test_frames_are_found_from_another_place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        described(tmp_path)
        monkeypatch.chdir(tmp_path)
        data = fs.load("frames.npy", microscope=SCOPE, illumination=LEDS)
        monkeypatch.chdir(tmp_path.parent)
        assert data.frames.frame(3).shape == WHOLE

    def test_what_is_missing_is_named(self, tmp_path: Path) -> None:
        described(tmp_path)
        with pytest.raises(InvalidInputError, match=r"does not say microscope\.wavelength .*fs\.load"):
            fs.load(tmp_path / "frames.npy")
        with pytest.raises(InvalidInputError, match="no such file or folder"):
            fs.load(tmp_path / "nothing")

    def test_relative_paths_start_where_the_user_is(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        described(tmp_path)
        na = fs.LEDArray.square(7, 50e-6, 2e-3).directions()
        lines = ["na_y,na_x", *(f"{y!r},{x!r}" for y, x in na.tolist())]
        (tmp_path / "leds.csv").write_text("\n".join(lines), encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        data = fs.load("frames.npy", microscope=SCOPE, illumination={"kind": "file", "path": "leds.csv"})
        np.testing.assert_allclose(data.illumination.directions(), na)


@pytest.mark.parametrize(
    ("header", "values", "keys"),
    [
        ("row,column", np.argwhere(np.ones((7, 7))) - 3.0, {"pitch": 50e-6, "height": 2e-3, "rotation": 0.1}),
        ("na_y,na_x", (np.argwhere(np.ones((7, 7))) - 3.0) / 50, {}),
    ],
)
def test_a_description_found_by_looking_outlives_the_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str, values: Any, keys: dict[str, Any]
) -> None:
    """LEDs of a table are written out, so that workers of a field need no file that is gone."""
    described(tmp_path)
    lines = [header, *(f"{y:.17g},{x:.17g}" for y, x in values)]
    (tmp_path / "leds.csv").write_text("\n".join(lines))
    lights = {"kind": "file", "path": str(tmp_path / "leds.csv"), **keys}
    config, base = description_of(tmp_path / "frames.npy", microscope=SCOPE, illumination=lights)
    (tmp_path / "leds.csv").unlink()
    monkeypatch.chdir("/")
    loaded = Described(config, base).acquisition()
    expected = values * keys["pitch"] if "pitch" in keys else values
    found = loaded.illumination.positions if "pitch" in keys else loaded.illumination.directions()  # type: ignore[attr-defined]
    np.testing.assert_array_equal(found, expected)


def test_a_field_takes_what_load_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_acquisition(tmp_path / "cells")
    asked: list[tuple[RunConfig, Path]] = []
    monkeypatch.setattr(front, "reconstruct_tiles", lambda config, base, *_, **__: asked.append((config, base)))
    for given in (path, path.parent):
        fs.reconstruct_field(given, tmp_path / "field", client=object(), iterations=3)
    assert asked[0] == asked[1]
    assert (asked[0][0].stop.iterations, asked[0][1]) == (3, path.parent.resolve())
    with pytest.raises(InvalidInputError, match=r"does not say microscope\..*fouriscope import"):
        fs.reconstruct_field(path.parent / "frames.npy", tmp_path / "field", client=object())


def test_info_refuses_a_prior_as_a_reconstruction_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_acquisition(tmp_path, prior={"name": "tvv"})
    told = []
    for command in (["info", str(path)], ["reconstruct", str(path), "--out", str(tmp_path / "run")]):
        monkeypatch.setattr(sys, "argv", ["fouriscope", *command])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        told.append("".join(capsys.readouterr()))
    assert "cannot be reconstructed: [prior]: unknown prior 'tvv'; did you mean 'tv'" in told[0]
    assert "error: [prior]: unknown prior 'tvv'; did you mean 'tv'" in told[1]
