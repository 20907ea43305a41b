"""Three wavelengths: what is known of them is found, what is done is kept, and files say what they hold."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import tomli_w
import zarr
from PIL import Image

import fouriscope as fs
from fouriscope.acquisition.colours import COLOURS
from fouriscope.colour.description import ColourDescription
from fouriscope.colour.registration import common_window, find_shift, resampled
from fouriscope.colour.result import LEAST_LIKENESS
from fouriscope.errors import InvalidInputError, RunFolderError
from fouriscope.run import load_config, resume_run
from fouriscope.simulation.colours import ColourMicroscope
from fouriscope.viewer.runs import ViewedRun, run_folders

LEDS = fs.LEDArray.square(7, pitch=4e-3, height=70e-3)
CROSSTALK = ((1.0, 0.1, 0.02), (0.12, 1.0, 0.1), (0.02, 0.12, 1.0))
CAMERA = ColourMicroscope(LEDS, frame=40, stored="planes", crosstalk=CROSSTALK)
SEQUENTIAL = ColourMicroscope(LEDS, frame=40, stored="files")


def describe(folder: Path, microscope: ColourMicroscope, **sections: dict[str, Any]) -> Path:
    """Frames and colour.toml in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    counts = microscope.acquire(seed=0)
    frames: dict[str, Any] = {"offset": microscope.camera.offset, "gain": microscope.gain}
    colour: dict[str, Any] = {
        name: {"wavelength": value} for name, value in zip(COLOURS, microscope.wavelengths, strict=True)
    }
    if microscope.stored == "files":
        for name, stack in zip(COLOURS, counts, strict=True):
            np.save(folder / f"{name}.npy", stack)
            colour[name]["frames"] = {"path": f"{name}.npy"}
    else:
        np.save(folder / "frames.npy", counts)
        frames |= {"path": "frames.npy", "crosstalk": [list(row) for row in microscope.crosstalk]}
    if microscope.stored == "mosaic":
        frames["mosaic"] = microscope.mosaic
    document: dict[str, Any] = {
        "frames": frames,
        "microscope": {"na": 0.2, "magnification": 8.1485, "camera_pixel": 6.5e-6},
        "illumination": {"kind": "square", "shape": [7, 7], "pitch": 4e-3, "height": 70e-3},
        "object": {"model": "wave"},
        "alignment": {"focus": True, "focus_reach": 10e-6},
        "solver": {"method": "spectral", "loss": "amplitude", "start": "epry"},
        "stop": {"iterations": 12},
        "verdict": {"enabled": False},
        "colour": colour,
    } | sections
    path = folder / "colour.toml"
    path.write_text(tomli_w.dumps(document), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a colour camera's frames, reconstructed."""
    folder = tmp_path_factory.mktemp("camera")
    assert fs.reconstruct_colour(describe(folder, CAMERA), folder / "colours") is not None
    return folder / "colours"


@pytest.mark.slow
def test_shift_and_focus_of_each_channel_are_found(finished: Path) -> None:
    result = fs.ColourResult.load(finished)
    pixel = np.array(result.pixel)
    for place, name in enumerate(COLOURS):
        shift = np.array(result.shifts[name][:2]) * pixel
        assert shift == pytest.approx(CAMERA.shifts[place], abs=50e-9), name  # an eighth of a pixel
        assert result.focus[name] == pytest.approx(CAMERA.defocus[place], abs=0.5e-6), name


@pytest.mark.slow
def test_channels_are_the_sample_in_its_place_without_the_others(finished: Path) -> None:
    result = fs.ColourResult.load(finished)
    for name in COLOURS:
        truth = CAMERA.truth(name, seed=0)
        size = result.channels["blue"].phase.shape
        # On the grid of the result: the truth's is finer or the same, and both begin at the same corner.
        whole = resampled(_smooth(truth), size, (0.0, 0.0))
        there = whole[common_window(whole.shape, [(s.down, s.across) for s in result.shifts.values()])]
        assert there.shape == result.fields[name].shape
        inner = (slice(6, -6), slice(6, -6))
        found, true = np.abs(_smooth(result.fields[name]))[inner], np.abs(there)[inner]
        assert np.corrcoef(found.ravel(), true.ravel())[0, 1] > 0.98, name
        assert np.abs(found - true).max() < 0.15, name
        others = [np.abs(_smooth(CAMERA.truth(other, seed=0))) for other in COLOURS if other != name]
        assert all(np.abs(other.mean() - true.mean()) > np.abs(found.mean() - true.mean()) for other in others)


def _smooth(image: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(image.real, 1.5) + 1j * gaussian_filter(image.imag, 1.5))


@pytest.mark.slow
def test_files_hold_the_channels_by_name(finished: Path) -> None:
    result = fs.ColourResult.load(finished)
    for name, images in (("amplitude", result.amplitude), ("phase", result.phase)):
        with tifffile.TiffFile(finished / "result" / f"{name}.ome.tif") as tiff:
            assert np.allclose(tiff.asarray(), images, atol=1e-6)
            assert all(f'Name="{name}_{colour}"' in str(tiff.ome_metadata) for colour in COLOURS)
    group = zarr.open_group(str(finished / "result" / "result.ome.zarr"), mode="r")
    channels = group.attrs["ome"]["omero"]["channels"]
    assert [channel["label"] for channel in channels[:3]] == [f"amplitude_{colour}" for colour in COLOURS]
    assert [channel["color"] for channel in channels[:3]] == ["FF0000", "00FF00", "0000FF"]
    assert np.allclose(np.asarray(group["0"][:3]), result.amplitude, atol=1e-6)
    with Image.open(finished / "result" / "colour.png") as picture:
        assert np.array_equal(np.asarray(picture), result.rgb)
    told = json.loads((finished / "result" / "summary.json").read_text(encoding="utf-8"))
    assert told["channels"]["red"]["shift_pixels"] == pytest.approx(list(result.shifts["red"][:2]))


@pytest.mark.slow
def test_a_channel_is_an_ordinary_run_with_the_geometry_of_the_reference(finished: Path) -> None:
    green, red = (load_config(finished / name / "config.toml") for name in ("green", "red"))
    assert (red.frames.plane, red.microscope.wavelength) == ("red", CAMERA.wavelengths[0])
    assert red.illumination.model_dump(exclude={"kind"}) == green.illumination.model_dump(exclude={"kind"})
    assert not red.alignment.is_wanted
    with pytest.raises(RunFolderError, match="fouriscope colour"):
        resume_run(finished)
    with pytest.raises(RunFolderError, match="ColourResult"):
        fs.Result.load(finished)


@pytest.mark.slow
def test_the_page_shows_all_channels(finished: Path) -> None:
    assert [folder.name for folder in run_folders([finished])] == ["colours", *COLOURS]
    run = ViewedRun(finished, "colours")
    about = run.describe()
    assert about["state"] == "finished"
    assert set(about["images"]) == {f"{name}_{colour}" for name in ("amplitude", "phase_flat") for colour in COLOURS}
    assert about["figures"] == ["figure.png", "colour.png"]
    shown = run.images.image("amplitude_blue")
    assert np.allclose(shown.values, fs.ColourResult.load(finished).amplitude[2], atol=1e-6)
    assert shown.step == pytest.approx(tuple(1e6 * size for size in fs.ColourResult.load(finished).pixel))


@pytest.mark.slow
def test_what_is_done_is_kept_and_what_was_begun_goes_on(tmp_path: Path) -> None:
    path = describe(tmp_path, SEQUENTIAL, alignment={})
    whole = fs.reconstruct_colour(path, tmp_path / "whole")
    began: list[str] = []

    def watch(name: str, stop: fs.settings.Stop) -> tuple[()]:
        began.append(name)
        return ()

    other = tmp_path / "parts"
    stop_red = [lambda _, record: record.iteration == 5]
    assert fs.reconstruct_colour(path, other, watch=lambda name, _: stop_red if name == "red" else []) is None
    assert json.loads((other / "status.json").read_text(encoding="utf-8"))["state"] == "interrupted"
    kept = (other / "green" / "metrics.jsonl").stat().st_mtime_ns
    again = fs.reconstruct_colour(path, other, watch=watch)
    assert began == ["red", "blue"]
    assert (other / "green" / "metrics.jsonl").stat().st_mtime_ns == kept
    assert whole is not None
    assert again is not None
    assert np.array_equal(again.phase, whole.phase)
    changed = tomllib.loads(path.read_text(encoding="utf-8"))
    changed["stop"]["iterations"] = 13
    path.write_text(tomli_w.dumps(changed), encoding="utf-8")
    with pytest.raises(RunFolderError, match="another description"):
        fs.reconstruct_colour(path, other)


@pytest.mark.slow
def test_a_mosaic_counts_only_pixels_of_its_colour(tmp_path: Path) -> None:
    microscope = ColourMicroscope(LEDS, frame=40, stored="mosaic", crosstalk=CROSSTALK)
    described = ColourDescription.load(describe(tmp_path, microscope, alignment={}))
    from fouriscope.run.assemble import build_acquisition

    shares = {}
    light = microscope.light(seed=0)
    for place, name in enumerate(COLOURS):
        data = build_acquisition(described.config(name), tmp_path)
        mask = np.asarray(data.mask) != 0
        shares[name] = mask.mean()
        found = np.asarray(data.frames.frame(24))[mask]
        true = light[place, 24][mask]
        # What is left is noise, and crosstalk times what interpolation of the others misses.
        assert np.abs(found - true).mean() < 0.03, name
    assert shares == {"red": 0.25, "green": 0.5, "blue": 0.25}


def test_a_shift_is_found_whatever_the_phase_of_the_channel() -> None:
    sample = np.log(ColourMicroscope(LEDS, frame=32).field("green", 1, shifted=False))
    moved = resampled(sample, sample.shape, (-2.4, 1.3))
    first, second = np.exp(sample), np.exp(moved + 1j)
    shift = find_shift(first[20:-20, 20:-20], second[20:-20, 20:-20])
    assert (shift.down, shift.across) == pytest.approx((2.4, -1.3), abs=0.03)
    noise = np.random.default_rng(0).normal(size=(2, 64, 64)) @ np.eye(64)
    assert find_shift(noise[0] + 0j, noise[1] + 0j).likeness < LEAST_LIKENESS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.pop("colour"), r"no section \[colour\]"),
        (lambda d: d["colour"].pop("blue"), "colour.blue is missing"),
        (lambda d: d["colour"]["red"].update(wavelenght=1e-6), "did you mean 'wavelength'"),
        (lambda d: d["colour"]["red"].update(wavelength=-1e-6), "greater than 0"),
        (lambda d: d["colour"].update(reference="violet"), "reference"),
        (lambda d: d["colour"]["red"]["frames"].update(pth="x"), "did you mean 'path'"),
    ],
)
def test_mistakes_end_in_one_line(tmp_path: Path, change: Any, words: str) -> None:
    document: dict[str, Any] = {
        "frames": {},
        "microscope": {"na": 0.2, "magnification": 8.1485, "camera_pixel": 6.5e-6},
        "illumination": {"kind": "square", "shape": [7, 7], "pitch": 4e-3, "height": 70e-3},
        "colour": {name: {"wavelength": 5e-7, "frames": {"path": f"{name}.npy"}} for name in COLOURS},
    }
    path = tmp_path / "colour.toml"
    path.write_text(tomli_w.dumps(document), encoding="utf-8")
    ColourDescription.load(path)
    with pytest.raises(InvalidInputError, match="fouriscope colour"):
        load_config(path)
    change(document)
    path.write_text(tomli_w.dumps(document), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=words) as error:
        ColourDescription.load(path)
    assert "\n" not in str(error.value)


