"""Corrections of all tiles: the truth comes back, contradictions are shared, and what nobody knows stays zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriscope.errors import InvalidInputError
from fouriscope.field.correction import Correction
from fouriscope.field.overlaps import Overlap, TileImages
from fouriscope.field.seams import solve_seams
from fouriscope.field.tiling import Tiling
from tests.field.conftest import CutField, FloatArray, cut_field, without_plane

SQUARE = Tiling((28, 28), tile=16, overlap=0.25)  # 2 × 2 tiles


def edge(first: int, second: int, difference: float, *, absorption: float = 0.0, weight: float = 10.0) -> Overlap:
    """φ_first − φ_second = ``difference`` everywhere."""
    product = np.full((3, 3), weight * np.exp(1j * difference)).astype(np.complex64)
    centres = np.array([13.0, 14.0, 15.0])
    return Overlap(first, second, centres, centres, product, difference, absorption, 0.0)


def errors(field: CutField, found: list[Correction], *, ramps: bool) -> FloatArray:
    """What corrections lack, as planes over the field, without what all tiles may share."""
    lacks = []
    for tile, got, true in zip(field.tiling, found, field.corrections, strict=True):
        ramp = got.ramp[0] - true.ramp[0], got.ramp[1] - true.ramp[1]
        lacks.append(Correction(got.phase - true.phase, ramp).surface(tile, field.scale))
    canvas = np.full(field.phase.shape, np.nan)
    for tile, lack in zip(field.tiling, lacks, strict=True):
        rows, columns = (
            slice(s * field.scale, (s + n) * field.scale) for s, n in zip(tile.window[:2], tile.window[2:], strict=True)
        )
        canvas[rows, columns] = lack
    return without_plane(canvas, ramp=ramps)


@pytest.mark.parametrize("ramps", [0.0, 0.5, 3.0])
def test_without_noise_the_truth_comes_back(ramps: float) -> None:
    """Constants over a whole turn, ramps of up to a few turns a tile, and phases beyond ±π, to single precision."""
    field = cut_field(ramps=ramps)
    found = solve_seams(field.tiling, field.scale, field.overlaps(), ramps=ramps > 0)
    assert np.abs(errors(field, found, ramps=ramps > 0)).max() < 1e-5
    phase, absorption = field.stitched(found)
    assert np.abs(without_plane(phase - field.phase, ramp=ramps > 0)).max() < 1e-5
    assert np.abs(without_plane(absorption - field.absorption, ramp=False)).max() < 1e-5


@settings(deadline=None, max_examples=15)
@given(
    frame=st.tuples(st.integers(32, 110), st.integers(32, 110)), overlap=st.floats(0.2, 0.5), seed=st.integers(0, 99)
)
def test_the_truth_comes_back_from_any_tiling(frame: tuple[int, int], overlap: float, seed: int) -> None:
    field = cut_field(frame, overlap=overlap, scale=1, border=1, seed=seed)
    phase, _ = field.stitched(solve_seams(field.tiling, 1, field.overlaps(), ramps=False))
    assert np.abs(without_plane(phase - field.phase, ramp=False)).max() < 1e-5


@pytest.mark.parametrize("ramps", [0.0, 0.5])
def test_seams_do_not_stand_out_of_the_noise(ramps: float) -> None:
    """Corrected neighbours differ across their overlap by no more than a few standard errors of what noise allows."""
    noise = 0.3
    field = cut_field(ramps=ramps, noise=noise)
    found = solve_seams(field.tiling, field.scale, field.overlaps(), ramps=ramps > 0)
    phase, _ = field.stitched(found)
    error = without_plane(phase - field.phase, ramp=ramps > 0)
    assert error.std() < noise
    # The noise hides single jumps; the mean along a line that a tile's edge follows would show a step of its own.
    jumps = np.abs(np.diff(error, axis=1).mean(axis=0))
    places = np.array([left * field.scale for left in field.tiling.lefts[1:]])
    at_seams = np.concatenate([jumps[places + shift] for shift in range(-2, 3)])
    others = np.delete(jumps, np.concatenate([places + shift for shift in range(-2, 3)]))
    assert at_seams.max() < 1.5 * others.max()
    untouched = [Correction()] * len(field.tiling)
    assert np.std(without_plane(field.stitched(untouched)[0] - field.phase, ramp=ramps > 0)) > 3 * error.std()


def test_noise_of_constants_is_that_of_a_mean_over_the_overlap() -> None:
    field = cut_field(noise=0.3, brightness=0.0)
    found = solve_seams(field.tiling, field.scale, field.overlaps(), ramps=False)
    wrong = np.array([got.phase - true.phase for got, true in zip(found, field.corrections, strict=True)])
    # Trusted overlaps have at least 56 × 8 pixels, so one of them knows a constant to 0.3·√2/√448 = 0.02 rad.
    assert 0.001 < (wrong - wrong.mean()).std() < 0.04


def test_three_tiles_by_hand() -> None:
    """φ_0 − φ_1 = 1 and φ_1 − φ_2 = 2: c_1 = c_0 + 1, c_2 = c_1 + 2, and their mean is 0; absorptions likewise."""
    row = Tiling((16, 40), tile=16, overlap=0.25)
    found = solve_seams(row, 1, [edge(0, 1, 1.0, absorption=0.3), edge(1, 2, 2.0, absorption=-0.6)], ramps=False)
    assert [c.phase for c in found] == pytest.approx([-4 / 3, -1 / 3, 5 / 3], abs=1e-6)
    assert [c.absorption for c in found] == pytest.approx([0.0, 0.3, -0.3], abs=1e-6)
    assert [c.ramp for c in found] == [(0.0, 0.0)] * 3


@settings(deadline=None)
@given(st.floats(-2.5, 2.5))
def test_a_contradiction_around_a_loop_is_shared_evenly(error: float) -> None:
    """Four overlaps that sum to ``error`` instead of 0: each is left with a quarter of it."""
    loop = [edge(0, 1, 0.0), edge(1, 3, 0.0), edge(2, 3, 0.0), edge(0, 2, error)]
    c = [correction.phase for correction in solve_seams(SQUARE, 1, loop, ramps=False)]
    left = [c[0] - c[1], c[1] - c[3], c[3] - c[2], c[2] - c[0] - error]
    assert left == pytest.approx([-error / 4] * 4, abs=1e-5)
    assert sum(c) == pytest.approx(0, abs=1e-9)


def test_a_strong_overlap_yields_less_than_a_weak_one() -> None:
    """With a closure error e, least squares leaves residuals in inverse proportion to weights (for small e)."""
    weak = 0.1
    loop = [edge(0, 1, 0.0), edge(1, 3, 0.0), edge(2, 3, 0.0), edge(0, 2, 0.01, weight=10 * weak)]
    c = [correction.phase for correction in solve_seams(SQUARE, 1, loop, ramps=False)]
    assert c[1] - c[0] == pytest.approx(0.01 / (3 + 1 / weak), rel=1e-3)
    assert c[0] - c[2] + 0.01 == pytest.approx(0.01 / weak / (3 + 1 / weak), rel=1e-3)


def test_cells_that_contradict_the_rest_hardly_move_a_seam() -> None:
    """A tenth of the cells is off by 2.5 rad: plain least squares would move by 0.25."""
    good = edge(0, 1, 1.0)
    product = np.tile(good.product, (4, 4))[:10, :10].copy()
    product[0] *= np.exp(2.5j)
    axis = np.arange(10.0)
    bad = Overlap(0, 1, axis, axis, product, 1.0, 0.0, 0.0)
    c = solve_seams(SQUARE, 1, [bad], ramps=False)
    # Stationary where 9 sin(δ) = sin(2.5 − δ).
    assert 0 < c[1].phase - c[0].phase - 1.0 < 0.08


def test_whole_turns_follow_what_tiles_found() -> None:
    field = cut_field(constants=20.0, phase=9.0)
    phase, _ = field.stitched(solve_seams(field.tiling, field.scale, field.overlaps(), ramps=False))
    assert np.abs(without_plane(phase - field.phase, ramp=False)).max() < 2e-5
    with_turns = [c.phase for c in solve_seams(SQUARE, 1, [edge(0, 1, 13.0)], ramps=False)]
    assert with_turns == pytest.approx([-6.5, 6.5, 0, 0], abs=1e-6)


@pytest.mark.parametrize("ramps", [False, True])
def test_corrections_have_no_mean(ramps: bool) -> None:
    field = cut_field(ramps=0.5 * ramps, noise=0.1)
    found = solve_seams(field.tiling, field.scale, field.overlaps(), ramps=ramps)
    assert np.mean([c.phase for c in found]) == pytest.approx(0, abs=1e-9)
    assert np.mean([c.ramp for c in found], axis=0) == pytest.approx(0, abs=1e-9)
    assert np.mean([c.absorption for c in found]) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("ramps", [False, True])
def test_a_missing_tile_leaves_a_hole_and_nothing_else(ramps: bool) -> None:
    field = cut_field(ramps=0.5 * ramps)
    hole = (4,)
    found = solve_seams(field.tiling, field.scale, field.overlaps(hole), ramps=ramps)
    assert found[4] == Correction()
    phase, _ = field.stitched(found, hole)
    assert 0 < np.isnan(phase).mean() < 0.2
    assert np.nanmax(np.abs(without_plane(phase - field.phase, ramp=ramps))) < 1e-5


def test_islands_have_a_constant_each() -> None:
    field = cut_field((32, 130))
    assert field.tiling.lattice == (1, 6)
    missing = (2,)
    found = solve_seams(field.tiling, field.scale, field.overlaps(missing), ramps=False)
    for island in ([0, 1], [3, 4, 5]):
        wrong = [found[k].phase - field.corrections[k].phase for k in island]
        assert np.ptp(wrong) < 1e-5
        assert np.mean([found[k].phase for k in island]) == pytest.approx(0, abs=1e-9)
    assert found[2] == Correction()


def test_a_single_row_with_ramps() -> None:
    field = cut_field((32, 200), ramps=0.5)
    found = solve_seams(field.tiling, field.scale, field.overlaps(), ramps=True)
    assert np.abs(errors(field, found, ramps=True)).max() < 1e-4


def test_one_tile_stays_as_it_is() -> None:
    assert solve_seams(Tiling((20, 20), tile=32), 2, [], ramps=True) == [Correction()]


def test_overlaps_that_know_nothing_join_nothing() -> None:
    found = solve_seams(SQUARE, 1, [edge(0, 1, 1.0), edge(0, 2, 1.0, weight=0.0)], ramps=True)
    assert found[2] == found[3] == Correction()
    assert found[1].phase - found[0].phase == pytest.approx(1.0, abs=1e-6)


def test_a_ramp_that_no_overlap_shows_stays_zero() -> None:
    """One column of cells knows nothing of a ramp across it."""
    strip = Overlap(0, 1, np.arange(4.0), np.array([14.0]), np.ones((4, 1), np.complex64) * 1j, 1.5, 0.0, 0.0)
    found = solve_seams(Tiling((16, 28), tile=16, overlap=0.25), 1, [strip], ramps=True)
    assert found[0].ramp == pytest.approx((0, 0), abs=1e-6)
    assert found[1].phase - found[0].phase == pytest.approx(np.pi / 2, abs=1e-6)


def test_free_ramps_do_not_run_away_where_there_are_none() -> None:
    """In noise, ramps that nobody needs bend the field by less than a radian over ten tiles."""
    field = cut_field((32, 260), noise=0.3)
    found = solve_seams(field.tiling, field.scale, field.overlaps(), ramps=True)
    assert np.abs(errors(field, found, ramps=True)).max() < 1.0


@pytest.mark.parametrize("ramps", [False, True])
def test_the_order_of_overlaps_does_not_matter(ramps: bool) -> None:
    field = cut_field(ramps=0.5, noise=0.3)
    overlaps = field.overlaps()
    expected = solve_seams(field.tiling, field.scale, overlaps, ramps=ramps)
    shuffled = [overlaps[k] for k in np.random.default_rng(3).permutation(len(overlaps))]
    assert solve_seams(field.tiling, field.scale, shuffled, ramps=ramps) == expected


@pytest.mark.parametrize("ramps", [False, True])
def test_thousands_of_tiles(ramps: bool) -> None:
    """2,500 tiles with random corrections, as their overlaps would be without noise."""
    tiling, rng = Tiling((1208, 1208), tile=32, overlap=0.25), np.random.default_rng(0)
    assert len(tiling) == 2500
    truth = [
        Correction(p, (y, x)) for p, y, x in rng.uniform(-1, 1, (2500, 3)) * (np.pi, 0.05, 0.05) * (1, ramps, ramps)
    ]
    overlaps = []
    for a, b in tiling.pairs():
        rows, columns = (
            np.linspace(max(low, other) + 1, min(low, other) + 30, 4)
            for low, other in ((a.top, b.top), (a.left, b.left))
        )
        planes = [
            truth[t.index].phase
            + truth[t.index].ramp[0] * (rows[:, None] - t.top - 15.5)
            + truth[t.index].ramp[1] * (columns - t.left - 15.5)
            for t in (a, b)
        ]
        difference = planes[1] - planes[0]
        product = np.exp(1j * difference).astype(np.complex64)
        overlaps.append(Overlap(a.index, b.index, rows, columns, product, float(np.median(difference)), 0.0, 0.0))
    found = solve_seams(tiling, 1, overlaps, ramps=ramps)
    lacking = np.array([(f.phase - t.phase, *np.subtract(f.ramp, t.ramp)) for f, t in zip(found, truth, strict=True)])
    centres = np.array([(t.top, t.left) for t in tiling])
    lacking[:, 0] -= centres @ lacking[:, 1:].mean(axis=0)
    assert np.ptp(lacking, axis=0).max() < 1e-3


@pytest.mark.parametrize(
    ("overlaps", "message"),
    [
        ([edge(0, 4, 1.0)], "two of the tiles 0 to 3, got 0 and 4"),
        ([edge(1, 1, 1.0)], "got 1 and 1"),
        ([edge(0, 1, 1.0), edge(1, 0, 1.0)], "compared twice"),
    ],
)
def test_overlaps_of_other_tiles_are_refused(overlaps: list[Overlap], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        solve_seams(SQUARE, 1, overlaps, ramps=False)


def test_phase_objects_need_no_absorption() -> None:
    field = cut_field(brightness=0.0)
    phases = CutField(
        field.tiling,
        2,
        2,
        field.phase,
        field.absorption,
        [TileImages(i.phase) for i in field.images],
        field.corrections,
    )
    found = solve_seams(field.tiling, 2, phases.overlaps(), ramps=False)
    assert np.abs(errors(field, found, ramps=False)).max() < 1e-5
    assert {c.absorption for c in found} == {0.0}
