"""What a result folder holds, read back by other means than it was written with."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr

from fouriscope import reconstruct, settings
from fouriscope.acquisition import Acquisition, ArrayFrames
from fouriscope.acquisition.led_table import read_led_table
from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.optics import Directions, GlassSlide, LEDArray, Pupil
from fouriscope.run import Result, load_config, resume_run, start_run
from fouriscope.run.assemble import build_acquisition
from fouriscope.run.config import parse_config
from fouriscope.run.halving import halved, level_shapes, mean_levels, phase_levels
from fouriscope.run.microscope import build_illumination
from fouriscope.run.ome_tiff import write_ome_tiff
from fouriscope.run.ome_zarr import write_ome_zarr
from fouriscope.run.phases import wrap
from fouriscope.solvers import EPRY, History
from tests.conftest import ABERRATED, CASES, LEDS, OPTICS, array_pupil, random_x, small_model
from tests.run.ngff import check_ngff
from tests.run.problems import document, write_acquisition
from tests.run.test_folder import RECORDS
from tests.run.test_phases import bump

OME = "{http://www.openmicroscopy.org/Schemas/OME/2016-06}"
PIXEL = (0.16e-6, 0.2e-6)
HISTORY = History(RECORDS)


def image_result(shape: tuple[int, int] = (530, 701), *, absorption: bool = True, height: float = 15.0) -> Result:
    phase = wrap(bump(height, shape).astype(np.float32))
    return Result(phase, 0.02 * phase if absorption else None, HISTORY, PIXEL, "done", {"object": {}}, {})


def model_result(case: str = "square", **options: Any) -> Result:
    model = small_model(case, object="complex")
    return Result.of(model, random_x(model), HISTORY, "done", {"object": {}}, {}, **options)


def saved(result: Result, folder: Path) -> Path:
    return result.save(folder / "run") / "result"


# OME-TIFF ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["phase", "phase_unwrapped", "phase_flat", "amplitude"])
def test_pixel_sizes_of_an_ome_tiff(tmp_path: Path, name: str) -> None:
    """In the OME-XML in micrometres, and in the resolution tags in pixels a centimetre; axes not swapped."""
    result = image_result((30, 40))
    with tifffile.TiffFile(saved(result, tmp_path) / f"{name}.ome.tif") as tiff:
        assert tiff.is_ome
        (series,) = tiff.series
        assert (series.axes, series.shape, series.dtype) == ("YX", (30, 40), np.dtype(np.float32))
        image = series.asarray()
        tree = ElementTree.fromstring(tiff.ome_metadata or "")
        tags = tiff.pages[0].tags
        across, down = (tags[tag].value for tag in ("XResolution", "YResolution"))
        assert tags["ResolutionUnit"].value == 3, "centimetre"
    (pixels,) = tree.iter(f"{OME}Pixels")
    assert (pixels.get("SizeX"), pixels.get("SizeY"), pixels.get("Type")) == ("40", "30", "float")
    assert float(pixels.get("PhysicalSizeX", "nan")) == pytest.approx(0.2, rel=1e-12)
    assert float(pixels.get("PhysicalSizeY", "nan")) == pytest.approx(0.16, rel=1e-12)
    assert (pixels.get("PhysicalSizeXUnit"), pixels.get("PhysicalSizeYUnit")) == ("µm", "µm")
    assert across[1] / across[0] * 1e4 == pytest.approx(0.2, rel=1e-6), "micrometres"
    assert down[1] / down[0] * 1e4 == pytest.approx(0.16, rel=1e-6)
    assert [channel.get("Name") for channel in tree.iter(f"{OME}Channel")] == [name]
    expected = {"phase": result.phase, "phase_unwrapped": result.unwrapped_phase, "amplitude": result.amplitude}
    expected["phase_flat"] = result.flattened_phase
    np.testing.assert_array_equal(image, expected[name])


def test_a_phase_object_has_no_amplitude(tmp_path: Path) -> None:
    folder = saved(image_result((30, 40), absorption=False), tmp_path)
    assert not (folder / "amplitude.ome.tif").exists()
    labels = zarr.open_group(folder / "result.ome.zarr", mode="r").attrs["ome"]["omero"]["channels"]
    assert [channel["label"] for channel in labels] == ["phase", "phase_unwrapped", "phase_flat"]


def test_the_same_image_gives_the_same_file(tmp_path: Path) -> None:
    write = partial(write_ome_tiff, pixel=PIXEL, channels=["phase"], description="φ")
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "phase.ome.tif", bump().astype(np.float32))
    first, second = ((tmp_path / name / "phase.ome.tif").read_bytes() for name in ("first", "second"))
    assert first == second


def test_channels_must_have_names(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"2 channels \(a, b\).*got shape \(4, 4\)"):
        write_ome_tiff(tmp_path / "x.ome.tif", np.zeros((4, 4)), pixel=None, channels=["a", "b"], description="")


@pytest.mark.parametrize(
    ("kind", "words"),
    [("constant", "the constant of"), ("plane", "constant and ramp"), ("curved", "ramp and curvature")],
)
def test_the_metadata_say_which_background_was_taken_off(tmp_path: Path, kind: str, words: str) -> None:
    result = replace(image_result((30, 40)), config={"output": {"phase_background": kind}})
    folder = saved(result, tmp_path)
    with tifffile.TiffFile(folder / "phase_flat.ome.tif") as tiff:
        assert words in (tiff.ome_metadata or "")
        np.testing.assert_array_equal(tiff.asarray(), result.flattened(kind))
    attributes = zarr.open_group(folder / "result.ome.zarr", mode="r").attrs["fouriscope"]
    assert attributes["phase_background"] == kind
    assert json.loads((folder / "summary.json").read_text(encoding="utf-8"))["phase_background"] == kind
    assert Result.load(folder.parent).phase_background == kind


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("height", [0.5, 15.0], ids=["continuous", "with jumps"])
def test_without_a_background_to_take_off_there_is_no_flat_phase(tmp_path: Path, height: float) -> None:
    result = replace(image_result((30, 40), height=height), config={"output": {"phase_background": "none"}})
    folder = saved(result, tmp_path)
    assert not (folder / "phase_flat.ome.tif").exists()
    labels = zarr.open_group(folder / "result.ome.zarr", mode="r").attrs["ome"]["omero"]["channels"]
    assert [channel["label"] for channel in labels] == ["phase", "phase_unwrapped", "amplitude"]
    np.testing.assert_array_equal(result.flattened_phase, result.unwrapped_phase)


def test_an_unknown_background_is_told() -> None:
    with pytest.raises(InvalidInputError, match="one of none, constant, plane, curved, got 'cubic'"):
        image_result((8, 8)).flattened("cubic")


# OME-Zarr ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(530, 701), (512, 1024), (257, 30), (40, 30), (1025, 1)])
def test_every_level_covers_the_same_field(tmp_path: Path, shape: tuple[int, int]) -> None:
    """Shapes and scales agree: the edges of the first and the last pixel lie where those of level 0 do."""
    image = np.ones(shape, np.float32)
    write_ome_zarr(tmp_path / "x.ome.zarr", {"ones": partial(mean_levels, image)}, shape, PIXEL, name="x")
    (multiscale,) = check_ngff(tmp_path / "x.ome.zarr")["multiscales"]
    group = zarr.open_group(tmp_path / "x.ome.zarr", mode="r")
    shapes = []
    for dataset in multiscale["datasets"]:
        array: Any = group[dataset["path"]]
        (_, *scale), (_, *translation) = (step[step["type"]] for step in dataset["coordinateTransformations"])
        for count, whole, size, step, first in zip(array.shape[1:], shape, PIXEL, scale, translation, strict=True):
            assert first - step / 2 == pytest.approx(-size * 1e6 / 2, abs=1e-12), "the centre of pixel 0 is the origin"
            assert first + (count - 0.5) * step == pytest.approx((whole - 0.5) * size * 1e6, rel=1e-12)
        shapes.append(array.shape[1:])
        np.testing.assert_allclose(array[...], 1.0, rtol=1e-6)
    assert max(shapes[-1]) <= 256
    assert len(shapes) == 1 or max(shapes[-2]) > 256, "no more levels than are needed"
    assert shapes == level_shapes(shape)


@pytest.mark.parametrize("shape", [(8, 12), (9, 7), (1, 5), (6, 11)])
def test_halving_is_the_mean_over_the_area_that_a_coarse_pixel_covers(shape: tuple[int, int]) -> None:
    """Against brute force: every fine pixel repeated so often that coarse pixels are whole numbers of copies."""
    image = np.random.default_rng(0).normal(size=shape)
    rows, columns = ((size + 1) // 2 for size in shape)
    fine = np.repeat(np.repeat(image, rows, axis=0), columns, axis=1)  # n·m rows: m blocks of n
    expected = fine.reshape(rows, shape[0], columns, shape[1]).mean(axis=(1, 3))
    np.testing.assert_allclose(halved(image), expected, atol=1e-12)
    np.testing.assert_allclose(halved(image).mean(), image.mean(), atol=1e-12)
    field = image + 1j * np.roll(image, 1)
    np.testing.assert_allclose(halved(field), halved(field.real) + 1j * halved(field.imag), atol=1e-12)


def test_a_coarse_phase_is_that_of_the_mean_field_and_not_the_mean_of_phases() -> None:
    """Along a jump, half of the pixels just below π and half just above −π: the phase there is π, and not 0."""
    phase = np.where(np.arange(8) % 2, np.pi - 0.1, -np.pi + 0.1) * np.ones((8, 1))
    np.testing.assert_allclose(halved(phase), 0, atol=1e-12)
    _, coarse = phase_levels(phase, np.exp(1j * phase), 2)
    np.testing.assert_allclose(np.abs(coarse), np.pi, atol=1e-12)


@pytest.mark.parametrize("wrapped", [True, False])
def test_coarse_phases_of_a_smooth_object_are_right_on_both_sides_of_its_jumps(wrapped: bool) -> None:
    truth = bump(15.0, (200, 320))
    phase = wrap(truth) if wrapped else truth
    *_, coarsest = phase_levels(phase, np.exp(1j * phase), 3)
    expected = halved(halved(truth))
    np.testing.assert_allclose(np.exp(1j * coarsest), np.exp(1j * expected), atol=0.02)
    if not wrapped:
        np.testing.assert_allclose(coarsest, expected, atol=0.02)


def test_the_ome_zarr_of_a_result(tmp_path: Path) -> None:
    result = image_result()
    folder = saved(result, tmp_path) / "result.ome.zarr"
    ome = check_ngff(folder)
    names = [channel["label"] for channel in ome["omero"]["channels"]]
    assert names == ["phase", "phase_unwrapped", "phase_flat", "amplitude"]
    group = zarr.open_group(folder, mode="r")
    finest, coarsest = np.asarray(group["0"]), np.asarray(group["2"])
    images = [result.phase, result.unwrapped_phase, result.flattened_phase, result.amplitude]
    np.testing.assert_array_equal(finest, np.stack(images))
    assert coarsest.shape == (4, 133, 176)
    coarse_truth = halved(halved(bump(15.0, (530, 701))))
    np.testing.assert_allclose(np.exp(1j * coarsest[0]), np.exp(1j * coarse_truth), atol=0.01)
    difference = coarsest[1] - coarse_truth
    np.testing.assert_allclose(difference, np.median(difference), atol=0.01)


# Pupil -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_the_pupil_of_a_result_is_that_of_its_model(case: str) -> None:
    model = small_model(case)
    result = model_result(case)
    assert result.pupil is not None
    assert result.pupil_na_step is not None
    assert not result.pupil_recovered
    grid = model.geometry.grid_shape
    assert result.pupil.shape == grid
    rng = np.random.default_rng(0)
    for row, column in zip(rng.integers(0, grid[0], 60), rng.integers(0, grid[1], 60), strict=True):
        na = np.array([row - grid[0] // 2, column - grid[1] // 2]) * result.pupil_na_step
        fy, fx = na / OPTICS.wavelength
        expected = model.pupil.evaluate(fy, fx, OPTICS, frequency_step=model.geometry.frequency_step)
        np.testing.assert_allclose(result.pupil[row, column], expected, atol=1e-9)


def test_the_files_of_a_pupil(tmp_path: Path) -> None:
    result = model_result("aberrated")
    assert result.pupil is not None
    folder = saved(result, tmp_path)
    with tifffile.TiffFile(folder / "pupil.ome.tif") as tiff:
        assert tiff.series[0].axes == "CYX"
        modulus, phase = tiff.asarray()
        tree = ElementTree.fromstring(tiff.ome_metadata or "")
    np.testing.assert_allclose(modulus * np.exp(1j * phase), result.pupil, atol=1e-6)
    assert [channel.get("Name") for channel in tree.iter(f"{OME}Channel")] == ["amplitude", "phase"]
    (pixels,) = tree.iter(f"{OME}Pixels")
    assert pixels.get("PhysicalSizeX") is None, "NA is no length"
    (description,) = tree.iter(f"{OME}Description")
    assert repr(result.pupil_na_step[1]) in (description.text or "")  # type: ignore[index]
    np.testing.assert_array_equal(np.load(folder / "pupil.npy"), result.pupil)


def test_a_pupil_file_serves_as_the_pupil_of_the_next_run(tmp_path: Path) -> None:
    """Its analytic part included: [pupil] array = "…/pupil.npy" alone gives the same pupil on every bin."""
    folder = saved(model_result("array pupil"), tmp_path)
    write_acquisition(tmp_path)
    config = parse_config(document(pupil={"array": str(folder / "pupil.npy")}), where="test")
    pupil = build_acquisition(config, tmp_path).pupil
    model = ForwardModel(OPTICS, LEDS, (22, 27), pupil=pupil, object="complex", dtype=np.float64)
    again = Result.of(model, random_x(model), HISTORY, "", {}, {})
    np.testing.assert_allclose(again.pupil, np.load(folder / "pupil.npy"), atol=1e-9)  # type: ignore[arg-type]


def test_a_recovered_pupil_stands_in_for_the_models(tmp_path: Path) -> None:
    recovered = array_pupil((24, 24)).array
    result = model_result("square", pupil=recovered)
    np.testing.assert_array_equal(result.pupil, recovered)
    assert result.pupil_recovered
    assert json.loads((saved(result, tmp_path) / "geometry.json").read_text("utf-8"))["pupil"]["source"] == "recovered"
    with pytest.raises(InvalidInputError, match=r"expected shape \(24, 24\), got \(23, 24\)"):
        model_result("square", pupil=np.ones((23, 24)))


def test_the_pupil_that_epry_recovers_reaches_the_result() -> None:
    """The correction times the model's own pupil, as every frame saw it."""
    known = Pupil({6: 0.3})
    truth = ForwardModel(OPTICS, LEDS, (24, 24), pupil=Pupil({6: 0.3, 5: 0.6}), object="complex")
    frames = truth.intensity(0.3 * random_x(truth))
    seen: list[EPRY] = []
    result = reconstruct(
        Acquisition(OPTICS, LEDS, ArrayFrames(frames), pupil=known, periodic=True),
        method=settings.EPRY(pupil_step=1.0),
        prior=None,
        object="complex",
        iterations=5,
        callbacks=[lambda solver, record: seen.append(solver)],  # type: ignore[arg-type]
    )
    model = ForwardModel(OPTICS, LEDS, (24, 24), pupil=known)
    plain = Result.of(model, np.zeros(model.x_shape), HISTORY, "", {}, {}).pupil
    assert result.pupil_recovered
    np.testing.assert_allclose(result.pupil, seen[0].pupil * plain, atol=1e-6)  # type: ignore[arg-type]
    assert np.abs(result.pupil - plain).max() > 0.01  # type: ignore[operator]


