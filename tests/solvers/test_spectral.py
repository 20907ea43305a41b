"""The spectral solver: it never rises, never leaves its band, does not wear out, and resumes exactly."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.acquisition import ArrayFrames
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import AllLEDs, DataFidelity, Sampler, StratifiedSampler, WarmUp
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray
from fouriscope.priors import TV, NoPrior, Prior
from fouriscope.solvers import History, Iterations, Spectral, pace
from fouriscope.solvers.frame_worth import frame_worth
from fouriscope.solvers.start import StartName
from tests.conftest import OPTICS

LEDS = LEDArray.square(9, pitch=4e-3, height=70e-3)


def wave(model: ForwardModel, seed: int = 0) -> NDArray[np.complex64]:
    """A smooth complex object within the band of the LEDs."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=model.object_shape) + 1j * rng.normal(size=model.object_shape)
    fy, fx = (np.fft.fftfreq(size) for size in model.object_shape)
    falloff = np.exp(-((fy[:, None] ** 2 + fx[None] ** 2) / 0.02)) * (model.coverage() > 0)
    rough = np.fft.ifft2(np.fft.fft2(noise) * falloff)
    return np.asarray(1 + 0.4 * rough / np.abs(rough).std(), np.complex64)


def problem(*, margin: int = 0, photons: float | None = 2000, loss: str = "amplitude") -> DataFidelity:
    model = ForwardModel(OPTICS, LEDS, (32, 32), object="wave", margin=margin)
    frames = model.intensity(model.object.of_transmittance(wave(model)))
    if photons is not None:
        frames = np.random.default_rng(1).poisson(frames * photons) / photons
    return DataFidelity(model, ArrayFrames(frames.astype(np.float32)), loss=loss)


def solver(
    fidelity: DataFidelity,
    *,
    batch: int | None = 20,
    prior: type[Prior] = NoPrior,
    start: StartName = "flat",
    seed: int = 0,
    acceleration: bool = True,
    balance: bool = True,
    background: float | Literal["auto"] = "auto",
) -> Spectral:
    everything = np.arange(len(fidelity))
    sampler: Sampler = AllLEDs(everything)
    if batch is not None:
        sampler = StratifiedSampler(everything, batch, fidelity.model.geometry.bright_field)
    options: dict[str, Any] = {"acceleration": acceleration, "balance": balance, "background": background}
    return Spectral(fidelity, sampler, [prior(), prior()], start=start, seed=seed, **options)


def error(fidelity: DataFidelity, x: NDArray[np.float32], truth: NDArray[np.complex64] | None = None) -> float:
    """NRMSE of the complex wave without the one phase that no frame shows."""
    found = fidelity.model.transmittance(x)
    truth = wave(fidelity.model) if truth is None else truth
    turn = np.vdot(found, truth)
    return float(np.linalg.norm(found * turn / abs(turn) - truth) / np.linalg.norm(truth))


@pytest.mark.parametrize("margin", [0, 6])
@pytest.mark.parametrize("background", [0.0, "auto", 0.5])
def test_with_all_frames_the_misfit_never_rises(margin: int, background: float | Literal["auto"]) -> None:
    # With other weights the misfit is another one: they stay as they are.
    plain: dict[str, Any] = {"batch": None, "acceleration": False, "balance": False}
    history = solver(problem(margin=margin), background=background, **plain).solve(Iterations(25))
    assert np.all(np.diff(history["misfit"]) <= 1e-6 * history["misfit"][0])
    assert history["misfit"][-1] < 0.1 * history["misfit"][0]


def test_noise_without_light_is_not_taken_for_light() -> None:
    """Dark frames of nothing but read noise: with the plain loss the object scatters to explain their roots."""
    model = ForwardModel(OPTICS, LEDS, (32, 32), object="wave")
    frames = np.where(model.geometry.bright_field[:, None, None], 1.0, 0.0) * np.ones((1, 32, 32))
    frames = frames + np.random.default_rng(0).normal(0, 0.01, frames.shape)
    scattered = {}
    backgrounds: tuple[Literal["auto"], float] = ("auto", 0.0)
    for background in backgrounds:
        fidelity = DataFidelity(model, ArrayFrames(frames.astype(np.float32)), loss="amplitude")
        one = solver(fidelity, batch=None, background=background)
        one.solve(Iterations(30))
        dark = np.flatnonzero(~model.geometry.bright_field)
        scattered[background] = float(model.intensity(one.x, dark).mean())
    assert scattered["auto"] < 0.3 * scattered[0.0]


