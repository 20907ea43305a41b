"""Whether a phase explains the frames, and what the recipe does if it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from numpy.typing import NDArray

import fouriscope as fs
from fouriscope.cli.tune import run_tuning
from fouriscope.errors import InvalidInputError
from fouriscope.metrics import field_nrmse
from fouriscope.run import RunFolder, load_config, resume_run, start_run
from fouriscope.run.doubt import (
    AS_A_WAVE,
    BEGINS_AGAIN,
    HIDDEN,
    LOOK,
    UNEXPLAINED,
    hidden_light,
    residuals_beside_noise,
)
from fouriscope.run.first_look import ABSORBS
from fouriscope.solvers import INTERRUPTED, Record, Solver
from tests.conftest import LEDS, OPTICS
from tests.run.problems import document
from tests.solvers.problems import shapes


def acquired(kind: str, photons: float = 2000) -> tuple[fs.Acquisition, NDArray[Any]]:
    """A phase of 0.3 rad; with absorption; or with a pupil that nobody has told."""
    pupil = fs.Pupil({5: 1.0, 7: -1.0}) if kind == "aberrated" else None
    lens = fs.ForwardModel(OPTICS, LEDS, (24, 24), pupil=pupil, object="complex")
    phase = shapes(lens.object_shape, 0.3)
    absorption = np.full_like(phase, 0.2) + phase.T if kind == "absorbing" else np.zeros_like(phase)
    x = np.stack([phase, absorption])
    frames = np.random.default_rng(0).poisson(lens.intensity(x) * photons) / photons
    data = fs.Acquisition(OPTICS, LEDS, frames.astype(np.float32), periodic=True)
    return data, lens.transmittance(x)


@pytest.mark.parametrize("kind", ["phase", "absorbing", "aberrated"])
def test_residuals_or_hidden_light_tell_that_a_sample_is_no_phase(kind: str) -> None:
    left: list[float] = []
    hidden: list[float] = []

    def look(solver: Solver, record: Record) -> None:
        if record.iteration == 3 * LOOK:
            left.append(residuals_beside_noise(solver))
            hidden.append(hidden_light(solver))

    fs.reconstruct(acquired(kind)[0], object="phase", iterations=3 * LOOK, callbacks=[look])
    assert (left[0] > 2 * UNEXPLAINED) == (kind == "aberrated")
    assert (hidden[0] > 2 * HIDDEN) == (kind == "absorbing")
    if kind == "phase":
        assert 0.7 < left[0] < 1.3
        assert hidden[0] < HIDDEN / 4


@pytest.mark.parametrize("kind", ["absorbing", "aberrated"])
def test_a_field_that_is_no_phase_is_found_by_default(kind: str) -> None:
    data, truth = acquired(kind)
    result = fs.reconstruct(data)
    assert result.config["object"]["model"] == "wave"
    np.testing.assert_array_equal(result.transmittance, as_a_wave(data, "wave").transmittance)
    phase = fs.reconstruct(data, object="phase")
    wave = as_a_wave(data, fs.settings.Object(model="wave", shape=truth.shape))
    assert field_nrmse(wave.transmittance, truth) < 0.5 * field_nrmse(phase.transmittance, truth)


def as_a_wave(data: fs.Acquisition, kind: Any) -> fs.Result:
    method = fs.settings.Spectral(sampler="warm-up", strength_factor=1.0, long_steps=True)
    stop = fs.settings.Stop(iterations=250, residual=1e-3)
    return fs.reconstruct(data, object=kind, method=method, loss="amplitude", calibrate="zernike", stop=stop)


@pytest.mark.parametrize(
    "choice", [{"object": "phase"}, {"method": "pnp"}, {"prior": "tv"}, {"start": "flat"}, {"calibrate": ()}], ids=str
)
def test_who_chooses_the_object_or_how_it_is_found_gets_it(choice: dict[str, Any]) -> None:
    result = fs.reconstruct(acquired("absorbing")[0], iterations=4 * LOOK, **choice)
    assert result.config["object"]["model"] == "phase"
    assert len(result.history) == 4 * LOOK


def test_frames_without_noise_are_explained_well_enough() -> None:
    model = fs.ForwardModel(OPTICS, LEDS, (24, 24))
    data = fs.simulate(model, shapes(model.object_shape, 0.3), seed=0)
    assert fs.reconstruct(data, iterations=4 * LOOK).config["object"]["model"] == "phase"


def test_noise_that_grows_with_the_square_of_the_light_is_no_absorption() -> None:
    model = fs.ForwardModel(OPTICS, LEDS, (48, 48))
    data = fs.simulate(model, shapes(model.object_shape, 0.3), snr_db=25, noise="frame", seed=0)
    assert fs.reconstruct(data, iterations=4 * LOOK).config["object"]["model"] == "phase"


def test_the_truth_of_a_simulation_keeps_its_grid() -> None:
    data, truth = acquired("absorbing")
    result = fs.reconstruct(replace(data, truth=np.angle(truth)))
    assert result.config["object"]["model"] == "wave"
    assert result.transmittance.shape == truth.shape
    assert np.isfinite(result.history["snr"]).all()


def test_a_simulation_of_phase_and_absorption_is_reconstructed_as_both() -> None:
    model = fs.ForwardModel(OPTICS, LEDS, (24, 24), object="complex")
    phase = shapes(model.object_shape, 0.3)
    data = fs.simulate(model, np.stack([phase, 0.5 * phase.T]), snr_db=40, seed=0)
    result = fs.reconstruct(data, iterations=40)
    assert result.config["object"]["model"] == "complex"
    assert result.snr(phase).aligned > 3


def described(folder: Path, kind: str, **sections: dict[str, Any]) -> Path:
    """The frames of ``acquired`` as `fouriscope simulate` would describe them."""
    data, _ = acquired(kind)
    folder.mkdir(exist_ok=True)
    np.save(folder / "frames.npy", np.stack([data.frames.frame(led) for led in range(len(data))]))
    said: dict[str, dict[str, Any]] = {
        "frames": {"truth": None},
        "solver": {"batch": None, "seed": 0},
        "stop": {"iterations": None},
    }
    path = folder / "config.toml"
    path.write_text(tomli_w.dumps(document(**{**said, **sections})), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["phase", "absorbing", "aberrated"])
def test_a_file_and_python_give_the_same_if_nothing_is_chosen(tmp_path: Path, kind: str) -> None:
    path = described(tmp_path / "data", kind)
    told: list[str] = []
    by_file = start_run(load_config(path), path.parent, tmp_path / "run", tell=told.append)
    by_array = fs.reconstruct(acquired(kind)[0])
    np.testing.assert_array_equal(by_file.transmittance, by_array.transmittance)
    assert by_file.stop_reason == by_array.stop_reason
    assert by_file.config["object"]["model"] == ("phase" if kind == "phase" else "wave")
    assert (BEGINS_AGAIN in told) == (kind == "aberrated")
    assert (f"{ABSORBS}: {AS_A_WAVE}" in told) == (kind == "absorbing")
    np.testing.assert_array_equal(fs.reconstruct(fs.load(path)).transmittance, by_array.transmittance)
    assert len(RunFolder.open(tmp_path / "run").history()) == len(by_file.history)


@pytest.mark.parametrize(
    "said",
    [
        {"object": {"model": "phase"}},
        {"object": {"margin": 2}},
        {"prior": {"name": "tv"}},
        {"solver": {"method": "pnp"}},
        {"solver": {"start": "flat"}},
    ],
    ids=str,
)
def test_a_file_that_names_the_object_or_how_it_is_found_gets_it(tmp_path: Path, said: dict[str, Any]) -> None:
    path = described(tmp_path / "data", "absorbing", stop={"iterations": 2 * LOOK}, **said)
    result = start_run(load_config(path), path.parent, tmp_path / "run")
    assert (result.config["object"]["model"], len(result.history)) == ("phase", 2 * LOOK)


@pytest.mark.parametrize("iterations", [10, 2 * LOOK + 3])
def test_a_run_that_was_interrupted_before_or_after_the_doubt_ends_as_if_it_was_not(
    tmp_path: Path, iterations: int
) -> None:
    path = described(tmp_path / "data", "aberrated", stop={"iterations": 3 * LOOK})
    whole = start_run(load_config(path), path.parent, tmp_path / "whole")
    seen: list[int] = []

    def interrupt(solver: Solver, record: Record) -> str | None:
        seen.append(record.iteration)
        return INTERRUPTED if len(seen) == iterations else None

    start_run(load_config(path), path.parent, tmp_path / "run", callbacks=[interrupt], checkpoint_seconds=0)
    resumed = resume_run(tmp_path / "run")
    assert whole.config["object"]["model"] == resumed.config["object"]["model"] == "wave"
    np.testing.assert_array_equal(resumed.transmittance, whole.transmittance)


@pytest.mark.parametrize("door", ["file", "Python"])
def test_no_strength_is_tuned_for_a_phase_that_is_none(tmp_path: Path, door: str) -> None:
    tune: Callable[[], object] = partial(fs.tune, acquired("absorbing")[0], iterations=2 * LOOK)
    if door == "file":
        tune = partial(run_tuning, described(tmp_path, "absorbing"), iterations=2 * LOOK)
    with pytest.raises(InvalidInputError, match="no phase alone"):
        tune()
