"""Wrapped and unwrapped phases: the same field, whole turns apart, and the truth where it was wrapped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.run import Result
from fouriscope.run.phase_background import background
from fouriscope.run.phases import (
    flattened,
    is_continuous,
    nearest_turn,
    turns_to_unwrap,
    unwrap,
    wrap,
)
from fouriscope.solvers import History

TURN = 2 * np.pi


def bump(height: float = 15.0, shape: tuple[int, int] = (90, 120)) -> NDArray[np.float64]:
    y, x = (np.linspace(-1, 1, size) for size in shape)
    return np.asarray(height * np.exp(-4 * (y[:, None] ** 2 + x[None, :] ** 2)))


def ramp(shape: tuple[int, int] = (60, 80)) -> NDArray[np.float64]:
    y, x = np.indices(shape)
    return np.asarray(0.3 * x - 0.2 * y)


def without_constant(phase: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(phase - np.median(phase))


@given(st.floats(-50, 50), st.sampled_from([np.float32, np.float64]))
def test_wrapped_is_in_range_and_whole_turns_away(value: float, dtype: type) -> None:
    phase: NDArray[Any] = np.array([value], dtype)
    wrapped = wrap(phase)
    half_turn = phase.dtype.type(np.pi)
    assert wrapped.dtype == phase.dtype
    assert -half_turn < wrapped[0] <= half_turn
    turns = (float(phase[0]) - float(wrapped[0])) / TURN
    assert turns == pytest.approx(round(turns), abs=2e-6)
    if -half_turn < phase[0] <= half_turn:
        assert wrapped[0] == phase[0]
    np.testing.assert_allclose(np.exp(1j * wrapped), np.exp(1j * phase.astype(np.float64)), atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_angle_of_minus_one_stays(dtype: type) -> None:
    angle = np.angle(np.array([-1.0], np.result_type(dtype, np.complex64)))
    assert wrap(angle) == angle
    assert wrap(-angle) > 0


@pytest.mark.parametrize("truth", [bump(), ramp(), -bump(40.0)], ids=["bump", "ramp", "pit"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_was_wrapped_comes_back(truth: NDArray[np.float64], dtype: type) -> None:
    wrapped = wrap(truth.astype(dtype))
    assert np.ptp(truth) > TURN
    assert not is_continuous(wrapped)
    np.testing.assert_allclose(without_constant(unwrap(wrapped)), without_constant(truth), atol=2e-5)


def test_unwrapped_is_whole_turns_from_what_was_found_and_most_pixels_stay() -> None:
    """On the flat ground around a bump nothing needs to be added, and nothing is: not a bit changes."""
    found = wrap(bump()) + TURN  # a solver may be a turn away, which no intensity shows
    unwrapped = unwrap(found)
    turns = (unwrapped - found) / TURN
    np.testing.assert_allclose(turns, np.rint(turns), atol=1e-12)
    numbers, counts = np.unique(np.rint(turns), return_counts=True)
    assert numbers[counts.argmax()] == 0
    ground = bump() < np.pi
    np.testing.assert_array_equal(unwrapped[ground], found[ground])


def test_jumps_that_a_solver_left_are_mended() -> None:
    found = bump(2.0)
    found[:, 60:] += TURN  # the same field
    np.testing.assert_allclose(without_constant(unwrap(found)), without_constant(bump(2.0)), atol=1e-12)


@pytest.mark.parametrize("phase", [bump(2.0), ramp(), bump(15.0)])
def test_the_way_without_unwrapping_equals_the_way_with_it(phase: NDArray[np.float64]) -> None:
    assert is_continuous(phase)
    np.testing.assert_array_equal(unwrap(phase), phase)
    np.testing.assert_array_equal(turns_to_unwrap(phase), 0)


def test_the_same_phase_is_unwrapped_the_same_way_every_time() -> None:
    """A vortex cannot be unwrapped: where its jumps stay is a choice, and it is always the same one."""
    y, x = np.indices((50, 50)) - 24.5
    vortex = np.arctan2(y, x)
    np.testing.assert_array_equal(unwrap(vortex), unwrap(vortex))


def test_pixels_that_are_not_finite_stay_and_spoil_nothing() -> None:
    wrapped = wrap(bump())
    wrapped[3, 4], wrapped[50, 60] = np.nan, np.inf
    unwrapped = unwrap(wrapped)
    known = np.isfinite(wrapped)
    np.testing.assert_array_equal(np.isfinite(unwrapped), known)
    np.testing.assert_allclose((unwrapped - bump())[known], (unwrapped - bump())[0, 0], atol=1e-12)


def test_the_nearest_turn_is_within_half_a_turn() -> None:
    rng = np.random.default_rng(0)
    phase, guide = rng.uniform(-np.pi, np.pi, 500), rng.uniform(-30, 30, 500)
    near = nearest_turn(phase, guide)
    assert (np.abs(near - guide) <= np.pi + 1e-12).all()
    np.testing.assert_allclose(np.exp(1j * near), np.exp(1j * phase), atol=1e-12)


def slow(shape: tuple[int, int]) -> NDArray[np.float64]:
    """A ramp of some turns, curvature and astigmatism."""
    y, x = (np.linspace(-1, 1, size) for size in shape)
    y, x = y[:, None], x[None, :]
    return np.asarray(0.4 + 5 * x - 3 * y + 2 * x * y + 1.5 * x**2 - 2.5 * y**2)


def cells(shape: tuple[int, int], share: float, seed: int = 0) -> NDArray[np.float64]:
    """Lenses of 2 rad, all of them up, that cover ``share`` of the field, at random."""
    rng = np.random.default_rng(seed)
    y, x = np.indices(shape)
    image = np.zeros(shape)
    while (image > 0).mean() < share:
        distance = np.hypot(y - rng.uniform(0, shape[0]), x - rng.uniform(0, shape[1])) / (0.08 * shape[1])
        image = np.maximum(image, 2 * np.sqrt(np.maximum(1 - distance**2, 0)))
    return image


@pytest.mark.parametrize("shape", [(150, 180), (400, 600)], ids=["all pixels", "some pixels"])
@pytest.mark.parametrize("share", [0.0, 0.15, 0.35])
def test_a_polynomial_under_cells_is_flattened_to_the_cells(shape: tuple[int, int], share: float) -> None:
    noise = np.random.default_rng(1).normal(0, 0.05, shape)
    truth = cells(shape, share)
    flat = flattened(wrap(truth + slow(shape) + noise))
    np.testing.assert_allclose(flat - noise, truth, atol=0.02)


def test_what_is_dark_or_not_finite_has_no_say() -> None:
    """Half of the field is dark, and has a phase of its own."""
    phase, amplitude = slow((60, 80)), np.ones((60, 80))
    phase[:, :45] = np.linspace(0, 3, 45)
    amplitude[:, :45] = 0
    phase[50, 70] = np.nan
    known = np.isfinite(phase) & (amplitude > 0)
    np.testing.assert_allclose((phase - background(phase, amplitude))[known], 0, atol=1e-9)
    assert np.abs((phase - background(phase))[known]).max() > 0.1


@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (2, 3)])
def test_small_images_are_flattened_too(shape: tuple[int, int]) -> None:
    np.testing.assert_allclose(flattened(np.full(shape, 0.7)), 0, atol=1e-9)
    np.testing.assert_array_equal(background(np.full(shape, np.nan)), 0)


def test_the_order_says_what_is_taken_off() -> None:
    phase = slow((60, 80))
    assert np.abs(phase - background(phase, order=1)).max() > 0.5
    np.testing.assert_allclose(background(phase, order=3), phase, atol=1e-9)
    assert np.ptp(background(phase, order=0)) == 0
    with pytest.raises(InvalidInputError, match="at least 0, got -1"):
        background(phase, order=-1)


def test_a_result_has_all_three_phases() -> None:
    found = wrap(bump().astype(np.float32)) + np.float32(TURN)
    result = Result(found, None, History(), (1e-6, 1e-6), "", {}, {})
    for phase in (result.phase, result.wrapped_phase, result.unwrapped_phase):
        np.testing.assert_allclose(np.exp(1j * phase), result.transmittance, atol=1e-5)
    assert np.abs(result.wrapped_phase).max() <= np.float32(np.pi)
    np.testing.assert_allclose(without_constant(result.unwrapped_phase), without_constant(bump()), atol=1e-5)
