"""Fields that are known, cut into tiles that have lost what a solver cannot know; and a small one on a real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from fouriscope.field import connected
from fouriscope.field.blending import Blend
from fouriscope.field.correction import Correction
from fouriscope.field.overlaps import Overlap, TileImages, compare, object_window
from fouriscope.field.tiling import Tiling
from tests.field.problems import run, write_field

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CutField:
    """A field, its tiles, and the corrections that would bring the tiles back."""

    tiling: Tiling
    scale: int
    border: int
    phase: FloatArray
    absorption: FloatArray
    images: list[TileImages]
    corrections: list[Correction]

    def overlaps(self, missing: tuple[int, ...] = ()) -> list[Overlap]:
        """All neighbours compared but those of the tiles that are missing."""
        return [
            compare(a, b, self.images[a.index], self.images[b.index], self.scale, self.border)
            for a, b in self.tiling.pairs()
            if a.index not in missing and b.index not in missing
        ]

    def stitched(self, corrections: list[Correction], missing: tuple[int, ...] = ()) -> tuple[FloatArray, FloatArray]:
        """The whole field, blended."""
        blend = Blend((0, 0, *self.phase.shape), self.tiling, self.scale, self.border)
        for tile in self.tiling:
            if tile.index not in missing:
                blend.add(tile, self.images[tile.index], corrections[tile.index])
        phase, absorption = blend.result()
        assert absorption is not None
        return phase.astype(np.float64), absorption.astype(np.float64)


def cut_field(
    frame_shape: tuple[int, int] = (90, 76),
    *,
    tile: int = 32,
    overlap: float = 0.25,
    scale: int = 2,
    border: int = 2,
    phase: float = 5.0,
    constants: float = np.pi,
    ramps: float = 0.0,
    brightness: float = 0.1,
    noise: float = 0.0,
    seed: int = 0,
) -> CutField:
    """A smooth field up to ± ``phase`` rad; constants within ± ``constants``, ramps of ``ramps`` rad over half a tile.

    Within a border of its edges, a tile is wrong by a radian: whoever looks there is caught.
    """
    rng = np.random.default_rng(seed)
    tiling = Tiling(frame_shape, tile=tile, overlap=overlap)
    shape = frame_shape[0] * scale, frame_shape[1] * scale
    phase_true, absorption_true = (gaussian_filter(rng.normal(size=shape), sigma) for sigma in (8, 5))
    phase_true *= phase / np.abs(phase_true).max()
    absorption_true *= 0.4 / np.abs(absorption_true).max()
    images, corrections = [], []
    for place in tiling:
        row, column, height, width = object_window(place, scale)
        window = slice(row, row + height), slice(column, column + width)
        down, across = rng.normal(0, ramps, 2) / (height / 2)
        correction = Correction(rng.uniform(-constants, constants), (down, across), rng.normal(0, brightness))
        spoiled = np.zeros((height, width))
        for axis, (start, size) in enumerate(((place.top, place.height), (place.left, place.width))):
            edges = np.moveaxis(spoiled, axis, 0)
            if start > 0:
                edges[: border * scale] = rng.uniform(-1, 1)
            if start + size < frame_shape[axis]:
                edges[(size - border) * scale :] = rng.uniform(-1, 1)
        found = phase_true[window] - correction.surface(place, scale) + spoiled + rng.normal(0, noise, (height, width))
        absorption = absorption_true[window] - correction.absorption
        images.append(TileImages(found.astype(np.float32), absorption.astype(np.float32)))
        corrections.append(correction)
    return CutField(tiling, scale, border, phase_true, absorption_true, images, corrections)


def without_plane(image: FloatArray, *, ramp: bool) -> FloatArray:
    """``image`` minus its mean, and minus its mean ramp where ``ramp``; pixels that are NaN stay NaN."""
    known = np.isfinite(image)
    y, x = np.indices(image.shape) / max(image.shape)
    terms = np.stack([np.ones(image.shape), y, x][: 3 if ramp else 1], axis=-1)
    fit = np.linalg.lstsq(terms[known], image[known], rcond=None)[0]
    return np.asarray(image - terms @ fit)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with connected(workers=2) as connection:
        yield connection


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_field(tmp_path_factory.mktemp("acquisition"))


@pytest.fixture(scope="module")
def undisturbed(configuration: Path, client: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed") / "field"
    assert not run(configuration, folder, client).failed
    return folder
