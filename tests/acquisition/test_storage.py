"""Every way to store frames, in files that other tools wrote in their own way, whole and broken."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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

from fouriscope.acquisition import (
    ArrayFrames,
    ArrivingFrames,
    CalibratedFrames,
    CorrectedFrames,
    Corrections,
    FolderFrames,
    FrameMasks,
    Frames,
    FrameSequence,
    open_frames,
)
from fouriscope.errors import InvalidInputError

STACK = (4000 * np.random.default_rng(3).random((12, 20, 30))).astype(np.uint16)


def folder_of(path: Path, ending: str, stack: NDArray[Any] = STACK) -> Path:
    """Frames as cameras write them: numbered without leading zeros, among other things."""
    path.mkdir()
    for number, image in enumerate(stack, start=1):
        name = path / f"led_{number}{ending}"
        if ending == ".png":
            Image.fromarray(image).save(name)
        elif ending == ".npy":
            np.save(name, image)
        else:
            tifffile.imwrite(name, image)
    (path / "notes.txt").write_text("objective 4x", encoding="utf-8")
    (path / "._led_1.tif").write_bytes(b"what a Mac leaves behind")
    return path


def hdf5(path: Path, **datasets: Any) -> Path:
    with h5py.File(path, "w") as file:
        for name, values in datasets.items():
            options = {"chunks": (1, *values.shape[1:]), "compression": "gzip"} if np.ndim(values) == 3 else {}
            file.create_dataset(name, data=values, **options)
    return path


def matlab73(path: Path, **variables: Any) -> Path:
    """As MATLAB writes v7.3: axes in reverse, behind a user block of 512 bytes that says MATLAB."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in variables.items():
            file.create_dataset(name, data=np.asarray(values).T)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return path


def saved(path: Path, function: Callable[..., None], **arrays: Any) -> Path:
    function(path, **arrays)
    return path


def ome_zarr(path: Path) -> Path:
    group = zarr.open_group(str(path), mode="w")
    level = group.create_array("0", shape=(12, 1, 1, 20, 30), chunks=(1, 1, 1, 20, 30), dtype="u2")
    level[:] = STACK[:, None, None]
    return path