def test_the_pupil_that_epry_recovers_reaches_the_run_folder_also_when_resumed(tmp_path: Path) -> None:
    solver = {"method": "epry", "pupil_step": 1.0, "batch": 49, "sampler": "all"}
    path = write_acquisition(tmp_path, solver=solver, prior={"name": "none"}, stop={"iterations": 4})
    whole = start_run(load_config(path), tmp_path, tmp_path / "whole")
    start_run(load_config(path), tmp_path, tmp_path / "parts", callbacks=[lambda solver, record: record.iteration == 2])
    resume_run(tmp_path / "parts")
    folders = (tmp_path / "whole" / "result", tmp_path / "parts" / "result")
    assert [json.loads((f / "geometry.json").read_text("utf-8"))["pupil"]["source"] for f in folders] == [
        "recovered"
    ] * 2
    first, second = (np.load(folder / "pupil.npy") for folder in folders)
    np.testing.assert_array_equal(first, whole.pupil)
    np.testing.assert_array_equal(second, first)
    assert np.ptp(np.abs(first[first != 0])) > 1e-4, "something was recovered"
    # Everything but the figure and the times in the summary is the same, byte for byte.
    for name in ("phase.ome.tif", "phase_flat.ome.tif", "pupil.ome.tif", "geometry.csv", "geometry.json"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes(), name


# Geometry ----------------------------------------------------------------------------------------------------------

SOURCES: dict[str, LEDArray | Directions] = {
    "lattice": LEDS,
    "turned, with a slide": LEDArray.square(
        (5, 7), 4e-3, 70e-3, rotation=0.3, offset=(1e-3, -0.4e-3), slide=GlassSlide(1e-3, 1.52)
    ),
    "directions": Directions(np.random.default_rng(0).uniform(-0.3, 0.3, (9, 2))),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("calibrated", [False, True])
def test_the_table_of_leds_is_read_back(tmp_path: Path, source: str, calibrated: bool) -> None:
    """To the last bit, as the illumination of another run."""
    light = SOURCES[source]
    model = ForwardModel(OPTICS, light, (24, 24))
    rng = np.random.default_rng(1)
    options: dict[str, Any] = {}
    if calibrated:
        options = {"gains": rng.uniform(0.8, 1.2, len(light)), "nominal_na": model.geometry.na + 0.01}
    result = Result.of(model, np.zeros(model.x_shape, np.float32), HISTORY, "done", {}, {}, **options)
    folder = saved(result, tmp_path)
    config = parse_config(
        document(illumination=dict.fromkeys(document()["illumination"]) | {"kind": "file", "path": "geometry.csv"}),
        where="test",
    )
    again = build_illumination(config.illumination, folder)
    np.testing.assert_array_equal(again.directions(), model.geometry.na)
    table = np.genfromtxt(folder / "geometry.csv", delimiter=",", names=True)
    np.testing.assert_array_equal(table["led"], np.arange(len(light)))
    np.testing.assert_array_equal(table["bright_field"], model.geometry.bright_field)
    if isinstance(light, LEDArray):
        np.testing.assert_array_equal(np.stack([table["y_m"], table["x_m"]], axis=1), light.positions)
    assert ("gain" in (table.dtype.names or ())) == calibrated
    if calibrated:
        np.testing.assert_array_equal(table["gain"], options["gains"])
    assert read_led_table(folder / "geometry.csv").kind == "na"


def test_a_patch_off_the_axis_is_read_back_as_that_patch(tmp_path: Path) -> None:
    model = ForwardModel(OPTICS, LEDS, (24, 24), patch_center=(1e-3, -2e-3))
    result = Result.of(model, np.zeros(model.x_shape, np.float32), HISTORY, "done", {}, {})
    again = read_led_table(saved(result, tmp_path) / "geometry.csv").illumination()
    np.testing.assert_array_equal(again.directions(), model.geometry.na)
    assert np.abs(again.directions() - LEDS.directions()).max() > 0.01
    with pytest.raises(InvalidInputError, match="known on the optical axis only"):
        again.directions((1e-3, -2e-3))


def test_the_numbers_of_a_geometry_make_the_same_light(tmp_path: Path) -> None:
    light = SOURCES["turned, with a slide"]
    assert isinstance(light, LEDArray)
    model = ForwardModel(OPTICS, light, (24, 24), pupil=ABERRATED, margin=2, patch_center=(1e-4, 2e-4))
    result = Result.of(model, np.zeros(model.x_shape, np.float32), HISTORY, "done", {}, {})
    folder = saved(result, tmp_path)
    numbers = json.loads((folder / "geometry.json").read_text("utf-8"))
    table = np.genfromtxt(folder / "geometry.csv", delimiter=",", names=True)
    slide = GlassSlide(numbers["slide"]["thickness_m"], numbers["slide"]["index"])
    again = LEDArray.at(
        np.stack([table["y_m"], table["x_m"]], axis=1),
        numbers["height_m"],
        rotation=numbers["rotation_rad"],
        offset=tuple(numbers["offset_m"]),
        slide=slide,
    )
    np.testing.assert_array_equal(again.directions(tuple(numbers["patch_center_m"])), model.geometry.na)
    assert {int(index): value for index, value in numbers["zernike_rad_rms"].items()} == ABERRATED.zernike
    assert numbers["defocus_m"] == ABERRATED.defocus
    assert (numbers["margin_frame_pixels"], numbers["wavelength_m"]) == (2, OPTICS.wavelength)
    assert numbers["pupil"]["source"] == "model"


@pytest.mark.parametrize(
    "wrong", [{"gains": np.ones(3)}, {"gains": np.full(49, np.nan)}, {"nominal_na": np.ones((3, 2))}]
)
def test_what_does_not_fit_the_leds_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"must be finite and of shape \(49"):
        model_result("square", **wrong)


# The whole folder --------------------------------------------------------------------------------------------------


def test_every_file_is_documented(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "results.md").read_text(encoding="utf-8")
    names = {path.name for path in saved(model_result(), tmp_path).iterdir()}
    assert "pupil.npy" in names
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []


def test_a_result_without_a_model_has_neither_pupil_nor_geometry(tmp_path: Path) -> None:
    names = {path.name for path in saved(replace(image_result((30, 40)), provenance={}), tmp_path).iterdir()}
    assert names == {
        "phase.ome.tif",
        "phase_unwrapped.ome.tif",
        "phase_flat.ome.tif",
        "amplitude.ome.tif",
        "result.ome.zarr",
        "object.zarr",
        "summary.json",
        "figure.png",
    }