def test_a_channel_takes_over_what_the_reference_found(tmp_path: Path) -> None:
    document: dict[str, Any] = {
        "frames": {"path": "rgb.npy"},
        "microscope": {"na": 0.2, "magnification": 8.1485, "camera_pixel": 6.5e-6},
        "illumination": {"kind": "square", "shape": [7, 7], "pitch": 4e-3, "height": 70e-3},
        "alignment": {"circles": True, "focus": True, "edge": True},
        "colour": {name: {"wavelength": 5e-7} for name in COLOURS},
    }
    document["colour"]["blue"]["offset"] = [1e-4, -2e-4]
    path = tmp_path / "colour.toml"
    path.write_text(tomli_w.dumps(document), encoding="utf-8")
    found = {
        "illumination": {"kind": "positions", "positions": [[0.0, 0.0]], "height": 0.07, "offset": [1e-3, 0.0]},
        "microscope": {"na": 0.19},
        "frames": {"weights": [0.0]},
        "pupil": {"defocus": 3e-6},
    }
    config = ColourDescription.load(path).config("blue", found)
    assert config.frames.plane == "blue"
    assert config.frames.weights == (0.0,)
    assert config.microscope.na == 0.19
    assert config.pupil.defocus == 3e-6
    assert config.illumination.offset == pytest.approx((1.1e-3, -2e-4))
    assert [key for key, on in config.alignment.model_dump().items() if on is True] == ["focus"]


def test_results_of_different_fields_are_refused() -> None:
    optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    found: dict[Any, fs.Result] = {}
    for name, side in zip(COLOURS, (16, 16, 20), strict=True):
        model = fs.ForwardModel(optics, LEDS, (side, side))
        data = fs.simulate(model, np.zeros(model.object_shape), seed=0)
        found[name] = fs.reconstruct(data, iterations=1, prior=None)
    with pytest.raises(InvalidInputError, match="the same field"):
        fs.ColourResult.of(found)
    with pytest.raises(InvalidInputError, match="red, green, blue"):
        fs.ColourResult.of({"red": found["red"]})
