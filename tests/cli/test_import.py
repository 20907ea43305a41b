"""`fouriscope import` and what `fouriscope info` says of frames: from other people's files to a picture."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tifffile
import zarr

from fouriscope.acquisition import CorrectedFrames, write_ptylab
from fouriscope.acquisition.acquisition import Acquisition
from fouriscope.optics import LEDArray
from fouriscope.run import load_config
from fouriscope.run.assemble import build_acquisition
from fouriscope.run.described import STORAGE
from tests.acquisition.test_readers import (
    COUNTS,
    FORMATS,
    LEDS,
    NA,
    ROWS_COLUMNS,
    SCOPE,
    caltech,
    imaged,
    micro_manager,
    ptylab,
    sidecar,
)
from tests.acquisition.test_storage import folder_of
from tests.cli.test_cli import Command, Ended, fouriscope
from tests.conftest import LEDS as CONFTEST_LEDS
from tests.conftest import OPTICS
from tests.run.problems import write_acquisition

__all__ = ["fouriscope"]  # the fixture

DATA = Path(os.environ.get("FOURISCOPE_DATA", Path(__file__).parents[2].parent / "shared" / "data")) / "fpm"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"the real acquisitions are not here: {DATA}")
SCOPE_SETS = [f"--set=microscope.{key}={value}" for key, value in SCOPE.items()]


@pytest.mark.parametrize("name", FORMATS)
def test_import_writes_what_info_and_reconstruct_read(fouriscope: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "data").mkdir()
    out = tmp_path / "acquisition.toml"
    ended = fouriscope("import", FORMATS[name](tmp_path / "data"), "-o", out)
    assert ended.code == 0, ended.err + ended.out
    assert f"{name.partition(',')[0]}" in ended.out
    assert "18 of 22 × 28, " in ended.out
    assert f"next: fouriscope info {out}" in ended.out
    acquisition = build_acquisition(load_config(out), tmp_path)
    np.testing.assert_allclose(acquisition.illumination.directions(), NA, atol=1e-15)
    assert isinstance(acquisition.frames, CorrectedFrames)
    c = acquisition.frames.corrections
    dark = 9 if c.dark is not None else 0
    assert not (dark and c.offset), "a dark frame contains the offset"
    for index in (0, 7, 17):
        expected = (COUNTS[index].astype(float) - c.offset - dark) / c.gain
        np.testing.assert_allclose(acquisition.frames.frame(index), expected, rtol=2e-6, atol=1e-6)
    # In units of the empty bright field, whatever the counts were.
    bright = [acquisition.frames.frame(int(i)).mean() for i in np.flatnonzero(np.hypot(*NA.T) < 0.18)]
    assert np.median(bright) == pytest.approx(1, rel=0.35)
    assert fouriscope("info", out).code == 0


def test_a_plain_folder_asks_for_what_nobody_can_infer(fouriscope: Command, tmp_path: Path) -> None:
    frames, out = folder_of(tmp_path / "frames", ".tif", COUNTS), tmp_path / "a.toml"
    ended = fouriscope("import", frames, "-o", out)
    assert ended.code == 1
    for key in ("wavelength=523e-9", "na=0.1", "magnification=4", "camera_pixel=6.5e-6"):
        assert f"--set microscope.{key}" in ended.out
    assert "--set illumination.kind=file" in ended.out
    assert "natural order: led_1.tif, led_2.tif … led_18.tif" in ended.out
    text = out.read_text(encoding="utf-8")
    assert "# ? na = 0.1  # the numerical aperture of the objective" in text
    assert tomllib.loads(text)["frames"]["path"] == "frames"
    assert "is missing" in fouriscope.fails("reconstruct", out)
    # What it asked for, given by hand in the file, completes it.
    filled = text.replace("# ? na = 0.1", "na = 0.2").replace("# ? wavelength = 5.23e-07", "wavelength = 513e-9")
    filled = filled.replace("# ? magnification = 4", "magnification = 8.1485").replace("# ? ", "")
    out.write_text(filled, encoding="utf-8")
    (tmp_path / "leds.csv").write_text(
        "row,column\n" + "\n".join(f"{row:g},{column:g}" for row, column in ROWS_COLUMNS), encoding="utf-8"
    )
    assert "illumination.height is missing" in fouriscope.fails("info", out)
    lattice = "[illumination]\npitch = 4e-3\nheight = 70e-3\n"
    out.write_text(filled.replace("[illumination]\n", lattice), encoding="utf-8")
    assert fouriscope("info", out).code == 0
    np.testing.assert_allclose(build_acquisition(load_config(out), tmp_path).illumination.directions(), NA)


def test_settings_complete_an_import(fouriscope: Command, tmp_path: Path) -> None:
    frames, out = folder_of(tmp_path / "frames", ".tif", COUNTS), tmp_path / "a.toml"
    lights = [
        "--set=illumination.kind=square",
        "--set=illumination.shape=[3, 6]",
        "--set=illumination.pitch=4e-3",
        "--set=illumination.height=0.07",
        "--set=illumination.offset=[0.0, 2e-3]",
    ]
    ended = fouriscope("import", frames, "-o", out, *SCOPE_SETS, *lights)
    assert ended.code == 0, ended.out + ended.err
    acquisition = build_acquisition(load_config(out), tmp_path)
    np.testing.assert_allclose(acquisition.illumination.directions(), NA, atol=1e-15)
    lights[1] = "--set=illumination.shape=[3, 5]"
    assert "has 15 LEDs, the stack has 18 frames" in fouriscope.fails(
        "import", frames, "-o", out, *SCOPE_SETS, *lights, "--force"
    )


def test_micro_manager_writes_its_leds_beside_the_toml(fouriscope: Command, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    data, out = micro_manager(tmp_path / "data"), tmp_path / "mm.toml"
    assert fouriscope("import", data, "-o", out, *SCOPE_SETS).code == 1
    assert "# ? pitch = 0.004" in out.read_text(encoding="utf-8")
    arguments = ["--set=illumination.height=0.07", "--set=illumination.pitch=4e-3", "--force"]
    assert fouriscope("import", data, "-o", out, *SCOPE_SETS, *arguments).code == 0
    assert (tmp_path / "mm_leds.csv").read_text(encoding="utf-8").splitlines()[:2] == ["row,column", "-1,-2"]
    np.testing.assert_allclose(build_acquisition(load_config(out), tmp_path).illumination.directions(), NA, atol=1e-15)


def test_import_suggests_what_the_camera_did(fouriscope: Command, tmp_path: Path) -> None:
    counts = np.minimum(COUNTS.astype(int) + 7, 2047) << 5  # 11 bits in 16, an offset, full wells
    counts[4] = counts[5]
    counts[11] = 0
    out = tmp_path / "a.toml"
    ended = fouriscope("import", ptylab(tmp_path, ptychogram=counts.astype(np.uint16)), "-o", out)
    assert ended.code == 0
    frames = load_config(out).frames
    assert frames.bit_shift == 5
    assert frames.saturation == 2047
    assert frames.reject == (5, 11)
    assert "frame 5: the same pixels as frame 4; frame 11: all pixels are zero" in ended.out
    assert "11 bits stored in 16, shifted by 5" in ended.out
    acquisition = build_acquisition(load_config(out), tmp_path)
    assert acquisition.weights is not None
    assert np.flatnonzero(acquisition.weights == 0).tolist() == [5, 11]
    assert acquisition.mask is not None
    np.testing.assert_array_equal(acquisition.mask, counts >> 5 < 2047)
    shown = fouriscope("info", out)
    assert "rejected                 frame 11: all pixels are zero" in shown.out


def test_import_never_overwrites_and_leaves_nothing_behind(fouriscope: Command, tmp_path: Path) -> None:
    out = tmp_path / "acquisition.toml"
    out.write_text("years of work", encoding="utf-8")
    (tmp_path / "data").mkdir()
    data = caltech(tmp_path / "data", "a.mat", **{"lambda": 0.513})
    assert "exists; choose another name" in fouriscope.fails("import", data, "-o", out)
    assert out.read_text(encoding="utf-8") == "years of work"
    other = tmp_path / "b.toml"
    for arguments, message in (
        (["--set", "na=3"], "--set expects section.key=value"),
        (["--set", "microscope.nna=3"], "unknown key 'microscope.nna'; did you mean 'na'?"),
        (["--set", "microscope.na=big"], "microscope.na: Input should be a valid number"),
        (["--set", "microscope.na=1.7"], "na must be smaller than medium_index"),
    ):
        assert message in fouriscope.fails("import", data, "-o", other, *arguments)
    assert "there is no folder" in fouriscope.fails("import", data, "-o", tmp_path / "no" / "b.toml")
    assert "no such file or folder" in fouriscope.fails("import", tmp_path / "gone", "-o", other)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["acquisition.toml", "data"]
    assert fouriscope("import", data, "-o", out, "--force", "--quiet") == Ended(0, "", "")


def test_the_stack_of_a_file_with_several(fouriscope: Command, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["raw"], file["smooth"] = COUNTS.transpose(0, 2, 1), COUNTS / 2
    out = tmp_path / "a.toml"
    assert "--set frames.dataset" in fouriscope.fails("import", tmp_path / "a.h5", "-o", out)
    arguments = ["--set", "frames.dataset=raw", "--set", "frames.axes=nxy"]
    ended = fouriscope("import", tmp_path / "a.h5", "-o", out, *arguments)
    assert ended.code == 1
    assert "18 of 22 × 28, uint16" in ended.out
    assert tomllib.loads(out.read_text(encoding="utf-8"))["frames"] | {"offset": 0} == {
        "path": "a.h5",
        "dataset": "raw",
        "axes": "nxy",
        "offset": 0,
    }


def test_settings_say_which_files_are_frames(fouriscope: Command, tmp_path: Path) -> None:
    folder, out = folder_of(tmp_path / "frames", ".tif", COUNTS), tmp_path / "a.toml"
    tifffile.imwrite(folder / "overview.tif", np.zeros((5, 5), np.uint8))
    ended = fouriscope("import", folder, "-o", out, "--set", "frames.pattern=led_*.tif")
    assert ended.code == 1
    assert "18 of 22 × 28, uint16" in ended.out
    assert tomllib.loads(out.read_text(encoding="utf-8"))["frames"]["pattern"] == "led_*.tif"
    tifffile.imwrite(folder / "led_dark.tif", np.full((22, 28), 9, np.uint16))
    ended = fouriscope("import", folder, "-o", out, "--set", "frames.pattern=led_*.tif", "--force")
    assert ended.code == 1, ended.err
    frames = tomllib.loads(out.read_text(encoding="utf-8"))["frames"]
    assert "pattern" not in frames, "the dark frame matches it, too: the others are named"
    assert (len(frames["files"]), frames["dark"]) == (18, os.path.join("frames", "led_dark.tif"))


def test_settings_overrule_where_the_leds_are(fouriscope: Command, tmp_path: Path) -> None:
    """Whether a file gave directions or a metadata.json the height and the pitch."""
    folder, out = sidecar(tmp_path, led_height_m=90e-3, led_pitch_m=4e-3), tmp_path / "a.toml"
    turned = ["--set=illumination.rotation=0.3", "--set=illumination.offset=[1e-3, 0.0]"]
    assert fouriscope("import", folder, "-o", out, *turned, "--set=illumination.height=70e-3").code == 0
    light = build_acquisition(load_config(out), tmp_path).illumination
    np.testing.assert_allclose(light.directions(), LEDS.moved(turn=0.3, shift=(1e-3, 0.0)).directions(), atol=1e-15)
    order = ["--set=illumination.kind=spiral", "--set=illumination.size=5", "--set=illumination.count=18"]
    assert fouriscope("import", folder, "-o", out, *order, "--force").code == 0
    light = build_acquisition(load_config(out), tmp_path).illumination
    expected = LEDArray.spiral(5, 4e-3, 90e-3, count=18)
    np.testing.assert_allclose(light.directions(), expected.directions(), err_msg="height and pitch are still known")


def test_settings_begin_another_prior_and_another_power(fouriscope: Command, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    data, out = sidecar(tmp_path / "data", stored="amplitudes"), tmp_path / "a.toml"
    assert fouriscope("import", data, "-o", out, "--set=prior.name=bm3d", "--set=frames.power=1").code == 0
    config = load_config(out)
    assert config.prior == {"name": "bm3d"}
    assert (config.frames.power, config.frames.amplitude) == (1, False)


def test_a_power_is_found_and_all_else_after_it(fouriscope: Command, tmp_path: Path) -> None:
    counts = COUNTS.astype(float) // 8 + 3
    data, out = ptylab(tmp_path, ptychogram=0.02 * counts**0.75), tmp_path / "a.toml"
    ended = fouriscope("import", data, "-o", out)
    assert ended.code == 0, ended.err
    assert "frames.power = 0.75  (the levels are whole numbers to the power 0.75)" in ended.out
    config = load_config(out)
    assert config.frames.power == 0.75
    acquisition = build_acquisition(config, tmp_path)
    bright = np.flatnonzero(np.hypot(*NA.T) < 0.18)
    level = np.median([np.median(counts[i]) for i in bright])
    assert config.frames.gain == pytest.approx(0.02 ** (4 / 3) * level, rel=0.1)
    ratio = acquisition.frames.frame(3) / counts[3]
    assert np.ptp(ratio) < 0.05 * ratio.mean(), "linear in the counts"


# ---------------------------------------------------------------------------------------------------------------------
# --to-zarr


@pytest.mark.parametrize("name", FORMATS)
def test_rewritten_frames_are_described_as_the_originals_are(fouriscope: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "data").mkdir()
    data, plain, out = FORMATS[name](tmp_path / "data"), tmp_path / "plain.toml", tmp_path / "a.toml"
    assert fouriscope("import", data, "-o", plain).code == 0
    ended = fouriscope("import", data, "-o", out, "--to-zarr", "--memory", "1MB")
    assert ended.code == 0, ended.err + ended.out
    assert f"rewritten                {tmp_path / 'a_frames.zarr'}, verified, sha256:" in ended.out
    before, after = (tomllib.loads(path.read_text(encoding="utf-8")) for path in (plain, out))
    kept = {key: value for key, value in before.pop("frames").items() if key not in STORAGE}
    assert after.pop("frames") == kept | {"path": "a_frames.zarr"}
    for sections in (before, after):  # the LEDs are called after the TOML
        sections["illumination"].pop("path", None)
    assert after == before
    originals, copies = (build_acquisition(load_config(path), tmp_path).frames for path in (plain, out))
    for index in range(18):
        np.testing.assert_array_equal(copies.frame(index), originals.frame(index))


def test_rewritten_frames_reconstruct_like_the_originals(fouriscope: Command, tmp_path: Path) -> None:
    folder = sidecar(tmp_path)
    settings = ["--set=stop.iterations=3", "--set=frames.roi=[2, 4, 16, 16]", "--set=calibration.zernike=false"]
    settings += [f"--set=alignment.{key}=false" for key in ("circles", "focus", "na", "array")]
    fields = []
    for out, rewrite in ((tmp_path / "plain.toml", []), (tmp_path / "tiled.toml", ["--to-zarr"])):
        assert fouriscope("import", folder, "-o", out, *settings, *rewrite).code == 0
        run = tmp_path / f"run_{out.stem}"
        assert fouriscope("reconstruct", out, "--out", run, "--quiet") == Ended(0, "", "")
        fields.append(zarr.open_array(str(run / "result" / "object.zarr"))[...])
    np.testing.assert_array_equal(fields[1], fields[0])


def test_rewriting_says_how_far_it_is(fouriscope: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames, out = sidecar(tmp_path), tmp_path / "a.toml"
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes what it prints to for a terminal
    ended = fouriscope("import", frames, "-o", out, "--to-zarr")
    for words in ("writing", "verifying", "18/18"):
        assert words in ended.out
    assert fouriscope("import", frames, "-o", out, "--to-zarr", "--force", "--quiet") == Ended(0, "", "")


def test_rewriting_never_overwrites_and_leaves_nothing_behind(
    fouriscope: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    data, out, store = micro_manager(tmp_path / "data"), tmp_path / "a.toml", tmp_path / "a_frames.zarr"
    arguments = ["import", data, "-o", out, *SCOPE_SETS]
    arguments += ["--set=illumination.height=0.07", "--set=illumination.pitch=4e-3"]
    assert "give --to-zarr too" in fouriscope.fails(*arguments, "--memory", "1MB")
    assert "better 32 times as much" in fouriscope.fails(*arguments, "--to-zarr", "--memory", "4kB")
    assert "memory must be a number" in fouriscope.fails(*arguments, "--to-zarr", "--memory", "much")
    with monkeypatch.context() as patch:

        def full(path: Path, text: str) -> None:
            if path == out:
                raise OSError(28, "No space left on device", str(path))
            path.write_text(text, encoding="utf-8")

        patch.setattr("fouriscope.run.importing.write_text", full)
        assert "a.toml: cannot be written (No space left on device)" in fouriscope.fails(*arguments, "--to-zarr")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    store.mkdir()
    (store / "work").touch()
    assert "a_frames.zarr exists; choose another name" in fouriscope.fails(*arguments, "--to-zarr")
    assert (store / "work").exists()
    assert fouriscope(*arguments, "--to-zarr", "--force").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.toml", "a_frames.zarr", "a_leds.csv", "data"]


def test_rewritten_beside_its_source_the_source_is_still_recognised(fouriscope: Command, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", ".tif", COUNTS)
    arguments = ["import", folder, "-o", folder / "acquisition.toml", "--to-zarr"]
    assert fouriscope(*arguments).code == 1
    ended = fouriscope(*arguments, "--force")
    assert ended.code == 1
    assert "natural order: led_1.tif, led_2.tif … led_18.tif" in ended.out
    copy = fouriscope("import", folder / "acquisition_frames.zarr", "-o", tmp_path / "b.toml")
    assert "18 of 22 × 28, uint16" in copy.out


# ---------------------------------------------------------------------------------------------------------------------
# info looks at the frames


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ({"reject": [49]}, "frames.reject holds 49"),
        ({"exposures": [1.0]}, "exposures must be finite and of shape (49,)"),
        ({"background": [1.0, 2.0]}, "background must be finite and of shape (49,)"),
        ({"dark": "truth.npy"}, "dark must be finite and of shape (24, 24)"),
    ],
)
def test_info_of_keys_that_do_not_fit(
    fouriscope: Command, tmp_path: Path, frames: dict[str, Any], message: str
) -> None:
    ended = fouriscope("info", write_acquisition(tmp_path, frames=frames))
    assert ended.code == 2
    assert message in ended.err


def test_info_says_what_the_frames_suggest(fouriscope: Command, tmp_path: Path) -> None:
    counts = np.minimum(COUNTS.astype(int) + 100, 2047).astype(np.uint16)
    counts[3] = 0
    tifffile.imwrite(tmp_path / "frames.tif", counts)
    sections: dict[str, Any] = {
        "frames": {"path": "frames.tif", "truth": None},
        "illumination": {"shape": [3, 6], "offset": [0.0, 2e-3]},
    }
    configuration = write_acquisition(tmp_path, **sections)
    shown = fouriscope("info", configuration)
    assert shown.code == 0
    for words in (
        "frames 3 look wrong (frame 3: all pixels are zero)",
        "saturated pixels are not masked: ",
        "frames.gain is 1; intensities must be in units of the bright field: set frames.gain = ",
    ):
        assert words in shown.out
    assert "warnings above" in shown.out.splitlines()[-2]
    wrong = write_acquisition(tmp_path, **sections | {"illumination": {"shape": [3, 6], "offset": [0.0, 60e-3]}})
    assert "the objective" in fouriscope("info", wrong).out or "no bright-field LED" in fouriscope("info", wrong).out


def test_info_says_which_frames_are_veiled_and_which_are_strange(fouriscope: Command, tmp_path: Path) -> None:
    configuration = write_acquisition(tmp_path, frames={"truth": None})
    stack = np.load(tmp_path / "frames.npy")
    sizes = np.hypot(*CONFTEST_LEDS.directions().T)
    stack[sizes > 0.2] += 0.05
    strange = int(np.flatnonzero(sizes < 0.1)[1])
    stack[strange] *= 0.02
    np.save(tmp_path / "frames.npy", stack)
    shown = fouriscope("info", configuration, "--frames")
    assert f"unlike others            frame {strange}: dark (" in shown.out
    assert re.search(rf"^ +{strange} .*  unlike others: dark", shown.out, re.MULTILINE)
    assert "rejected" not in shown.out
    assert re.search(r"1[23] dark frames have stray light of up to 0\.0[345]\d* counts", shown.out), shown.out
    assert build_acquisition(load_config(configuration), tmp_path).weights is None
    cured = write_acquisition(tmp_path / "cured", frames={"truth": None, "background": "auto", "reject": "auto"})
    np.save(tmp_path / "cured" / "frames.npy", stack)
    assert "stray light" not in fouriscope("info", cured).out
    acquisition = build_acquisition(load_config(cured), tmp_path / "cured")
    assert acquisition.weights is None
    dark = int(np.argmax(sizes))
    np.testing.assert_allclose(acquisition.frames.frame(dark), stack[dark] - 0.05, atol=0.02)


def test_info_with_every_frame_and_a_sheet(fouriscope: Command, tmp_path: Path) -> None:
    configuration = write_acquisition(tmp_path)
    sheet = tmp_path / "sheet.png"
    shown = fouriscope("info", configuration, "--frames", "--sheet", sheet)
    assert shown.code == 0
    rows = [line.split() for line in shown.out.splitlines() if re.match(r" +\d+ +-?0\.", line)]
    assert [int(row[0]) for row in rows] == list(range(49))
    stack = np.load(tmp_path / "frames.npy")
    assert float(rows[30][7]) == pytest.approx(stack[30].mean(), rel=1e-3)
    assert sheet.stat().st_size > 20_000
    planned = write_acquisition(tmp_path / "planned", frames={"path": None, "truth": None, "shape": [24, 24]})
    assert "there is nothing to show" in fouriscope("info", planned, "--sheet", sheet).err


def test_leds_in_the_wrong_order(fouriscope: Command, tmp_path: Path) -> None:
    configuration = write_acquisition(tmp_path, illumination={"pitch": 8e-3})
    assert "no brighter than dark-field ones: wrong order" in fouriscope("info", configuration).out


# ---------------------------------------------------------------------------------------------------------------------
# Regions and patches


def test_a_region_sees_the_leds_from_its_own_place(tmp_path: Path) -> None:
    write_ptylab(tmp_path / "a.h5", Acquisition(OPTICS, LEDS, COUNTS))
    sections: dict[str, Any] = {
        "frames": {"path": "a.h5", "dataset": "ptychogram", "roi": [2, 10, 12, 16], "truth": None},
        "illumination": {"shape": [3, 6], "offset": [0.0, 2e-3]},
    }
    path = write_acquisition(tmp_path, **sections)
    acquisition = build_acquisition(load_config(path), tmp_path)
    assert acquisition.frame_shape == (12, 16)
    np.testing.assert_array_equal(acquisition.frames.frame(4), COUNTS[4, 2:14, 10:26])
    # Its centre is 8 − 11 = −3 rows and 18 − 14 = 4 columns from that of the frame.
    assert acquisition.patch_center == pytest.approx((-3 * OPTICS.pixel, 4 * OPTICS.pixel))
    flat = sections | {
        "illumination": {"kind": "directions", "na": NA.tolist(), "shape": None, "pitch": None, "height": None}
    }
    flat["illumination"]["offset"] = None
    assert build_acquisition(load_config(write_acquisition(tmp_path, **flat)), tmp_path).patch_center == (0, 0)


# ---------------------------------------------------------------------------------------------------------------------
# Real acquisitions


@needs_data
def test_real_uconn(fouriscope: Command, tmp_path: Path) -> None:
    out = tmp_path / "a.toml"
    ended = fouriscope("import", DATA / "uconn_bloodsmear_green", "-o", out)
    assert ended.code == 0
    assert "225 of 128 × 128, float32" in ended.out
    config = load_config(out)
    assert config.frames.power == 0.75, "as its levels show, whatever its authors call it"
    assert not config.frames.amplitude
    assert "levels are whole numbers to the power 0.75" in ended.out
    assert config.frames.reject == ()
    assert config.frames.gain == pytest.approx(1.458, abs=0.02)
    acquisition = build_acquisition(config, tmp_path)
    # Without the sidecar, the reader's own spiral gives the directions that a reconstruction has settled.
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "a.mat").symlink_to(DATA / "uconn_bloodsmear_green" / "bloodsmear_green.mat")
    alone = tmp_path / "alone.toml"
    ended = fouriscope("import", tmp_path / "copy" / "a.mat", "-o", alone)
    assert ended.code == 0
    assert "assumed                  LEDs: a spiral from the centre" in ended.out
    spiral = build_acquisition(load_config(alone), tmp_path).illumination.directions()
    np.testing.assert_allclose(spiral, acquisition.illumination.directions(), atol=2e-4)


@needs_data
def test_real_elfpie(fouriscope: Command, tmp_path: Path) -> None:
    """Counts stored as fractions; a dark field under stray light, of which the bright field loses nothing."""
    out = tmp_path / "a.toml"
    assert fouriscope("import", DATA / "elfpie_usaf", "-o", out).code == 0
    frames = load_config(out).frames
    assert (frames.power, frames.floor, frames.reject) == (None, 0, ())
    assert frames.offset == pytest.approx(2.6 / 254, rel=0.05)
    assert isinstance(frames.background, tuple)
    assert frames.background[:16] == (0.0,) * 16
    assert sum(level > 0 for level in frames.background) > 20
    assert max(frames.background) < 0.2


@needs_data
def test_real_thu(fouriscope: Command, tmp_path: Path) -> None:
    out, sheet = tmp_path / "a.toml", tmp_path / "sheet.png"
    ended = fouriscope("import", DATA / "thu_usaf_defocused", "-o", out, "--set", "frames.roi=[400, 400, 128, 128]")
    assert ended.code == 0
    assert "93 of 1024 × 1024, uint8, 2 … 255" in ended.out
    frames = load_config(out).frames
    assert (frames.floor, frames.saturation, frames.reject) == (0, 255, ())
    assert isinstance(frames.background, tuple)
    assert max(frames.background) < 0.2, "a clean dark field"
    assert frames.offset == pytest.approx(2.07, abs=0.05)
    assert frames.gain == pytest.approx(110, rel=0.05)
    acquisition = build_acquisition(load_config(out), tmp_path)
    assert acquisition.frame_shape == (128, 128)
    assert fouriscope("info", out, "--sheet", sheet).code == 0


def test_imaged_dark_frames_are_subtracted(fouriscope: Command, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    out = tmp_path / "a.toml"
    assert fouriscope("import", imaged(tmp_path / "data"), "-o", out).code == 0
    acquisition = build_acquisition(load_config(out), tmp_path)
    assert isinstance(acquisition.frames, CorrectedFrames)
    expected = (COUNTS[2].astype(float) - 9) / acquisition.frames.corrections.gain
    np.testing.assert_allclose(acquisition.frames.frame(2), expected, rtol=1e-5, atol=1e-6)


def test_a_moved_folder_is_found_again(fouriscope: Command, tmp_path: Path) -> None:
    """Data below the TOML are named relative to it."""
    folder = sidecar(tmp_path)
    assert fouriscope("import", folder, "-o", tmp_path / "a.toml").code == 0
    document = tomllib.loads((tmp_path / "a.toml").read_text(encoding="utf-8"))
    assert document["frames"]["path"] == "f"
    assert document["illumination"]["path"] == os.path.join("f", "illumination_na.csv")