def test_the_background_is_measured_and_kept() -> None:
    fidelity = problem()
    one = solver(fidelity)
    one.solve(Iterations(2))
    measured = fidelity.loss.epsilon
    dark = ~fidelity.model.geometry.bright_field
    shot = np.sqrt(np.median([fidelity.frames.frame(int(led)).mean() for led in np.flatnonzero(dark)]) / 2000)
    assert 0.5 * 2 * shot < measured < 2 * 2 * shot
    again = solver(problem(), background=0.0)
    again.load_state(one.state())
    assert again.fidelity.loss.epsilon == measured


def test_the_momentum_ends_when_many_frames_came() -> None:
    one, everything = solver(problem()), np.arange(81)
    one.solve(Iterations(12))
    assert one.own_state().values["q"] > 1
    one.measurements_changed(everything, everything[:30], everything, begin_again=True)
    assert one.own_state().values["q"] == 1
    np.testing.assert_array_equal(one.own_state().arrays["before"], one.x)


def test_coverage_is_the_diagonal_of_the_normal_operator() -> None:
    model = ForwardModel(OPTICS, LEDS, (24, 24), object="wave", gains=np.linspace(0.5, 2, 81), dtype=np.float64)
    weights = np.linspace(1, 3, 81)
    rng = np.random.default_rng(0)
    o = rng.normal(size=model.object_shape) + 1j * rng.normal(size=model.object_shape)
    fields = model.apply(o) * weights[:, None, None]
    expected = np.fft.ifft2(np.fft.fft2(o) * model.coverage(weights=weights))
    np.testing.assert_allclose(model.adjoint(fields), expected, atol=1e-12)


@pytest.mark.parametrize("prior", [NoPrior, TV])
@pytest.mark.parametrize("iterations", [30, 120])
def test_nothing_appears_where_no_frame_sees_it(prior: type[Prior], iterations: int) -> None:
    one = solver(problem(margin=4), prior=prior)
    one.solve(Iterations(iterations))
    model = one.fidelity.model
    power = np.abs(np.fft.fft2(model.transmittance(one.x))) ** 2
    power[0, 0] = 0
    assert power[model.coverage() == 0].sum() < 1e-9 * power.sum()


def test_more_iterations_do_not_wear_it_out() -> None:
    fidelity = problem()
    one = solver(fidelity)
    one.solve(Iterations(40))
    early = error(fidelity, one.x)
    one.solve(Iterations(300))
    assert early < 0.08
    assert error(fidelity, one.x) < 1.05 * early


def test_a_prior_helps_where_there_is_noise() -> None:
    """On discs, which total variation is for, with the strength that the frames tell."""
    model = ForwardModel(OPTICS, LEDS, (32, 32), object="wave")
    y, x = np.indices(model.object_shape) - model.object_shape[0] / 2
    discs = np.where(np.hypot(y, x) < 20, 0.6 * np.exp(0.5j), 1) * np.where(np.hypot(y - 15, x + 12) < 9, np.exp(1j), 1)
    truth = np.fft.ifft2(np.fft.fft2(discs) * (model.coverage() > 0)).astype(np.complex64)
    frames = np.random.default_rng(0).poisson(model.intensity(model.object.of_transmittance(truth)) * 200) / 200
    errors = []
    for prior in (NoPrior, TV):
        fidelity = DataFidelity(model, ArrayFrames(frames.astype(np.float32)), loss="amplitude")
        one = solver(fidelity, prior=prior, start="epry")
        one.solve(Iterations(80))
        errors.append(error(fidelity, one.x, truth))
    assert errors[1] < 0.9 * errors[0]