WAYS: dict[str, Callable[[Path], tuple[Path, dict[str, Any]]]] = {
    "tiff folder": lambda d: (folder_of(d / "f", ".tif"), {}),
    "png folder": lambda d: (folder_of(d / "f", ".png"), {}),
    "npy folder": lambda d: (folder_of(d / "f", ".npy"), {"kind": "folder"}),
    "pattern": lambda d: (folder_of(d / "f", ".TIF"), {"pattern": "led_*.TIF"}),
    "npy": lambda d: (saved(d / "a.npy", np.save, arr=STACK), {}),
    "npy of MATLAB people": lambda d: (saved(d / "a.npy", np.save, arr=STACK.transpose(1, 2, 0)), {"axes": "yxn"}),
    "npy in Fortran order": lambda d: (saved(d / "a.npy", np.save, arr=np.asfortranarray(STACK)), {}),
    "npz": lambda d: (saved(d / "a.npz", np.savez, frames=STACK), {}),
    "npz of several": lambda d: (saved(d / "a.npz", np.savez, k=np.ones(3), y=STACK), {"dataset": "y"}),
    "npz compressed": lambda d: (saved(d / "a.npz", np.savez_compressed, y=STACK), {"dataset": "y"}),
    "hdf5": lambda d: (hdf5(d / "a.h5", ptychogram=STACK, wavelength=5e-7), {}),
    "hdf5 of several": lambda d: (hdf5(d / "a.hdf5", y=STACK, z=STACK[:3]), {"dataset": "y"}),
    "mat v5": lambda d: (saved(d / "a.mat", scipy.io.savemat, mdict={"I": STACK.transpose(1, 2, 0), "k": 3.0}), {}),
    "mat v7.3": lambda d: (matlab73(d / "a.mat", I=STACK.transpose(1, 2, 0), k=[[3.0]]), {}),
    "mat, frames first": lambda d: (matlab73(d / "a.mat", I=STACK), {"axes": "nyx"}),
    "zarr": lambda d: (saved(d / "a.zarr", lambda path, arr: zarr.save_array(str(path), arr), arr=STACK), {}),
    "ome-zarr": lambda d: (ome_zarr(d / "a.zarr"), {"dataset": "0", "axes": "n11yx"}),
    "ome-tiff": lambda d: (saved(d / "a.ome.tif", tifffile.imwrite, data=STACK, metadata={"axes": "TYX"}), {}),
    "bigtiff, tiles": lambda d: (saved(d / "a.tif", tifffile.imwrite, data=STACK, bigtiff=True, tile=(16, 16)), {}),
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    return WAYS[request.param](tmp_path)


def test_frames_come_back_as_they_were(way: tuple[Path, dict[str, Any]]) -> None:
    path, options = way
    frames = open_frames(path, **options)
    assert isinstance(frames, Frames)
    assert frames.shape == (12, 20, 30)
    assert frames.dtype == np.uint16  # type: ignore[attr-defined]
    for index in (11, 0, 3, 11):
        np.testing.assert_array_equal(frames.frame(index), STACK[index])
    for outside in (12, -1):
        with pytest.raises(InvalidInputError, match=r"frames are 0 to 11, got "):
            frames.frame(outside)


def test_frames_are_a_sequence_and_an_array(way: tuple[Path, dict[str, Any]]) -> None:
    path, options = way
    for frames in (open_frames(path, **options), open_frames(path, memory="1MB", **options)):
        behaves_like(frames, STACK)
        assert repr(frames).startswith(f"{type(frames).__name__}: 12 frames of 20 × 30, uint16")


def behaves_like(frames: FrameSequence, stack: NDArray[Any]) -> None:
    assert len(frames) == len(stack)
    for index in (0, 3, -1, -len(stack), np.int64(2)):
        np.testing.assert_array_equal(frames[index], stack[index], strict=True)
    for part in (slice(2, 5), slice(None, None, -3), slice(-2, None), slice(5, 5), slice(None)):
        np.testing.assert_array_equal(frames[part], stack[part], strict=True)
    for frame, expected in zip(frames, stack, strict=True):
        np.testing.assert_array_equal(frame, expected, strict=True)
    np.testing.assert_array_equal(np.asarray(frames), stack, strict=True)
    assert np.asarray(frames, np.float32).dtype == np.float32
    own = np.array(frames, copy=True)
    own[:] = 0
    np.testing.assert_array_equal(frames[0], stack[0])
    for outside in (len(stack), -len(stack) - 1):
        with pytest.raises(IndexError, match=rf"frames are 0 to {len(stack) - 1}, got {outside}"):
            frames[outside]
    with pytest.raises(TypeError, match="a whole number or a slice as index, got list"):
        frames[[1, 2]]  # type: ignore[index]


def test_frames_that_lie_in_memory_or_are_computed_are_sequences_too() -> None:
    held = ArrayFrames(STACK)
    arriving = ArrivingFrames((12, 20, 30))
    for led, image in enumerate(STACK):
        arriving.add(image, led)
    for frames in (held, arriving):
        behaves_like(frames, STACK)
    halved = (STACK / 2).astype(np.float32)
    behaves_like(CalibratedFrames(held, gain=2), halved)
    behaves_like(CorrectedFrames(held, Corrections(gain=2)), halved)
    behaves_like(FrameMasks(held, saturation=3000), STACK < 3000)
    assert np.asarray(held) is STACK, "what lies in memory is not copied"
    with pytest.raises(ValueError, match="always a copy"):
        CalibratedFrames(held).__array__(copy=False)
    with pytest.raises(InvalidInputError, match="frame 0 of 12 has not arrived"):
        np.asarray(ArrivingFrames((12, 20, 30)))


def test_a_region_of_interest(way: tuple[Path, dict[str, Any]]) -> None:
    path, options = way
    frames = open_frames(path, roi=(3, 5, 7, 11), **options)
    assert frames.shape == (12, 7, 11)
    for index in (11, 0, 3):
        np.testing.assert_array_equal(frames.frame(index), STACK[index, 3:10, 5:16])
    with pytest.raises(InvalidInputError, match=r"must lie inside the frames of 20 × 30, got \(3, 25, 7, 11\)"):
        open_frames(path, roi=(3, 25, 7, 11), **options)


def test_frames_can_be_read_by_many_threads(way: tuple[Path, dict[str, Any]]) -> None:
    path, options = way
    frames = open_frames(path, **options)
    together = threading.Barrier(4)

    def read(start: int) -> bool:
        together.wait()
        return all(np.array_equal(frames.frame(i % 12), STACK[i % 12]) for i in range(start, start + 48))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read, range(4)))


