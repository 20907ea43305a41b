from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition, CalibratedFrames
from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.optics import Directions
from fouriscope.simulation import Camera, simulate
from tests.conftest import ABERRATED, LEDS, OPTICS, random_x, small_model

MODEL = small_model("aberrated")
X = random_x(MODEL)
IDEAL = MODEL.intensity(X)


def read(acquisition: Acquisition) -> NDArray[np.float64]:
    return np.array([acquisition.frames.frame(index) for index in range(len(acquisition))], np.float64)


def snr(signal: NDArray[Any], noise: NDArray[Any]) -> Any:
    axes = (-2, -1)
    return 10 * np.log10(np.sum(signal**2, axis=axes) / np.sum(noise**2, axis=axes))


def test_without_noise_frames_are_those_of_the_model() -> None:
    data = simulate(MODEL, X, seed=0)
    np.testing.assert_array_equal(read(data), IDEAL)
    assert data.optics is MODEL.optics
    assert data.illumination is MODEL.illumination
    assert data.pupil is ABERRATED
    assert data.truth is not None
    np.testing.assert_array_equal(data.truth, X)
    data.check_frames()


@pytest.mark.parametrize("decibel", [0.0, 20.0, 40.0])
def test_snr_over_the_stack(decibel: float) -> None:
    noise = read(simulate(MODEL, X, snr_db=decibel, seed=1)) - IDEAL
    # 18 270 samples: the noise's power is known to 1 %, which is 0.05 dB.
    assert 10 * np.log10(np.sum(IDEAL**2) / np.sum(noise**2)) == pytest.approx(decibel, abs=0.15)
    # One σ for all frames: no frame's differs from the mean by more than sampling does.
    np.testing.assert_allclose(noise.std(axis=(1, 2)), noise.std(), rtol=0.15)
    assert np.ptp(snr(IDEAL, noise)) > 3
    assert abs(noise.mean()) < 5 * noise.std() / np.sqrt(noise.size)


@pytest.mark.parametrize("decibel", [0.0, 20.0, 40.0])
def test_snr_of_each_frame(decibel: float) -> None:
    noise = read(simulate(MODEL, X, snr_db=decibel, noise="frame", seed=2)) - IDEAL
    each = snr(IDEAL, noise)
    np.testing.assert_allclose(each, decibel, atol=1.5)
    assert each.mean() == pytest.approx(decibel, abs=0.15)


def test_a_dark_frame_gets_no_noise_of_its_own() -> None:
    model = small_model()
    frames = read(simulate(model, np.zeros(model.x_shape), snr_db=20, noise="frame", seed=3))
    dark = ~model.geometry.bright_field
    assert not frames[dark].any()
    assert frames[~dark].std() == pytest.approx(0.1, rel=0.05)
    assert (frames[~dark] < 0).sum() == 0
    stack = read(simulate(model, np.zeros(model.x_shape), snr_db=20, seed=3))
    assert stack[dark].std() == pytest.approx(0.1 * np.sqrt(37 / 49), rel=0.05)
    assert (stack[dark] < 0).any()


