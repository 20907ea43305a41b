"""What is done to frames, what is masked, and what a look at every frame finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.acquisition import (
    ArrayFrames,
    CorrectedFrames,
    Corrections,
    FrameMasks,
    bad_frames,
    find_bad_pixels,
    simplified_masks,
    survey_frames,
    unlike_others,
)
from fouriscope.acquisition.pedestals import pedestal
from fouriscope.acquisition.suggestions import suggest
from fouriscope.acquisition.survey import empty_bright_field
from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray
from fouriscope.simulation import Camera, simulate
from tests.conftest import OPTICS

RNG = np.random.default_rng(7)
LEDS = LEDArray.square(7, pitch=5e-3, height=70e-3)
MODEL = ForwardModel(OPTICS, LEDS, (32, 32))
NA = MODEL.geometry.na


def counts(offset: int = 100) -> NDArray[np.uint16]:
    """49 frames of a 12-bit camera."""
    phase = 0.4 * np.random.default_rng(1).random(MODEL.object_shape)
    data = simulate(MODEL, phase, camera=Camera(20000, bits=12, offset=offset), seed=2)
    frames: Any = data.frames
    return np.asarray(frames.frames.array)


COUNTS = counts()


def corrected(stack: NDArray[Any], **options: Any) -> CorrectedFrames:
    return CorrectedFrames(ArrayFrames(stack), Corrections(**options))


def test_a_camera_is_undone_step_by_step() -> None:
    """Frames sent through every defect come back: shift, square root, dark, flat, exposure, background, gain."""
    truth = 0.2 + RNG.random((5, 16, 20))
    dark, flat = RNG.random((16, 20)), 0.5 + RNG.random((16, 20))
    exposures, stray = np.array([1.0, 2, 4, 8, 1]), np.array([0.0, 3, 1, 2, 5])
    dark_field = np.array([False, True, True, True, True])
    seen = truth * 50 + (stray * dark_field)[:, None, None]
    seen = seen * (exposures / exposures.min())[:, None, None] * flat / flat.mean() + dark + 7
    stack = np.sqrt(seen)
    frames = corrected(
        stack,
        amplitude=True,
        offset=7,
        dark=dark,
        flat=flat,
        exposures=exposures,
        background=stray,
        dark_field=dark_field,
        gain=50,
    )
    for index in range(5):
        np.testing.assert_allclose(frames.frame(index), truth[index], rtol=1e-12)
    before = stack.copy()
    frames.frame(3)
    np.testing.assert_array_equal(stack, before, err_msg="what is stored stays as it is")


def test_a_power_of_intensity_is_undone() -> None:
    counts = np.arange(1.0, 321).reshape(1, 16, 20)
    frames = corrected(counts**0.75, power=0.75, offset=1.0, gain=2.0)
    np.testing.assert_allclose(frames.frame(0), (counts[0] - 1) / 2, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(
        corrected(counts, amplitude=True).frame(0), corrected(counts, power=0.5).frame(0), err_msg="two words for it"
    )
    below = corrected(-(counts**0.75), power=0.75).frame(0)
    np.testing.assert_allclose(below, -counts[0], err_msg="noise below zero stays below zero")


def test_automatic_background_is_the_pedestal_of_dark_frames_alone() -> None:
    """By the frames themselves, in units of the gain: no directions are asked."""
    rng = np.random.default_rng(2)
    stack = np.full((3, 64, 48), 3.0)
    stack[:, 8:-8, 8:-8] += 20 * rng.random((3, 48, 32))
    stack[1] += 90  # bright field
    stack[2] = 12 + 10 * rng.random((64, 48))  # dim, and lit everywhere: an LED at the pupil's edge
    frames = corrected(stack, background="auto", gain=100.0)
    np.testing.assert_allclose(frames.frame(0), (stack[0] - 3) / 100, atol=1e-12)
    for bright in (1, 2):
        np.testing.assert_array_equal(frames.frame(bright), stack[bright] / 100)


def test_one_background_per_frame_is_subtracted_as_given() -> None:
    stack = np.full((3, 8, 8), 10.0)
    each = corrected(stack, background=[1.0, 2.0, 0.0], dark_field=[False, True, True])
    assert [each.frame(i)[0, 0] for i in range(3)] == [9, 8, 10]
    same = corrected(stack, background=4.0, dark_field=[False, True, True])
    assert [same.frame(i)[0, 0] for i in range(3)] == [10, 6, 6]


def test_the_pedestal_is_what_lies_below_everything() -> None:
    rng = np.random.default_rng(3)
    image = rng.normal(20, 3, (128, 128))
    image[30:100, 20:110] += 500 * rng.random((70, 90))
    assert pedestal(image) == pytest.approx(20, abs=2.5)
    image[5, 5], image[6, 90] = np.nan, -1e6
    assert pedestal(image) == pytest.approx(20, abs=2.5), "neither NaN nor a dead pixel matters"
    assert np.isnan(pedestal(np.full((4, 4), np.nan)))


def test_below_the_floor_there_is_only_noise() -> None:
    stack = np.array([[[-3.0, 0.0, 2.0, 2.5, 200.0]]] * 3)
    frames = corrected(stack, floor=2.0, dark_field=[False, True, True], exposures=[1.0, 1.0, 2.0], gain=2.0)
    np.testing.assert_array_equal(frames.frame(0), stack[0] / 2)
    np.testing.assert_allclose(frames.frame(1)[0], [0, 0, 0, 0.75, np.sqrt(200**2 - 4) / 2])
    np.testing.assert_allclose(frames.frame(2), frames.frame(1) / 2, err_msg="the floor is of counts as stored")


def test_roots_of_noise_no_longer_look_like_light() -> None:
    """What the amplitude loss sees of an unlit camera: a third of the noise's amplitude, and next to nothing."""
    noise = np.random.default_rng(0).normal(0, 3, (1, 200, 200)).round()
    bare, floored = (
        np.sqrt(np.maximum(corrected(noise, floor=floor).frame(0), 0)).mean() / np.sqrt(3) for floor in (0.0, 6.0)
    )
    assert bare > 0.3
    assert floored < 0.06


