"""One home for every option: names, defaults, checks and sentences; what belongs to another method is refused."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from pydantic import ValidationError

import fouriscope as fs
from fouriscope import settings, solvers
from fouriscope.acquisition import ArrayFrames
from fouriscope.choices import Choices, MethodName, choose, overlaid
from fouriscope.errors import InvalidInputError
from fouriscope.run.config import parse_config
from fouriscope.settings import METHODS, ReconstructionConfig, method_of
from fouriscope.settings.reference import END, SECTIONS, START, reference
from tests.conftest import OPTICS
from tests.run.problems import document

LEDS = fs.LEDArray.square(3, pitch=4e-3, height=70e-3)
IMPORTED = {"method": "spectral", "loss": "amplitude", "start": "epry", "denoiser_weight": 2.0, "batch": 20}
DOCS = Path(__file__).parents[1] / "docs" / "configuration.md"


@pytest.fixture
def data() -> fs.Acquisition:
    return fs.Acquisition(OPTICS, LEDS, ArrayFrames(np.ones((9, 24, 24), np.float32)), periodic=True)


@pytest.mark.parametrize("name", METHODS)
def test_settings_and_solver_agree_on_names_and_defaults(name: str) -> None:
    chosen, solver = METHODS[name](), getattr(solvers, METHODS[name].__name__)
    arguments = inspect.signature(solver).parameters
    for option, value in chosen.options.items():
        assert arguments[option].default == value, f"{name}.{option}"


def test_every_method_can_be_named() -> None:
    assert set(get_args(MethodName)) == set(METHODS)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"method": "pnp", "data_steps": 7}, "data_steps is an option of method 'admm', but the method is 'pnp'"),
        ({"data_steps": 7}, "data_steps is an option of method 'admm', but the method is 'pnp'"),
        ({"method": "epry", "step": 0.1}, "step is an option of method"),
        ({"method": "pnp", "epry_decay": 0.5}, "epry_decay is an option of method 'epry'"),
        ({"method": "spectral", "steps_per_denoising": 3}, "steps_per_denoising is an option of method 'pnp'"),
    ],
    ids=str,
)
def test_an_option_of_another_method_is_an_error_that_says_so(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=f"solver: {message}"):
        parse_config(document() | {"solver": keys}, where="here")
    with pytest.raises(ValidationError):
        method_of(keys)


def test_what_earlier_versions_wrote_still_works() -> None:
    former = {
        "steps_per_denoising": 1,
        "data_steps": 5,
        "restart": True,
        "denoiser_weight": "auto",
        "balance": True,
        "epry_order": "random",
        "epry_step": 0.5,
        "epry_pupil_step": 1.0,
        "epry_decay": 0.3,
        "step": "auto",
        "acceleration": True,
        "batch": 60,
        "sampler": "all",
        "start": "flat",
        "seed": 0,
    }
    epry = method_of(former | {"method": "epry"})
    assert epry == settings.EPRY(object_step=0.5, pupil_step=1.0, decay=0.3, sampler="all", batch=60)
    plain = former | {"epry_step": 1.0, "epry_pupil_step": 0.0, "epry_decay": 0.0, "sampler": "stratified"}
    for name, weight in (("red", 0.25), ("spectral", 1.0)):
        assert method_of(plain | {"method": name}).options["denoiser_weight"] == weight
    assert method_of(plain) == settings.PnP(batch=60)


def test_a_record_may_hold_what_had_no_effect() -> None:
    former = document() | {"solver": {"method": "pnp", "epry_decay": 0.3, "data_steps": 9, "batch": 7}}
    assert parse_config(former, where="here", is_record=True).solver == settings.PnP(batch=7)
    with pytest.raises(InvalidInputError, match=r"epry_decay is an option of method 'epry'.*: delete it$"):
        parse_config(former, where="here")


def test_a_former_name_beside_the_new_one_is_an_error() -> None:
    with pytest.raises(ValidationError, match="epry_decay is now called decay, and both are given"):
        method_of({"method": "epry", "epry_decay": 0.3, "decay": 0.5})


@pytest.mark.parametrize(("keys", "message"), [({"method": "newton"}, "solver.method must be one of pnp, admm")])
def test_an_unknown_method(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parse_config(document() | {"solver": keys}, where="here")


@pytest.mark.parametrize(
    ("make", "keys"),
    [
        (settings.PnP, {"step": -1.0}),
        (settings.PnP, {"sampler": "lazy"}),
        (settings.PnP, {"steps_per_denoising": 0}),
        (settings.ADMM, {"data_steps": 1.5}),
        (settings.RED, {"denoiser_weight": -1.0}),
        (settings.Object, {"margin": -1}),
        (settings.Object, {"precision": "half"}),
        (settings.Stop, {"residual": 1.5}),
        (settings.EPRY, {"data_steps": 5}),
    ],
)
def test_settings_refuse_what_makes_no_sense(make: type[settings.Section], keys: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=rf"^settings\.{make.__name__}: .*{next(iter(keys))}") as caught:
        make(**keys)
    assert "\n" not in str(caught.value)


def test_settings_made_in_python_say_what_a_file_would() -> None:
    with pytest.raises(InvalidInputError) as caught:
        settings.PnP(step=-1.0)
    with pytest.raises(InvalidInputError) as read:
        parse_config(document(solver={"step": -1.0}), where="here")
    assert str(read.value) == str(caught.value).replace("settings.PnP: ", "here: solver.")
    with pytest.raises(
        InvalidInputError, match=r"^settings.Stop: unknown key 'iteration'; did you mean 'iterations'\?$"
    ):
        settings.Stop(iteration=5)  # type: ignore[call-arg]


def test_a_misspelt_option_is_known_by_its_method() -> None:
    with pytest.raises(InvalidInputError, match=r"unknown key 'solver.dekay'; did you mean 'decay'"):
        parse_config(document() | {"solver": {"method": "epry", "dekay": 1}}, where="here")


class TestDoors:
    def test_all_doors_take_the_same_choices(self) -> None:
        explicit = set(inspect.signature(fs.reconstruct).parameters) - {"data", "callbacks", "progress"}
        assert explicit == set(get_type_hints(Choices)), "fs.tune and fs.stream take what fs.reconstruct takes"
        assert len(inspect.signature(fs.reconstruct).parameters) <= 16

    def test_settings_objects_and_names_are_the_same(self, data: fs.Acquisition) -> None:
        names = choose(data, measured=False, method="admm", object="wave", align="focus", calibrate="gains", batch=4)
        objects = choose(
            data,
            measured=False,
            method=settings.ADMM(batch=4),
            object=settings.Object(model="wave"),
            align=settings.Alignment(focus=True),
            calibrate=settings.Calibration(gains=True),
        )
        assert names.config == objects.config

    def test_what_a_settings_object_leaves_open_follows_the_recipe(self, data: fs.Acquisition) -> None:
        config = choose(data, measured=True, method=settings.Spectral(balance=False)).config
        assert (config.solver.loss, config.solver.start) == ("amplitude", "epry")
        assert not config.solver.options["balance"]
        assert choose(data, measured=True, object=settings.Object(margin=4)).config.object.model == "wave"

    def test_nothing_is_said_twice(self, data: fs.Acquisition) -> None:
        with pytest.raises(InvalidInputError, match="batch: given twice"):
            fs.reconstruct(data, method=settings.PnP(batch=3), batch=4)
        with pytest.raises(InvalidInputError, match="iterations and stop are both given"):
            fs.reconstruct(data, iterations=4, stop=settings.Stop(seconds=1))

    @pytest.mark.parametrize(
        ("choices", "message"),
        [
            ({"object": settings.PnP()}, "object takes settings.Object, got PnP"),
            ({"method": settings.Object()}, "method takes settings.PnP or settings.ADMM"),
            ({"method": settings.Method()}, "method takes settings.PnP or settings.ADMM"),
            ({"stop": 5}, "stop takes settings.Stop, got 5"),
            ({"calibrate": ["leds_bound"]}, "leds_bound is a value, not a switch"),
            ({"iteratons": 5}, "unknown choice 'iteratons'; did you mean 'iterations'"),
        ],
    )
    def test_what_does_not_fit_is_named(self, data: fs.Acquisition, choices: Any, message: str) -> None:
        with pytest.raises(InvalidInputError, match=message):
            choose(data, measured=False, **choices)
        with pytest.raises(InvalidInputError, match=message):
            overlaid(parse_config(document(), where="here"), **choices)

    def test_none_is_nothing(self, data: fs.Acquisition) -> None:
        config = choose(data, measured=True, align=None, calibrate=None).config
        assert not config.alignment.is_wanted
        assert config.calibration == settings.Calibration()

    def test_choices_stand_in_for_what_a_description_says(self) -> None:
        described = parse_config(document(solver={"seed": 7, "batch": 20, "method": "red"}), where="here")
        changed = overlaid(described, seed=0, iterations=9, prior="l1")
        assert (changed.solver.seed, changed.solver.batch, changed.stop.iterations) == (0, 20, 9)
        assert (changed.solver.method, changed.prior["name"]) == ("red", "l1")
        epry = overlaid(described, method=settings.EPRY(), batch=None)
        assert (epry.solver.sampler, epry.prior["name"], epry.solver.seed) == ("all", "none", 7)
        imported = parse_config(document(object={"model": "wave"}, solver=IMPORTED), where="here")
        phase = overlaid(imported, object="phase")
        assert (phase.solver.method, phase.solver.loss, phase.solver.start) == ("pnp", "amplitude", "epry")
        assert overlaid(imported, loss="poisson").solver.method == "pnp"
        assert overlaid(imported, object="wave", iterations=3).solver == imported.solver
        assert overlaid(imported, object="phase", method="red").solver.method == "red"
        with pytest.raises(InvalidInputError, match="must have a name here, because workers build"):
            overlaid(described, prior=lambda image, sigma: image)

    @pytest.mark.parametrize("name", ["iterations", "stop", "align"])
    def test_a_stream_refuses_what_needs_an_end(self, name: Any) -> None:
        options: Any = {name: 3}
        with pytest.raises(InvalidInputError, match=f"fs.stream does not take {name}"):
            fs.stream(OPTICS, LEDS, (24, 24), **options)

    def test_a_tuning_takes_both_priors_by_name(self, data: fs.Acquisition) -> None:
        with pytest.raises(InvalidInputError, match="a phase object has no absorption"):
            fs.tune(data, prior="tv", prior_absorption="tv", held_out=2, batch=4, iterations=1)


class TestReference:
    def test_every_key_has_a_sentence(self) -> None:
        for title, kinds in SECTIONS.items():
            for section in kinds:
                for name, field in section.model_fields.items():
                    if name not in ("kind", "method"):
                        assert field.description, f"{title} {name}"

    def test_every_section_is_in_it(self) -> None:
        listed = {kind for kinds in SECTIONS.values() for kind in kinds}
        assert listed >= {*METHODS.values(), *settings.ILLUMINATIONS.values()}
        named = {title.strip("[]") for title in SECTIONS if not title.startswith("[colour")}  # of a file of its own
        assert named | {"prior", "prior_absorption"} == set(settings.RunConfig.model_fields)
        assert ReconstructionConfig.model_fields.keys() <= settings.RunConfig.model_fields.keys()

    def test_the_documentation_has_it(self) -> None:
        text = DOCS.read_text(encoding="utf-8")
        written = text[text.index(START) + len(START) : text.index(END)].strip()
        assert written == reference().strip(), "run: python -m fouriscope.settings.reference docs/configuration.md"
