"""EPRY: the compiled sweep against a plain one, what it recovers, what it promises, and what it refuses."""

from __future__ import annotations

import json
import math
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

from fouriscope import metrics
from fouriscope.errors import DivergenceError, InvalidInputError
from fouriscope.fidelity import AllLEDs, DataFidelity, EpochSampler, StratifiedSampler, pipeline
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import AMPLITUDE_FLOOR
from fouriscope.optics import Pupil
from fouriscope.solvers import EPRY, History, Iterations
from fouriscope.solvers._epry_arrays import DAMPING
from fouriscope.solvers._epry_options import visiting_order
from tests.conftest import ABERRATED, CASES, LEDS, OPTICS, noisy_frames, random_x, small_model
from tests.solvers.problems import phase_problem

FRAME = (32, 32)


def smooth(shape: tuple[int, int], height: float, seed: int = 0) -> NDArray[np.float64]:
    """A random picture with detail down to some six pixels, of the given spread: nothing beyond the aperture."""
    rows, columns = (np.fft.fftfreq(size) for size in shape)
    noise = np.fft.fft2(np.random.default_rng(seed).normal(size=shape))
    picture = np.fft.ifft2(noise * np.exp(-((np.hypot(rows[:, None], columns) / 0.07) ** 2))).real
    return np.asarray(height * picture / picture.std(), np.float64)


def solver_of(fidelity: DataFidelity, **options: Any) -> EPRY:
    return EPRY(fidelity, AllLEDs(np.arange(len(fidelity))), **options)


def clear_fidelity(height: float, pupil: Pupil | None = None, **options: Any) -> tuple[DataFidelity, Any]:
    """Noiseless frames, seen through ``pupil``, of a smooth phase; the model knows a clear disc. And the phase."""
    lens = ForwardModel(OPTICS, LEDS, FRAME, pupil=pupil, dtype=np.float64)
    truth = smooth(lens.object_shape, height)
    return DataFidelity(ForwardModel(OPTICS, LEDS, FRAME, dtype=np.float64), lens.intensity(truth), **options), truth


# ---------------------------------------------------------------------------------------------------------------------
# The compiled sweep


