from __future__ import annotations

import gc
import importlib.util
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr
from numpy.typing import NDArray

from fouriscope.acquisition import (
    Acquisition,
    ArrayFrames,
    CalibratedFrames,
    Frames,
    NpyFrames,
    TiffFrames,
    ZarrFrames,
    open_frames,
)
from fouriscope.errors import InvalidInputError
from fouriscope.optics import LEDArray
from tests.conftest import OPTICS

LEDS = LEDArray.square((1, 5), pitch=4e-3, height=70e-3)
READERS = {".npy": NpyFrames, ".tif": TiffFrames, ".tiff": TiffFrames, ".zarr": ZarrFrames}


def stack(kind: str = "f4") -> NDArray[Any]:
    return (1000 * np.random.default_rng(0).random((5, 40, 30))).astype(kind)


def write(path: Path, array: NDArray[Any], **options: Any) -> Path:
    if path.suffix == ".npy":
        np.save(path, array)
    elif path.suffix == ".zarr":
        zarr.save_array(str(path), array)
    else:
        tifffile.imwrite(path, array, photometric="minisblack", **options)
    return path


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize("kind", ["f4", "f8", "u1", "u2", "i4", ">u2"])
def test_readers_return_what_was_written(tmp_path: Path, suffix: str, kind: str) -> None:
    array = stack(kind)
    path = write(tmp_path / f"frames{suffix}", array)
    frames = open_frames(str(path))
    assert isinstance(frames, READERS[suffix])
    assert isinstance(frames, Frames)
    assert frames.shape == (5, 40, 30)
    for index in (4, 0, 2, 4):
        image = frames.frame(index)
        assert image.dtype.kind == array.dtype.kind
        np.testing.assert_array_equal(image, array[index])


@pytest.mark.parametrize("options", [{"compression": "zlib"}, {"tile": (16, 16)}, {"bigtiff": True}, {"imagej": True}])
def test_kinds_of_tiff(tmp_path: Path, options: dict[str, Any]) -> None:
    array = stack()
    frames = open_frames(write(tmp_path / "frames.TIF", array, **options))
    assert frames.shape == array.shape
    np.testing.assert_array_equal([frames.frame(index) for index in range(5)], array)


def test_a_tiff_of_one_page(tmp_path: Path) -> None:
    frames = open_frames(write(tmp_path / "frames.tif", stack()[:1]))
    assert frames.shape == (1, 40, 30)
    np.testing.assert_array_equal(frames.frame(0), stack()[0])


def test_reading_frames_leaves_no_file_open(tmp_path: Path) -> None:
    """Warnings are errors here, and an open file that is collected warns."""
    for suffix in READERS:
        open_frames(write(tmp_path / f"frames{suffix}", stack())).frame(1)
    gc.collect()
    for suffix in READERS:
        path = tmp_path / f"frames{suffix}"
        if path.is_file():
            path.unlink()  # would fail on systems that lock open files


def test_array_frames() -> None:
    array = stack("u2")
    frames = ArrayFrames(array)
    assert frames.shape == (5, 40, 30)
    assert np.shares_memory(frames.frame(3), array)
    np.testing.assert_array_equal(frames.frame(3), array[3])
    for bad in (array[0], array.astype(complex), array > 3):
        with pytest.raises(InvalidInputError, match="must be a real array"):
            ArrayFrames(bad)


@pytest.mark.parametrize("lost", [1, 100, 5000, 20000])
@pytest.mark.parametrize("suffix", [".npy", ".tif"])
def test_a_file_cut_short(tmp_path: Path, suffix: str, lost: int) -> None:
    options = {"compression": "zlib"} if suffix == ".tif" else {}
    path = write(tmp_path / f"frames{suffix}", stack("u2") if suffix == ".npy" else stack(), **options)
    content = path.read_bytes()
    path.write_bytes(content[:-lost])
    with pytest.raises(InvalidInputError, match=r"frames\.\w+: "):
        open_frames(path)
    path.write_bytes(content)
    assert open_frames(path).shape == (5, 40, 30)


