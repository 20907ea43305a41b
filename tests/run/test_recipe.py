"""The recipe: one home, what it decides for which frames, and what stands against it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.choices import choose
from fouriscope.errors import InvalidInputError
from fouriscope.run import ReconstructionConfig
from fouriscope.run.recipe import completed, measured_sections
from fouriscope.settings import method_of
from fouriscope.simulation import HostileMicroscope, field_error
from fouriscope.tuning import trials
from tests.conftest import LEDS, OPTICS
from tests.solvers.problems import shapes


@pytest.fixture(scope="module")
def simulated() -> fs.Acquisition:
    model = fs.ForwardModel(OPTICS, LEDS, (24, 24))
    return fs.simulate(model, shapes(model.object_shape, 0.3), snr_db=40, seed=0)


def chosen(data: fs.Acquisition, **options: Any) -> ReconstructionConfig:
    return choose(data, measured=not data.periodic, **options).config


def measured(data: fs.Acquisition) -> fs.Acquisition:
    return replace(data, periodic=False, truth=None)


def test_measured_frames_get_what_import_writes(simulated: fs.Acquisition) -> None:
    written = ReconstructionConfig.model_validate(measured_sections() | {"prior": fs.TV().spec()})
    assert chosen(measured(simulated)) == written
    assert written.solver.method == "spectral"
    assert written.alignment.is_wanted


def test_a_simulation_gets_the_settings_own_defaults(simulated: fs.Acquisition) -> None:
    assert chosen(simulated) == ReconstructionConfig(prior=fs.TV().spec())
    options: dict[str, Any] = {"method": "pnp", "object": "phase", "loss": "auto", "start": "flat", "batch": 30}
    stated = fs.reconstruct(simulated, prior="tv", align=(), calibrate=(), **options)
    np.testing.assert_array_equal(fs.reconstruct(simulated).phase, stated.phase)


@pytest.mark.parametrize(
    ("options", "solver"),
    [
        ({"method": "pnp"}, ("pnp", "wave", "amplitude", "epry")),
        ({"object": "phase"}, ("pnp", "phase", "amplitude", "epry")),
        ({"loss": "poisson"}, ("pnp", "wave", "poisson", "epry")),
        ({"loss": "amplitude", "start": "flat"}, ("spectral", "wave", "amplitude", "flat")),
        ({"method": "epry"}, ("epry", "wave", "amplitude", "flat")),
    ],
    ids=str,
)
def test_what_is_set_stands_and_the_rest_fits_it(
    simulated: fs.Acquisition, options: dict[str, Any], solver: tuple[str, str, str, str]
) -> None:
    data = measured(simulated)
    config = chosen(data, **options)
    assert (config.solver.method, config.object.model, config.solver.loss, config.solver.start) == solver
    assert config.alignment == chosen(data).alignment, "the microscope is no better known"
    assert len(fs.reconstruct(data, align=(), iterations=1, **options).history) == 1, "the parts go together"


def test_a_choice_that_cannot_be_is_an_error(simulated: fs.Acquisition) -> None:
    with pytest.raises(InvalidInputError, match='use object="wave" and loss="amplitude" with it'):
        fs.reconstruct(measured(simulated), method="spectral", object="phase", align=(), iterations=1)
    with pytest.raises(InvalidInputError, match="EPRY takes no prior"):
        fs.reconstruct(measured(simulated), method="epry", prior="tv", align=(), iterations=1)


def test_switches_that_are_set_are_all_of_them(simulated: fs.Acquisition) -> None:
    config = chosen(measured(simulated), align="focus", calibrate=())
    assert [key for key, value in config.alignment if value is True] == ["focus"]
    assert not any(value is True for _, value in config.calibration)
    assert chosen(simulated, align="all").alignment == chosen(measured(simulated)).alignment
    with pytest.raises(InvalidInputError, match=r"unknown key 'calibration\.led'; did you mean 'leds'"):
        chosen(simulated, calibrate="led")


def test_epry_for_measured_and_for_simulated_frames(simulated: fs.Acquisition) -> None:
    config = chosen(measured(simulated), method="epry")
    assert config.solver.options == {"order": "random", "object_step": 1.0, "pupil_step": 1.0, "decay": 0.3}
    assert (config.prior["name"], config.stop.iterations) == ("none", 20)
    assert not config.calibration.zernike
    exact = chosen(simulated, method="epry")
    assert exact.solver.options == {"order": "random", "object_step": 1.0, "pupil_step": 0.0, "decay": 0.0}
    assert exact.prior["name"] == "none"
    assert chosen(measured(simulated), method=fs.settings.EPRY(decay=0.0)).solver.options["decay"] == 0


def test_an_iteration_of_epry_is_a_sweep_unless_a_batch_is_set() -> None:
    count = 81
    model = fs.ForwardModel(OPTICS, fs.LEDArray.square(9, pitch=4e-3, height=70e-3), (24, 24))
    data = fs.simulate(model, shapes(model.object_shape, 0.3), seed=0)
    for options, seen in (({}, count), ({"batch": None}, count), ({"batch": 7}, 7)):
        result = fs.reconstruct(data, method="epry", iterations=2, **options)
        assert result.history.last.frames_seen == 2 * seen
    assert method_of({"method": "epry"}).sampler == "all"
    assert method_of({"method": "epry", "batch": 60}).sampler == "stratified"
    assert method_of({"method": "epry", "sampler": "epochs"}).sampler == "epochs"
    assert method_of({"method": "pnp"}).sampler == "stratified"


def test_the_recipe_does_not_change(simulated: fs.Acquisition) -> None:
    before = measured_sections()
    for choice in ({}, {"object": {"model": "phase"}}, {"solver": {"method": "epry"}}):
        completed(choice, measured=True)["stop"]["iterations"] = 1
    assert measured_sections() == before
    assert chosen(measured(simulated), method="epry").stop.iterations == 20


def test_tune_tunes_what_reconstruct_does(simulated: fs.Acquisition, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ReconstructionConfig] = []
    monkeypatch.setattr(trials, "tune_config", lambda data, config, **options: seen.append(config))
    for data in (simulated, measured(simulated)):
        fs.tune(data)
        assert seen[-1] == chosen(data)


def test_a_stream_cannot_align_and_keeps_the_settings_defaults(simulated: fs.Acquisition) -> None:
    live = fs.stream(OPTICS, LEDS, (24, 24))
    assert live.config == ReconstructionConfig(prior=fs.TV().spec())


def test_a_microscope_with_faults_needs_nothing_but_its_frames() -> None:
    """A displaced array, LEDs of unequal brightness and a sample that absorbs: what measured frames are like."""
    microscope = HostileMicroscope(leds=7, frame=40, surround=16, displacement=(0.8e-3, -0.5e-3), gain_error=0.1)
    data, truth = microscope.acquire(3)
    result = fs.reconstruct(data)
    assert result.stop_reason in ("150 iterations", "600 iterations"), "unseen frames decide"
    assert result.config["object"]["model"] == "wave"
    paper: dict[str, Any] = {"method": "pnp", "object": "phase", "loss": "intensity", "start": "flat"}
    exact = fs.reconstruct(data, prior="tv", align=(), calibrate=(), iterations=300, **paper)
    assert field_error(result.transmittance, truth) < 0.5 * field_error(exact.transmittance, truth)
