"""Frames of colour cameras: planes however they are stored, mosaics, crosstalk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image

from fouriscope.acquisition import open_frames
from fouriscope.acquisition.colours import COLOURS, MOSAICS, ColourPlane, interpolated, mosaic_pixels, unmixing
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity.noise import frame_noise
from fouriscope.settings import FramesSection

RGB = np.random.default_rng(0).integers(0, 255, (4, 7, 9, 3)).astype(np.uint8)
CROSSTALK = ((1.0, 0.1, 0.02), (0.12, 1.0, 0.1), (0.02, 0.12, 1.0))


def stored(folder: Path, kind: str) -> tuple[Path, dict[str, Any]]:
    path = folder / kind
    if kind == "folder":
        path.mkdir()
        for number, image in enumerate(RGB):
            Image.fromarray(image).save(path / f"led_{number}.png")
    elif kind == "planar.tif":
        tifffile.imwrite(path, np.moveaxis(RGB, -1, 1), photometric="rgb", planarconfig="separate")
    elif kind == "pages.tif":
        tifffile.imwrite(path, RGB, photometric="rgb")
    elif kind == "stack.npz":
        np.savez_compressed(path, frames=RGB)
    elif kind == "first.npy":
        np.save(path, np.moveaxis(RGB, -1, 0))
        return path, {"axes": "cnyx"}
    else:
        np.save(path, RGB)
    return path, {}


@pytest.mark.parametrize("kind", ["folder", "planar.tif", "pages.tif", "stack.npy", "stack.npz", "first.npy"])
@pytest.mark.parametrize("colour", COLOURS)
def test_a_plane_is_what_its_pixels_saw(tmp_path: Path, kind: str, colour: Any) -> None:
    path, options = stored(tmp_path, kind)
    frames = open_frames(path, plane=colour, roi=(1, 2, 5, 6), **options)
    assert np.array_equal(np.asarray(frames), RGB[:, 1:6, 2:8, COLOURS.index(colour)])


@pytest.mark.parametrize("mosaic", MOSAICS)
def test_every_pixel_of_a_mosaic_has_one_colour(mosaic: Any) -> None:
    area = (slice(3, 10), slice(2, 8))
    seen = np.stack([mosaic_pixels(mosaic, colour, *area) for colour in COLOURS])
    assert (seen.sum(axis=0) == 1).all()
    for row, column in np.ndindex(*seen.shape[1:]):
        letter = mosaic[2 * ((row + 3) % 2) + (column + 2) % 2]
        assert seen["RGB".index(letter), row, column]


def test_interpolation_keeps_what_was_seen_and_is_exact_for_planes() -> None:
    y, x = np.indices((9, 12)).astype(float)
    image = 3 + 2 * y - x
    for mosaic in MOSAICS:
        for colour in COLOURS:
            pixels = mosaic_pixels(mosaic, colour, slice(0, 9), slice(0, 12))
            found = interpolated(np.where(pixels, image, np.nan_to_num(np.inf)), pixels)
            assert np.array_equal(found[pixels], image[pixels])
            assert np.allclose(found[1:-1, 1:-1], image[1:-1, 1:-1]), "a slope is its neighbours' mean"


def test_crosstalk_is_undone_and_the_offset_stays() -> None:
    light = np.random.default_rng(1).uniform(0, 100, (3, 5, 6))
    counts = np.einsum("cl,lyx->cyx", np.array(CROSSTALK), light) + 7
    assert np.allclose(unmixing(CROSSTALK) @ CROSSTALK, np.eye(3))
    source = _InMemory(np.moveaxis(counts, 0, -1)[np.newaxis])
    for place, colour in enumerate(COLOURS):
        plane = ColourPlane(source, colour, crosstalk=CROSSTALK, offset=7)
        assert np.allclose(plane.frame(0) - 7, light[place], atol=1e-4)


def test_a_pixel_that_is_full_in_one_colour_is_full_in_all() -> None:
    image = np.full((1, 2, 2, 3), 50.0)
    image[0, 0, 0, 2] = 255.0
    plane = ColourPlane(_InMemory(image), "red", crosstalk=CROSSTALK, saturation=255.0)
    full = plane.frame(0) >= 255
    assert full.tolist() == [[True, False], [False, False]]


def test_noise_of_a_mosaic_is_that_of_its_pixels() -> None:
    rng = np.random.default_rng(2)
    y, x = np.indices((96, 96))
    image = 5 + 2 * np.cos(y / 9) * np.sin(x / 7) + rng.normal(0, 0.1, (96, 96))
    for colour in COLOURS:
        pixels = mosaic_pixels("GRBG", colour, slice(0, 96), slice(0, 96))
        assert frame_noise(image, pixels) == pytest.approx(0.1, rel=0.2)


class _InMemory(ColourPlane):
    """Stands for a file of colour images."""

    def __init__(self, images: np.ndarray[Any, Any]) -> None:
        self.images, self.path, self.dtype = images, Path("memory"), images.dtype
        self.shape = images.shape[:3]
        self.stored_shape = images.shape[1:3]
        self.rows, self.columns = slice(0, self.shape[1]), slice(0, self.shape[2])
        from fouriscope.acquisition.file_states import FileStates

        self._watched, self.states = (), FileStates()

    def _files(self, indices: range) -> Any:
        return ()

    def _read(self, index: int, rows: slice, columns: slice) -> Any:
        return self.images[index][rows, columns]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"plane": "violet"}, "plane"),
        ({"mosaic": "RGGB"}, "needs plane"),
        ({"plane": "red", "mosaic": "RGBG"}, "mosaic"),
        ({"plane": "red", "axes": "nyx"}, "axis c"),
        ({"axes": "nyxc"}, "needs plane"),
    ],
)
def test_what_makes_no_sense_is_told(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    path, _ = stored(tmp_path, "stack.npy")
    with pytest.raises(InvalidInputError, match=words):
        open_frames(path, **options)


@pytest.mark.parametrize("kind", ["folder", "pages.tif"])
def test_colour_without_a_plane_says_what_to_do(tmp_path: Path, kind: str) -> None:
    path, _ = stored(tmp_path, kind)
    with pytest.raises(InvalidInputError, match="plane"):
        open_frames(path)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"mosaic": "RGGB"}, "plane"),
        ({"plane": "red", "crosstalk": [[1, 1, 0], [1, 1, 0], [0, 0, 1]]}, "cannot be corrected"),
        ({"plane": "red", "crosstalk": CROSSTALK, "dark": "dark.tif"}, "offset instead of dark"),
        ({"plane": "red", "crosstalk": CROSSTALK, "saturation": "auto"}, "saturation as a number"),
    ],
)
def test_settings_of_a_colour_camera_are_checked(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        FramesSection(path="frames.tif", **keys)