def test_an_uncompressed_tiff_cut_short(tmp_path: Path) -> None:
    path = write(tmp_path / "frames.tif", stack()[:1])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InvalidInputError, match=r"bytes were expected, but the file has"):
        open_frames(path)


@pytest.mark.parametrize("suffix", [".npy", ".tif", ".zarr"])
@pytest.mark.parametrize("content", [b"", b"no frames at all", b"II*\x00\x08\x00\x00\x00\x01"])
def test_not_frames_at_all(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"frames{suffix}"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match="frames"):
        open_frames(path)


@pytest.mark.parametrize("suffix", [".npy", ".zarr"])
@pytest.mark.parametrize("array", [stack()[0], stack()[None], stack().astype(complex), stack() > 3])
def test_arrays_that_are_not_a_stack(tmp_path: Path, suffix: str, array: NDArray[Any]) -> None:
    path = write(tmp_path / f"frames{suffix}", array)
    with pytest.raises(InvalidInputError, match=r"real array of shape \(frames, rows, columns\) was expected, got "):
        open_frames(path)


def test_npy_with_objects_or_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "frames.npy"
    np.save(path, np.array([None, 1], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidInputError, match="it holds Python objects, not numbers"):
        open_frames(path)
    with path.open("wb") as file:
        np.savez(file, a=stack())
    with pytest.raises(InvalidInputError, match="archive of arrays"):
        open_frames(path)


def test_tiff_of_colours_complex_numbers_or_pages_that_differ(tmp_path: Path) -> None:
    path = tmp_path / "frames.tif"
    tifffile.imwrite(path, np.zeros((5, 8, 8, 3), np.uint8), photometric="rgb")
    with pytest.raises(InvalidInputError, match=r"grey pages were expected, got uint8 pages of shape \(8, 8, 3\)"):
        open_frames(path)
    write(path, stack().astype(complex))
    with pytest.raises(InvalidInputError, match="grey pages were expected, got complex128"):
        open_frames(path)
    with tifffile.TiffWriter(path) as tiff:
        tiff.write(stack()[0])
        tiff.write(stack()[1, :20])
    frames = open_frames(path)
    with pytest.raises(InvalidInputError, match=r"page 1 has shape \(20, 30\), but the first has \(40, 30\)"):
        frames.frame(1)


@pytest.mark.skipif(importlib.util.find_spec("imagecodecs") is not None, reason="imagecodecs is installed")
def test_a_compression_without_its_codec(tmp_path: Path) -> None:
    path = write(tmp_path / "frames.tif", stack(), compression="zlib")
    with tifffile.TiffFile(path, mode="r+b") as tiff:
        for page in tiff.pages:
            page.tags["Compression"].overwrite(34712)  # JPEG 2000
    with pytest.raises(InvalidInputError, match=r"frames.tif: the first page .* pip install imagecodecs"):
        open_frames(path)


@pytest.mark.parametrize("suffix", [".npy", ".zarr"])
def test_a_file_that_vanishes(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"frames{suffix}", stack())
    frames = open_frames(path)
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(InvalidInputError, match=rf"frames\{suffix}: frame 2 cannot be read .*No such file"):
        frames.frame(2)
    (tmp_path / "elsewhere").rename(path)
    np.testing.assert_array_equal(frames.frame(2), stack()[2])


def test_a_file_that_shrinks(tmp_path: Path) -> None:
    path = write(tmp_path / "frames.npy", stack())
    frames = open_frames(path)
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(InvalidInputError, match=r"frames.npy: frame 4 cannot be read .*was the file changed"):
        frames.frame(4)


def test_zarr_that_is_no_array(tmp_path: Path) -> None:
    zarr.open_group(str(tmp_path / "group.zarr"), mode="w")
    (tmp_path / "empty.zarr").mkdir()
    for name in ("group.zarr", "empty.zarr"):
        with pytest.raises(InvalidInputError, match=f"{name}: a stack of frames cannot be read"):
            open_frames(tmp_path / name)


def test_a_missing_file_and_an_unknown_kind(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"absent\.npy: no such file"):
        open_frames(tmp_path / "absent.npy")
    (tmp_path / "frames.doc").touch()
    with pytest.raises(InvalidInputError, match=r"a folder of images or a file that ends in \.npy, .*, got '\.doc'"):
        open_frames(tmp_path / "frames.doc")


@pytest.mark.parametrize(
    ("kind", "result"),
    [("u1", "f4"), ("u2", "f4"), ("i4", "f4"), ("f4", "f4"), ("f8", "f8"), (">f8", "f8"), (">u2", "f4")],
)
def test_calibrated_frames(kind: str, result: str) -> None:
    array = (stack() / 5).astype(kind)
    frames = CalibratedFrames(ArrayFrames(array), offset=100, gain=250.5)
    assert frames.shape == array.shape
    assert isinstance(frames, Frames)
    image = frames.frame(2)
    assert image.dtype == np.dtype(result)
    # Counts below the offset become negative instead of wrapping around.
    assert image.min() < 0
    np.testing.assert_allclose(image, (array[2].astype(float) - 100) / 250.5, rtol=1e-5 if result == "f4" else 1e-14)
    np.testing.assert_array_equal(CalibratedFrames(ArrayFrames(array)).frame(1), array[1])


@pytest.mark.parametrize(
    "options", [{"gain": 0.0}, {"gain": -1.0}, {"gain": np.nan}, {"gain": np.inf}, {"offset": np.nan}]
)
def test_calibration_errors(options: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError, match=r"(gain|offset) must be "):
        CalibratedFrames(ArrayFrames(stack()), **options)


def acquisition(array: NDArray[Any], **options: Any) -> Acquisition:
    return Acquisition(OPTICS, LEDS, ArrayFrames(array), **options)


def test_an_acquisition_takes_arrays_and_frames() -> None:
    plain = Acquisition(OPTICS, LEDS, stack())
    assert isinstance(plain.frames, ArrayFrames)
    assert len(plain) == 5
    assert plain.frame_shape == (40, 30)
    assert plain.pupil.is_clear
    plain.check_frames()


@pytest.mark.parametrize("frames", [list(stack()), "frames.npy", None, object(), stack()[0]])
def test_an_acquisition_of_something_else(frames: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"frames must be .*array \(frames, rows, columns\)"):
        Acquisition(OPTICS, LEDS, frames)


def test_an_acquisition_needs_one_frame_an_led() -> None:
    with pytest.raises(InvalidInputError, match="the illumination has 5 LEDs, the stack has 4 frames"):
        acquisition(stack()[:4])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_check_frames_finds_what_is_not_a_number(bad: float) -> None:
    array = stack()
    array[3, 0, :2] = bad
    with pytest.raises(InvalidInputError, match="frame 3 holds 2 NaN or infinite pixels of 1200"):
        acquisition(array).check_frames()
    # What does not count may hold anything: this is what the message advises.
    acquisition(array, weights=np.array([1, 1, 1, 0, 1])).check_frames()
    mask = np.ones(array.shape, bool)
    mask[3, 0, :2] = False
    acquisition(array, mask=mask).check_frames()
    acquisition(array, mask=mask[3]).check_frames()
    with pytest.raises(InvalidInputError, match="frame 3 holds"):
        acquisition(array, mask=mask[2], weights=np.array([0, 1, 1, 1, 1])).check_frames()


def test_check_frames_finds_an_empty_stack() -> None:
    with pytest.raises(InvalidInputError, match="all frames are zero"):
        acquisition(np.zeros((5, 8, 8), np.uint16)).check_frames()
    array = np.zeros((5, 8, 8))
    array[4, 7, 7] = -1e-9
    acquisition(array).check_frames()


def test_an_acquisition_takes_an_array_and_holds_frames() -> None:
    """mypy checks the types of this test: an array is taken, and what it has become has ``frame``."""
    data = Acquisition(OPTICS, LEDS, np.ones((len(LEDS), 4, 4), np.float32))
    assert data.frames.frame(0).shape == (4, 4)
    again = pickle.loads(pickle.dumps(replace(data, frames=np.zeros((len(LEDS), 4, 4), np.float32))))
    assert not np.any(again.frames.frame(0))
    with pytest.raises(TypeError, match="frames"):
        Acquisition(OPTICS, LEDS)
