"""Held-out frames choose a strength that is nearly as good as the one the truth would choose, and stay unseen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.acquisition import Acquisition, ArrayFrames
from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray
from fouriscope.tuning import Trial, hold_out, tune_config
from fouriscope.tuning.bench import WARM_SHARE
from fouriscope.tuning.choice import indistinguishable
from tests.conftest import OPTICS
from tests.solvers.problems import shapes

OPTIONS: dict[str, Any] = {"batch": 27, "iterations": 60, "seed": 0}


@pytest.fixture(scope="module")
def data() -> Acquisition:
    model = ForwardModel(OPTICS, LEDArray.square(9, pitch=4e-3, height=70e-3), (24, 24))
    return fs.simulate(model, shapes(model.object_shape, 0.3), snr_db=30, seed=0)


@pytest.fixture(scope="module")
def absorbing() -> Acquisition:
    model = ForwardModel(OPTICS, LEDArray.square(9, pitch=4e-3, height=70e-3), (24, 24), object="complex")
    images = np.stack([shapes(model.object_shape, 0.3), 0.8 * shapes(model.object_shape, 1.0).T])
    return replace(fs.simulate(model, images, snr_db=25, seed=0), truth=None)


def geometry(data: Acquisition) -> Any:
    return ForwardModel(data.optics, data.illumination, data.frame_shape).geometry


class TestHoldOut:
    def test_every_part_of_the_field_is_represented(self, data: Acquisition) -> None:
        seen = geometry(data)
        held = hold_out(seen, np.arange(81), 9, np.random.default_rng(0))
        assert len(set(held.tolist())) == 9
        ranks = np.argsort(np.argsort(seen.illumination_na, kind="stable"))[held]
        assert sorted((ranks // 9).tolist()) == list(range(9)), "one of each ninth, from the axis outwards"

    def test_only_of_the_population(self, data: Acquisition) -> None:
        population = np.arange(0, 81, 2)
        held = hold_out(geometry(data), population, None, np.random.default_rng(1))
        assert len(held) == 6
        assert np.all(np.isin(held, population))

    @pytest.mark.parametrize("count", [0, 41, 81])
    def test_too_many_or_none(self, data: Acquisition, count: int) -> None:
        with pytest.raises(InvalidInputError, match="between 1 and 40"):
            hold_out(geometry(data), np.arange(81), count, np.random.default_rng(0))


def test_the_truth_finds_the_best_of_a_scan(data: Acquisition) -> None:
    found = fs.tune(data, prior="tv", criterion="truth", evaluations=9, **OPTIONS)
    at_choice = _snr(data, found.value)
    scan = [_snr(data, found.value * factor) for factor in (0.1, 0.3, 3.0, 10.0)]
    assert at_choice > max(scan) - 0.1
    assert at_choice > min(scan) + 1, "a problem in which the strength does not matter tests nothing"


def test_held_out_frames_choose_nearly_as_well(data: Acquisition) -> None:
    oracle = fs.tune(data, prior="tv", criterion="truth", evaluations=9, **OPTIONS)
    found = fs.tune(replace(data, truth=None), prior="tv", evaluations=9, **OPTIONS)
    assert found.criterion == "held-out"
    assert _snr(data, found.value) > _snr(data, oracle.value) - 0.5


def test_held_out_frames_are_never_looked_at_by_the_solver(data: Acquisition) -> None:
    """Ruined held-out frames change the scores by what they are compared with, not the reconstructions."""
    options: dict[str, Any] = {"loss": "intensity", "evaluations": 3, **OPTIONS}
    plain = fs.tune(replace(data, truth=None), prior=fs.TV(1e-6), **options)
    stack = np.array([data.frames.frame(i) for i in range(len(data))])
    stack[plain.held_out] += 5.0
    ruined = fs.tune(replace(data, frames=ArrayFrames(stack), truth=None), prior=fs.TV(1e-6), **options)
    np.testing.assert_array_equal(ruined.held_out, plain.held_out)
    assert [trial.value for trial in ruined.trials] == [trial.value for trial in plain.trials]
    # Σ (p − y − 5)² = Σ (p − y)² − 10 Σ (p − y) + 25 n: a solver that had seen the frames would have followed them.
    floor = 25 * np.prod(data.frame_shape)
    for before, after in zip(plain.trials, ruined.trials, strict=True):
        assert -after.score == pytest.approx(floor, rel=0.05)
        assert -before.score < 0.01 * floor


def test_the_strength_is_for_all_frames(data: Acquisition) -> None:
    found = fs.tune(data, prior="tv", criterion="held-out", held_out=27, evaluations=3, **OPTIONS)
    best = max(found.trials, key=lambda trial: trial.score)
    assert len(found.held_out) == 27
    assert found.value == pytest.approx(best.value * 54 / 81)


def test_frames_left_out_by_weight_stay_out(data: Acquisition) -> None:
    weights = np.ones(81)
    weights[::3] = 0
    found = fs.tune(replace(data, weights=weights, truth=None), prior="tv", evaluations=3, **OPTIONS)
    assert not np.any(weights[found.held_out] == 0)


def test_same_seed_same_choice(data: Acquisition) -> None:
    first, second = (fs.tune(data, prior="tv", criterion="held-out", evaluations=4, **OPTIONS) for _ in range(2))
    assert first.trials == second.trials


def test_trials_are_told_and_equally_long(data: Acquisition) -> None:
    told: list[Trial] = []
    lengths: dict[int, int] = {}

    def count(solver: Any, record: Any) -> None:
        lengths[id(solver)] = record.iteration
        alive.append(solver)  # an id may only be reused by the dead

    alive: list[Any] = []
    found = fs.tune(data, prior="tv", evaluations=4, on_trial=told.append, callbacks=[count], **OPTIONS)
    assert sorted(told, key=lambda trial: trial.value) == list(found.trials)
    assert sorted(lengths.values()) == [round(WARM_SHARE * 60)] * 4 + [60]


def test_an_interrupt_ends_the_search(data: Acquisition) -> None:
    with pytest.raises(KeyboardInterrupt):
        fs.tune(data, prior="tv", callbacks=[lambda solver, record: record.iteration >= 3], **OPTIONS)


def test_any_positive_number_of_the_configuration(data: Acquisition) -> None:
    from fouriscope.choices import choose

    options = OPTIONS | {"method": fs.settings.RED(denoiser_weight=0.5)}
    config = choose(data, measured=False, prior=fs.TV(1e-6), **options).config
    found = tune_config(data, config, key="solver.denoiser_weight", evaluations=3)
    assert {trial.value for trial in found.trials} == {0.5 / 8, 0.5, 4.0}
    assert found.key == "solver.denoiser_weight"


def test_an_automatic_weight_is_searched_for_around_that_of_the_method(data: Acquisition) -> None:
    from fouriscope.choices import choose

    config = choose(data, measured=False, prior=fs.TV(1e-6), **(OPTIONS | {"method": "red"})).config
    found = tune_config(data, config, key="solver.denoiser_weight", evaluations=3)
    assert {trial.value for trial in found.trials} == {0.25 / 8, 0.25, 2.0}


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("solver.stepp", "not in the configuration"),
        ("solver.acceleration", "positive number"),
        ("stop.seconds", "cannot"),
    ],
)
def test_what_cannot_be_tuned(data: Acquisition, key: str, message: str) -> None:
    from fouriscope.choices import choose

    config = choose(data, measured=False, prior=fs.TV(), **OPTIONS).config
    with pytest.raises(InvalidInputError, match=message):
        tune_config(data, config, key=key)


def test_a_prior_without_a_strength(data: Acquisition) -> None:
    with pytest.raises(InvalidInputError, match="the search has no start"):
        fs.tune(data, prior=None, **OPTIONS)


def test_a_truth_that_is_not_there(data: Acquisition) -> None:
    with pytest.raises(InvalidInputError, match="no truth"):
        fs.tune(replace(data, truth=None), criterion="truth", **OPTIONS)


def test_the_figure_marks_the_choice(data: Acquisition) -> None:
    found = fs.tune(data, prior="tv", criterion="held-out", evaluations=3, **OPTIONS)
    axes = found.figure().axes[0]
    assert f"{found.value:.3g}" in axes.get_xlabel()
    assert len(axes.get_lines()[1].get_xdata()) == 3  # type: ignore[arg-type]


class TestTwoImages:
    """Objects that absorb, with the recipe of ``import`` and with others: trials differ, and so do both images."""

    @pytest.mark.parametrize(
        "recipe",
        [
            {"object": "wave", "method": "spectral", "loss": "amplitude"},
            {"object": "complex", "method": "pnp", "loss": "amplitude"},
            {"object": "complex", "method": "pnp", "loss": "intensity"},
        ],
        ids=["import", "amplitude", "intensity"],
    )
    def test_strengths_far_apart_predict_differently(self, absorbing: Acquisition, recipe: dict[str, Any]) -> None:
        found = fs.tune(
            absorbing,
            **(OPTIONS | recipe | {"iterations": 20}),
            evaluations=4,
            factor=100.0,
            start="epry",
            calibrate=("zernike", "gains"),
        )
        scores = [trial.score for trial in found.trials]
        assert len(set(scores)) == len(scores)
        assert max(scores) - min(scores) > 0.02 * abs(max(scores))
        assert not found.flat

    def test_both_images_get_the_strength(self, absorbing: Acquisition) -> None:
        used: set[tuple[float, ...]] = set()

        def note(solver: Any, record: Any) -> None:
            used.add(tuple(solver.denoise.strengths))

        options: dict[str, Any] = {
            "object": "wave",
            "method": "spectral",
            "loss": "amplitude",
            "batch": None,
            "iterations": 10,
        }
        found = fs.tune(absorbing, prior=fs.TV(1e-4), evaluations=3, callbacks=[note], **options)
        assert used == {(trial.value, trial.value) for trial in found.trials}
        assert found.settings == {"prior.strength": found.value}

        used.clear()
        priors: dict[str, Any] = {"prior": fs.TV(1e-4), "prior_absorption": fs.L1(5e-4)}
        found = fs.tune(absorbing, evaluations=3, callbacks=[note], **priors, **options)
        assert all(second == pytest.approx(5 * first) for first, second in used)
        assert len(used) == 3
        assert found.settings == pytest.approx(
            {"prior.strength": found.value, "prior_absorption.strength": 5 * found.value}
        )

    def test_the_brightness_of_a_held_out_led_does_not_matter_where_it_is_calibrated(
        self, absorbing: Acquisition
    ) -> None:
        options: dict[str, Any] = {
            "object": "wave",
            "method": fs.settings.Spectral(background=0.0),  # with one, a misfit is not proportional to the light
            "loss": "amplitude",
            "batch": None,
            "iterations": 15,
        }
        options |= {"prior": fs.TV(1e-4), "evaluations": 3, "calibrate": "gains"}
        plain = fs.tune(absorbing, **options)
        stack = np.array([absorbing.frames.frame(i) for i in range(len(absorbing))])
        stack[plain.held_out] *= 1.7
        brighter = fs.tune(replace(absorbing, frames=ArrayFrames(stack)), **options)
        # d_j(g y) = g d_j(y) at the best brightness, and a factor that all have changes no choice.
        for before, after in zip(plain.trials, brighter.trials, strict=True):
            assert after.score == pytest.approx(1.7 * before.score, rel=1e-3)


def test_a_prior_that_is_far_too_weak_gives_a_flat_curve(data: Acquisition) -> None:
    found = fs.tune(data, prior=fs.TV(1e-16), criterion="held-out", evaluations=3, **OPTIONS)
    assert found.flat
    assert found.range == pytest.approx([trial.value * 75 / 81 for trial in (found.trials[0], found.trials[-1])])


def test_a_difference_within_the_spread_of_the_frames_is_none() -> None:
    """Two trials of which each predicts half of the frames better, and one that is worse on all of them."""
    rng = np.random.default_rng(0)
    frames = rng.uniform(1.0, 2.0, 20)
    lines = np.array([frames, frames * (1 + 0.1 * (-1.0) ** np.arange(20)), 1.02 * frames, 1.002 * frames])
    assert indistinguishable((-lines.mean(axis=1)).tolist(), lines) == [True, True, False, True]


def _snr(data: Acquisition, strength: float) -> float:
    result = fs.reconstruct(data, prior=fs.TV(strength), batch=27, iterations=80, seed=0)
    return float(result.history.last.snr)