def test_the_automatic_strength_is_found_once_and_then_only_falls() -> None:
    history = solver(problem(), prior=TV).solve(Iterations(80))
    first, second = history["strength"][10:40], history["strength"][40:]
    assert first[0] > 0
    assert np.all(first == first[0])
    assert np.all(second == second[0])
    assert second[0] <= first[0]


def test_residuals_of_a_start_that_explains_little_are_measured_again() -> None:
    """From a start that is not yet the object, frames and prior are weighted wrongly at first."""
    fidelity = problem()
    one = solver(fidelity, prior=TV, start="linear", batch=None)
    strengths = one.solve(Iterations(40))["strength"]
    assert strengths[-1] < 0.7 * strengths[0]
    left = fidelity.misfits(one.x, np.arange(81)) * fidelity.weights
    # What counts by one over its residual leaves the same everywhere, but for the limit of a frame's worth.
    assert np.quantile(left, 0.9) < 3 * np.quantile(left, 0.1)


@pytest.mark.parametrize("batch", [20, None])
@pytest.mark.parametrize("stopped_at", [14, 38])
def test_a_run_goes_on_from_its_state_to_the_last_bit(batch: int | None, stopped_at: int) -> None:
    straight = solver(problem(), prior=TV, seed=1, batch=batch)
    straight.solve(Iterations(stopped_at))
    state, records = straight.state(), list(straight.history)
    json.dumps(state.values)
    straight.solve(Iterations(stopped_at + 8))
    resumed = solver(problem(), prior=TV, seed=7, batch=batch)
    resumed.load_state(state)
    resumed.history = History(records)
    resumed.solve(Iterations(stopped_at + 8))
    np.testing.assert_array_equal(resumed.x, straight.x)
    np.testing.assert_array_equal(resumed.history["strength"], straight.history["strength"])


def test_a_frame_that_no_model_explains_counts_little() -> None:
    fidelity = problem()
    frames = np.stack([fidelity.frames.frame(led) for led in range(81)])
    frames[40] = frames[40][::-1].T  # the frame of another sample
    spoilt = DataFidelity(fidelity.model, ArrayFrames(frames), loss="amplitude")
    one = solver(spoilt)
    one.solve(Iterations(60))
    assert spoilt.weights[40] < 0.2 * np.median(spoilt.weights[fidelity.model.geometry.bright_field])


def test_the_worth_of_frames_has_a_limit() -> None:
    variances, bright = np.array([0.02, 0.02, 0.0, np.nan]), np.array([True, True, False, False])
    np.testing.assert_allclose(frame_worth(variances, bright), [1, 1, 100, 1])


def test_it_says_what_it_is_for() -> None:
    with pytest.raises(InvalidInputError, match='use object="wave" and loss="amplitude"'):
        solver(problem(loss="poisson"))
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        Spectral(problem(), AllLEDs(np.arange(81)), [NoPrior(), NoPrior()], step=1.5)


def accelerated(fidelity: DataFidelity, *, acceleration: bool, iterations: int) -> float:
    """The error after so many iterations over minibatches, with or without momentum."""
    everything = np.arange(len(fidelity))
    sampler = StratifiedSampler(everything, 20, fidelity.model.geometry.bright_field)
    one = Spectral(fidelity, sampler, [NoPrior(), NoPrior()], acceleration=acceleration, balance=False)
    one.solve(Iterations(iterations))
    return error(fidelity, one.x)


def test_momentum_saves_iterations() -> None:
    """What the plain steps reach in so many iterations, momentum reaches in half of them."""
    slow = accelerated(problem(photons=None), acceleration=False, iterations=80)
    assert accelerated(problem(photons=None), acceleration=True, iterations=40) < slow


