"""The hostile microscope: every fault that is asked for is in the frames, and only that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition, CalibratedFrames
from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.simulation import Camera, HostileMicroscope
from fouriscope.simulation.samples import SampleName, sample

SMALL = HostileMicroscope(leds=7, frame=32, surround=16)
SEED = 5
NAMES: tuple[SampleName, ...] = ("target", "wrapping")


def stored(acquisition: Acquisition) -> NDArray[Any]:
    frames = acquisition.frames
    assert isinstance(frames, CalibratedFrames)
    return np.stack([frames.frames.frame(index) for index in range(len(acquisition))])


def exact(microscope: HostileMicroscope) -> NDArray[Any]:
    return stored(microscope.acquire(SEED)[0])


def dark(microscope: HostileMicroscope) -> NDArray[np.bool_]:
    return ~microscope.truth(SEED).geometry.bright_field


def test_without_faults_frames_are_those_of_the_plain_model_bit_for_bit() -> None:
    truth = SMALL.truth(SEED)
    model = ForwardModel(
        SMALL.optics, SMALL.described, (32, 32), object="complex", object_shape=truth.whole.shape, margin=16
    )
    x = np.stack([np.angle(truth.whole), -np.log(np.abs(truth.whole))]).astype(np.float32)
    np.testing.assert_array_equal(exact(SMALL), model.intensity(x))


def test_a_field_that_goes_on_is_cropped_from_the_larger_one() -> None:
    truth = SMALL.truth(SEED)
    larger = ForwardModel(SMALL.optics, SMALL.described, (64, 64), object="complex", object_shape=truth.whole.shape)
    intensity = np.abs(larger.apply(truth.whole.astype(np.complex64))) ** 2
    np.testing.assert_allclose(exact(SMALL), intensity[:, 16:-16, 16:-16], rtol=1e-3, atol=1e-5)


def test_a_frame_is_the_mean_over_the_die() -> None:
    microscope = replace(SMALL, die=0.3e-3)
    each = []
    for y in (-1, 0, 1):
        for x in (-1, 0, 1):
            each.append(exact(replace(SMALL, displacement=(0.1e-3 * y, 0.1e-3 * x))))
    np.testing.assert_allclose(exact(microscope), np.mean(each, axis=0), rtol=1e-4, atol=1e-6)


def test_the_array_is_described_in_one_place_and_is_in_another() -> None:
    microscope = replace(SMALL, displacement=(1e-3, -2e-3), rotation=0.03, height_error=0.05, mirrored="x")
    acquisition, truth = microscope.acquire(SEED)
    np.testing.assert_array_equal(acquisition.illumination.directions(), SMALL.described.directions())
    y, x = SMALL.described.positions.T * np.array([[1], [-1]])
    turned = np.stack([x * np.sin(0.03) + y * np.cos(0.03), x * np.cos(0.03) - y * np.sin(0.03)], axis=1)
    lateral = turned + np.array([1e-3, -2e-3])
    expected = lateral / np.sqrt((lateral**2).sum(axis=1, keepdims=True) + (1.05 * SMALL.height) ** 2)
    np.testing.assert_allclose(truth.illumination.directions(), expected, atol=1e-12)
    assert truth.twin


def test_the_exposure_ratio_multiplies_dark_frames_alone() -> None:
    plain, longer = exact(SMALL), exact(replace(SMALL, exposure_ratio=8.0))
    expected = np.where(dark(SMALL)[:, None, None], 8 * plain, plain)
    np.testing.assert_array_equal(longer, expected)


def test_gains_and_falloff_multiply_frames() -> None:
    microscope = replace(SMALL, gain_error=0.1, falloff=3.0)
    acquisition, truth = microscope.acquire(SEED)
    np.testing.assert_allclose(stored(acquisition), exact(SMALL) * truth.gains[:, None, None], rtol=1e-6)
    cosine = np.sqrt(1 - truth.geometry.illumination_na**2)
    scatter = np.log(truth.gains / cosine**3)
    assert 0.07 < scatter.std() < 0.13


def test_stray_light_lies_under_every_frame_and_follows_its_exposure() -> None:
    microscope = replace(SMALL, exposure_ratio=4.0)
    veil = exact(replace(microscope, stray=0.01)) - exact(microscope)
    np.testing.assert_allclose(veil.mean(axis=(1, 2)), np.where(dark(SMALL), 0.04, 0.01), rtol=1e-3)


def test_dust_is_the_same_in_every_frame() -> None:
    ratio = exact(replace(SMALL, dust=3)) / exact(SMALL)
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[0], ratio.shape), rtol=1e-5)
    assert ratio.max() <= 1 + 1e-6
    assert ratio.min() < 0.95


def test_counts_of_eight_bits_are_whole_numbers_with_an_offset_and_an_end() -> None:
    camera = Camera(2000.0, read_noise=3.0, offset=6, bits=8, full_well=1500.0)
    acquisition, _ = replace(SMALL, camera=camera).acquire(SEED)
    counts = stored(acquisition)
    assert counts.dtype == np.uint8
    assert counts.max() == 255  # the bright field lies above the full well
    frames = acquisition.frames
    assert isinstance(frames, CalibratedFrames)
    assert frames.offset == 6
    bright = ForwardModel(acquisition.optics, acquisition.illumination, (32, 32)).geometry.bright_field
    assert frames.gain == np.median(counts[bright]) - 6
    # Without noise to speak of, counts are the expected intensity, scaled and rounded.
    quiet = Camera(1e11, bits=8, offset=6)
    linear = exact(SMALL) * (255 - 6) / 2 + 6
    np.testing.assert_allclose(exact(replace(SMALL, camera=quiet)), np.rint(np.clip(linear, 0, 255)), atol=1)


def test_most_of_the_dark_field_may_lie_below_one_count() -> None:
    microscope = replace(SMALL, sample="weak", camera=Camera(2000.0, bits=8))
    counts = exact(microscope)[dark(microscope)]
    assert (counts < 1).mean() > 0.5
    assert counts.any()


def test_gamma_bends_counts() -> None:
    camera = Camera(1e11, bits=16, offset=1000)
    plain, bent = (exact(replace(SMALL, camera=camera, gamma=p)).astype(float) for p in (1.0, 0.75))
    np.testing.assert_allclose(bent, 65535 * (plain / 65535) ** 0.75, atol=2)
    assert replace(SMALL, camera=camera, gamma=0.75).stored_offset == pytest.approx(65535 * (1000 / 65535) ** 0.75)


def test_the_pupil_has_what_zernike_polynomials_do_not_describe() -> None:
    truth = replace(SMALL, roughness=0.5, bump=1.0, vignetting=0.3, defocus=5e-6).truth(SEED)
    geometry = truth.geometry
    y, x = (
        (np.arange(n) - n // 2) * step for n, step in zip(geometry.grid_shape, geometry.frequency_step, strict=True)
    )
    values = truth.pupil.evaluate(y[:, None], x[None], geometry.optics, geometry.frequency_step)
    radius = np.hypot(y[:, None], x[None]) / geometry.optics.cutoff
    inside = radius <= 1
    np.testing.assert_allclose(np.abs(values)[inside], (1 - 0.3 * radius**2)[inside], atol=1e-6)
    assert not values[~inside].any()
    assert np.std(np.angle(values[inside])) > 0.3


def test_same_seed_same_microscope_and_frames_and_another_seed_another() -> None:
    first, again, other = (HostileMicroscope.draw(seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    one, two, three = (stored(replace(first, frame=32, surround=16).acquire(seed)[0]) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert (one != three).any()


def test_drawn_microscopes_can_be_acquired_and_have_dark_field() -> None:
    kinds = set()
    for seed in range(12):
        microscope = HostileMicroscope.draw(seed)
        kinds.add(microscope.sample)
        bright = microscope.truth(seed).geometry.bright_field
        assert 8 <= bright.sum() <= 40 < (~bright).sum()
    assert len(kinds) == 5


def test_samples_are_dark_or_wrap() -> None:
    target, wrapping = (sample(name, (128, 128), np.random.default_rng(0)) for name in NAMES)
    assert np.abs(target).min() < 0.05
    assert np.ptp(np.unwrap(np.unwrap(np.angle(wrapping), axis=0), axis=1)) > 3 * np.pi


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"die": -1e-3}, "die must be finite and at least 0, got -0.001"),
        ({"mirrored": "z"}, "mirrored must be None, 'y', 'x' or 'both', got 'z'"),
        ({"gamma": 0.5}, "give a camera, or leave gamma at 1"),
        ({"exposure_ratio": 0.0}, "exposure_ratio and gamma must be positive"),
        ({"vignetting": 1.0}, "from 0 to below 1, got 1.0"),
    ],
)
def test_faults_that_make_no_sense_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        HostileMicroscope(**wrong)


def test_an_unknown_sample_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="sample must be one of cells, target"):
        sample("mouse", (64, 64), np.random.default_rng(0))  # type: ignore[arg-type]
