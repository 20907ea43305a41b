"""The configuration file: defaults, every kind of illumination, and what it says to those who get it wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from fouriscope import settings
from fouriscope.errors import InvalidInputError
from fouriscope.priors import as_prior
from fouriscope.run import load_config
from fouriscope.run.assemble import (
    build_acquisition,
    build_geometry,
    build_solver,
    build_stop,
)
from fouriscope.run.config import parse_config
from fouriscope.run.inputs import resolved
from fouriscope.run.microscope import build_illumination
from fouriscope.run.priors import build_priors
from fouriscope.settings import ReconstructionConfig, Stop
from fouriscope.solvers import ADMM, RED, Descent, PnP, Spectral
from tests.run.problems import config, document, write_acquisition

ILLUMINATIONS: dict[str, tuple[dict[str, Any], int]] = {
    "square": ({"kind": "square", "shape": [3, 5], "pitch": 4e-3, "height": 70e-3}, 15),
    "disc": ({"kind": "disc", "pitch": 4e-3, "height": 70e-3, "radius": 9.5}, 293),
    "spiral": ({"kind": "spiral", "size": 4, "pitch": 4e-3, "height": 70e-3, "count": 12}, 12),
    "rings": ({"kind": "rings", "radii": [0.0, 4e-3, 9e-3], "counts": [1, 6, 12], "height": 70e-3}, 19),
    "positions": ({"kind": "positions", "positions": [[0.0, 0.0], [4e-3, 1e-3]], "height": 70e-3}, 2),
    "directions": ({"kind": "directions", "na": [[0.0, 0.0], [0.1, -0.05], [0.3, 0.0]]}, 3),
    "turned, below glass": (
        {
            "kind": "square",
            "shape": [3, 3],
            "pitch": 4e-3,
            "height": 70e-3,
            "rotation": 0.1,
            "offset": [1e-3, 0.0],
            "slide_thickness": 1e-3,
        },
        9,
    ),
}


def broken(**sections: dict[str, Any]) -> str:
    with pytest.raises(InvalidInputError) as caught:
        parse_config(document(**sections), where="my.toml")
    message = str(caught.value)
    assert message.startswith("my.toml: ")
    assert "\n" not in message
    return message.removeprefix("my.toml: ")


@pytest.mark.parametrize("name", ILLUMINATIONS)
def test_every_illumination_builds(name: str) -> None:
    section, count = ILLUMINATIONS[name]
    changed = document()
    changed["illumination"] = section
    illumination = build_illumination(parse_config(changed, where="test").illumination)
    assert len(illumination) == count
    assert illumination.directions((0.0, 0.0)).shape == (count, 2)


def test_directions_are_those_of_the_file() -> None:
    section, _ = ILLUMINATIONS["directions"]
    changed = document()
    changed["illumination"] = section
    illumination = build_illumination(parse_config(changed, where="test").illumination)
    np.testing.assert_allclose(illumination.directions((0.0, 0.0)), section["na"])


def test_defaults_are_found_from_the_frames() -> None:
    plain = ReconstructionConfig()
    assert (plain.solver.batch, plain.solver.loss, plain.solver.sampler) == ("auto", "auto", "stratified")
    assert [settings.PnP().batch_of(frames) for frames in (9, 81, 293, 1009)] == [9, 30, 30, 60]
    assert [settings.Spectral().batch_of(frames) for frames in (9, 81, 121, 293)] == [9, 27, 40, 60]
    assert plain.solver == settings.PnP(step="auto", acceleration=True, steps_per_denoising=1)
    assert plain.object.model == "phase"
    assert plain.object.shape == "auto"
    assert plain.prior["name"] == "tv"
    assert (plain.stop.iterations, plain.stop.settled) == (300, True)
    assert not settings.Stop(iterations=300).settled, "who asks for a number gets it"


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"solver": {"bacth": 3}}, "unknown key 'solver.bacth'; did you mean 'batch'?"),
        ({"sovler": {"batch": 3}}, "unknown key 'sovler'; did you mean 'solver'?"),
        ({"illumination": {"pich": 1.0, "pitch": None}}, "unknown key 'illumination.pich'; did you mean 'pitch'?"),
        (
            {"illumination": {"zzz": 1.0}},
            "known keys: die, die_shape, height, kind, offset, patterns, pitch, rotation, shape",
        ),
        ({"microscope": {"na": None}}, "microscope.na is missing"),
        ({"illumination": {"height": None}}, "illumination.height is missing"),
        ({"illumination": {"kind": None}}, "illumination.kind is missing: one of square, disc, spiral, rings"),
        ({"illumination": {"kind": "hexagon"}}, "illumination.kind must be one of square, disc, spiral, rings"),
        ({"microscope": {"na": -0.2}}, "microscope.na: Input should be greater than 0, got -0.2"),
        ({"microscope": {"na": "big"}}, "microscope.na: Input should be a valid number"),
        ({"microscope": {"wavelength": float("nan")}}, "microscope.wavelength: Input should be"),
        ({"microscope": {"patch_center": [1.0]}}, "microscope.patch_center.1 is missing"),
        ({"solver": {"step": -3}}, "solver.step: Input should be greater than 0, got -3"),
        ({"solver": {"step": "fast"}}, "solver.step: Input should be a valid number"),
        ({"solver": {"loss": "huber"}}, "solver.loss: Input should be 'intensity', 'amplitude' or 'poisson'"),
        ({"solver": {"batch": 0}}, "solver.batch: Input should be greater than or equal to 1, got 0"),
        (
            {"solver": {"method": "fista"}},
            "solver.method must be one of pnp, admm, red, spectral, epry, got 'fista'",
        ),
        (
            {"solver": {"steps_per_denoising": 0}},
            "solver.steps_per_denoising: Input should be greater than or equal to 1",
        ),
        ({"solver": {"steps_per_denoising": "many"}}, "solver.steps_per_denoising: Input should be a valid integer"),
        (
            {"solver": {"method": "admm", "data_steps": 0}},
            "solver.data_steps: Input should be greater than",
        ),
        ({"solver": {"method": "admm", "data_steps": "often"}}, "solver.data_steps: Input should be a valid integer"),
        (
            {"solver": {"method": "red", "denoiser_weight": 0.0}},
            "solver.denoiser_weight: Input should be greater",
        ),
        (
            {"solver": {"method": "red", "denoiser_weight": float("inf")}},
            "solver.denoiser_weight: Input should be a finite",
        ),
        (
            {"solver": {"method": "red", "denoising_weight": 1.0}},
            "unknown key 'solver.denoising_weight'; did you mean 'denoiser_weight'?",
        ),
        ({"solver": {"seed": 1.5}}, "solver.seed: Input should be a valid integer"),
        ({"object": {"shape": [8, 8, 8]}}, "object.shape: Tuple should have at most 2 items"),
        ({"object": {"margin": -1}}, "object.margin: Input should be greater than or equal to 0"),
        ({"stop": {"residual": 2.0}}, "stop.residual: a relative residual must be below 1, got 2.0"),
        ({"pupil": {"zernike": {"four": 1.0}}}, "pupil.zernike.four: Input should be a valid integer"),
    ],
)
def test_a_mistake_is_named_in_one_line(sections: dict[str, dict[str, Any]], message: str) -> None:
    assert message in broken(**sections)


def test_a_missing_section_is_named() -> None:
    for section in ("frames", "microscope", "illumination"):
        incomplete = document()
        del incomplete[section]
        with pytest.raises(InvalidInputError, match=rf"^my.toml: {section} is missing$"):
            parse_config(incomplete, where="my.toml")


def test_further_mistakes_are_counted_once_each() -> None:
    assert broken(solver={"batch": 0, "seed": -1, "step": -1.0}).endswith("(and 2 more)")


def test_a_number_where_a_section_belongs() -> None:
    wrong = document()
    wrong["solver"] = 5
    with pytest.raises(InvalidInputError, match=r"solver: .*got 5"):
        parse_config(wrong, where="my.toml")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"no.toml: no such file; `fouriscope simulate` writes an example"):
        load_config(tmp_path / "no.toml")
    with pytest.raises(InvalidInputError, match="is a folder; give the configuration file"):
        load_config(tmp_path)
    (tmp_path / "words.toml").write_text("these are words", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"words.toml: not a TOML file"):
        load_config(tmp_path / "words.toml")
    (tmp_path / "bytes.toml").write_bytes(bytes(range(256)))
    with pytest.raises(InvalidInputError, match=r"bytes.toml: cannot be read as a TOML file"):
        load_config(tmp_path / "bytes.toml")


@pytest.mark.parametrize("name", ILLUMINATIONS)
def test_the_resolved_configuration_says_the_same(name: str, tmp_path: Path) -> None:
    changed = document(
        frames={"weights": [1.0] * 49, "mask": "mask.npy", "offset": 100.0},
        pupil={"zernike": {"4": 0.5, "8": -0.1}, "array": "pupil.npy"},
        object={"model": "complex", "shape": [120, 120], "margin": 2},
        prior={"name": "box", "lower": -1.0},
        prior_absorption={"name": "tv", "strength": 1e-4},
    )
    changed["illumination"] = ILLUMINATIONS[name][0]
    first = parse_config(changed, where="test")
    written = tomli_w.dumps(resolved(first, tmp_path))
    (tmp_path / "again.toml").write_text(written, encoding="utf-8")
    again = load_config(tmp_path / "again.toml")
    assert again.frames.path == str(tmp_path / "frames.npy")
    assert again.frames.mask == str(tmp_path / "mask.npy")
    assert again.pupil.array == str(tmp_path / "pupil.npy")
    for section in ("microscope", "illumination", "object", "solver", "stop"):
        assert getattr(again, section) == getattr(first, section)
    assert again.pupil.zernike == first.pupil.zernike == {4: 0.5, 8: -0.1}
    assert as_prior(again.prior).spec() == as_prior(first.prior).spec()
    assert again.prior_absorption == as_prior(first.prior_absorption).spec(), "with its defaults"
    assert resolved(again, Path("/elsewhere")) == resolved(first, tmp_path), "resolving twice changes nothing"


SPECTRAL = {"method": "spectral", "loss": "amplitude"}


@pytest.mark.parametrize(
    ("section", "kind", "attribute"),
    [
        ({}, PnP, ("steps_per_denoising", 1)),
        ({"method": "pnp", "steps_per_denoising": 4}, PnP, ("steps_per_denoising", 4)),
        ({"method": "pnp", "steps_per_denoising": "auto"}, PnP, ("steps_per_denoising", 1)),
        ({"method": "admm"}, ADMM, ("data_steps", 5)),
        ({"method": "admm", "data_steps": 2}, ADMM, ("data_steps", 2)),
        ({"method": "red"}, RED, ("denoiser_weight", 0.25)),
        (SPECTRAL, Spectral, ("denoiser_weight", 1.0)),
        (SPECTRAL | {"denoiser_weight": 2, "acceleration": False}, Spectral, ("denoiser_weight", 2.0)),
        ({"method": "red", "denoiser_weight": 2, "acceleration": False}, RED, ("denoiser_weight", 2.0)),
    ],
    ids=str,
)
def test_a_method_and_its_parameters_reach_the_solver_and_the_record(
    tmp_path: Path, section: dict[str, Any], kind: type[Descent], attribute: tuple[str, float]
) -> None:
    wave: dict[str, Any] = (
        {"object": {"model": "wave", "shape": [72, 72]}} if section.get("method") == "spectral" else {}
    )
    path = write_acquisition(tmp_path, solver=section, **wave)
    read = load_config(path)
    solver = build_solver(build_acquisition(read, tmp_path), read)
    assert type(solver) is kind
    name, value = attribute
    assert getattr(solver, name) == value
    assert vars(solver)["acceleration"] is section.get("acceleration", True)
    recorded = resolved(read, tmp_path)["solver"]
    assert recorded["method"] == section.get("method", "pnp")
    assert recorded[name] == section.get(name, value)
    assert parse_config(resolved(read, tmp_path), where="test").solver == read.solver


def test_the_resolved_configuration_holds_the_defaults(tmp_path: Path) -> None:
    full = resolved(config(), tmp_path)
    assert full["solver"]["step"] == "auto"
    assert full["object"]["precision"] == "single"
    assert full["prior"] == as_prior("tv").spec()


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ({"name": "tvv"}, "unknown prior 'tvv'; did you mean 'tv'"),
        ({"name": "tv", "strenght": 1.0}, "has no parameter 'strenght'"),
        ({"name": "tv", "max_iterations": "many"}, r"\[prior\]"),
        ({"name": "tv", "accuracy": "high"}, r"\[prior\]"),
        ({"name": "box", "lower": "low"}, r"\[prior\]"),
        ({"strength": 1.0}, 'to hold "name"'),
    ],
)
def test_a_wrong_prior_is_an_input_error(prior: dict[str, Any], message: str) -> None:
    wrong = document()
    wrong["prior"] = prior
    with pytest.raises(InvalidInputError, match=message):
        build_priors(parse_config(wrong, where="test"), 1)


def test_a_prior_for_an_absorption_that_is_not_there() -> None:
    with pytest.raises(InvalidInputError, match="a phase object has no absorption"):
        build_priors(config(prior_absorption={"name": "tv"}), 1)
    first, second = build_priors(config(prior_absorption={"name": "l1"}), 2)
    assert (first.name, second.name) == ("tv", "l1")
    first, second = build_priors(config(), 2)
    assert first is not second
    assert first.spec() == second.spec()


def test_a_run_needs_a_limit() -> None:
    with pytest.raises(InvalidInputError, match="would never stop"):
        build_stop(Stop(iterations=None))


def test_a_run_by_time_alone_is_recorded_as_one(tmp_path: Path) -> None:
    timed = config().model_copy(update={"stop": Stop(iterations=None, seconds=5.0)})
    document = resolved(timed, tmp_path)
    assert document["stop"] == {"iterations": "unlimited", "seconds": 5.0, "settled": False}
    assert parse_config(document, where="test").stop == timed.stop


def test_a_starting_point_cannot_come_from_a_file(tmp_path: Path) -> None:
    path = write_acquisition(tmp_path, solver={"start": "array"})
    with pytest.raises(InvalidInputError, match=r'start = "array" only records .* use "flat", "linear" or "epry"'):
        build_solver(build_acquisition(load_config(path), tmp_path), load_config(path))


def test_frames_are_a_file_or_a_shape(tmp_path: Path) -> None:
    planned = config(frames={"path": None, "truth": None, "shape": [24, 30]})
    assert build_geometry(planned, tmp_path).frame_shape == (24, 30)
    with pytest.raises(InvalidInputError, match=r"^frames.path is missing: .* `reconstruct` needs the file"):
        build_acquisition(planned, tmp_path)
    assert broken(frames={"path": None}).startswith("frames: give either path, the file that holds the frames, or")
    assert "give either path" in broken(frames={"shape": [24, 24]})
    assert "frames.shape" in broken(frames={"path": None, "shape": [0, 24]})


def test_paths_start_at_the_file(tmp_path: Path) -> None:
    path = write_acquisition(tmp_path / "data")
    acquisition = build_acquisition(load_config(path), path.parent)
    assert len(acquisition) == 49
    assert acquisition.truth is not None
    solver = build_solver(acquisition, load_config(path))
    assert solver.x.shape == acquisition.truth.shape


@pytest.mark.parametrize("key", ["path", "mask", "truth"])
def test_missing_files_are_named(tmp_path: Path, key: str) -> None:
    path = write_acquisition(tmp_path, frames={key: "nowhere.npy"})
    with pytest.raises(InvalidInputError, match=r"nowhere.npy: no such file"):
        build_acquisition(load_config(path), tmp_path)


def test_an_array_that_is_none(tmp_path: Path) -> None:
    path = write_acquisition(tmp_path, frames={"mask": "mask.npy"})
    (tmp_path / "mask.npy").write_text("no array", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"mask.npy: this is not a .npy file"):
        build_acquisition(load_config(path), tmp_path)


def test_the_configuration_of_a_run_with_another_prior(tmp_path: Path) -> None:
    """It holds all parameters of its prior: whoever changes the name alone is told which lines to delete."""
    path = write_acquisition(tmp_path, prior={"name": "tv"})
    written = resolved(load_config(path), tmp_path)
    path.write_text(tomli_w.dumps(written | {"prior": written["prior"] | {"name": "bm3d"}}), encoding="utf-8")
    foreign = [key for key in as_prior("tv").spec() if key not in as_prior("bm3d").spec()]
    assert foreign
    with pytest.raises(InvalidInputError, match=r"\[prior\] has name = 'bm3d' and .* only 'tv' takes") as caught:
        load_config(path)
    assert str(caught.value).endswith(f"; delete {', '.join(foreign)}")
    kept = {key: value for key, value in written["prior"].items() if key not in foreign}
    path.write_text(tomli_w.dumps(written | {"prior": kept | {"name": "bm3d"}}), encoding="utf-8")
    assert load_config(path).prior["name"] == "bm3d"
