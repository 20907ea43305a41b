"""The road to the loss that fits the noise: it ends where a run with that loss ends, only sooner."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fouriscope as fs
from fouriscope import metrics
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import AllLEDs, CameraLoss, CameraNoise, DataFidelity, IntensityLoss, StratifiedSampler
from fouriscope.solvers import ADMM, RED, Descent, Iterations, PnP
from fouriscope.solvers.journey import FEWEST
from fouriscope.solvers.road import Road
from fouriscope.solvers.strength import noise_temperature

LEDS = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
OPTICS = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
LIGHT = np.concatenate([np.full(40, 1e-3), np.full(20, 0.01), np.full(4, 1.0)])


@pytest.fixture(scope="module")
def model() -> fs.ForwardModel:
    return fs.ForwardModel(OPTICS, LEDS, (32, 32))


@pytest.fixture(scope="module")
def phase(model: fs.ForwardModel) -> NDArray[Any]:
    rows, columns = np.indices(model.object_shape)
    return (0.4 * (np.hypot(rows - 50, columns - 44) < 25) + 0.3 * (columns % 24 < 9)).astype(np.float32)


@pytest.fixture(scope="module")
def data(model: fs.ForwardModel, phase: NDArray[Any]) -> fs.Acquisition:
    return fs.simulate(model, phase, snr_db=40, noise="stack", seed=0)


def solver(
    data: fs.Acquisition, model: fs.ForwardModel, phase: NDArray[Any], *, kind: type[Descent] = PnP, **options: Any
) -> Descent:
    sampler = options.pop("sampler", AllLEDs(np.arange(len(model))))
    prior = fs.TV(strength=options.pop("strength", 2e-5))
    options = {"loss_from_noise": True, "seed": 0, "truth": phase, **options}
    return kind(DataFidelity.of(data, model), sampler, [prior], **options)


def some(model: fs.ForwardModel, batch: int = 12) -> StratifiedSampler:
    return StratifiedSampler(np.arange(len(model)), batch, model.geometry.bright_field)


class TestTheRoad:
    def test_it_leads_from_the_noise_in_the_dark_to_the_loss_that_fits(self) -> None:
        road = Road(CameraNoise(1e-4, 1e-3), 0.01, 0.1, LIGHT)
        assert road.loss(0) == road.loss(10) == CameraLoss(0.01)
        assert road.loss(45) == CameraLoss(0.1) == road.last_loss
        assert 0.01 < road.loss(30).epsilon < 0.1
        assert road.strength_factor(45) == 1.0
        assert road.length == pytest.approx(45)

    def test_white_noise_ends_with_the_intensity_loss(self) -> None:
        road = Road(CameraNoise(1e-4, 0.0), 0.01, math.inf, LIGHT)
        assert road.last_loss == IntensityLoss()
        assert road.loss(10**6) == IntensityLoss()
        assert [road.loss(k).epsilon for k in range(0, 110, 10)] == sorted(
            road.loss(k).epsilon for k in range(0, 110, 10)
        )

    def test_a_road_may_lead_down(self) -> None:
        road = Road(CameraNoise(1e-12, 1e-8, 1e-4), 0.003, 0.00003, LIGHT)
        assert road.length == pytest.approx(80)
        assert road.loss(10) == CameraLoss(0.003)
        assert road.loss(45).epsilon == pytest.approx(0.0003)
        assert road.loss(80) == road.last_loss == CameraLoss(0.00003)

    def test_a_road_that_is_over_at_once(self) -> None:
        road = Road(CameraNoise(1e-6, 1e-3), 0.003, 0.003, LIGHT)
        assert road.loss(0) == road.last_loss == CameraLoss(0.003)

    def test_values_bring_it_back(self) -> None:
        for fitting in (0.1, math.inf):
            road = Road(CameraNoise(1e-4, 1e-3, 1e-5), 0.01, fitting, LIGHT)
            again = Road.loaded(road.values(), road.brightness)
            assert (again.noise, again.start, again.fitting) == (road.noise, road.start, road.fitting)

    def test_the_strength_follows_the_temperature(self, data: fs.Acquisition, model: fs.ForwardModel) -> None:
        """T(ε) in closed form beside the one that is measured with noise and probes, at a good estimate."""
        fidelity = DataFidelity.of(data, model)
        population = np.arange(len(model))
        road = Road.of(fidelity, population)
        assert data.truth is not None
        measured = []
        for steps in (25, 10**6):
            fidelity.loss = road.loss(steps)
            rng = np.random.default_rng(0)
            measured.append(noise_temperature(fidelity, data.truth.astype(np.float32), population, rng))
        assert road.strength_factor(25) == pytest.approx(measured[0] / measured[1], rel=0.5)


def test_dark_frames_that_show_little_but_light_may_count_in_full(model: fs.ForwardModel, phase: NDArray[Any]) -> None:
    ends = []
    for snr in (40, 5):
        fidelity = DataFidelity.of(fs.simulate(model, phase, snr_db=snr, noise="frame", seed=0), model)
        road = Road.of(fidelity, np.arange(len(model)))
        dark = road.brightness[road.brightness < 0.1].mean()
        ends.append(road.end / dark)
    assert ends[0] < 0.1
    assert ends[1] > 1


def test_misfits_of_the_truth_are_the_same_all_along_the_road(data: fs.Acquisition, model: fs.ForwardModel) -> None:
    fidelity = DataFidelity.of(data, model)
    road = Road.of(fidelity, np.arange(len(model)))
    assert data.truth is not None
    found = []
    for steps in (0, 30, 70, 1000):
        fidelity.loss = road.loss(steps)
        found.append(fidelity.value(data.truth.astype(np.float32)) * road.misfit_factor(steps))
    np.testing.assert_allclose(found, found[-1], rtol=0.3)
    assert road.misfit_factor(1000) == 1.0


def test_the_family_has_one_curvature_in_the_bright_field_and_ends_in_the_intensity_loss(
    data: fs.Acquisition, model: fs.ForwardModel
) -> None:
    x = np.random.default_rng(0).normal(0, 0.2, model.x_shape).astype(np.float32)
    expected = DataFidelity.of(data, model, loss="intensity").gradient(x)
    value, gradient = DataFidelity.of(data, model, loss=CameraLoss(1e4)).gradient(x)
    assert value == pytest.approx(expected.value, rel=1e-3)
    np.testing.assert_allclose(gradient, expected.gradient, atol=1e-3 * np.abs(expected.gradient).max())
    poisson = DataFidelity.of(data, model, loss=fs.PoissonLoss(0.02)).gradient(x)
    value, gradient = DataFidelity.of(data, model, loss=CameraLoss(0.02)).gradient(x)
    assert value == pytest.approx(2.04 * poisson.value, rel=1e-4)
    np.testing.assert_allclose(gradient, 2.04 * poisson.gradient, atol=1e-5 * np.abs(gradient).max())


@pytest.mark.parametrize("kind", [PnP, ADMM, RED])
def test_every_method_takes_it_to_its_end(
    data: fs.Acquisition, model: fs.ForwardModel, phase: NDArray[Any], kind: type[Descent]
) -> None:
    taken = solver(data, model, phase, kind=kind)
    taken.step()
    assert taken.fidelity.loss.name == "camera"
    assert taken.denoise.factor > 1
    assert [prior.rough for prior in taken.priors] == [True]
    taken.solve(Iterations(150))
    assert taken.fidelity.loss == IntensityLoss()
    assert taken.denoise.factor == 1
    assert [prior.rough for prior in taken.priors] == [False]
    taken.priors[0].rough = True  # as another run may leave it
    by_hand = kind(DataFidelity.of(data, model), AllLEDs(np.arange(len(model))), taken.priors)
    by_hand.step()
    assert [prior.rough for prior in by_hand.priors] == [False]
    assert taken.strengths == [2e-5]


@pytest.mark.parametrize(("kind", "gradients"), [(PnP, 1), (ADMM, 5)])  # in an iteration
def test_it_ends_at_the_fixed_point_of_the_last_loss(
    data: fs.Acquisition, model: fs.ForwardModel, phase: NDArray[Any], kind: type[Descent], gradients: int
) -> None:
    """From there, a run with that loss from its first iteration on goes nowhere else."""
    road = solver(data, model, phase, kind=kind, strength=3e-4)
    road.solve(Iterations(1200 // gradients))
    assert road.fidelity.loss == IntensityLoss()
    straight = solver(data, model, phase, kind=kind, strength=3e-4, loss_from_noise=False, start=road.x)
    straight.solve(Iterations(300 // gradients))
    assert metrics.snr_both(road.observed(), straight.observed()).aligned > 35
    assert road.history.last.snr == pytest.approx(straight.history.last.snr, abs=0.05)


def test_it_gets_there_sooner(data: fs.Acquisition, model: fs.ForwardModel, phase: NDArray[Any]) -> None:
    road, straight = (solver(data, model, phase, sampler=some(model), loss_from_noise=auto) for auto in (True, False))
    for each in (road, straight):
        each.solve(Iterations(200))
    best = straight.history["snr"].max() - 0.5
    first = [int(np.argmax(each.history["snr"] >= best)) for each in (road, straight)]
    assert road.history["snr"].max() >= best
    assert first[0] < 0.8 * first[1]


@pytest.mark.parametrize("stopped", [4, 30, 140, 170, 230])
def test_a_resumed_run_is_the_same_to_the_last_bit(
    data: fs.Acquisition, model: fs.ForwardModel, phase: NDArray[Any], stopped: int
) -> None:
    """On the road, where it ends, and behind it: strengths are frozen, ways are compared, estimates are averaged."""
    options: dict[str, Any] = {"strength": "auto"}
    whole = solver(data, model, phase, sampler=some(model), **options)
    whole.solve(Iterations(stopped + 6))
    first = solver(data, model, phase, sampler=some(model), **options)
    first.solve(Iterations(stopped))
    second = solver(data, model, phase, sampler=some(model), **options)
    second.load_state(first.state())
    for _ in range(6):
        second.step()
    np.testing.assert_array_equal(second.x, whole.x)
    assert second.strengths == whole.strengths
    assert second.step_size == whole.step_size


def test_momentum_is_limited_with_minibatches_alone(
    data: fs.Acquisition, model: fs.ForwardModel, phase: NDArray[Any]
) -> None:
    assert solver(data, model, phase, loss_from_noise=False)._most_momentum == 1.0  # type: ignore[attr-defined]
    online = solver(data, model, phase, sampler=some(model))
    online.begin()
    assert online._most_momentum == 0.9  # type: ignore[attr-defined]
    by_hand = solver(data, model, phase, sampler=some(model), loss_from_noise=False)
    assert by_hand._most_momentum == 1.0  # type: ignore[attr-defined]
    assert solver(data, model, phase, sampler=some(model), momentum=0.5)._most_momentum == 0.5  # type: ignore[attr-defined]
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        solver(data, model, phase, momentum=1.5)


def test_strengths_no_longer_follow_the_image_behind_the_road(
    data: fs.Acquisition, model: fs.ForwardModel, phase: NDArray[Any]
) -> None:
    online = solver(data, model, phase, sampler=some(model), strength="auto")
    online.solve(Iterations(200))
    assert len(set(online.history["strength"][150:].tolist())) == 1
    assert len(set(online.history["strength"][:100].tolist())) > 50


def test_when_the_estimate_only_trembles_steps_fade_and_the_mean_is_nearer_to_the_truth(
    data: fs.Acquisition, model: fs.ForwardModel, phase: NDArray[Any]
) -> None:
    online = solver(data, model, phase, sampler=some(model), strength="auto")
    while online.journey.arrived is None:
        online.step()
        assert online.journey.fading == 1
        assert online._iterations < 400
    assert online.journey.is_behind
    estimates = []
    for _ in range(60):
        online.step()
        estimates.append(np.array(online._x, np.float64))
    assert online.averaged == 60
    assert online.journey.fading == pytest.approx(1 + 60 / 50)
    np.testing.assert_allclose(online.x, np.mean(estimates, axis=0), atol=1e-5)
    single = np.mean([metrics.snr_both(estimate, phase).aligned for estimate in estimates])
    assert metrics.snr_both(online.x, phase).aligned > single


def test_a_run_that_has_settled_says_so_and_another_is_as_long_as_asked(
    model: fs.ForwardModel, phase: NDArray[Any]
) -> None:
    data = fs.simulate(model, phase, snr_db=30, noise="stack", seed=0)
    ended = fs.reconstruct(data, object="phase", seed=0)
    assert ended.stop_reason.startswith("settled: the mean of the last")
    assert len(ended.history) < 300
    assert ended.history.last.averaged >= 60
    asked = fs.reconstruct(data, object="phase", seed=0, iterations=300)
    assert (len(asked.history), asked.stop_reason) == (300, "300 iterations")
    assert ended.history.last.snr == pytest.approx(asked.history.last.snr, abs=0.1)


def test_no_mean_with_all_frames_in_each_iteration(
    data: fs.Acquisition, model: fs.ForwardModel, phase: NDArray[Any]
) -> None:
    every = solver(data, model, phase, strength="auto")
    every.solve(Iterations(200))
    assert every.averaged == 0
    assert np.isnan(every.history["averaged"]).all()


def test_a_solver_that_goes_on_for_another_does_not_walk_the_road_again(
    data: fs.Acquisition, model: fs.ForwardModel, phase: NDArray[Any]
) -> None:
    first = solver(data, model, phase, sampler=some(model))
    first.solve(Iterations(160))
    second = solver(data, model, phase, sampler=some(model), start=first.x)
    second.settle_like(first)
    second.step()
    assert second.journey.steps == 161
    assert second.fidelity.loss == IntensityLoss()
    assert second.denoise.factor == 1


def test_a_run_that_explains_less_than_its_flat_start_takes_shorter_steps(
    data: fs.Acquisition, model: fs.ForwardModel, phase: NDArray[Any]
) -> None:
    online = solver(data, model, phase, sampler=some(model))
    online.solve(Iterations(1))
    assert online.journey.road is not None
    long = online._control.size
    online.solve(Iterations(int(online.journey.road.length) + 22))
    assert online._control.size == long
    online.journey._flat_misfit = 0.1 * online.history.last.misfit
    online.solve(Iterations(len(online.history) + 20))
    assert online._control.size == pytest.approx(long / 2)


def test_without_a_road_steps_fade_after_a_fixed_number_wherever_the_estimate_is(
    data: fs.Acquisition, model: fs.ForwardModel, phase: NDArray[Any]
) -> None:
    """A loss by hand may need it: a step that is too long for it would never let the estimate arrive."""
    journey = solver(data, model, phase, sampler=some(model), loss_from_noise=False).journey
    journey.steps = FEWEST
    assert journey.fading == 1
    journey.steps = FEWEST + 50
    assert journey.arrived is None
    assert journey.fading == 2
