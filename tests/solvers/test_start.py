"""Starting points: what the linear deconvolution knows, and what it cannot know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fouriscope as fs
from fouriscope.acquisition import Acquisition, ArrayFrames
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray, automatic_margin
from fouriscope.solvers import bright_field_deconvolution, starting_point
from tests.conftest import ABERRATED, LEDS, OPTICS
from tests.solvers.problems import make_solver, noisy, phase_problem, shapes


def band_limited(model: ForwardModel, seed: int, *, lowest: float, highest: float) -> NDArray[np.float64]:
    """A random image with spatial frequencies in ``lowest`` … ``highest`` (NA) only, of standard deviation 1."""
    rows, columns = model.object_shape
    na_y, na_x = (
        np.fft.fftfreq(size, pixel) * model.optics.wavelength
        for size, pixel in zip((rows, columns), model.object_pixel, strict=True)
    )
    na = np.hypot(na_y[:, None], na_x[None, :])
    white = np.fft.fft2(np.random.default_rng(seed).standard_normal(model.object_shape))
    image = np.fft.ifft2(np.where((na > lowest) & (na < highest), white, 0)).real
    return np.asarray(image / image.std())


def correlation(one: NDArray[Any], other: NDArray[Any]) -> float:
    return float(np.corrcoef(one.ravel(), other.ravel())[0, 1])


@pytest.mark.parametrize("frame", [(32, 32), (24, 33), (31, 20)])
@pytest.mark.parametrize("pupil", [None, ABERRATED])
def test_recovers_a_weak_phase_from_bright_field_frames(frame: tuple[int, int], pupil: Any) -> None:
    model = ForwardModel(OPTICS, LEDS, frame, pupil=pupil, dtype=np.float64)
    truth = 0.02 * band_limited(model, 0, lowest=0.06, highest=0.18)
    found = bright_field_deconvolution(noisy(model, truth, sigma=1e-4))
    assert found.shape == model.x_shape
    assert correlation(found, truth) > 0.97
    assert np.std(found) == pytest.approx(np.std(truth), rel=0.1)


@pytest.mark.parametrize("pupil", [None, ABERRATED])
def test_recovers_phase_and_absorption_apart(pupil: Any) -> None:
    model = ForwardModel(OPTICS, LEDS, (24, 33), object="complex", pupil=pupil, dtype=np.float64)
    truth = np.stack([0.02 * band_limited(model, seed, lowest=0.06, highest=0.18) for seed in (0, 1)])
    phase, absorption = bright_field_deconvolution(noisy(model, truth, sigma=1e-4))
    assert correlation(phase, truth[0]) > 0.95
    assert correlation(absorption, truth[1]) > 0.95
    assert abs(correlation(phase, truth[1])) < 0.2
    assert abs(correlation(absorption, truth[0])) < 0.2


def test_stands_a_margin_and_other_brightness() -> None:
    model = ForwardModel(OPTICS, LEDS, (32, 32), margin=4, dtype=np.float64)
    truth = 0.02 * band_limited(model, 0, lowest=0.06, highest=0.18)
    frames = 7.5 * model.intensity(truth)
    found = bright_field_deconvolution(DataFidelity(model, frames))
    window = model.geometry.object_window
    assert correlation(found[window], truth[window]) > 0.85


def test_left_out_frames_do_not_matter() -> None:
    model = ForwardModel(OPTICS, LEDS, (32, 32), dtype=np.float64)
    truth = 0.02 * band_limited(model, 0, lowest=0.06, highest=0.18)
    frames = model.intensity(truth)
    bright = np.flatnonzero(model.geometry.bright_field)
    weights = np.ones(len(model))
    weights[bright[::5]] = 0
    frames[bright[::5]] = np.nan
    found = bright_field_deconvolution(DataFidelity(model, frames, weights=weights))
    assert correlation(found, truth) > 0.95


def test_is_far_better_than_nothing_for_a_solver() -> None:
    model = ForwardModel(OPTICS, LEDS, (32, 32), dtype=np.float64)
    truth = 0.05 * band_limited(model, 0, lowest=0.06, highest=0.18)
    fidelity = noisy(model, truth, sigma=1e-3)
    flat, linear = (fidelity.value(starting_point(start, fidelity)) for start in ("flat", "linear"))
    assert linear < 0.1 * flat


def test_without_bright_field_frames_it_is_flat() -> None:
    fidelity = phase_problem()
    dark = DataFidelity(fidelity.model, fidelity.frames, weights=(~fidelity.model.geometry.bright_field).astype(float))
    np.testing.assert_array_equal(bright_field_deconvolution(dark), 0)


def test_flat_is_zero() -> None:
    fidelity = phase_problem(dtype=np.float32)
    flat = starting_point("flat", fidelity)
    assert flat.dtype == np.float32
    assert flat.shape == fidelity.model.x_shape
    assert not flat.any()


def test_an_array_is_copied() -> None:
    fidelity = phase_problem()
    mine = np.random.default_rng(0).standard_normal(fidelity.model.x_shape)
    start = starting_point(mine, fidelity)
    np.testing.assert_array_equal(start, mine)
    assert not np.shares_memory(start, mine)
    np.testing.assert_array_equal(make_solver(fidelity, start=mine).x, mine)


def test_wrong_starts_are_refused() -> None:
    fidelity = phase_problem()
    with pytest.raises(InvalidInputError, match=r"has shape \(72, 72\), got \(3, 3\)"):
        starting_point(np.zeros((3, 3)), fidelity)
    with pytest.raises(InvalidInputError, match="NaN or infinite"):
        starting_point(np.full(fidelity.model.x_shape, np.nan), fidelity)
    with pytest.raises(InvalidInputError, match="start must be 'flat', 'linear', 'epry' or an array"):
        starting_point("random", fidelity)  # type: ignore[arg-type]


def bump(model: ForwardModel, height: float) -> NDArray[Any]:
    """A smooth hill of phase, ``height`` radians high, in a sample that absorbs."""
    y, x = np.indices(model.object_shape) / np.array(model.object_shape)[:, None, None] - 0.5
    hill = np.exp(-(y**2 + x**2) / 0.03)
    return np.stack([height * hill, 0.3 * np.exp(-((y - 0.2) ** 2 + (x + 0.1) ** 2) / 0.02)]).astype(model.dtype)


def test_epry_starts_with_an_unwrapped_phase() -> None:
    """A hill of 9 rad wraps one and a half times; from a flat start no gradient climbs it."""
    model = ForwardModel(OPTICS, LEDArray.square(9, pitch=4e-3, height=70e-3), (32, 32), object="complex")
    truth = bump(model, 9.0)
    fidelity = DataFidelity(model, model.intensity(truth), loss="amplitude")
    x = starting_point("epry", fidelity)
    assert all(np.abs(np.diff(x[0], axis=axis)).max() < np.pi for axis in range(2)), "no jumps"
    difference = x[0] - truth[0]
    assert np.abs(difference - np.median(difference)).max() < 1.5, "the whole hill, not its remainder"


def test_the_seed_orders_the_sweeps_of_epry() -> None:
    model = ForwardModel(OPTICS, LEDArray.square(9, pitch=4e-3, height=70e-3), (32, 32), object="wave")
    fidelity = DataFidelity(model, model.intensity(bump(model, 2.0)), loss="amplitude")
    first, again, other = (starting_point("epry", fidelity, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_prior_keeps_a_phase_beyond_a_turn() -> None:
    model = ForwardModel(OPTICS, LEDArray.square(9, pitch=4e-3, height=70e-3), (32, 32), object="complex")
    truth = bump(model, 9.0)
    data = Acquisition(OPTICS, model.illumination, ArrayFrames(model.intensity(truth)), periodic=True)
    result = fs.reconstruct(
        data,
        object="complex",
        loss="amplitude",
        prior="tv",
        start="epry",
        method=fs.settings.PnP(batch=20, acceleration=False),
        iterations=40,
    )
    difference = result.phase - truth[0]
    assert np.std(difference) < 0.3
    np.testing.assert_allclose(result.unwrapped_phase, result.phase, atol=1e-5)


def test_epry_starts_from_the_frames_of_the_sampler_alone() -> None:
    """A fixed subset must not see the others through its start."""
    fidelity = phase_problem()
    frames = np.stack([fidelity.frames.frame(led) for led in range(len(fidelity))])
    others = frames.copy()
    others[20:] = 7.0
    subset = np.arange(20)
    plain, changed = (starting_point("epry", DataFidelity(fidelity.model, stack), subset) for stack in (frames, others))
    np.testing.assert_array_equal(plain, changed)
    assert np.any(plain)


def test_frames_of_a_microscope_get_a_margin_and_simulations_none() -> None:
    model = ForwardModel(OPTICS, LEDArray.square(5, pitch=4e-3, height=70e-3), (32, 32))
    simulated = fs.simulate(model, shapes(model.object_shape, 0.3), seed=0)
    measured = Acquisition(OPTICS, model.illumination, simulated.frames)
    margins = [
        fs.reconstruct(data, prior=None, batch=None, align=(), iterations=1).geometry.margin  # type: ignore[union-attr]
        for data in (simulated, measured)
    ]
    assert margins == [0, automatic_margin((32, 32))]
