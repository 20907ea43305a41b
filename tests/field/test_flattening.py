"""The background of a whole field: one surface for all blocks and all levels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.field.pyramid import Pyramid
from fouriscope.field.stitch import PHASE_FLAT, field_background, flatten_block

SHAPE = (1501, 1100)


def bowl(shape: tuple[int, int]) -> NDArray[np.float64]:
    """Of one field, cut into pixels as ``shape`` says."""
    y, x = ((np.arange(size) + 0.5) / size for size in shape)
    return np.asarray(3 + 4 * x[None, :] - 2 * y[:, None] + 1.5 * x[None, :] ** 2 - 2 * x[None, :] * y[:, None])


def cell(shape: tuple[int, int]) -> NDArray[np.float64]:
    y, x = ((np.arange(size) + 0.5) / size for size in shape)
    return np.asarray(np.exp(-((x[None, :] - 0.4) ** 2 + (y[:, None] - 0.3) ** 2) / 0.01))


def written(path: Path, phase: NDArray[np.float64], *, amplitude: bool) -> Pyramid:
    channels = ("phase", "amplitude", PHASE_FLAT) if amplitude else ("phase", PHASE_FLAT)
    pyramid = Pyramid(path / "field.ome.zarr", channels, SHAPE, (1e-7, 1e-7), "field", (PHASE_FLAT,))
    pyramid.create()
    for level in range(len(pyramid.shapes)):
        for block in pyramid.blocks(level):
            if level:
                pyramid.coarsen_block(level, block)
            else:
                part = phase[block.slices]
                pyramid.write_block(
                    0, block, {"phase": part} | ({"amplitude": np.ones_like(part)} if amplitude else {})
                )
    return pyramid


@pytest.mark.parametrize("amplitude", [False, True])
def test_every_level_is_flat_but_for_the_sample(tmp_path: Path, amplitude: bool) -> None:
    phase = bowl(SHAPE) + cell(SHAPE)
    phase[:40, :50] = np.nan  # a tile that failed
    pyramid = written(tmp_path, phase, amplitude=amplitude)
    surface = field_background(pyramid, 2)
    for level, shape in enumerate(pyramid.shapes):
        for block in pyramid.blocks(level):
            flatten_block(pyramid, level, block, surface)
        images = dict(zip(pyramid.channels, pyramid.read(level, slice(None), slice(None)), strict=True))
        known = np.isfinite(images["phase"])
        np.testing.assert_array_equal(np.isfinite(images[PHASE_FLAT]), known)
        np.testing.assert_allclose(images[PHASE_FLAT][known], cell(shape)[known], atol=0.02)
    pyramid.finish()


def test_lower_orders_leave_more(tmp_path: Path) -> None:
    pyramid = written(tmp_path, bowl(SHAPE), amplitude=False)
    left = []
    for order in (0, 1, 2):
        surface = field_background(pyramid, order)
        level = len(pyramid.shapes) - 1
        for block in pyramid.blocks(level):
            flatten_block(pyramid, level, block, surface)
        left.append(float(np.ptp(pyramid.read(level, slice(None), slice(None))[1])))
    assert left[0] > 3 > left[1] > 0.1 > 0.001 > left[2]
