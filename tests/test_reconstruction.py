"""The front door: what works without a word of configuration, and what it says otherwise."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import TypeAdapter

import fouriscope as fs
from fouriscope.acquisition import ArrayFrames
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import PoissonLoss
from fouriscope.optics import GlassSlide
from fouriscope.run.microscope import build_illumination
from fouriscope.settings import IlluminationSection, MicroscopeSection
from fouriscope.solvers import Record, Solver
from tests.conftest import LEDS, OPTICS
from tests.solvers.problems import shapes


@pytest.fixture(scope="module")
def model() -> fs.ForwardModel:
    return fs.ForwardModel(OPTICS, LEDS, (24, 24))


@pytest.fixture(scope="module")
def truth(model: fs.ForwardModel) -> NDArray[Any]:
    return shapes(model.object_shape, 0.3)


@pytest.fixture(scope="module")
def data(model: fs.ForwardModel, truth: NDArray[Any]) -> fs.Acquisition:
    return fs.simulate(model, truth, snr_db=40, seed=0)


def stack(data: fs.Acquisition) -> NDArray[Any]:
    return np.array([data.frames.frame(index) for index in range(len(data))])


def test_defaults(data: fs.Acquisition, truth: NDArray[Any]) -> None:
    before = stack(data)
    result = fs.reconstruct(data)
    assert result.snr(truth).aligned > 15
    assert result.phase.shape == truth.shape
    assert result.phase.dtype == np.float32
    assert result.absorption is None
    assert result.stop_reason == "300 iterations"
    assert len(result.history) == 300
    assert result.history.last.snr == pytest.approx(result.snr(truth).aligned)
    assert result.config["prior"]["name"] == "tv"
    assert result.provenance["input"]["frames"] == [49, 24, 24]
    np.testing.assert_array_equal(stack(data), before)
    np.testing.assert_allclose(np.abs(result.transmittance), 1, rtol=1e-6)
    assert result.pixel == pytest.approx((6.5e-6 / 8.1485 / 3,) * 2)


@pytest.mark.parametrize("prior", [None, "none", "l1", {"name": "tv", "strength": 1e-5}, fs.Box(-1.0, 1.0)])
def test_priors_of_every_kind(data: fs.Acquisition, truth: NDArray[Any], prior: Any) -> None:
    result = fs.reconstruct(data, prior=prior, batch=20, iterations=40)
    assert result.snr(truth).aligned > 4


@pytest.mark.parametrize(
    ("options", "gradients"),
    [
        ({"method": "pnp", "steps_per_denoising": 3}, 3),
        ({"method": "admm", "data_steps": 4}, 4),
        ({"method": "red", "denoiser_weight": 0.5}, 1),
    ],
    ids=str,
)
def test_every_method_reconstructs_and_is_recorded(
    data: fs.Acquisition, truth: NDArray[Any], options: dict[str, Any], gradients: int
) -> None:
    result = fs.reconstruct(data, method=fs.settings.method_of(options), batch=20, iterations=40)
    assert result.snr(truth).aligned > 10
    assert result.history.last.frames_seen == 40 * 20 * gradients
    assert {key: result.config["solver"][key] for key in options} == options


def test_any_denoiser_will_do(data: fs.Acquisition, truth: NDArray[Any]) -> None:
    seen: list[float] = []

    def smooth(image: NDArray[Any], sigma: float) -> NDArray[Any]:
        seen.append(sigma)
        neighbours = [np.roll(image, shift, axis) for shift in (1, -1) for axis in (0, 1)]
        return np.asarray(0.8 * image + 0.2 * np.mean(neighbours, axis=0))

    result = fs.reconstruct(data, prior=smooth, batch=20, iterations=40)
    assert len(seen) == 40
    assert min(seen) > 0
    assert result.snr(truth).aligned > 4
    assert result.config["prior"]["function"] == "smooth"


def test_a_prior_can_be_used_twice(data: fs.Acquisition) -> None:
    prior = fs.TV()
    first, second = (fs.reconstruct(data, prior=prior, batch=12, iterations=8) for _ in range(2))
    np.testing.assert_array_equal(first.phase, second.phase)


def test_all_frames_in_every_iteration(data: fs.Acquisition) -> None:
    result = fs.reconstruct(data, batch=None, iterations=3)
    assert result.history.last.frames_seen == 3 * 49
    assert result.config["solver"]["sampler"] == "all"
    same = fs.reconstruct(data, batch=1000, iterations=3)
    np.testing.assert_array_equal(same.phase, result.phase)


def test_a_margin_is_estimated_and_cut_off(data: fs.Acquisition, truth: NDArray[Any]) -> None:
    result = fs.reconstruct(data, object=fs.settings.Object(margin=4), batch=20, iterations=60, prior=None)
    assert result.phase.shape == truth.shape
    assert np.corrcoef(result.phase.ravel(), truth.ravel())[0, 1] > 0.6


def test_a_field_that_does_not_end_at_its_frame(truth: NDArray[Any]) -> None:
    """A patch cut out of a larger field: with a margin it fits its frames, without one it cannot."""
    large = fs.ForwardModel(OPTICS, LEDS, (40, 40))
    field = fs.simulate(large, shapes(large.object_shape, 0.8), seed=0)
    patch = replace(field, frames=ArrayFrames(np.ascontiguousarray(stack(field)[:, 8:32, 8:32])), truth=None)
    bare, wide = (
        fs.reconstruct(patch, object=fs.settings.Object(margin=m), batch=None, iterations=100, prior=None)
        for m in (0, 6)
    )
    assert wide.phase.shape == bare.phase.shape
    assert wide.history.last.misfit < 0.3 * bare.history.last.misfit


@pytest.mark.parametrize("loss", ["intensity", "amplitude", "poisson"])
def test_a_complex_object_seen_by_a_camera(loss: Any) -> None:
    model = fs.ForwardModel(OPTICS, LEDS, (24, 24), object="complex")
    phase, absorption = shapes(model.object_shape, 0.4), shapes(model.object_shape, 0.2)[:, ::-1]
    data = fs.simulate(model, np.stack([phase, absorption]), camera=fs.Camera(20_000, read_noise=2, offset=100), seed=0)
    result = fs.reconstruct(data, object="complex", loss=loss, batch=None, iterations=80)
    assert result.absorption is not None
    assert np.corrcoef(result.phase.ravel(), phase.ravel())[0, 1] > 0.8
    assert np.corrcoef(result.absorption.ravel(), absorption.ravel())[0, 1] > 0.9
    np.testing.assert_allclose(result.amplitude, np.exp(-result.absorption))


def test_the_absorption_may_have_a_prior_of_its_own() -> None:
    model = fs.ForwardModel(OPTICS, LEDS, (24, 24), object="complex")
    data = fs.simulate(model, np.zeros(model.x_shape), snr_db=30, seed=0)
    calls: list[tuple[int, int]] = []

    def not_negative(image: NDArray[Any], sigma: float) -> NDArray[Any]:
        calls.append(image.shape)
        return np.asarray(np.maximum(image, 0))

    result = fs.reconstruct(data, object="complex", prior=None, prior_absorption=not_negative, batch=20, iterations=5)
    assert calls == [model.object_shape] * 5
    assert result.absorption is not None
    assert result.absorption.min() == 0
    assert result.phase.min() < 0
    with pytest.raises(InvalidInputError, match="a phase object has no absorption"):
        fs.reconstruct(data, object="phase", prior_absorption="tv", iterations=1)


def test_an_empty_slide_is_empty() -> None:
    model = fs.ForwardModel(OPTICS, LEDS, (24, 24))
    data = fs.simulate(model, np.zeros(model.object_shape), snr_db=40, seed=0)
    result = fs.reconstruct(data, batch=20, iterations=30)
    assert np.std(result.phase) < 0.01
    assert np.isnan(result.history.last.snr)


def test_a_start_of_ones_own(data: fs.Acquisition, truth: NDArray[Any]) -> None:
    start = truth.copy()
    near = fs.reconstruct(data, start=start, batch=20, iterations=3, prior=None)
    np.testing.assert_array_equal(start, truth)
    assert near.snr(truth).aligned > 15
    linear, flat = (fs.reconstruct(data, start=name, batch=20, iterations=1, prior=None) for name in ("linear", "flat"))
    assert linear.history.last.misfit < 0.5 * flat.history.last.misfit


def test_the_record_says_what_was_done(data: fs.Acquisition, truth: NDArray[Any]) -> None:
    own = fs.reconstruct(data, start=truth, batch=20, iterations=1)
    assert own.config["solver"]["start"] == "array"
    timed = fs.reconstruct(data, batch=20, stop=fs.settings.Stop(iterations=None, seconds=1e-6))
    assert timed.config["stop"] == {"iterations": "unlimited", "seconds": 1e-6, "settled": False}


@pytest.mark.parametrize("kind", ["LEDs", "LEDs below glass", "directions", "something else"])
def test_a_saved_result_knows_its_microscope(tmp_path: Path, kind: str) -> None:
    class Lamps:
        def __len__(self) -> int:
            return 2

        def directions(self, patch_center: tuple[float, float] = (0.0, 0.0)) -> NDArray[np.float64]:
            return np.array([[0.0, 0.05], [0.1, 0.0]]) + patch_center[0]

    lights: dict[str, Any] = {
        "LEDs": fs.LEDArray.square((1, 3), 4e-3, 70e-3, rotation=0.1, offset=(1e-3, 0.0)),
        "LEDs below glass": fs.LEDArray.square((1, 3), 4e-3, 70e-3, slide=GlassSlide(1e-3, 1.52)),
        "directions": fs.Directions([(0.0, 0.05), (0.1, 0.0)], height=70e-3),
        "something else": Lamps(),
    }
    patch = (0.2e-3, -0.1e-3)
    pupil = fs.Pupil({5: 0.3}, defocus=2e-6, array=np.ones((20, 24), complex))
    model = fs.ForwardModel(OPTICS, lights[kind], (20, 24), pupil=pupil, patch_center=patch)
    data = fs.simulate(model, np.zeros(model.object_shape), snr_db=30, seed=0)
    data = replace(data, mask=np.ones((20, 24), bool), weights=np.linspace(1, 2, len(data)))
    folder = fs.reconstruct(data, iterations=1).save(tmp_path / "saved")
    known = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))["acquisition"]
    scope = MicroscopeSection.model_validate(known["microscope"])
    assert (scope.wavelength, scope.na, scope.patch_center) == (OPTICS.wavelength, OPTICS.na, patch)
    expected = lights[kind].directions(patch)
    np.testing.assert_array_equal(known["directions_at_patch"], expected)
    rebuilt = build_illumination(TypeAdapter(IlluminationSection).validate_python(known["illumination"]))
    center = (0.0, 0.0) if kind == "something else" else patch
    np.testing.assert_allclose(rebuilt.directions(center), expected, rtol=1e-12)
    assert known["pupil"]["zernike"] == {"5": 0.3}
    assert known["pupil"]["defocus"] == 2e-6
    assert known["pupil"]["array"]["shape"] == known["frame_shape"] == known["mask"]["shape"] == [20, 24]
    assert known["weights"] == pytest.approx(np.linspace(1, 2, len(data)))


def test_it_can_be_watched_and_stopped(data: fs.Acquisition) -> None:
    result = fs.reconstruct(data, batch=12, iterations=50, callbacks=[lambda _, record: record.iteration == 4])
    assert result.stop_reason == "a callback returned True"
    assert len(result.history) == 4
    named = fs.reconstruct(data, batch=12, iterations=50, callbacks=[lambda *_: "sharp enough"])
    assert named.stop_reason == "sharp enough"
    timed = fs.reconstruct(data, batch=12, stop=fs.settings.Stop(iterations=None, seconds=1e-6))
    assert timed.stop_reason == "1e-06 s"


def test_same_seed_same_picture(data: fs.Acquisition) -> None:
    pictures = [fs.reconstruct(data, batch=12, iterations=5, seed=seed).phase for seed in (0, 0, 1)]
    np.testing.assert_array_equal(pictures[0], pictures[1])
    assert np.any(pictures[0] != pictures[2])


def test_double_precision_agrees_with_single(data: fs.Acquisition) -> None:
    single, double = (
        fs.reconstruct(data, batch=None, iterations=20, prior=None, object=fs.settings.Object(precision=precision))
        for precision in ("single", "double")
    )
    assert double.phase.dtype == np.float64
    assert double.transmittance.dtype == np.complex128
    np.testing.assert_allclose(single.phase, double.phase, atol=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 0}, "solver.batch: Input should be greater than or equal to 1, got 0"),
        ({"loss": "huber"}, "loss must be one of intensity, amplitude, poisson, got 'huber'"),
        ({"method": "fista"}, "solver.method must be one of pnp, admm, red, spectral, epry, got 'fista'"),
        ({"iterations": None}, "would never stop"),
        ({"iterations": 0}, "stop.iterations"),
        ({"object": "hologram"}, "object.model"),
        ({"object": fs.settings.Object(shape=(8, 8))}, "object_shape must be at least the frame"),
        ({"object": fs.settings.Object(shape=(26, 26))}, "reaches outside the object's spectrum"),
        ({"object": fs.settings.Object(shape=(90_000, 90_000))}, "object needs about"),
        ({"prior": "tvv"}, "unknown prior 'tvv'"),
        ({"prior": 7}, "expected a prior"),
        ({"prior": fs.TV}, "got the class TV; make one"),
        ({"prior": {"name": "tv", "accuracy": "high"}}, "prior: "),
        ({"prior_absorption": {"name": "box", "lower": "low"}}, "prior_absorption: "),
        ({"start": "array"}, "call fouriscope.reconstruct with the array"),
        ({"start": np.zeros((3, 3))}, "has shape"),
        ({"start": "random"}, "solver.start"),
        ({"seed": -1}, "solver.seed"),
    ],
)
def test_mistakes_are_named(data: fs.Acquisition, options: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidInputError, MemoryError)) as caught:
        fs.reconstruct(data, **options)
    assert message in str(caught.value)


def test_bad_frames_are_named(data: fs.Acquisition) -> None:
    frames = stack(data)
    frames[5, 0, 0] = np.nan
    with pytest.raises(InvalidInputError, match="frame 5 holds 1 NaN"):
        fs.reconstruct(replace(data, frames=ArrayFrames(frames)), iterations=1)
    weights = np.ones(49)
    weights[5] = 0
    left_out = replace(data, frames=ArrayFrames(frames), weights=weights)
    assert np.all(np.isfinite(fs.reconstruct(left_out, batch=12, iterations=10).phase))
    with pytest.raises(InvalidInputError, match="all frames are zero"):
        fs.reconstruct(replace(data, frames=ArrayFrames(0 * stack(data))), iterations=1)


@pytest.mark.parametrize("wrong", [{"weights": np.ones(3)}, {"mask": np.ones((3, 3))}])
def test_weights_and_masks_of_a_wrong_shape(data: fs.Acquisition, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"shape"):
        fs.reconstruct(replace(data, **wrong), iterations=1)


def test_masked_pixels_may_hold_anything(data: fs.Acquisition, truth: NDArray[Any]) -> None:
    frames = stack(data)
    mask = np.ones((24, 24), bool)
    mask[3, 4] = mask[15, 20] = False
    frames[:, 3, 4], frames[:, 15, 20] = np.nan, 1e5
    masked = fs.reconstruct(replace(data, frames=ArrayFrames(frames), mask=mask), batch=20, iterations=60)
    whole = fs.reconstruct(data, batch=20, iterations=60)
    assert masked.snr(truth).aligned > whole.snr(truth).aligned - 1.5
    assert masked.history.last.strength == pytest.approx(whole.history.last.strength, rel=0.5)


def test_results_do_not_change_their_acquisition(data: fs.Acquisition) -> None:
    before = copy.copy(data.__dict__)
    fs.reconstruct(data, batch=12, iterations=2)
    assert data.__dict__ == before


@pytest.mark.slow
def test_tv_beats_no_prior_and_online_comes_close_to_all_leds() -> None:
    """The demo's problem on smaller frames: the camera man, phase 0…0.3 rad, 40 dB over the stack."""
    from fouriscope.paper import paper_model, phase_image

    model = paper_model(frame=48)
    truth = phase_image(model.object_shape, 0.3)
    data = fs.simulate(model, truth, snr_db=40, seed=0)

    def reached(prior: str | None, batch: int | None) -> float:
        return fs.reconstruct(data, prior=prior, batch=batch, iterations=300).snr(truth).aligned

    online = reached("tv", 60)
    assert online > reached(None, 60) + 3
    assert online > reached("tv", None) - 0.3


def test_a_loss_object_reaches_the_solver_and_the_configuration() -> None:
    model = fs.ForwardModel(OPTICS, LEDS, (24, 24))
    data = fs.simulate(model, np.zeros(model.x_shape), camera=fs.Camera(1000), seed=0)
    seen: list[object] = []

    def look(solver: Solver, record: Record) -> None:
        assert isinstance(solver, fs.PnP)
        seen.append(solver.fidelity.loss)

    result = fs.reconstruct(data, prior=None, loss=PoissonLoss(0.2), iterations=1, callbacks=[look])
    assert seen == [PoissonLoss(0.2)]
    assert result.config["solver"]["poisson_background"] == 0.2
