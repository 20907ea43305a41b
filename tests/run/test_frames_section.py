"""The section [frames] and LEDs in a file: what a configuration says is what the solver gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from fouriscope.errors import InvalidInputError, RunFolderError
from fouriscope.optics import LEDArray
from fouriscope.run import load_config, resume_run, start_run
from fouriscope.run.assemble import build_acquisition
from fouriscope.run.inputs import resolved
from tests.conftest import LEDS
from tests.run.problems import write_acquisition

SHAPE = (24, 24)


def prepared(folder: Path, **frames: Any) -> Path:
    """The small problem as a camera would have stored it: counts on a pedestal, 12 bits."""
    path = write_acquisition(folder, frames={"path": "counts.tif", "truth": None} | frames)
    intensity = np.load(folder / "frames.npy")
    rng = np.random.default_rng(0)
    dark, flat = 20 + rng.random(SHAPE), 0.8 + 0.4 * rng.random(SHAPE)
    counts = np.rint(np.maximum(1500 * intensity * flat / flat.mean(), 0) + dark).astype(np.uint16)
    tifffile.imwrite(folder / "counts.tif", counts)
    tifffile.imwrite(folder / "dark.tif", np.stack([dark - 1, dark + 1]).astype(np.float32))
    np.save(folder / "flat.npy", flat)
    return path


def acquired(path: Path) -> Any:
    return build_acquisition(load_config(path), path.parent)


def test_dark_and_flat_give_back_the_intensities(tmp_path: Path) -> None:
    acquisition = acquired(prepared(tmp_path, dark="dark.tif", flat="flat.npy", gain=1500.0))
    intensity = np.load(tmp_path / "frames.npy")
    for index in (0, 24, 48):
        np.testing.assert_allclose(acquisition.frames.frame(index), np.maximum(intensity[index], 0), atol=2e-3)
    expected = acquisition.frames.frame(3)
    listed = acquired(prepared(tmp_path, dark=["dark.tif", "dark.tif"], flat="flat.npy", gain=1500.0))
    np.testing.assert_array_equal(listed.frames.frame(3), expected)


def test_a_region_cuts_everything_that_belongs_to_the_frames(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"dark": "dark.tif", "flat": "flat.npy", "mask": "mask.npy", "gain": 1500.0}
    mask = np.random.default_rng(2).random(SHAPE) > 0.2
    path = prepared(tmp_path, **keys)
    np.save(tmp_path / "mask.npy", mask)
    whole = acquired(path)
    part = acquired(prepared(tmp_path, **keys, roi=[2, 5, 20, 16]))
    # A flat field is relative to its mean over whole frames, so that regions side by side are equally bright.
    np.testing.assert_allclose(part.frames.frame(7), whole.frames.frame(7)[2:22, 5:21], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(part.mask, mask[2:22, 5:21])


def test_automatic_masks_and_rejection(tmp_path: Path) -> None:
    path = prepared(tmp_path, saturation="auto", bad_pixels="auto", reject="auto", offset=20.0, gain=1500.0)
    counts = tifffile.imread(tmp_path / "counts.tif")
    counts = np.minimum(counts, 1700)
    counts[:, 10, 10] = 0
    counts[30] = 0
    tifffile.imwrite(tmp_path / "counts.tif", counts)
    acquisition = acquired(path)
    assert np.flatnonzero(acquisition.weights == 0).tolist() == [30]
    expected = counts < 1700
    expected[:, 10, 10] = False
    np.testing.assert_array_equal(acquisition.mask, expected)


def test_background_is_subtracted_in_dark_field_alone(tmp_path: Path) -> None:
    plain, lifted = acquired(prepared(tmp_path)), acquired(prepared(tmp_path, background=7.0))
    dark = np.hypot(*LEDS.directions().T) > 0.2
    for index in range(49):
        change = plain.frames.frame(index) - lifted.frames.frame(index).astype(float)
        np.testing.assert_allclose(change, 7.0 if dark[index] else 0.0)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"roi": [0, 0, 30, 30]}, "roi = .* must lie inside the frames of 24 × 24"),
        ({"reject": [49]}, "frames.reject holds 49, but frames are 0 to 48"),
        ({"dark": "gone.tif"}, "gone.tif: no such file"),
        ({"flat": "counts.tif", "gain": 2.0}, r"flat must be"),
        ({"exposures": [1.0, 2.0]}, r"exposures must be finite and of shape \(49,\)"),
        ({"background": [1.0, 2.0]}, r"background must be finite and of shape \(49,\)"),
        ({"kind": "hdf5"}, "a stack of frames cannot be read"),
        ({"bit_shift": 16}, "frames.bit_shift: Input should be less than or equal to 15"),
        ({"pattern": "*.tif", "files": ["a.tif"]}, "give either pattern or files, not both"),
        ({"saturation": "full"}, "frames.saturation"),
        ({"amplitude": True, "power": 0.75}, "amplitude = true means power = 0.5, but power = 0.75 is given too"),
        ({"power": 0.0}, "frames.power: Input should be greater than or equal to 0.01"),
    ],
)
def test_wrong_keys(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    path = prepared(tmp_path, **keys)
    if keys.get("flat") == "counts.tif":
        counts = tifffile.imread(tmp_path / "counts.tif")
        tifffile.imwrite(tmp_path / "counts.tif", counts * 0)
    with pytest.raises(InvalidInputError, match=message):
        acquired(path)


LED_LINES = {
    "na": "na_x,na_y\n" + "\n".join(f"{x!r},{y!r}" for y, x in LEDS.directions().tolist()),
    "positions": "led,y_m,x_m\n" + "\n".join(f"{n},{y!r},{x!r}" for n, (y, x) in enumerate(LEDS.positions.tolist())),
    "grid": "row,column\n" + "\n".join(f"{n // 7 - 3},{n % 7 - 3}" for n in range(49)),
}
OTHERS: dict[str, dict[str, float | None]] = {
    "na": {"height": None, "pitch": None},
    "positions": {"pitch": None},
    "grid": {},
}


@pytest.mark.parametrize("kind", LED_LINES)
def test_leds_in_a_file(tmp_path: Path, kind: str) -> None:
    lights = {"kind": "file", "path": "leds.csv", "shape": None} | OTHERS[kind]
    path = write_acquisition(tmp_path, illumination=lights)
    (tmp_path / "leds.csv").write_text(LED_LINES[kind], encoding="utf-8")
    np.testing.assert_allclose(acquired(path).illumination.directions(), LEDS.directions(), atol=1e-15)


@pytest.mark.parametrize("kind", ["file", "directions"])
def test_directions_can_be_turned_and_moved(tmp_path: Path, kind: str) -> None:
    """As the array that they are the directions of, once its height is known; a turn needs no height."""
    (tmp_path / "leds.csv").write_text(LED_LINES["na"], encoding="utf-8")
    named = {"path": "leds.csv"} if kind == "file" else {"na": LEDS.directions().tolist()}
    lights = {"kind": kind, "shape": None, "pitch": None, "rotation": 0.2} | named
    turned = acquired(write_acquisition(tmp_path, illumination=lights | {"height": None})).illumination
    np.testing.assert_allclose(turned.directions(), LEDS.moved(turn=0.2).directions(), atol=1e-15)
    moved = acquired(write_acquisition(tmp_path, illumination=lights | {"offset": [1e-3, -2e-3]})).illumination
    expected = LEDS.moved(turn=0.2, shift=(1e-3, -2e-3)).directions()
    np.testing.assert_allclose(moved.directions(), expected, atol=1e-15)


def test_a_spiral(tmp_path: Path) -> None:
    lights = {"kind": "spiral", "size": 7, "shape": None, "start": "up", "clockwise": False}
    found = acquired(write_acquisition(tmp_path, illumination=lights)).illumination.directions()
    expected = LEDArray.spiral(7, 4e-3, LEDS.height, start="up", clockwise=False).directions()
    np.testing.assert_array_equal(found, expected)
    assert len(np.unique(found.round(9), axis=0)) == 49
    with pytest.raises(InvalidInputError, match="count from 1 to size² = 9, got a count of 49"):
        acquired(write_acquisition(tmp_path, illumination=lights | {"size": 3, "count": 49}))
    with pytest.raises(InvalidInputError, match=r"illumination.start: Input should be 'right', 'down', 'left' or 'up'"):
        acquired(write_acquisition(tmp_path, illumination=lights | {"start": "north"}))


@pytest.mark.parametrize(
    ("kind", "lights", "message"),
    [
        ("na", {"pitch": 1e-3}, "leds.csv: LEDs given as directions in NA take no pitch"),
        ("na", {"die": 1e-3}, "leds.csv: LEDs given as directions in NA take no pitch"),
        (
            "na",
            {"pitch": None, "height": None, "offset": [1e-3, 0.0]},
            "height is missing: an offset in metres needs",
        ),
        ("positions", {}, "leds.csv: illumination.pitch belongs to LEDs counted in rows"),
        ("positions", {"pitch": None, "height": None}, "leds.csv: illumination.height is missing"),
        ("grid", {"pitch": None}, "leds.csv: illumination.pitch is missing"),
    ],
)
def test_leds_in_a_file_with_the_wrong_keys(tmp_path: Path, kind: str, lights: dict[str, Any], message: str) -> None:
    path = write_acquisition(tmp_path, illumination={"kind": "file", "path": "leds.csv", "shape": None} | lights)
    (tmp_path / "leds.csv").write_text(LED_LINES[kind], encoding="utf-8")
    with pytest.raises(InvalidInputError, match=message):
        acquired(path)


def test_a_run_with_files_beside_its_frames_resumes(tmp_path: Path) -> None:
    keys: dict[str, Any] = {
        "dark": ["dark.tif"],
        "flat": "flat.npy",
        "gain": 1500.0,
        "saturation": 1800.0,
        "reject": [3],
    }
    path = prepared(tmp_path, **keys)
    text = path.read_text(encoding="utf-8")
    head, _, rest = text.partition("[illumination]")
    rest = rest[rest.index("[solver]") :]
    lights = '[illumination]\nkind = "file"\npath = "leds.csv"\n\n'
    path.write_text(head + lights + rest.replace("iterations = 20", "iterations = 4"), encoding="utf-8")
    (tmp_path / "leds.csv").write_text(LED_LINES["na"], encoding="utf-8")
    config = load_config(path)
    document = resolved(config, tmp_path)
    assert document["frames"]["dark"] == [str((tmp_path / "dark.tif").resolve())]
    assert document["illumination"]["path"] == str((tmp_path / "leds.csv").resolve())
    start_run(config, tmp_path, tmp_path / "run")
    result = resume_run(tmp_path / "run", iterations=6)
    longer = config.model_copy(update={"stop": config.stop.model_copy(update={"iterations": 6})})
    straight = start_run(longer, tmp_path, tmp_path / "straight")
    np.testing.assert_array_equal(result.phase, straight.phase)
    (tmp_path / "leds.csv").write_text(LED_LINES["na"].replace("na_x,na_y", "na_y,na_x"), encoding="utf-8")
    with pytest.raises(RunFolderError, match=r"leds\.csv \(illumination\.path\) is not the file"):
        resume_run(tmp_path / "run", iterations=8)