@pytest.mark.parametrize(
    "options",
    [
        {"snr_db": 30},
        {"snr_db": 30, "noise": "frame"},
        {"camera": Camera(photons=1000, read_noise=3)},
        {"led_intensity_error": 0.1},
        {"led_position_error": 0.3e-3},
    ],
    ids=str,
)
def test_seeds(options: dict[str, Any]) -> None:
    one, again, other = (read(simulate(MODEL, X, seed=seed, **options)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


def test_truth_is_not_modified() -> None:
    x = X.copy()
    x.setflags(write=False)
    simulate(MODEL, x, snr_db=10, led_intensity_error=0.1, seed=0)
    np.testing.assert_array_equal(x, X)


def test_shot_noise_has_a_variance_equal_to_its_mean() -> None:
    camera = Camera(photons=400, full_well=2000)
    for level in (0.1, 1.0, 3.0):
        counts = camera.expose(np.full((300, 300), level), np.random.default_rng(0))
        electrons = counts / camera.counts_per_electron
        assert electrons.mean() == pytest.approx(400 * level, rel=0.01)
        assert electrons.var() == pytest.approx(400 * level, rel=0.03)


def test_read_noise_adds_its_variance() -> None:
    camera = Camera(photons=100, read_noise=12, offset=500)
    electrons = (camera.expose(np.ones((300, 300)), np.random.default_rng(0)) - 500) / camera.counts_per_electron
    assert electrons.mean() == pytest.approx(100, rel=0.01)
    assert electrons.var() == pytest.approx(100 + 12**2, rel=0.03)


def test_counts_are_whole_and_start_at_the_offset() -> None:
    camera = Camera(photons=1e4, offset=100, bits=12)
    counts = camera.expose(np.linspace(0, 2.5, 10_000).reshape(100, 100), np.random.default_rng(0))
    assert counts.dtype == np.uint16
    assert counts[0, 0] == 100
    # Twice the bright field fills the well, and that is the largest count; more is clipped.
    assert counts.max() == 2**12 - 1
    assert (counts[90:] == 2**12 - 1).all()
    assert counts[50].mean() == pytest.approx(100 + (4095 - 100) * 0.5 * 2.5 * 50.5 / 100, rel=0.01)


def test_a_negative_intensity_is_dark() -> None:
    counts = Camera(photons=100, offset=7).expose(np.full((4, 4), -1e-9), np.random.default_rng(0))
    np.testing.assert_array_equal(counts, 7)


def test_saturation_at_the_full_well() -> None:
    camera = Camera(photons=1000, full_well=500)
    frames = simulate(small_model(), np.zeros((72, 72)), camera=camera, seed=0).frames
    # Bright-field frames, of about 1000 electrons, are cut at 500: half the bright field.
    np.testing.assert_allclose(frames.frame(24), 0.5, rtol=1e-6)


def test_an_acquisition_by_a_camera_is_calibrated() -> None:
    camera = Camera(photons=1e5, read_noise=2, offset=300, bits=16, full_well=8e5)
    data = simulate(MODEL, X, camera=camera, seed=4)
    assert isinstance(data.frames, CalibratedFrames)
    raw = data.frames.frames.frame(0)
    assert raw.dtype == np.uint16
    assert IDEAL.max() < 8
    frames = read(data)
    # The residual is the noise of the camera: photons, reading, and rounding to counts.
    variance = (1e5 * IDEAL + 2**2 + 1 / (12 * camera.counts_per_electron**2)) / 1e5**2
    assert np.mean((frames - IDEAL) ** 2 / variance) == pytest.approx(1, rel=0.05)
    assert frames.mean() == pytest.approx(IDEAL.mean(), rel=1e-3)


def test_fewer_bits_are_coarser() -> None:
    truth = np.zeros((72, 72))
    levels = [
        len(np.unique(simulate(small_model(), truth, camera=Camera(1e4, bits=bits), seed=0).frames.frame(24)))
        for bits in (6, 10)
    ]
    assert levels[0] <= 5 < 10 < levels[1]


def test_brightness_errors_scale_whole_frames() -> None:
    frames = read(simulate(MODEL, X, led_intensity_error=0.2, seed=7))
    factors = frames.mean(axis=(1, 2)) / IDEAL.mean(axis=(1, 2))
    np.testing.assert_allclose(frames, factors[:, None, None] * IDEAL, rtol=1e-9, atol=1e-12)
    assert factors.std() == pytest.approx(0.2, rel=0.4)
    assert factors.mean() == pytest.approx(1, abs=5 * 0.2 / np.sqrt(len(MODEL)))
    # An LED cannot be darker than off.
    assert read(simulate(MODEL, X, led_intensity_error=5, seed=7)).min() == 0


def test_position_errors_change_the_frames_but_not_the_stated_geometry() -> None:
    data = simulate(MODEL, X, led_position_error=0.5e-3, seed=8)
    assert data.illumination is MODEL.illumination
    frames = read(data)
    relative = np.linalg.norm(frames - IDEAL) / np.linalg.norm(IDEAL)
    assert 0.01 < relative < 1
    smaller = read(simulate(MODEL, X, led_position_error=0.5e-6, seed=8))
    assert np.linalg.norm(smaller - IDEAL) < 0.2 * np.linalg.norm(frames - IDEAL)


def test_position_errors_keep_everything_else_of_the_model() -> None:
    """A displacement too small to matter changes nothing: pupil, margin, patch, object, gains and precision stay."""
    model = ForwardModel(
        OPTICS,
        LEDS,
        (18, 20),
        pupil=ABERRATED,
        object="complex",
        object_shape=(80, 90),
        margin=2,
        patch_center=(0.2e-3, -0.1e-3),
        gains=np.linspace(0.5, 2.0, len(LEDS)),
        dtype=np.float64,
    )
    x = random_x(model)
    frames = read(simulate(model, x, led_position_error=1e-12, seed=0))
    # A pupil bin on the disc's edge may fall to the other side; none does here.
    np.testing.assert_allclose(frames, model.intensity(x), atol=1e-6)


def test_complex_objects_as_transmittance() -> None:
    model = small_model(object="complex")
    x = random_x(model)
    transmittance = np.exp(1j * x[0] - x[1])
    data = simulate(model, transmittance, seed=0)
    np.testing.assert_allclose(read(data), model.intensity(x), atol=1e-12)
    assert data.truth is not None
    np.testing.assert_allclose(data.truth, x, atol=1e-12)  # |φ| < π here, so the angle is the phase


def test_errors() -> None:
    with pytest.raises(InvalidInputError, match="not both"):
        simulate(MODEL, X, snr_db=40, camera=Camera(100), seed=0)
    with pytest.raises(InvalidInputError, match="noise must be 'stack' or 'frame', got 'pixel'"):
        simulate(MODEL, X, snr_db=40, noise="pixel", seed=0)  # type: ignore[arg-type]
    for name in ("led_intensity_error", "led_position_error"):
        with pytest.raises(InvalidInputError, match="at least 0"):
            simulate(MODEL, X, seed=0, **{name: -0.1})  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match="finite"):
            simulate(MODEL, X, seed=0, **{name: np.nan})  # type: ignore[arg-type]
    for decibel in (np.nan, np.inf, 4000.0, -4000.0):
        with pytest.raises(InvalidInputError, match="snr_db must "):
            simulate(MODEL, X, snr_db=decibel, seed=0)
    for decibel in (-100.0, 300.0):
        simulate(MODEL, X, snr_db=decibel, seed=0).check_frames()
    holes = X.copy()
    holes[3, 4:7] = np.nan
    with pytest.raises(InvalidInputError, match=f"the truth holds 3 NaN or infinite values of {X.size}"):
        simulate(MODEL, holes, seed=0)
    with pytest.raises(InvalidInputError, match="must be an array of numbers"):
        simulate(MODEL, np.full(X.shape, None), seed=0)
    with pytest.raises(InvalidInputError, match="phase object of this model has shape"):
        simulate(MODEL, X[:-1], seed=0)
    with pytest.raises(InvalidInputError, match="needs a model made with object='complex'"):
        simulate(MODEL, np.exp(1j * X), seed=0)
    opaque = small_model(object="complex")
    with pytest.raises(InvalidInputError, match="opaque pixel"):
        simulate(opaque, np.zeros(opaque.object_shape, complex), seed=0)
    directions = ForwardModel(OPTICS, Directions([(0.0, 0.1)]), (24, 24))
    with pytest.raises(InvalidInputError, match="LEDs with positions"):
        simulate(directions, np.zeros(directions.x_shape), led_position_error=1e-3, seed=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"photons": 0}, "photons .* must be positive"),
        ({"photons": np.nan}, "photons must be a finite number"),
        ({"photons": np.inf}, "photons must be a finite number"),
        ({"photons": 1e20}, "photons .* at most 1e\\+12, got 1e\\+20"),
        ({"photons": 10, "read_noise": -1}, "at least 0"),
        ({"photons": 10, "read_noise": np.nan}, "read_noise must be a finite number"),
        ({"photons": 10, "offset": np.nan}, "offset must be a finite number"),
        ({"photons": 10, "bits": 12.5}, "bits must be a whole number, got 12.5"),
        ({"photons": 10, "full_well": np.inf}, "full_well must be a finite number"),
        ({"photons": 10, "offset": -1}, "at least 0"),
        ({"photons": 10, "bits": 0}, "bits must be from 1 to 16, got 0"),
        ({"photons": 10, "bits": 17}, "bits must be from 1 to 16, got 17"),
        ({"photons": 10, "full_well": 0}, "full_well must be positive"),
        ({"photons": 10, "bits": 8, "offset": 255}, "leaves nothing of the 8 bits"),
    ],
)
def test_impossible_cameras(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Camera(**options)