def test_a_prior_of_no_strength_holds_no_frequency_back() -> None:
    """Dark frames weigh a hundred times more than bright ones, and what those alone see still moves half as fast."""
    errors = []
    for prior, iterations in ((NoPrior, 40), (partial(TV, strength=1e-9), 80)):
        fidelity = problem(photons=None)
        fidelity.reweigh(np.where(fidelity.model.geometry.bright_field, 1.0, 100.0))
        everything = AllLEDs(np.arange(len(fidelity)))
        one = Spectral(fidelity, everything, [prior(), prior()], balance=False, acceleration=False)
        one.solve(Iterations(iterations))
        errors.append(error(fidelity, one.x))
    assert errors[1] < errors[0]


def test_with_all_frames_the_curvature_that_steps_show_saves_iterations() -> None:
    """What plain steps reach in so many iterations, quasi-Newton ones reach in a quarter of them."""
    found = {}
    for acceleration, iterations in ((False, 100), (True, 25)):
        fidelity = problem(photons=None)
        one = solver(fidelity, batch=None, acceleration=acceleration, balance=False, background=0.0)
        one.solve(Iterations(iterations))
        found[acceleration] = error(fidelity, one.x)
    assert found[True] < found[False]


def test_both_ways_end_at_the_same_fixed_point() -> None:
    """With a prior too: the direction is another one, and where the residual vanishes is not."""
    found = []
    for acceleration, iterations in ((False, 1500), (True, 300)):
        one = Spectral(
            problem(),
            AllLEDs(np.arange(81)),
            [TV(strength=1e-5), TV(strength=1e-5)],
            start="epry",
            balance=False,
            acceleration=acceleration,
        )
        one.solve(Iterations(iterations))
        found.append(one.fidelity.model.transmittance(one.x))
    turn = np.vdot(found[0], found[1])
    difference = np.linalg.norm(found[0] * turn / abs(turn) - found[1]) / np.linalg.norm(found[1])
    assert difference < 2e-3


def test_what_steps_have_shown_is_forgotten_when_frames_come() -> None:
    one, everything = solver(problem(), batch=None), np.arange(81)
    one.solve(Iterations(15))
    assert any(name.startswith("secants.") for name in one.own_state().arrays)
    one.measurements_changed(everything[:1], everything, everything, begin_again=False)
    assert not any(name.startswith("secants.") for name in one.own_state().arrays)


def warming(fidelity: DataFidelity, *, prior: type[Prior] = NoPrior, seed: int = 0, batch: int = 9) -> Spectral:
    sampler = WarmUp(np.arange(len(fidelity)), batch, fidelity.model.geometry.bright_field)
    return Spectral(fidelity, sampler, [prior(), prior()], start="flat", seed=seed)


def test_a_warm_up_goes_on_while_the_estimate_strides(monkeypatch: pytest.MonkeyPatch) -> None:
    arrives = warming(problem())
    arrives.solve(Iterations(100))  # two looks from the flat start, and two that are compared
    assert arrives.sampler.is_fixed
    monkeypatch.setattr(pace, "TRAVELLING", -2.0)
    monkeypatch.setattr(pace, "STRIDING", -2.0)
    strides = warming(problem())
    strides.solve(Iterations(100))
    assert strides.sampler.warms_up


@pytest.mark.parametrize("stopped_at", [30, 40, 85])
def test_a_warm_up_goes_on_from_its_state_to_the_last_bit(stopped_at: int) -> None:
    straight = warming(problem(margin=6), prior=TV, seed=1)
    straight.solve(Iterations(stopped_at))
    state, records = straight.state(), list(straight.history)
    json.dumps(state.values)
    straight.solve(Iterations(stopped_at + 20))
    resumed = warming(problem(margin=6), prior=TV, seed=7)
    resumed.load_state(state)
    resumed.history = History(records)
    resumed.solve(Iterations(stopped_at + 20))
    np.testing.assert_array_equal(resumed.x, straight.x)


def test_what_continues_into_the_margin_stays_in_the_band() -> None:
    one = warming(problem(margin=6))
    one.solve(Iterations(45))
    outside = one.model.coverage() == 0
    spectrum = np.fft.fft2(one.model.transmittance(one.x))
    assert np.abs(spectrum[outside]).max() < 1e-4 * np.abs(spectrum).max()