@pytest.mark.slow
def test_no_file_stays_open(way: tuple[Path, dict[str, Any]]) -> None:
    """Warnings are errors here, and an open file that is collected warns."""
    path, options = way
    open_frames(path, **options).frame(1)
    gc.collect()


@pytest.mark.parametrize("name", ["npy", "npz", "npz compressed", "hdf5", "mat v5", "mat v7.3", "ome-tiff"])
@pytest.mark.parametrize("left", [0.0, 0.01, 0.5, 0.85])
def test_files_cut_short(tmp_path: Path, name: str, left: float) -> None:
    path, options = WAYS[name](tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(left * len(content))])
    with pytest.raises(InvalidInputError, match=rf"a\.(ome\.)?{path.suffix[1:]}: "):
        open_frames(path, **options)


@pytest.mark.parametrize("ending", [".tif", ".png", ".npy"])
def test_a_file_of_a_folder_cut_short(tmp_path: Path, ending: str) -> None:
    path = folder_of(tmp_path / "f", ending)
    broken = path / f"led_7{ending}"
    broken.write_bytes(broken.read_bytes()[:-300])
    with pytest.raises(InvalidInputError, match=rf"led_7\{ending}: "):
        open_frames(path, kind="folder").frame(6)


def test_a_folder_that_is_no_stack(tmp_path: Path) -> None:
    path = folder_of(tmp_path / "f", ".tif")
    tifffile.imwrite(path / "led_5.tif", STACK[0, :10])
    with pytest.raises(InvalidInputError, match=r"led_5\.tif: every frame must be like led_1\.tif, uint16 of shape"):
        open_frames(path)
    tifffile.imwrite(path / "led_5.tif", STACK[0].astype(np.uint8))
    with pytest.raises(InvalidInputError, match=r"led_5\.tif: .*this one is uint8"):
        open_frames(path)
    tifffile.imwrite(path / "led_5.tif", STACK[:2])
    with pytest.raises(InvalidInputError, match=r"led_5\.tif: one image was expected, got 2 pages"):
        open_frames(path)
    (path / "led_5.tif").unlink()
    assert open_frames(path).shape == (11, 20, 30)
    with pytest.raises(InvalidInputError, match=r"led_5\.tif: no such file"):
        open_frames(path, files=["led_4.tif", "led_5.tif"])
    np.testing.assert_array_equal(open_frames(path, files=["led_4.tif", "led_2.tif"]).frame(1), STACK[1])
    Image.fromarray(STACK[0]).save(path / "led_5.png")
    with pytest.raises(InvalidInputError, match=r"images of several kinds \(\.png, \.tif\); .*pattern"):
        open_frames(path)
    with pytest.raises(InvalidInputError, match=r"no frames in this folder; expected \*\.jpg"):
        open_frames(path, pattern="*.jpg")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInputError, match="no frames in this folder"):
        open_frames(tmp_path / "empty")