def plain_sweep(
    fidelity: DataFidelity, spectrum: NDArray[Any], leds: Any, alpha: float, beta: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """(O, C) after a sweep from C = 1, written as the equations are, on whole grids in double precision."""
    model = fidelity.model
    grid, window = model.geometry.grid_shape, model.window
    scale = np.prod(grid) / spectrum.size
    S, C = spectrum.astype(np.complex128), np.ones(model.pupils.box_shape, np.complex128)
    pupils = [model.pupils(np.array([led])) for led in range(len(model))]
    P = [stack[index[0]].astype(np.complex128) for stack, index in pupils]
    largest = max(np.abs(p).max() for p in P) * np.abs(S).max()
    for led in leds:
        source, target = model.boxes(led)
        Q, E = C * P[led], P[led] * S[source]
        psi = np.zeros(grid, np.complex128)
        psi[target] = Q * S[source]
        u = np.fft.ifft2(psi) * scale
        seen = np.zeros(grid, bool)
        seen[window] = fidelity.mask_of(led)
        y = np.zeros(grid)
        y[window] = fidelity.frames.frame(led)
        u_new = np.where(seen, np.sqrt(np.maximum(np.where(seen, y, 0), 0)) * np.exp(1j * np.angle(u)), u)
        change = (np.fft.fft2(u_new - u) / scale)[target]
        C = C + beta * np.abs(E) / largest * np.conj(E) / (np.abs(E) ** 2 + DAMPING * largest**2) * change
        top = np.abs(Q).max()
        S[source] += alpha * np.abs(Q) / top * np.conj(Q) / (np.abs(Q) ** 2 + DAMPING * top**2) * change
    return S, C * (np.max(np.abs(P), axis=0) > 0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", CASES)
def test_the_compiled_sweep_is_the_plain_one(case: str, dtype: DTypeLike) -> None:
    """All pupils, margins and sub-bin directions, frames with zeros and negative pixels, a mask of each frame."""
    model = small_model(case, dtype=dtype, object="complex")
    frames = noisy_frames(model)
    mask = np.random.default_rng(5).random(frames.shape) > 0.1
    fidelity = DataFidelity(model, np.where(mask, frames, np.nan), mask=mask)
    leds = np.random.default_rng(6).permutation(len(model))
    solver = EPRY(fidelity, AllLEDs(leds), order="sampler", object_step=0.9, pupil_step=0.7, start=random_x(model))
    start = solver.state().arrays["spectrum"]
    S, C = plain_sweep(fidelity, start, leds, 0.9, 0.7)
    solver.step()
    factor = np.abs(C[C != 0]).mean()  # the modulus of C is put into O after a sweep
    moved = float(np.linalg.norm(S * factor - start))
    tolerance = 1e-10 if dtype == np.float64 else 2e-4
    assert moved > 0.1 * np.linalg.norm(start)
    found = solver.state().arrays
    assert np.linalg.norm(found["spectrum"] - S * factor) < tolerance * moved
    assert np.linalg.norm(C - (C != 0)) > 0.01 * np.linalg.norm(C)
    assert np.linalg.norm(found["correction"] - C / factor) < tolerance * np.linalg.norm(C - (C != 0))


def test_groups_of_leds_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    fidelity = phase_problem()
    whole, parts = (solver_of(fidelity, pupil_step=0.5) for _ in range(2))
    whole.solve(Iterations(2))
    monkeypatch.setattr(pipeline, "GROUP", 5)
    parts.solve(Iterations(2))
    np.testing.assert_array_equal(parts.x, whole.x)
    np.testing.assert_array_equal(parts.history["misfit"], whole.history["misfit"])


@pytest.mark.parametrize("loss", ["intensity", "amplitude", "poisson"])
def test_the_misfit_is_the_fidelitys_before_the_update(loss: str) -> None:
    fidelity = phase_problem(loss=loss, weights=np.linspace(0.5, 2, 49))
    start = smooth(fidelity.model.object_shape, 0.2)
    for led in (3, 24):
        report = EPRY(fidelity, AllLEDs(np.array([led])), start=start).step()
        assert report.misfit == pytest.approx(fidelity.value(start, [led]), rel=1e-10)
    # Over a sweep, each LED finds what those before it have improved.
    assert solver_of(fidelity, start=start).step().misfit < fidelity.value(start)


# ---------------------------------------------------------------------------------------------------------------------
# What it recovers


@pytest.mark.parametrize("pupil", [None, ABERRATED], ids=["clear", "aberrated"])
def test_noiseless_frames_give_the_phase(pupil: Pupil | None) -> None:
    model = ForwardModel(OPTICS, LEDS, FRAME, pupil=pupil, dtype=np.float64)
    truth = smooth(model.object_shape, 0.3)
    history = solver_of(DataFidelity(model, model.intensity(truth)), truth=truth).solve(Iterations(40))
    assert history["snr"][0] < 35
    assert history.last.snr > 45
    assert history.last.misfit < 1e-6 * history["misfit"][0]
    assert history.last.residual < 1e-3 * history["residual"][0]


def test_noiseless_frames_give_phase_and_absorption() -> None:
    model = ForwardModel(OPTICS, LEDS, FRAME, object="complex", dtype=np.float64)
    truth = np.stack([smooth(model.object_shape, 0.3), 0.3 + smooth(model.object_shape, 0.1, seed=1)])
    solver = solver_of(DataFidelity(model, model.intensity(truth)), truth=truth)
    assert solver.solve(Iterations(60)).last.snr > 40
    assert metrics.snr(solver.x[1], truth[1], align=False) > 40
    assert metrics.field_nrmse(model.transmittance(solver.x), model.transmittance(truth)) < 3e-3


@pytest.mark.parametrize("case", CASES)
def test_truth_and_pupil_stay_where_they_are(case: str) -> None:
    model = small_model(case, object="complex")
    truth = random_x(model)
    solver = solver_of(DataFidelity(model, model.intensity(truth)), pupil_step=1.0, start=truth)
    before = solver.state().arrays
    report = solver.step()
    after = solver.state().arrays
    assert np.abs(after["spectrum"] - before["spectrum"]).max() < 1e-10 * np.abs(before["spectrum"]).max()
    np.testing.assert_allclose(after["correction"], before["correction"], atol=1e-10)
    assert report.misfit < 1e-15
    # Not because nothing could move it:
    solver = solver_of(DataFidelity(model, 1.1 * model.intensity(truth)), pupil_step=1.0, start=truth)
    solver.step()
    moved = solver.state().arrays["spectrum"] - before["spectrum"]
    assert np.abs(moved).max() > 1e-3 * np.abs(before["spectrum"]).max()


def test_defocus_and_astigmatism_are_recovered() -> None:
    lens = Pupil({6: 0.4}, defocus=10e-6)
    fidelity, truth = clear_fidelity(0.5, lens, loss="amplitude")
    blind, seeing = (solver_of(fidelity, pupil_step=beta, truth=truth) for beta in (0.0, 1.0))
    blind.solve(Iterations(60))
    seeing.solve(Iterations(60))
    assert seeing.history.last.snr > blind.history.last.snr + 10
    assert seeing.history.last.misfit < 0.02 * blind.history.last.misfit
    geometry = fidelity.model.geometry
    fy, fx = ((np.arange(size) - size // 2) * step for size, step in zip(FRAME, geometry.frequency_step, strict=True))
    expected = lens.evaluate(fy[:, None], fx[None, :], OPTICS)
    inside = expected != 0
    assert metrics.field_nrmse(blind.pupil[inside], expected[inside]) > 0.5
    assert metrics.field_nrmse(seeing.pupil[inside], expected[inside]) < 0.15
    assert np.abs(seeing.pupil[seeing.pupil != 0]).mean() == pytest.approx(1)
    # The recovered pupil, given to a model, explains the frames that a clear one does not.
    corrected = ForwardModel(OPTICS, LEDS, FRAME, pupil=Pupil(array=seeing.pupil), dtype=np.float64)
    frames = np.array([fidelity.frames.frame(led) for led in range(len(fidelity))])
    remade = DataFidelity(corrected, frames, loss="amplitude")
    assert remade.value(truth) < 0.1 * fidelity.value(truth)


def test_the_pupil_waits_for_its_iteration() -> None:
    solver = solver_of(phase_problem(), pupil_step=1.0, pupil_start=3)
    solver.solve(Iterations(2))
    assert set(np.unique(solver.pupil)) == {0, 1}
    solver.solve(Iterations(3))
    assert np.abs(np.abs(solver.pupil[solver.pupil != 0]) - 1).max() > 1e-4


def test_noise_leaves_a_decaying_run_calmer_and_better() -> None:
    fidelity = phase_problem(sigma=0.05)
    steady, fading = (solver_of(fidelity, order="random", decay=decay).solve(Iterations(40)) for decay in (0.0, 0.5))
    np.testing.assert_allclose(fading["step"], 1 / (1 + 0.5 * np.arange(40)))
    assert np.all(steady["step"] == 1)
    assert fading.last.residual < 0.3 * steady.last.residual
    assert fading.last.misfit < 0.8 * steady.last.misfit


def test_the_default_order_suits_a_field_that_goes_on_beyond_its_frames() -> None:
    """The same frames in the same number of sweeps: from the axis outwards is behind."""
    large = ForwardModel(OPTICS, LEDS, (64, 64), object="complex", dtype=np.float64)
    truth = np.stack([smooth(large.object_shape, 0.6), 0.3 + smooth(large.object_shape, 0.1, seed=1)])
    frames = np.ascontiguousarray(large.intensity(truth)[:, 16:48, 16:48])
    model = ForwardModel(OPTICS, LEDS, FRAME, object="complex", margin=16, dtype=np.float64)
    seen = model.geometry.object_window
    field = large.transmittance(truth)
    assert field.shape == model.object_shape
    errors = []
    for options in ({}, {"order": "na"}):
        solver = solver_of(DataFidelity(model, frames, loss="amplitude"), **options)
        solver.solve(Iterations(20))
        errors.append(metrics.field_nrmse(model.transmittance(solver.x)[seen], field[seen]))
    assert errors[0] < 0.8 * errors[1]


def test_a_weak_phase_does_not_wrap() -> None:
    fidelity, truth = clear_fidelity(0.1)
    solver = solver_of(fidelity, start=truth + 3.0, truth=truth)
    assert np.ptp(solver.x) < 1.01 * np.ptp(truth)
    assert solver.solve(Iterations(2)).last.snr > 60


def test_dark_frames_alone_find_no_phase_in_a_flat_start() -> None:
    """Fields that are exactly zero stay so; the rounding of an FFT of 89 × 101 ones would have been a phase."""
    model = small_model("object of 89 × 101", dtype=np.float32, object="complex")
    dark = np.flatnonzero(~model.geometry.bright_field)
    fidelity = DataFidelity(model, noisy_frames(model))
    solver = EPRY(fidelity, AllLEDs(dark))
    before = solver.state().arrays["spectrum"]
    solver.solve(Iterations(2))
    np.testing.assert_array_equal(solver.state().arrays["spectrum"], before)
    assert np.all(np.abs(model.intensity(np.zeros(model.x_shape, np.float32), dark)) < 1e-8), "dark when flat"


def test_opaque_pixels_have_a_finite_absorption() -> None:
    model = small_model(object="complex")
    start = np.zeros(model.x_shape)
    start[1, 10:30, 10:30] = 60.0
    solver = solver_of(DataFidelity(model, model.intensity(start)), start=start)
    np.testing.assert_allclose(solver.x[1, 10:30, 10:30], -math.log(AMPLITUDE_FLOOR))


# ---------------------------------------------------------------------------------------------------------------------
# Order, seeds, state


def test_from_the_axis_outwards_whatever_the_sampler_says() -> None:
    fidelity = phase_problem()
    shuffled = np.random.default_rng(0).permutation(len(fidelity))
    straight, mixed = (EPRY(fidelity, AllLEDs(leds), order="na") for leds in (np.arange(len(fidelity)), shuffled))
    order = visiting_order("na", fidelity.model.geometry.na[shuffled], np.random.default_rng(0))
    na = fidelity.model.geometry.illumination_na[shuffled[order]]
    assert np.all(np.diff(na) > -1e-9)
    np.testing.assert_array_equal(straight.solve(Iterations(2))["residual"], mixed.solve(Iterations(2))["residual"])
    np.testing.assert_array_equal(straight.x, mixed.x)
    drawn = EPRY(fidelity, AllLEDs(shuffled), order="sampler")
    drawn.solve(Iterations(2))
    assert np.any(drawn.x != mixed.x)


def test_a_random_order_follows_its_seed() -> None:
    fidelity = phase_problem()
    first, same, other = (solver_of(fidelity, order="random", pupil_step=0.5, seed=seed) for seed in (7, 7, 8))
    for solver in (first, same, other):
        solver.solve(Iterations(3))
    np.testing.assert_array_equal(first.x, same.x)
    np.testing.assert_array_equal(first.pupil, same.pupil)
    assert np.any(first.x != other.x)


@pytest.mark.parametrize("order", ["na", "random"])
def test_state_continues_to_the_last_bit(order: Literal["na", "random"]) -> None:
    fidelity = phase_problem(dtype=np.float32)

    def make(seed: int) -> EPRY:
        sampler = EpochSampler(np.arange(len(fidelity)), 13)
        return EPRY(fidelity, sampler, order=order, pupil_step=0.8, pupil_start=3, decay=0.1, seed=seed)

    straight = make(1)
    straight.solve(Iterations(5))
    state, records, x = straight.state(), list(straight.history), straight.x
    kept = {name: array.copy() for name, array in state.arrays.items()}
    values = json.loads(json.dumps(state.values))
    straight.solve(Iterations(11))
    resumed = make(99)
    resumed.load_state(type(state)(state.arrays, values))
    np.testing.assert_array_equal(resumed.x, x)
    resumed.history = History(records)
    resumed.solve(Iterations(11))
    np.testing.assert_array_equal(resumed.x, straight.x)
    np.testing.assert_array_equal(resumed.pupil, straight.pupil)
    for column in ("misfit", "residual", "step", "frames_seen"):
        np.testing.assert_array_equal(resumed.history[column], straight.history[column])
    for name, array in kept.items():
        np.testing.assert_array_equal(state.arrays[name], array, err_msg="a state is not written to")


def test_frames_are_counted_and_minibatches_mean_the_same() -> None:
    model = ForwardModel(OPTICS, LEDS, FRAME, dtype=np.float64)
    truth = smooth(model.object_shape, 0.3)
    weights = np.ones(len(model))
    weights[[3, 30]] = 0
    fidelity = DataFidelity(model, model.intensity(truth), weights=weights)
    sampler = StratifiedSampler(np.arange(len(model)), 14, model.geometry.bright_field)
    solver = EPRY(fidelity, sampler, truth=truth)
    history = solver.solve(Iterations(7))
    assert 7 * 12 <= history.last.frames_seen < 7 * 14
    assert solver.solve(Iterations(150)).last.snr > 40


# ---------------------------------------------------------------------------------------------------------------------
# Frames that are not perfect


def test_a_frame_of_weight_zero_is_not_looked_at() -> None:
    model = small_model()
    frames, weights = noisy_frames(model), np.ones(len(model))
    weights[[0, 24]] = 0
    frames[[0, 24]] = np.nan
    ignoring = solver_of(DataFidelity(model, frames, weights=weights), order="na", pupil_step=0.3)
    others = np.flatnonzero(weights)
    without = EPRY(DataFidelity(model, noisy_frames(model)), AllLEDs(others), order="na", pupil_step=0.3)
    assert ignoring.solve(Iterations(3)).last.frames_seen == 3 * len(others)
    without.solve(Iterations(3))
    assert np.all(np.isfinite(ignoring.history["misfit"]))
    np.testing.assert_array_equal(ignoring.x, without.x)


def test_what_a_mask_hides_does_not_matter() -> None:
    model = small_model("margin")
    frames, mask = noisy_frames(model), np.ones(model.frame_shape, bool)
    mask[4:7, 2:9] = False
    hidden = np.where(mask, frames, np.nan)
    solvers = [solver_of(DataFidelity(model, y, mask=mask), pupil_step=0.3) for y in (frames, hidden)]
    for solver in solvers:
        solver.solve(Iterations(3))
    np.testing.assert_array_equal(solvers[0].x, solvers[1].x)
    seen = solver_of(DataFidelity(model, frames), pupil_step=0.3)
    seen.solve(Iterations(3))
    assert np.any(seen.x != solvers[0].x)


def test_negative_pixels_are_dark() -> None:
    model = small_model()
    frames = noisy_frames(model)
    solvers = [solver_of(DataFidelity(model, y)) for y in (frames, np.maximum(frames, 0))]
    for solver in solvers:
        solver.solve(Iterations(2))
    np.testing.assert_array_equal(solvers[0].x, solvers[1].x)


@pytest.mark.parametrize("loss", ["intensity", "amplitude", "poisson"])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_frames_that_are_not_finite_are_said(loss: str, bad: float) -> None:
    model = small_model()
    frames = noisy_frames(model)
    frames[10, 3, 4] = bad
    solver = solver_of(DataFidelity(model, frames, loss=loss))
    before = solver.x.copy()
    with pytest.raises(DivergenceError, match=r"diverged in iteration 1 .* no NaN"):
        solver.solve(Iterations(3))
    np.testing.assert_array_equal(solver.x, before)


def test_steps_somewhat_too_long_are_said_before_they_overflow() -> None:
    lost = solver_of(phase_problem(), object_step=2.2)
    with pytest.raises(DivergenceError, match=r"object_step=2.2 and pupil_step=0 \(misfit \d.* use steps of at most 1"):
        lost.solve(Iterations(200))
    assert np.all(np.isfinite(lost.x))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_steps_far_too_long_are_said(dtype: DTypeLike) -> None:
    with pytest.raises(DivergenceError, match="diverged in iteration 1 "):
        solver_of(phase_problem(dtype=dtype), object_step=1e30, pupil_step=1e30).solve(Iterations(2))


# ---------------------------------------------------------------------------------------------------------------------
# Wrong input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "spiral"}, "order must be 'na' or 'random' or 'sampler', got 'spiral'"),
        ({"object_step": 0.0}, "object_step must be a positive number .* got 0.0"),
        ({"object_step": math.nan}, "object_step must be a finite number, got nan"),
        ({"pupil_step": -0.1}, "pupil_step must be a number ≥ 0 .* got -0.1"),
        ({"pupil_step": math.inf}, "pupil_step must be a finite number, got inf"),
        ({"pupil_start": 0}, "pupil_start must be an iteration, a whole number from 1, got 0"),
        ({"pupil_start": 1.5}, "pupil_start must be a whole number, got 1.5"),
        ({"decay": -1.0}, "decay must be a number ≥ 0 .* got -1.0"),
        ({"start": "warm"}, "start must be 'flat' or 'linear' or 'epry' or an array"),
        ({"truth": np.ones((3, 3))}, "the truth has shape"),
        ({"truth": np.ones((3, 3), complex)}, "the truth must be a real phase"),
    ],
)
def test_wrong_parameters_are_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        solver_of(phase_problem(), **options)


def test_a_state_of_another_run_is_refused() -> None:
    solver = solver_of(phase_problem())
    for other in (phase_problem((16, 16)), phase_problem(dtype=np.float32)):
        with pytest.raises(InvalidInputError, match="the state must hold a spectrum of complex128"):
            solver.load_state(solver_of(other).state())
