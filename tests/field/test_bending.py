"""Slow differences between tiles are shared out from their seams inwards, and nothing else is touched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fouriscope.field.bending import solve_bends
from fouriscope.field.correction import ORDER, SIDES, Correction, bent_edges, edge_surfaces
from fouriscope.field.overlaps import Overlap, TileImages, object_window
from fouriscope.field.seams import solve_seams
from fouriscope.field.tiling import Tiling
from tests.field.conftest import CutField, FloatArray, cut_field


def bent_field(size: float, *, noise: float = 0.0, seed: int = 0) -> CutField:
    """A field whose tiles have each a slow error of their own, of ``size`` rad at their sides."""
    field = cut_field((128, 128), phase=1.0, constants=1.0, noise=noise, seed=seed)
    rng = np.random.default_rng(seed)
    images = []
    for tile, image in zip(field.tiling, field.images, strict=True):
        _, _, height, width = object_window(tile, field.scale)
        y, x = (np.linspace(-1, 1, n) for n in (height, width))
        a, b, c = rng.uniform(-size, size, 3)
        error = a * y[:, None] * x + b * y[:, None] ** 2 + c * x**3
        images.append(TileImages((image.phase + error).astype(np.float32), image.absorption))
    return replace(field, images=images)


def steps(field: CutField, corrections: list[Correction]) -> FloatArray:
    """By how much neighbours differ in the middle of their overlaps."""
    found = []
    for overlap in field.overlaps():
        rest = np.angle(overlap.product).astype(np.float64)
        for index, sign in ((overlap.first, 1), (overlap.second, -1)):
            row, column, _, _ = object_window(field.tiling[index], field.scale)
            surface = corrections[index].surface(field.tiling[index], field.scale)
            rows, columns = (np.rint(overlap.rows - row).astype(int), np.rint(overlap.columns - column).astype(int))
            rest = rest + sign * surface[np.ix_(rows, columns)]
        found.append(np.angle(np.exp(1j * rest)).ravel())
    return np.concatenate(found)


def solved(field: CutField) -> tuple[list[Correction], list[Correction]]:
    overlaps = field.overlaps()
    flat = solve_seams(field.tiling, field.scale, overlaps, ramps=False)
    return flat, solve_bends(field.tiling, field.scale, overlaps, flat)


def test_neighbours_that_differ_slowly_meet() -> None:
    field = bent_field(0.4)
    flat, bent = solved(field)
    before, after = (np.sqrt(np.mean(steps(field, corrections) ** 2)) for corrections in (flat, bent))
    assert after < 0.25 * before


def test_middles_of_tiles_and_constants_stay() -> None:
    field = bent_field(0.4)
    flat, bent = solved(field)
    for tile, before, after in zip(field.tiling, flat, bent, strict=True):
        assert (after.phase, after.ramp, after.absorption) == (before.phase, before.ramp, before.absorption)
        surface = after.surface(tile, field.scale) - before.surface(tile, field.scale)
        rows, columns = surface.shape
        assert np.abs(surface[rows // 2 - 2 : rows // 2 + 2, columns // 2 - 2 : columns // 2 + 2]).max() < 0.05


def test_what_is_added_is_no_more_than_neighbours_differ_by() -> None:
    field = bent_field(0.4)
    flat, bent = solved(field)
    most = np.abs(steps(field, flat)).max()
    surfaces = [
        b.surface(t, field.scale) - f.surface(t, field.scale) for t, f, b in zip(field.tiling, flat, bent, strict=True)
    ]
    assert np.abs(surfaces).max() < 1.5 * most


@pytest.mark.parametrize("noise", [0.02, 0.3])
def test_noise_bends_nothing(noise: float) -> None:
    field = cut_field((128, 128), phase=1.0, noise=noise)
    flat, bent = solved(field)
    lifted = max(np.abs(np.array(b.bend)).max(initial=0.0) for b in bent)
    assert lifted < noise / 2
    assert [b.phase for b in bent] == [f.phase for f in flat]


def test_nothing_to_compare_is_nothing_to_bend() -> None:
    field = cut_field((90, 76))
    corrections = [Correction(float(tile.index)) for tile in field.tiling]
    assert solve_bends(field.tiling, field.scale, [], corrections) == corrections


def test_overlaps_that_agree_exactly_or_have_one_cell_are_no_trouble() -> None:
    tiling = Tiling((28, 28), tile=16, overlap=0.25)
    for shape in ((1, 1), (3, 3)):
        rows, columns = np.linspace(13, 15, shape[0]), np.linspace(13, 15, shape[1])
        overlaps = [
            Overlap(a, b, rows, columns, np.full(shape, np.exp(0.2j), np.complex64), 0.2, 0.0, 0.0)
            for a, b in ((0, 1), (0, 2), (1, 3), (2, 3))
        ]
        found = solve_bends(tiling, 1, overlaps, [Correction()] * 4)
        assert max(np.abs(c.bend).max() for c in found if c.bend) < 2


def test_rims_are_one_at_their_side_and_nothing_beyond_the_middle() -> None:
    y = x = np.linspace(-1, 1, 21)
    bend = tuple(np.random.default_rng(0).normal(size=SIDES * (ORDER + 1)))
    np.testing.assert_allclose(bent_edges(bend, y, x), edge_surfaces(y, x) @ np.array(bend), atol=1e-12)
    surfaces = edge_surfaces(y, x).reshape(21, 21, SIDES, ORDER + 1)
    for side in range(SIDES):
        for polynomial in range(ORDER + 1):
            surface = surfaces[:, :, side, polynomial]
            surface = surface if side < 2 else surface.T  # each side turned to be the top one
            surface = surface if side % 2 == 0 else surface[::-1]
            assert np.all(surface[10:] == 0)
            np.testing.assert_allclose(surface[0], np.polynomial.legendre.Legendre.basis(polynomial)(x))
