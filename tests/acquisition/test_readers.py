"""Each format, written in its own tool's way and convention: directions and frames come back; broken files say why."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io
import tifffile
import zarr
from numpy.typing import NDArray
from PIL import Image

from fouriscope.acquisition import Acquisition, Description, describe, write_ptylab
from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.optics import Directions, GlassSlide, LEDArray
from tests.acquisition.test_storage import folder_of, matlab73
from tests.conftest import OPTICS, random_x

# No symmetry that could hide a flip or a transpose: more columns than rows, off the axis, frames that are not square.
ROWS_COLUMNS = np.array([(row, column) for row in range(-1, 2) for column in range(-2, 4)], float)
PITCH, HEIGHT = 4e-3, 70e-3
LEDS = LEDArray.at(ROWS_COLUMNS * PITCH, HEIGHT)
MODEL = ForwardModel(OPTICS, LEDS, (22, 28))
NA = MODEL.geometry.na
COUNTS = np.rint(3000 * MODEL.intensity(random_x(MODEL, 5))).astype(np.uint16)
SCOPE = {"wavelength": 513e-9, "na": 0.2, "magnification": 8.1485, "camera_pixel": 6.5e-6}


def directions(description: Description) -> NDArray[np.float64]:
    assert description.leds is not None
    light = dict(description.lighting)
    thickness, index = light.pop("slide_thickness", 0), light.pop("slide_index", 1.52)
    if description.leds.kind == "na":
        light = {key: value for key, value in light.items() if key == "height"}
    elif thickness:
        light["slide"] = GlassSlide(thickness, index)
    light["offset"] = tuple(light.get("offset", (0.0, 0.0)))
    return description.leds.illumination(**light).directions()


def frames_of(description: Description) -> NDArray[Any]:
    frames = description.frames.open()
    return np.stack([frames.frame(index) for index in range(frames.shape[0])])


# ---------------------------------------------------------------------------------------------------------------------
# Files as other tools write them


def ptylab(folder: Path, **changes: Any) -> Path:
    content = {
        "ptychogram": COUNTS.astype(np.float32),
        "encoder": ROWS_COLUMNS * PITCH,
        "wavelength": np.array([513e-9]),
        "dxd": np.float64(6.5e-6),
        "zled": np.array([[HEIGHT]]),
        "magnification": 8.1485,
        "NA": 0.2,
    } | changes
    with h5py.File(folder / "a.hdf5", "w") as file:
        for name, values in content.items():
            if values is not None:
                file.create_dataset(name, data=values)
    return folder / "a.hdf5"


def waller(folder: Path, *, version_73: bool = False, **changes: Any) -> Path:
    """(x, y) in NA, lengths in µm and mm, the total magnification in two factors."""
    metadata: dict[str, Any] = {
        "objective": {"na": 0.2, "mag": 4.07425, "system_mag": 2.0},
        "camera": {"pixel_size_um": 6.5, "is_color": False},
        "illumination": {"wavelength_um": 0.513, "z_distance_mm": 70.0},
        "source_list": {"na_design": NA[:, ::-1] + 0.01, "na_init": NA[:, ::-1], "na_calib": np.empty((0, 0))},
        "bk": np.zeros((2, 18)),
    } | changes
    data = COUNTS.transpose(1, 2, 0)
    if not version_73:
        scipy.io.savemat(folder / "a.mat", {"data": data, "metadata": metadata}, do_compression=True)
        return folder / "a.mat"
    flat = {f"metadata/{a}/{b}": v for a, fields in metadata.items() if a != "bk" for b, v in fields.items()}
    return matlab73(folder / "a.mat", data=data, **{name: v for name, v in flat.items() if np.size(v)})


def caltech(folder: Path, name: str = "cell_g.mat", /, **changes: Any) -> Path:
    content = {"I_low": COUNTS.transpose(1, 2, 0), "na_calib": NA[:, ::-1], "na_cal": 0.2, "mag": 8.1485, "dpix_c": 6.5}
    scipy.io.savemat(folder / name, {key: value for key, value in (content | changes).items() if value is not None})
    return folder / name


def imaged(folder: Path, change: Callable[[dict[str, Any]], object] = lambda info: None) -> Path:
    (folder / "captures").mkdir()
    captures: list[dict[str, Any]] = [
        {"filename": "dark.npy", "wavelength": 513e-9, "exposure": 0.1, "led_positions": []}
    ]
    np.save(folder / "captures" / "dark.npy", np.full((22, 28), 9, np.uint16))
    for number, (image, (y, x)) in enumerate(zip(COUNTS, LEDS.positions, strict=True)):
        np.save(folder / "captures" / f"c{number}.npy", image)
        place = [{"x": x, "y": y, "z": -HEIGHT}]
        captures.append({"filename": f"c{number}.npy", "wavelength": 513e-9, "exposure": 0.1, "led_positions": place})
    info = {"magnification": 8.1485, "numerical_aperture": 0.2, "sensor_pixel_size": 6.5e-6, "captures": captures}
    change(info)
    (folder / "info.json").write_text(json.dumps(info), encoding="utf-8")
    return folder


def micro_manager(
    folder: Path, *, stack: bool = True, change: Callable[[dict[str, Any]], object] = lambda m: None
) -> Path:
    metadata: dict[str, Any] = {"Summary": {"Frames": 18}}
    for number, (row, column) in enumerate(ROWS_COLUMNS.astype(int)):
        places = {"LEDCoordX": 16 + column, "LEDCoordY": 14 + row, "centerLEDCoordX": 16, "centerLEDCoordY": 14}
        metadata[f"FrameKey-{number}-0-0"] = {
            "Exposure-ms": 50.0,
            "PixelSizeUm": 0.0,
            "FileName": "scan.ome.tif" if stack else f"img_{number}.tif",
            "UserData": {name: {"type": "INTEGER", "scalar": str(value)} for name, value in places.items()},
        }
    change(metadata)
    (folder / "scan_metadata.txt").write_text(json.dumps(metadata), encoding="utf-8")
    if stack:
        tifffile.imwrite(folder / "scan.ome.tif", COUNTS, metadata={"axes": "TYX"})
    else:
        for number, image in enumerate(COUNTS):
            tifffile.imwrite(folder / f"img_{number}.tif", image)
    return folder


def fpm_rs(folder: Path, kind: str = "k_vector_list", **changes: Any) -> Path:
    """Vectors that were measured name the crop; those of an array of LEDs have the opposite sign."""
    sign = 1 if kind == "k_vector_list" else -1
    vectors = [{"kx": float(x), "ky": float(y)} for y, x in sign * NA * 2 * math.pi / 513e-9]
    (folder / "frames").mkdir()
    for number, image in enumerate(COUNTS):
        Image.fromarray(image).save(folder / "frames" / f"frame-{number:04d}.png")
    for name, value in (("dark", 9), ("flat", 100)):
        tifffile.imwrite(folder / f"{name}.tiff", np.full((22, 28), value, np.uint16))
    optics = {
        "wavelength_vacuum_m": 513e-9,
        "objective_na": 0.2,
        "magnification": 8.1485,
        "camera_pixel_size": 6.5e-6,
        "objective_medium_refractive_index": 1.0,
    }
    written = {
        "dataset.json": {"measurement_manifest": "measurements.json", "configuration": "configuration.json"},
        "measurements.json": {
            "frames": [
                {"path": f"frames/frame-{n:04d}.png", "exposure_time": 0.02, "weight": 1.0 - 0.5 * (n == 3)}
                for n in range(18)
            ],
            "dark_frame": "dark.tiff",
            "flat_field": "flat.tiff",
            "preprocessing": {"subtract_dark": True, "divide_flat_field": False, "normalize_exposure": True},
        },
        "configuration.json": {
            "reconstruction_experiment": {"optics": optics, "illumination": {"geometry": {"kind": kind}}},
            "compiled_models": {"reconstruction_model": {"k_vectors": vectors}},
        },
    }
    for name, content in written.items():
        (folder / name).write_text(json.dumps(content | changes.get(name.split(".")[0], {})), encoding="utf-8")
    return folder


def sidecar(folder: Path, **changes: Any) -> Path:
    """A folder of numbered TIFFs with metadata.json and illumination_na.csv."""
    folder_of(folder / "f", ".TIF", COUNTS)
    lines = [f"{x:.17g},{y:.17g}" for y, x in NA]
    (folder / "f" / "illumination_na.csv").write_text("na_x,na_y\n" + "\n".join(lines) + "\n", encoding="utf-8")
    content = {
        "wavelength_m": 513e-9,
        "objective_na": 0.2,
        "magnification": 8.1485,
        "camera_pixel_m": 6.5e-6,
        "frames": 18,
        "frame_shape": [22, 28],
        "sample": "for people",
    }
    (folder / "f" / "metadata.json").write_text(json.dumps(content | changes), encoding="utf-8")
    return folder / "f"


FORMATS: dict[str, Callable[[Path], Path]] = {
    "PtyLab HDF5": ptylab,
    "Waller MATLAB": waller,
    "Waller MATLAB, v7.3": lambda folder: waller(folder, version_73=True),
    "Caltech MATLAB": lambda folder: caltech(folder, "cell_g.mat", **{"lambda": 0.513}),
    "imaged bundle": imaged,
    "fpm-rs bundle": fpm_rs,
    "fpm-rs bundle, LEDs": lambda folder: fpm_rs(folder, "planar_led_array"),
    "folder of tif images": sidecar,
}


@pytest.mark.parametrize("name", FORMATS)
def test_everything_comes_back(tmp_path: Path, name: str) -> None:
    description = describe(FORMATS[name](tmp_path))
    assert description.format == name.partition(",")[0]
    np.testing.assert_array_equal(frames_of(description), COUNTS)
    np.testing.assert_allclose(directions(description), NA, atol=1e-15)
    assert {key: description.microscope[key] for key in SCOPE} == pytest.approx(SCOPE, rel=1e-12)
    assert description.missing() == []


def test_the_convention_is_that_of_the_crop() -> None:
    """An LED at +x crops the ordinary spectrum at +x/(rλ): with this brute force all formats are compared."""
    bins = np.array([[0, 0], [2, 0], [0, 3], [-1, 2]])
    step = OPTICS.wavelength / (np.array([22, 28]) * OPTICS.pixel)
    model = ForwardModel(OPTICS, Directions(bins * step), (22, 28), object_shape=(66, 84), dtype=np.float64)
    x = random_x(model, 3)
    spectrum = np.fft.fftshift(np.fft.fft2(np.exp(1j * x)))
    f = np.meshgrid(*((np.arange(n) - n // 2) / (n * OPTICS.pixel) for n in (22, 28)), indexing="ij")
    pupil = np.hypot(*f) <= OPTICS.cutoff
    for frame, (row, column) in zip(model.intensity(x), bins, strict=True):
        crop = spectrum[33 - 11 + row : 33 + 11 + row, 42 - 14 + column : 42 + 14 + column]
        expected = np.abs(np.fft.ifft2(np.fft.ifftshift(pupil * crop))) ** 2 / 9**2
        np.testing.assert_allclose(frame, expected, atol=1e-10)


# ---------------------------------------------------------------------------------------------------------------------
# What is particular to a format


def test_uconn(tmp_path: Path) -> None:
    """Amplitudes; a spiral from the centre, of which the file knows the shift."""
    stack = np.sqrt(np.random.default_rng(0).random((16, 18, 25)))
    content = {
        "imlow_HDR": stack.astype(np.float32),
        "wlength": 5.32e-7,
        "theta": 0,
        "xint": -0.2,
        "yint": 0.35,
        "z": 1e-5,
    }
    scipy.io.savemat(tmp_path / "a.mat", content)
    description = describe(tmp_path / "a.mat")
    assert description.format == "UConn MATLAB"
    assert description.missing() == []
    assert len(description.assumed) == 3
    assert description.pupil == {"defocus": 1e-5}
    np.testing.assert_allclose(frames_of(description), (stack**2).transpose(2, 0, 1), rtol=1e-6)
    na = directions(description)
    # As the authors compute it: 90.88 mm of air, 1 mm of glass; to first order in the angle.
    effective = 90.88e-3 + 1e-3 / 1.52
    np.testing.assert_allclose(na[0], [0.35e-3 / effective, -0.2e-3 / effective], rtol=1e-4)
    assert na[1, 1] > 0.03
    assert na[2, 0] > 0.03
    assert na[4, 1] < -0.03


def test_uconn_levels_and_aberration(tmp_path: Path) -> None:
    """Whole numbers to the power 3/4, each frame by its own factor; a pupil in the file is mentioned, not dropped."""
    rng = np.random.default_rng(1)
    whole = rng.poisson(40, (24, 20, 9))
    stack = (0.01 * (1 + 0.1 * np.arange(9)) * whole) ** 0.75
    content = {"imlow_HDR": stack.astype(np.float32), "wlength": 5.32e-7, "aberration": np.full((24, 20), 1j)}
    scipy.io.savemat(tmp_path / "a.mat", content)
    description = describe(tmp_path / "a.mat")
    assert (description.frames.power, description.frames.amplitude) == (0.75, False)
    np.testing.assert_allclose(frames_of(description), (stack ** (4 / 3)).transpose(2, 0, 1), rtol=1e-5)
    pupil, power = description.notes
    assert "aberration holds 24 × 20 complex128 numbers" in pupil
    assert "recovers the pupil from the frames" in pupil
    assert "whole numbers to the power 0.75: intensity is the power 1.333" in power
    document = description.document(tmp_path, "leds.csv")
    assert document["frames"]["power"] == 0.75
    assert "amplitude" not in document["frames"]


NUMBERS: dict[str, Any] = {
    "lambda": 513e-9,
    "NA": 0.2,
    "magnification": 8.1485,
    "camera_pixel_um": 6.5,
    "led_height": 70.0,
    "note": 3,
}
SEEN = SCOPE | {"height": 70e-3}


def scalar_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["frames"] = COUNTS
        file["optics/lambda"], file["optics/NA"] = NUMBERS["lambda"], [[NUMBERS["NA"]]]
        file.attrs.update({key: NUMBERS[key] for key in ("magnification", "note")})
        file["frames"].attrs.update({key: NUMBERS[key] for key in ("camera_pixel_um", "led_height")})


SCALARS: dict[str, Callable[[Path], object]] = {
    "a.h5": scalar_hdf5,
    "a.npz": lambda path: np.savez(path, frames=COUNTS, **NUMBERS),
    "b.npz": lambda path: np.savez_compressed(path, frames=COUNTS, **NUMBERS),
    "a.mat": lambda path: scipy.io.savemat(path, {"frames": COUNTS.transpose(1, 2, 0)} | NUMBERS),
}


@pytest.mark.parametrize("name", SCALARS)
def test_scalars_beside_the_frames(tmp_path: Path, name: str) -> None:
    SCALARS[name](tmp_path / name)
    description = describe(tmp_path / name)
    np.testing.assert_array_equal(frames_of(description), COUNTS)
    assert description.microscope | description.lighting == pytest.approx(SEEN)
    assert any("wavelength = 5.13e-07 is the file's 'lambda'" in note for note in description.notes)
    assert [lack.key for lack in description.missing()] == ["illumination.kind", "illumination.path"]


def test_scalars_without_a_likely_unit_or_a_plain_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", frames=COUNTS, wavelength=42.0, height=22, pixel_size=6.5, na="0.2", mag=[4.0, 2.0])
    description = describe(tmp_path / "a.npz")
    assert description.microscope | description.lighting == {}
    assert description.notes == ("wavelength = 42 is not a likely wavelength in any unit: it is left out",)


def test_the_files_of_a_folder_that_are_frames(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", ".tif", COUNTS)
    for number in range(3):
        tifffile.imwrite(folder / f"preview_{number}.tif", np.zeros((5, 5), np.uint8))
    tifffile.imwrite(folder / "led_dark.tif", np.full((22, 28), 9, np.uint16))
    description = describe(folder, pattern="led_*.tif")
    np.testing.assert_array_equal(frames_of(description), COUNTS)
    assert description.dark == (folder / "led_dark.tif",)
    two = describe(folder, files=["led_3.tif", "led_1.tif"])
    np.testing.assert_array_equal(frames_of(two), COUNTS[[2, 0]])
    with pytest.raises(InvalidInputError, match="need a folder of images, but this is a file"):
        describe(folder / "led_1.tif", pattern="*")


def test_caltech_variants(tmp_path: Path) -> None:
    description = describe(caltech(tmp_path))
    assert description.microscope["wavelength"] == 0.5126e-6
    assert "wavelength: 0.5126 µm" in description.assumed[0]
    radius = 0.2 / 513e-9 * 22 * OPTICS.pixel
    pixels = NA[:, ::-1] / 0.2 * radius + [28 // 2 + 1, 22 // 2 + 1]
    description = describe(caltech(tmp_path, "stack.mat", na_calib=None, freqXY_calib=pixels, na_rp_cal=radius))
    np.testing.assert_allclose(directions(description), NA, atol=1e-12)
    assert [lack.key for lack in description.missing()] == ["microscope.wavelength"]


def test_micro_manager(tmp_path: Path) -> None:
    for number, stack in enumerate((True, False)):
        folder = tmp_path / str(number)
        folder.mkdir()
        description = describe(micro_manager(folder, stack=stack))
        assert description.format == "Micro-Manager TIFF"
        np.testing.assert_array_equal(frames_of(description), COUNTS)
        assert description.leds is not None
        np.testing.assert_array_equal(description.leds.values, ROWS_COLUMNS)
        lacking = {lack.key for lack in description.missing()}
        assert lacking == {*(f"microscope.{key}" for key in SCOPE), "illumination.height", "illumination.pitch"}
    alone = describe(tmp_path / "0" / "scan.ome.tif")
    assert alone.format == "Micro-Manager TIFF"
    assert alone.exposures is not None
    np.testing.assert_allclose(alone.exposures, 0.05)


def test_corrections_of_bundles(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    bundle = describe(fpm_rs(tmp_path / "a"))
    assert bundle.dark == (tmp_path / "a" / "dark.tiff",)
    assert bundle.flat is None
    assert any("flat_field is listed, but its correction is switched off" in note for note in bundle.notes)
    assert bundle.weights is not None
    assert bundle.weights.tolist() == [1.0 - 0.5 * (n == 3) for n in range(18)]
    info = describe(imaged(tmp_path / "b"))
    assert info.dark == (tmp_path / "b" / "captures" / "dark.npy",)
    assert info.lighting == {"height": HEIGHT}


def test_leds_in_no_plane(tmp_path: Path) -> None:
    def lift(info: dict[str, Any]) -> None:
        for number, capture in enumerate(info["captures"][1:]):
            place, factor = capture["led_positions"][0], 1 + 0.1 * number
            capture["led_positions"] = [{axis: factor * value for axis, value in place.items()}]

    description = describe(imaged(tmp_path, lift))
    assert description.lighting == {}
    np.testing.assert_allclose(directions(description), NA, atol=1e-15)


def test_ome_metadata(tmp_path: Path) -> None:
    metadata = {
        "axes": "TYX",
        "PhysicalSizeX": 0.8,
        "PhysicalSizeXUnit": "µm",
        "PhysicalSizeY": 0.8,
        "Channel": {"EmissionWavelength": 513, "EmissionWavelengthUnit": "nm"},
        "Plane": {"ExposureTime": [0.1] * 9 + [0.8] * 9},
    }
    tifffile.imwrite(tmp_path / "a.ome.tif", COUNTS, metadata=metadata)
    description = describe(tmp_path / "a.ome.tif")
    assert description.format == "OME-TIFF"
    expected = {"wavelength": 513e-9, "camera_pixel": 0.8e-6, "magnification": 1.0}
    assert description.microscope == pytest.approx(expected)
    assert description.exposures is not None
    np.testing.assert_allclose(description.exposures, [0.1] * 9 + [0.8] * 9)
    tifffile.imwrite(tmp_path / "b.tif", COUNTS)
    assert describe(tmp_path / "b.tif").format == "multi-page TIFF"


def test_plain_stacks(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", COUNTS)
    np.savez(tmp_path / "a.npz", frames=COUNTS)
    zarr.save_array(str(tmp_path / "a.zarr"), COUNTS)
    zarr.open_group(str(tmp_path / "g.zarr"), mode="w").create_array("0", data=COUNTS[None, :, None])
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["entry/data"] = COUNTS
    scipy.io.savemat(tmp_path / "a.mat", {"pictures": COUNTS.transpose(1, 2, 0), "k": 3})
    folder_of(tmp_path / "png", ".png", COUNTS)
    for name in ("a.npy", "a.npz", "a.zarr", "g.zarr", "a.h5", "a.mat", "png"):
        description = describe(tmp_path / name)
        np.testing.assert_array_equal(frames_of(description), COUNTS, err_msg=name)
        assert [lack.key for lack in description.missing()][:2] == ["microscope.wavelength", "microscope.na"]
        assert description.missing()[-2].key == "illumination.kind"
    square = np.zeros((16, 16, 9), np.uint8)
    np.save(tmp_path / "s.npy", square)
    assert describe(tmp_path / "s.npy").frames.axes == "yxn"


def test_a_folder_around_one_file(tmp_path: Path) -> None:
    ptylab(tmp_path)
    (tmp_path / "README").write_text("x", encoding="utf-8")
    assert describe(tmp_path).format == "PtyLab HDF5"
    caltech(tmp_path)
    with pytest.raises(InvalidInputError, match=r"it holds several: a\.hdf5, cell_g\.mat\. Known formats: a folder of"):
        describe(tmp_path)


def test_a_folder_with_corrections_beside_its_frames(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", ".tif", COUNTS)
    for name in ("dark_1.tif", "dark_2.tif", "Flatfield.tif"):
        tifffile.imwrite(folder / name, COUNTS[0])
    description = describe(folder)
    np.testing.assert_array_equal(frames_of(description), COUNTS)
    assert [path.name for path in description.dark] == ["dark_1.tif", "dark_2.tif"]
    assert description.flat == folder / "Flatfield.tif"
    # Darkness is no sign of a dark frame, nor is a word inside another.
    other = folder_of(tmp_path / "g", ".tif", COUNTS)
    (other / "led_3.tif").rename(other / "led_darkest_3.tif")
    assert describe(other).dark == ()


def test_a_pattern_and_a_name(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "f", ".tif", COUNTS)
    Image.fromarray(COUNTS[0]).save(folder / "preview.png")
    with pytest.raises(InvalidInputError, match=r"images of several kinds .*fouriscope import '.*f/\*\.png'"):
        describe(folder)
    np.testing.assert_array_equal(frames_of(describe(folder / "led_*.tif")), COUNTS)
    with pytest.raises(InvalidInputError, match="at least two frames were expected, but only 0"):
        describe(folder / "frame_*.tif")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["raw"], file["smooth"] = COUNTS, COUNTS / 2
    with pytest.raises(InvalidInputError, match=r"got raw, smooth; name it: --set frames\.dataset"):
        describe(tmp_path / "a.h5")
    np.testing.assert_array_equal(frames_of(describe(tmp_path / "a.h5", dataset="raw")), COUNTS)
    (tmp_path / "one").mkdir()
    tifffile.imwrite(tmp_path / "one" / "stack.tif", COUNTS)
    np.testing.assert_array_equal(frames_of(describe(tmp_path / "one")), COUNTS)


# ---------------------------------------------------------------------------------------------------------------------
# PtyLab, written


@pytest.mark.parametrize("light", ["plane", "turned", "slide", "directions", "patch"])
def test_ptylab_round_trip(tmp_path: Path, light: str) -> None:
    center = (0.3e-3, -0.2e-3) if light == "patch" else (0.0, 0.0)
    leds: Any = {
        "turned": LEDArray.at(LEDS.positions, HEIGHT, rotation=0.3, offset=(1e-3, 2e-3)),
        "slide": LEDArray.at(LEDS.positions, HEIGHT, slide=GlassSlide(1e-3, 1.5)),
        "directions": Directions(NA),
    }.get(light, LEDS)
    frames = COUNTS.astype(np.float32)
    write_ptylab(tmp_path / "a.hdf5", Acquisition(OPTICS, leds, frames, patch_center=center))
    assert [path.name for path in tmp_path.iterdir()] == ["a.hdf5"]
    description = describe(tmp_path / "a.hdf5")
    np.testing.assert_array_equal(frames_of(description), frames)
    np.testing.assert_allclose(directions(description), leds.directions(center), atol=1e-14)
    assert description.microscope == pytest.approx(SCOPE)
    with h5py.File(tmp_path / "a.hdf5") as file:
        assert set(file) == {"ptychogram", "encoder", "wavelength", "dxd", "zled", "magnification", "NA"}
        assert file["dxd"][()] == 6.5e-6


def test_a_ptylab_file_that_cannot_be_finished(tmp_path: Path) -> None:
    class Broken:
        shape = (18, 22, 28)

        def frame(self, index: int) -> NDArray[Any]:
            raise InvalidInputError("the disk is gone")

    with pytest.raises(InvalidInputError, match="the disk is gone"):
        write_ptylab(tmp_path / "a.hdf5", Acquisition(OPTICS, LEDS, Broken()))
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------------------------------
# Broken files: the error names file and field


def nan_at(array: NDArray[Any]) -> NDArray[Any]:
    changed = np.array(array, float)
    changed[4, 1] = np.nan
    return changed


BROKEN: dict[str, tuple[Callable[[Path], Path], str]] = {
    "too few LEDs": (lambda d: ptylab(d, encoder=LEDS.positions[:7]), r"a\.hdf5: encoder has 7 entries, .* 18"),
    "no encoder": (lambda d: ptylab(d, encoder=None), r"a\.hdf5: encoder is missing; the file holds .*wavelength"),
    "NaN encoder": (lambda d: ptylab(d, encoder=nan_at(LEDS.positions)), r"a\.hdf5: encoder must be finite, .* LED 4"),
    "negative λ": (lambda d: ptylab(d, wavelength=-1.0), r"a\.hdf5: wavelength must be a positive number, got -1"),
    "two λ": (
        lambda d: ptylab(d, wavelength=[5e-7, 6e-7]),
        r"a\.hdf5: wavelength must be a positive number, got \[",
    ),
    "flat ptychogram": (lambda d: ptylab(d, ptychogram=COUNTS[0]), r"a\.hdf5: ptychogram must be of shape \(frames,"),
    "no source list": (
        lambda d: waller(d, source_list={"x": 1}),
        r"a\.mat: metadata\.source_list has none of na_calib",
    ),
    "text for NA": (lambda d: caltech(d, na_cal="big"), r"cell_g\.mat: na_cal must be a positive number, got 'big'"),
    "na of three": (
        lambda d: caltech(d, na_calib=np.ones((18, 3))),
        r"cell_g\.mat: na_calib must be of shape \(frames, 2",
    ),
    "no na": (lambda d: caltech(d, na_calib=None), r"cell_g\.mat: na_calib \(or freqXY_calib .* is missing"),
    "two LEDs": (
        lambda d: imaged(d, lambda info: info["captures"][3]["led_positions"].append({"x": 0, "y": 0, "z": 1})),
        r"info\.json: captures\[3\]\.led_positions has 2 LEDs",
    ),
    "two colours": (
        lambda d: imaged(d, lambda info: info["captures"][2].update(wavelength=6e-7)),
        r"info\.json: captures have 2 wavelengths",
    ),
    "no such capture": (
        lambda d: imaged(d, lambda info: info["captures"][2].update(filename="gone.npy")),
        r"info\.json: captures\[.*gone\.npy",
    ),
    "captures of another kind": (
        lambda d: imaged(d, lambda info: info["captures"].insert(2, "c7.npy")),
        r"info\.json: captures\[2\] must be an object with named fields, got 'c7\.npy'",
    ),
    "exposure in words": (
        lambda d: imaged(d, lambda info: info["captures"][2].update(exposure="long")),
        r"info\.json: captures\[2\]\.exposure must be a positive number, got 'long'",
    ),
    "vectors as lists": (
        lambda d: fpm_rs(d, configuration={"compiled_models": {"reconstruction_model": {"k_vectors": [[0, 1]]}}}),
        r"configuration\.json: k_vectors\[0\] must be an object",
    ),
    "user data as text": (
        lambda d: micro_manager(d, change=lambda m: m["FrameKey-5-0-0"].update(UserData="none")),
        r"scan_metadata\.txt: FrameKey-5-0-0\.UserData must be an object",
    ),
    "no frames": (lambda d: fpm_rs(d, measurements={"frames": []}), r"measurements\.json: frames must be a list"),
    "no vectors": (
        lambda d: fpm_rs(d, configuration={"compiled_models": None}),
        r"configuration\.json: .*k_vectors is",
    ),
    "LED without a place": (
        lambda d: micro_manager(d, change=lambda m: m["FrameKey-3-0-0"]["UserData"].pop("LEDCoordX")),
        r"scan_metadata\.txt: FrameKey-3-0-0\.UserData\.LEDCoordX\.scalar is missing",
    ),
    "one frame less": (
        lambda d: micro_manager(d, change=lambda m: m.pop("FrameKey-3-0-0")),
        r"LEDs of scan_metadata\.txt has 17 entries, but the stack has 18 frames",
    ),
    "sidecar of others": (lambda d: sidecar(d, frames=19), r"metadata\.json: frames is 19, .* has 18"),
    "sidecar of a shape": (lambda d: sidecar(d, frame_shape=[28, 22]), r"metadata\.json: frame_shape is \[28, 22\]"),
    "sidecar of text": (lambda d: sidecar(d, objective_na="0.2?"), r"metadata\.json: objective_na must be a positive"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_acquisitions(tmp_path: Path, name: str) -> None:
    write, message = BROKEN[name]
    path = write(tmp_path)
    with pytest.raises(InvalidInputError, match=message):
        describe(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the first line must name the columns na_y, na_x or y, x or row, column, got nothing"),
        ("kx,ky\n1,2\n", "got kx,ky"),
        ("na_x,na_y\n", "there is no LED below the header"),
        ("na_x,na_y\n0.1,0.1\n0.1,high\n", "line 3 must hold two finite numbers, got '0.1,high'"),
        ("na_x,na_y\n0.1,nan\n", "line 2 must hold two finite numbers"),
        ("na_x,na_y\n0.1\n", "line 2 must hold two finite numbers"),
        ("na_x,na_y\n0.1,0.1\n", "illumination has 1 entries, but the stack has 18 frames"),
    ],
)
def test_broken_led_tables(tmp_path: Path, text: str, message: str) -> None:
    folder = sidecar(tmp_path)
    (folder / "illumination_na.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=rf"illumination_na\.csv: .*{message}|{message}"):
        describe(folder)


@pytest.mark.parametrize("name", ["metadata.json", "info.json", "dataset.json"])
@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '{"a": '])
def test_broken_json(tmp_path: Path, name: str, text: str) -> None:
    folder = sidecar(tmp_path)
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=rf"{name}: "):
        describe(folder)


@pytest.mark.parametrize("name", ["PtyLab HDF5", "Waller MATLAB", "Waller MATLAB, v7.3", "Caltech MATLAB"])
@pytest.mark.parametrize("left", [0.0, 0.02, 0.6])
def test_acquisitions_cut_short(tmp_path: Path, name: str, left: float) -> None:
    path = FORMATS[name](tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(left * len(content))])
    with pytest.raises(InvalidInputError, match=rf"{path.name}"):
        frames_of(describe(path))


def test_nothing_that_is_understood(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no such file or folder"):
        describe(tmp_path / "gone")
    (tmp_path / "thesis.doc").write_text("x", encoding="utf-8")
    for path in (tmp_path, tmp_path / "thesis.doc"):
        with pytest.raises(InvalidInputError, match=r"no acquisition was recognised\. Known formats: a folder of TIFF"):
            describe(path)
