"""The strength of the prior that predicts unseen frames best: when it is searched, how, and who keeps it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.choices import choose
from fouriscope.errors import DivergenceError
from fouriscope.parallel import threads
from fouriscope.run import predictions, rehearsal
from fouriscope.run.assemble import build_solver
from fouriscope.run.predictions import Prediction
from fouriscope.run.rehearsal import rehearsed
from fouriscope.settings import ReconstructionConfig
from fouriscope.simulation import HostileMicroscope, field_error
from fouriscope.solvers import Solver
from fouriscope.verdict.heldout import misfits


@pytest.fixture(scope="module")
def data() -> fs.Acquisition:
    return HostileMicroscope(leds=7, frame=32, surround=16).acquire(3)[0]


def config_of(data: fs.Acquisition, **choices: Any) -> ReconstructionConfig:
    return choose(data, measured=True, **({"align": ()} | choices)).config


def factor_of(config: ReconstructionConfig) -> Any:
    return config.solver.options["strength_factor"]


def pretend(monkeypatch: pytest.MonkeyPatch, misfit: Callable[[float], float]) -> list[float]:
    """Misfits of unseen frames that depend on the factor, and are larger with steps that fade; the factors tried."""
    tried: list[float] = []

    def found(*arguments: Any) -> Prediction:
        factor, long_steps = arguments[-2:]
        tried.append(factor)
        return Prediction(misfit(factor) * (1 if long_steps else 1.1), np.zeros(4))

    monkeypatch.setattr(predictions, "prediction", found)
    return tried


@pytest.mark.parametrize(
    ("best", "tried"),
    [
        (1.0, [1, 1, 1, 1 / 4, 4]),
        (1 / 4, [1, 1, 1, 1 / 4, 1 / 16]),
        (1 / 64, [1, 1, 1, 1 / 4, 1 / 16]),
        (4.0, [1, 1, 1, 1 / 4, 4]),
        (100.0, [1, 1, 1, 1 / 4, 4]),
    ],
)
def test_the_search_goes_downhill_and_ends(
    data: fs.Acquisition, monkeypatch: pytest.MonkeyPatch, best: float, tried: list[float]
) -> None:
    asked = pretend(monkeypatch, lambda factor: 1 + math.log(factor / best) ** 2)
    config = rehearsed(data, config_of(data))
    assert sorted(asked) == sorted(tried)  # some are made at the same time
    assert factor_of(config) == min(tried, key=lambda factor: abs(math.log(factor / best)))


def test_a_flat_curve_changes_nothing_and_nothing_is_told(
    data: fs.Acquisition, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, lambda factor: 1 - 0.002 * factor)
    told: list[str] = []
    assert factor_of(rehearsed(data, config_of(data), tell=told.append)) == 1
    assert not told


@pytest.mark.parametrize(
    ("imagined_up_to", "lost_at_four", "chosen"), [(0.0, 1.0, 1.0), (1.0, 1.0, 2.0), (4.0, 1.0, 4.0), (4.0, 1.2, 2.0)]
)
def test_imagined_structure_asks_for_a_stronger_prior(
    data: fs.Acquisition, monkeypatch: pytest.MonkeyPatch, imagined_up_to: float, lost_at_four: float, chosen: float
) -> None:
    def found(*arguments: Any) -> Prediction:
        factor, long_steps = arguments[-2:]
        misfit = {0.25: 1.1, 4.0: lost_at_four}.get(factor, 1.0) * (1 if long_steps else 1.1)
        return Prediction(misfit, np.zeros(4), imagines=factor <= imagined_up_to)

    monkeypatch.setattr(predictions, "prediction", found)
    told: list[str] = []
    assert factor_of(rehearsed(data, config_of(data), tell=told.append)) == chosen
    assert len(told) == (chosen > 1)


@pytest.mark.parametrize(("imagined_up_to", "chosen"), [(0.1, 1 / 4), (0.3, 1.0)])
def test_a_weaker_prior_that_imagines_structure_is_not_used(
    data: fs.Acquisition, monkeypatch: pytest.MonkeyPatch, imagined_up_to: float, chosen: float
) -> None:
    def found(*arguments: Any) -> Prediction:
        factor, long_steps = arguments[-2:]
        return Prediction(factor * (1 if long_steps else 2), np.zeros(4), imagines=factor <= imagined_up_to)

    monkeypatch.setattr(predictions, "prediction", found)
    assert factor_of(rehearsed(data, config_of(data))) == chosen


@pytest.mark.parametrize(
    ("travels", "longer", "asked", "found"),
    [(True, 0.9, "auto", 600), (True, 1.0, "auto", 150), (False, 0.9, "auto", 150), (True, 0.9, 150, 150)],
)
def test_more_iterations_where_unseen_frames_say_so(
    data: fs.Acquisition, monkeypatch: pytest.MonkeyPatch, travels: bool, longer: float, asked: Any, found: int
) -> None:
    """Only "auto" leaves it open: a number that somebody chose is used, also if it is 150."""

    def pretended(*arguments: Any) -> Prediction:
        config, factor, long_steps = arguments[-3:]
        misfit = longer if config.stop.iterations == 600 else 1.0
        return Prediction(misfit if factor == 1 and long_steps else 2.0, np.zeros(4), travels=travels)

    monkeypatch.setattr(predictions, "prediction", pretended)
    assert rehearsed(data, config_of(data, iterations=asked)).stop.iterations == found


@pytest.mark.slow
def test_a_weak_sample_among_noise_is_not_full_of_dots() -> None:
    microscope = HostileMicroscope.draw(182)
    raw, truth = microscope.acquire(182)
    seen = replace(raw, illumination=truth.illumination)
    config = rehearsed(seen, config_of(seen))
    assert factor_of(config) > 1
    errors = [
        field_error(
            fs.reconstruct(
                seen, align=(), method=config.solver.model_copy(update={"strength_factor": factor})
            ).transmittance,
            truth,
        )
        for factor in (1.0, factor_of(config))
    ]
    assert errors[1] < 0.8 * errors[0]


def test_trials_divide_only_leds_near_the_pupils_edge(data: fs.Acquisition, monkeypatch: pytest.MonkeyPatch) -> None:
    array = data.illumination
    assert isinstance(array, fs.LEDArray)
    large = replace(data, illumination=replace(array, die=0.8 * np.diff(np.unique(array.positions[:, 0]))[0]))
    models: list[fs.ForwardModel] = []

    def seen(patch: fs.Acquisition, model: fs.ForwardModel, *rest: Any) -> Any:
        models.append(model)
        return misfits(patch, model, *rest)

    monkeypatch.setattr(predictions, "misfits", seen)
    config = config_of(large)
    rehearsed(large, config)
    edge = large.optics.na
    for model in models:
        parts, whole = (np.diff(one.geometry.sources.offsets) for one in (model, build_solver(large, config).model))
        na = model.geometry.illumination_na
        near = np.abs(na - edge) < 0.2 * edge
        np.testing.assert_array_equal(parts[near], whole[near])
        assert whole[na < 0.5 * edge].min() > 1
        assert parts[na < 0.5 * edge].max() == 1
    assert len(models) >= 4


def test_steps_fade_at_once_where_unseen_frames_say_so(data: fs.Acquisition, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(
        predictions, "prediction", lambda *arguments: Prediction(1.0 if arguments[-1] else 0.5, np.zeros(4))
    )
    assert rehearsed(data, config_of(data), tell=told.append).solver.options["long_steps"] is False
    assert told == [
        "steps: if they fade from the first pass on, unseen frames are predicted better (misfit 0.5 instead of 1)"
    ]
    chosen = config_of(data, method=fs.settings.Spectral(long_steps=True))
    assert rehearsed(data, chosen).solver.options["long_steps"] is True


@pytest.mark.parametrize(
    ("misfits_of_factors", "more_alike", "chosen"),
    [
        ({4.0: 1.001}, {4.0: 0.1}, 4.0),  # noise hides in the misfit what the prior gains
        ({4.0: 1.001}, {4.0: 0.0}, 1.0),
        ({4.0: 1.02}, {4.0: 0.1}, 1.0),
        ({4.0: 0.98}, {4.0: -0.1}, 1.0),
        ({0.25: 0.98}, {0.25: -0.1}, 1.0),  # it fits noise
        ({0.25: 0.98}, {0.25: 0.0}, 0.25),
    ],
)
def test_correlations_have_a_say(
    data: fs.Acquisition,
    monkeypatch: pytest.MonkeyPatch,
    misfits_of_factors: dict[float, float],
    more_alike: dict[float, float],
    chosen: float,
) -> None:
    def found(*arguments: Any) -> Prediction:
        factor = arguments[-2]
        alike = 0.5 + more_alike.get(factor, 0.0) * np.array([1.0, 1.2, 0.8, 1.0])
        return Prediction(misfits_of_factors.get(factor, 1.0), alike)

    monkeypatch.setattr(predictions, "prediction", found)
    assert factor_of(rehearsed(data, config_of(data))) == chosen


@pytest.mark.parametrize(
    ("misfit", "more_alike", "chosen"),
    [
        (0.99, 0.1, "brightness"),
        (0.99, 0.0, "contrast"),
        (0.9, 0.0, "brightness"),
        (0.9, -0.1, "contrast"),
        (1.1, 0.1, "contrast"),
    ],
)
def test_brightness_decides_the_gains_only_where_unseen_frames_clearly_say_so(
    data: fs.Acquisition, monkeypatch: pytest.MonkeyPatch, misfit: float, more_alike: float, chosen: str
) -> None:
    def found(*arguments: Any) -> Prediction:
        by = arguments[-3].calibration.gains_by == "brightness"
        alike = 0.5 + (more_alike if by else 0.0) * np.array([1.0, 1.2, 0.8, 1.0])
        return Prediction(misfit if by else 1.0, alike)

    monkeypatch.setattr(predictions, "prediction", found)
    assert rehearsed(data, config_of(data)).calibration.gains_by == chosen
    told = fs.settings.Calibration(gains=True, gains_by="contrast")
    assert rehearsed(data, config_of(data, calibrate=told)).calibration.gains_by == "contrast"
    assert rehearsed(data, config_of(data, calibrate=())).calibration.gains_by == "auto"


def test_what_was_found_is_told(data: fs.Acquisition, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, lambda factor: 1 / factor)
    told: list[str] = []
    rehearsed(data, config_of(data), tell=told.append)
    assert told == ["prior: 4 times the automatic strength predicts unseen frames best (misfit 0.25 instead of 1)"]


@pytest.mark.parametrize(
    "choices",
    [
        {"method": "pnp"},
        {"iterations": 99},
        {"prior": fs.TV(strength=0.1)},
        {"prior": None},
        {"method": fs.settings.Spectral(strength_factor=2.0)},
    ],
    ids=lambda choices: str(next(iter(choices))),
)
def test_it_is_not_asked_for_where_it_would_change_nothing_or_the_run_is_short(
    data: fs.Acquisition, monkeypatch: pytest.MonkeyPatch, choices: dict[str, Any]
) -> None:
    tried = pretend(monkeypatch, lambda factor: factor)
    chosen = choose(data, measured=True, align=(), **choices)
    prior = chosen.objects["prior"]
    assert rehearsed(data, chosen.config, prior=prior) is chosen.config
    assert not tried


def test_a_few_leds_or_bright_field_alone_cannot_decide(data: fs.Acquisition, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = pretend(monkeypatch, lambda factor: factor)
    weights = data.frame_weights
    weights[11:] = 0
    few = replace(data, weights=weights)
    assert factor_of(rehearsed(few, config_of(few))) == "auto"
    assert not tried


def test_a_trial_does_not_see_the_frames_that_it_predicts_and_one_that_diverges_loses(
    data: fs.Acquisition, monkeypatch: pytest.MonkeyPatch
) -> None:
    populations: list[set[int]] = []

    def built(seen: fs.Acquisition, config: ReconstructionConfig, **objects: Any) -> Solver:
        solver = build_solver(seen, config, **objects)
        populations.append(set(np.flatnonzero(seen.frame_weights > 0)))
        if factor_of(config) < 1:
            monkeypatch.setattr(solver, "solve", lambda *_: (_ for _ in ()).throw(DivergenceError("astray")))
        return solver

    predicted: list[set[int]] = []

    def predict(patch: fs.Acquisition, model: Any, x: Any, leds: Any) -> Any:
        predicted.append(set(leds))
        return misfits(patch, model, x, leds)

    monkeypatch.setattr(rehearsal, "with_best_seed", lambda acquisition, config, *_: config)
    monkeypatch.setattr(predictions, "build_solver", built)
    monkeypatch.setattr(predictions, "misfits", predict)
    config = config_of(data, calibrate=())
    short = config.model_copy(update={"stop": config.stop.model_copy(update={"iterations": 100})})
    assert factor_of(rehearsed(data, short)) >= 1
    assert len(populations) > len(predicted) > 0  # one diverged
    assert all(held and not held & seen for held in predicted for seen in populations)


def test_trials_made_together_predict_the_same_as_one_after_the_other(
    data: fs.Acquisition, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict, config = predictions.prediction, config_of(data, iterations=100)
    made: dict[Any, list[float]] = {}

    def noted(*arguments: Any) -> Prediction:
        tried, factor, long_steps = arguments[-3:]
        found = predict(*arguments)
        by_brightness = tried.calibration.gains_by == "brightness"
        made[by_brightness, factor, long_steps] = [found.misfit, *found.correlations]
        return found

    monkeypatch.setattr(predictions, "prediction", noted)
    with threads(1):
        chosen = rehearsed(data, config)
    alone = dict(made)
    made.clear()
    with threads(2):
        assert rehearsed(data, config) == chosen
    assert len(alone) >= 4
    assert {options: made[options] for options in alone} == alone


def test_after_an_interruption_no_other_trial_begins() -> None:
    begun: list[int] = []
    interrupted = Event()

    def job(number: int) -> None:
        begun.append(number)
        if number == 0:
            interrupted.set()
            raise KeyboardInterrupt
        assert interrupted.wait(10)
        time.sleep(0.2)

    with threads(2), pytest.raises(KeyboardInterrupt):
        predictions.at_the_same_time([partial(job, number) for number in range(8)])
    assert 0 in begun
    assert not {1, 2, 3, 7} & set(begun)  # the other core has its first ones


def test_the_run_and_its_record_have_what_was_found(data: fs.Acquisition, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, lambda factor: factor)
    result = fs.reconstruct(data, align=(), calibrate=(), iterations=100)
    assert result.config["solver"]["strength_factor"] == 1 / 16


def test_the_factor_multiplies_the_automatic_strength(data: fs.Acquisition) -> None:
    used = {}
    for factor in (1.0, 4.0):
        method = fs.settings.Spectral(strength_factor=factor)
        seen: list[float] = []
        fs.reconstruct(
            *(data,),
            method=method,
            align=(),
            calibrate=(),
            iterations=2,
            callbacks=[lambda solver, record, seen=seen: seen.append(record.strength)],  # type: ignore[misc]
        )
        used[factor] = seen[-1]
    np.testing.assert_allclose(used[4.0], 4 * used[1.0])