def test_colour_is_grey_only_if_its_channels_agree(tmp_path: Path) -> None:
    grey = (STACK >> 4).astype(np.uint8)
    for number, image in enumerate(grey[:3]):
        Image.fromarray(np.stack([image] * 3, axis=-1)).save(tmp_path / f"{number}.png")
    frames = open_frames(tmp_path)
    np.testing.assert_array_equal(frames.frame(1), grey[1])
    Image.fromarray(np.stack([grey[1], grey[2], grey[1]], axis=-1)).save(tmp_path / "1.png")
    with pytest.raises(InvalidInputError, match=r"1\.png: a grey image was expected, got colour"):
        open_frames(tmp_path).frame(1)
    Image.fromarray(grey[1] > 3).save(tmp_path / "1.png")
    with pytest.raises(InvalidInputError, match=r"1\.png: a grey image was expected, got grey of 1 bits"):
        open_frames(tmp_path)


def test_names_that_are_not_there(tmp_path: Path) -> None:
    for name in ("npz of several", "hdf5 of several", "mat v5"):
        path, options = WAYS[name](tmp_path)
        with pytest.raises(InvalidInputError, match=rf"{path.name}: there is no dataset 'nothing'; .* holds .*[yI]"):
            open_frames(path, **options | {"dataset": "nothing"})
    np.testing.assert_array_equal(open_frames(tmp_path / "a.npz").frame(1), STACK[1], err_msg="k is no stack")
    np.savez(tmp_path / "b.npz", y=STACK, z=STACK[:3])
    with pytest.raises(InvalidInputError, match=r"b\.npz: dataset must name the stack of frames, one of y, z"):
        open_frames(tmp_path / "b.npz")
    with pytest.raises(InvalidInputError, match=r"a\.hdf5: dataset must name the stack of frames, one of y, z"):
        open_frames(tmp_path / "a.hdf5")
    with pytest.raises(InvalidInputError, match=r"no three-dimensional array of numbers"):
        open_frames(hdf5(tmp_path / "b.h5", a=np.ones((3, 4))))
    with pytest.raises(InvalidInputError, match=r"a\.mat \(k\): a real array of shape \(rows, columns, frames\) was"):
        open_frames(tmp_path / "a.mat", dataset="k")
    for axes in ("nyy", "ny", "nyxz", ""):
        if axes:
            with pytest.raises(InvalidInputError, match="axes must hold n, y and x once each"):
                open_frames(tmp_path / "a.hdf5", dataset="y", axes=axes)
    with pytest.raises(InvalidInputError, match="kind = 'folder' expects a folder"):
        open_frames(tmp_path / "a.npz", kind="folder")


def test_amplitudes_and_shifted_bits(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npy", np.save, arr=STACK << 4)
    np.testing.assert_array_equal(open_frames(path, bit_shift=4).frame(2), STACK[2])
    root = saved(tmp_path / "r.npy", np.save, arr=np.sqrt(STACK.astype(np.float64)))
    np.testing.assert_allclose(open_frames(root, amplitude=True, roi=(0, 0, 5, 5)).frame(2), STACK[2, :5, :5])
    with pytest.raises(InvalidInputError, match="bit_shift = 4 needs whole numbers, but the frames are float64"):
        open_frames(root, bit_shift=4).frame(0)


def test_natural_order_counts_as_people_do(tmp_path: Path) -> None:
    names = ["a_10.tif", "a_9.tif", "b_1.tif", "a_1.tif", "a_011.tif"]
    for number, name in enumerate(names):
        tifffile.imwrite(tmp_path / name, np.full((4, 4), number, np.uint8))
    frames = open_frames(tmp_path)
    assert isinstance(frames, FolderFrames)
    assert [file.name for file in frames.files] == ["a_1.tif", "a_9.tif", "a_10.tif", "a_011.tif", "b_1.tif"]