def test_the_floor_is_twice_the_noise_of_the_quietest_places() -> None:
    """Measured where nothing is to be seen: structure in half of each dark frame does not count as noise."""
    rng = np.random.default_rng(1)
    stack = rng.normal(100, 3, (12, 128, 128))
    stack[:2] += 3000
    stack[2:, :64] += 200 * rng.random((10, 64, 128))
    counts = stack.round().astype(np.uint16)
    survey = survey_frames(ArrayFrames(counts))
    assert survey.floor == pytest.approx(6, rel=0.15)
    assert survey.offset == pytest.approx(100, abs=0.5), "the pedestal, not the deepest valley of the noise"
    assert survey_frames(ArrayFrames(counts << 4)).floor == pytest.approx(16 * 6, rel=0.15)
    assert survey_frames(ArrayFrames(counts // 64)).floor == 1, "a camera rounds to one count"
    assert survey_frames(ArrayFrames(stack)).floor == 0, "counts alone have a noise of their own"
    assert survey_frames(ArrayFrames(counts[:2])).floor == 0, "there are no dark frames"
    assert survey_frames(ArrayFrames(counts[:, :8])).floor == 0, "frames too small to tell"


def test_precision_and_negative_values() -> None:
    assert corrected(COUNTS, offset=100).frame(0).dtype == np.float32
    assert corrected(COUNTS.astype(np.float64), offset=100).frame(0).dtype == np.float64
    assert corrected(np.zeros((1, 4, 4), np.uint8), offset=3).frame(0).max() == -3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gain": 0.0}, "gain must be positive"),
        ({"offset": np.nan}, "offset finite"),
        ({"bit_shift": 16}, "bit_shift must be from 0 to 15"),
        ({"power": 0.0}, "power must be positive"),
        ({"power": 0.75, "amplitude": True}, "amplitude means power = 0.5, but power = 0.75 is given"),
        ({"floor": -1.0}, "floor must be a number of counts"),
        ({"dark": np.ones((3, 3))}, r"dark must be finite and of shape \(32, 32\), .* got shape \(3, 3\)"),
        ({"dark": np.full((32, 32), np.nan)}, "with NaN"),
        ({"flat": np.zeros((32, 32))}, "flat must be positive everywhere"),
        ({"exposures": [1.0, 2.0]}, r"exposures must be finite and of shape \(49,\)"),
        ({"exposures": np.zeros(49)}, "exposures must be positive"),
        ({"background": "corner"}, "background must be 'auto', a number"),
        ({"background": [1.0, 2.0]}, r"background must be .* of shape \(49,\)"),
    ],
)
def test_wrong_corrections(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        corrected(COUNTS, **options)


# ---------------------------------------------------------------------------------------------------------------------
# Masks


def test_saturated_pixels_are_masked_and_nothing_else() -> None:
    stack = np.minimum(COUNTS, 2000)
    masks = FrameMasks(ArrayFrames(stack), saturation=2000)
    for index in range(len(stack)):
        np.testing.assert_array_equal(masks.frame(index), stack[index] < 2000)
    whole = simplified_masks(masks)
    assert whole is not None
    np.testing.assert_array_equal(whole, stack < 2000)
    assert simplified_masks(FrameMasks(ArrayFrames(COUNTS), saturation=1e9)) is None
    assert simplified_masks(FrameMasks(ArrayFrames(COUNTS))) is None


def test_masks_that_all_frames_share() -> None:
    good = np.ones((32, 32))
    good[3, 4] = 0
    shared = simplified_masks(FrameMasks(ArrayFrames(COUNTS), saturation=1e9, good=good))
    assert shared is not None
    np.testing.assert_array_equal(shared, good != 0)
    with pytest.raises(InvalidInputError, match=r"a mask must have the shape \(32, 32\)"):
        FrameMasks(ArrayFrames(COUNTS), good=good[1:])


def test_bad_pixels_stay_where_samples_move() -> None:
    stack = COUNTS.copy()
    assert find_bad_pixels(ArrayFrames(stack)).all()
    stack[:, 5, 6] = 4095  # stuck
    stack[:, 20, 9] = 0  # dead
    stack[:, 11, 30] += 900  # hot, and still sees light
    good = find_bad_pixels(ArrayFrames(stack))
    assert np.argwhere(~good).tolist() == [[5, 6], [11, 30], [20, 9]]


# ---------------------------------------------------------------------------------------------------------------------
# The survey


def test_the_survey_is_what_numpy_says() -> None:
    survey = survey_frames(ArrayFrames(COUNTS))
    flat = COUNTS.reshape(49, -1)
    np.testing.assert_array_equal(survey.low, flat.min(axis=1))
    np.testing.assert_array_equal(survey.high, flat.max(axis=1))
    np.testing.assert_allclose(survey.mean, flat.mean(axis=1))
    np.testing.assert_array_equal(survey.median, np.median(flat, axis=1))
    assert survey.bit_shift == 0
    assert survey.saturation is None
    assert not bad_frames(survey)
    assert not unlike_others(survey, NA, OPTICS.na)
    np.testing.assert_allclose(survey.pedestal, [pedestal(frame) for frame in COUNTS])


def test_the_survey_finds_shifted_bits_and_full_wells() -> None:
    shifted = survey_frames(ArrayFrames(np.minimum(COUNTS * 2, 4095) << 4))
    assert shifted.bit_shift == 4
    assert shifted.saturation == 4095 << 4
    # A level that is nobody's full scale, but on which pixels pile up.
    assert survey_frames(ArrayFrames(np.minimum(COUNTS, 1900))).saturation == 1900
    assert survey_frames(ArrayFrames(np.minimum(COUNTS, 1900).astype(np.float32))).saturation == 1900
    assert survey_frames(ArrayFrames(np.zeros((2, 8, 8), np.uint8))).saturation is None


def test_the_survey_finds_offset_and_bright_field() -> None:
    survey = survey_frames(ArrayFrames(COUNTS))
    assert survey.offset == pytest.approx(100, abs=3)
    bright = survey_frames(ArrayFrames(COUNTS[MODEL.geometry.illumination_na < 0.15]))
    assert bright.offset == 0, "the bright field alone does not show it"
    sizes = MODEL.geometry.illumination_na
    camera = Camera(20000, bits=12, offset=100)
    level = camera.photons * camera.counts_per_electron
    assert empty_bright_field(survey, sizes, OPTICS.na) == pytest.approx(level, rel=0.05)
    with pytest.raises(InvalidInputError, match="the bright-field frames are dark"):
        empty_bright_field(survey_frames(ArrayFrames(np.zeros((49, 4, 4), np.uint8))), sizes, OPTICS.na)


def test_whole_numbers_stored_as_fractions_are_counts() -> None:
    """Divided by 255 or by anything, they have the offset, the noise and the full wells of the counts they were."""
    rng = np.random.default_rng(4)
    stack = rng.normal(9, 2, (12, 64, 64))
    stack[:3] += 260 * rng.random((3, 64, 64))
    whole = np.clip(stack.round(), 0, 255).astype(np.uint8)
    counts, fractions = survey_frames(ArrayFrames(whole)), survey_frames(ArrayFrames(whole / 255))
    single = survey_frames(ArrayFrames((whole / 255).astype(np.float32)))
    assert counts.saturation == 255
    assert (counts.unit, fractions.power) == (1, 1)
    for survey in (fractions, single):
        assert survey.unit == pytest.approx(1 / 255)
        assert survey.offset == pytest.approx(counts.offset / 255, rel=1e-3)
        assert survey.floor == pytest.approx(counts.floor / 255, rel=1e-3)
        assert survey.saturation == 1
    noise = survey_frames(ArrayFrames(stack))
    assert (noise.unit, noise.offset, noise.levels) == (0, 0, None)


@pytest.mark.parametrize("power", [1, 0.75, 0.5, 1 / 2.2])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_power_of_whole_numbers_is_told_by_their_levels(power: float, kind: Any) -> None:
    rng = np.random.default_rng(5)
    whole = rng.poisson(rng.uniform(2, 60, (9, 1, 1)), (9, 48, 48)) + rng.poisson(900, (9, 48, 48)) * (
        np.arange(9) < 3
    ).reshape(9, 1, 1)
    stored = (0.0371 * whole**power).astype(kind)
    levels = survey_frames(ArrayFrames(stored)).levels
    assert levels is not None
    assert levels.power == power
    assert levels.unit**power == pytest.approx(0.0371, rel=1e-4)
    scaled = (stored * (1 + 0.1 * np.arange(9)).reshape(9, 1, 1)).astype(kind)
    assert survey_frames(ArrayFrames(scaled)).levels == (power, 0), "each frame by its own factor"
    for other in (whole + 0.3 * rng.random(whole.shape), whole**0.9, np.sqrt(stored + 0.01)):
        assert survey_frames(ArrayFrames(other.astype(kind))).power == 1
        assert survey_frames(ArrayFrames(other.astype(kind))).unit == 0


def test_dark_frames_are_told_without_directions() -> None:
    """By their own brightness, whatever one rogue LED does; the bright field never loses its background."""
    rng = np.random.default_rng(6)
    bright = MODEL.geometry.illumination_na < 0.9 * OPTICS.na
    dark = MODEL.geometry.illumination_na > 1.1 * OPTICS.na
    stack = COUNTS.astype(np.uint16)
    stack[dark] += 40  # a veil
    survey = survey_frames(ArrayFrames(stack))
    assert survey.dark()[dark].all()
    assert not survey.dark()[bright].any()
    found = {suggestion.key: suggestion.value for suggestion in suggest(survey, offset=100.0)}
    levels = np.array(found["background"])
    assert (levels[bright] == 0).all()
    assert np.median(levels[dark]) == pytest.approx(40, abs=8)
    assert "floor" not in found, "it would take the faint dark field with the noise"
    stack[24] = np.minimum(stack[24].astype(int) * 12, 65535) + rng.integers(0, 9, stack[24].shape)
    assert not survey_frames(ArrayFrames(stack)).dark()[bright].any(), "nor if one LED outshines all"


def test_stray_light_is_counted_in_the_shortest_exposure() -> None:
    """What is suggested is what the corrections subtract: the veil is gone, whatever the exposures."""
    rng = np.random.default_rng(8)
    exposures = np.array([1.0, 1.0, 1.0, 4.0, 4.0, 8.0, 8.0])
    light = rng.random((7, 64, 64)) ** 8 * np.array([900.0, 900, 900, 6, 6, 3, 3])[:, None, None]
    light[:3] += 500
    light[:, :, :4] *= np.arange(7)[:, None, None] < 3  # a strip that sends nothing into the dark field
    veil = np.array([0.0, 0, 0, 12, 9, 5, 7])
    stack = np.rint((light + veil[:, None, None]) * exposures[:, None, None] + 50)
    survey = survey_frames(ArrayFrames(stack.astype(np.uint16)))
    found = {suggestion.key: suggestion.value for suggestion in suggest(survey, exposures=exposures, offset=50.0)}
    np.testing.assert_allclose(found["background"], veil, atol=0.3)
    frames = corrected(stack, offset=50, exposures=exposures, background=found["background"])
    for index in range(3, 7):
        np.testing.assert_allclose(frames.frame(index), light[index], atol=0.8)


@pytest.mark.parametrize("kind", ["u2", "f4"])
def test_bad_frames_and_why(kind: str) -> None:
    stack = COUNTS.astype(kind)
    centre, inside, outside = 24, 25, 0  # of 7 × 7 LEDs: the middle, its neighbour, and a corner
    stack[3] = 0
    stack[4] = 100
    stack[5] = stack[6]
    stack[inside] = 100 + (stack[inside] - 100) // 40
    stack[outside] = stack[centre] + 1
    wanted = {
        outside: "as bright as the bright field",
        3: "all pixels are zero",
        4: "all pixels are 100",
        6: "the same pixels as frame 5",
        inside: "dark (",
    }
    if kind == "f4":
        stack[10, 3, 3] = np.nan
        wanted[10] = "1 pixels are NaN"
        stack -= 100
        wanted[4] = "all pixels are zero"
        wanted[3] = "all pixels are -100"
    survey = survey_frames(ArrayFrames(stack))
    certain, strange = bad_frames(survey), unlike_others(survey, NA, OPTICS.na)
    assert set(strange) == {outside, inside}, "whoever trusts the described directions finds these strange, no more"
    assert {suggestion.key: suggestion.value for suggestion in suggest(survey, NA, OPTICS.na)}["reject"] == [*certain]
    found = certain | strange
    assert set(found) == set(wanted)
    for index, reason in wanted.items():
        assert found[index].startswith(reason)


def test_a_dark_field_frame_unlike_its_neighbours() -> None:
    outside = np.flatnonzero(MODEL.geometry.illumination_na > 1.15 * OPTICS.na)
    stack = COUNTS - 100.0
    stack[outside[3]] *= 0.02
    stack[outside[9]] *= 12
    found = unlike_others(survey_frames(ArrayFrames(stack)), NA, OPTICS.na)
    assert "a dead LED?" in found[int(outside[3])]
    assert "times brighter than others at its angle" in found[int(outside[9])] or "as bright" in found[int(outside[9])]
    assert len(found) == 2


def test_a_dark_frame_of_mere_noise_is_no_dead_led() -> None:
    # Eight neighbours agree by chance on a mean of twice its standard error, and the ninth lies below zero.
    shape = (len(NA), 64, 64)
    stack = np.random.default_rng(0).normal(0, 0.0064, shape)
    stack -= stack.mean(axis=(1, 2), keepdims=True)
    stack += np.where(MODEL.geometry.bright_field, 1.0, 0.0002)[:, None, None]
    outside = np.flatnonzero(MODEL.geometry.illumination_na > 1.15 * OPTICS.na)
    stack[outside[3]] -= 0.0003
    assert not unlike_others(survey_frames(ArrayFrames(stack)), NA, OPTICS.na)
    stack[outside] += 0.01
    stack[outside[3]] -= 0.0098  # now its neighbours are far above their noise
    assert list(unlike_others(survey_frames(ArrayFrames(stack)), NA, OPTICS.na)) == [int(outside[3])]


def test_different_exposures_are_no_fault() -> None:
    exposures = np.where(MODEL.geometry.bright_field, 1.0, 8.0)
    stack = np.minimum((COUNTS - 100.0) * exposures[:, None, None], 1e9)
    assert not unlike_others(survey_frames(ArrayFrames(stack)), NA, OPTICS.na, exposures)
