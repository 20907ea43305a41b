"""The place of the LED array and the focus are found from the frames, and what is right stays as it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fouriscope.acquisition import Acquisition, ArrayFrames
from fouriscope.alignment import (
    ORIENTATIONS,
    Orientation,
    Trials,
    align,
    find_array,
    find_die,
    find_focus,
    find_na,
    find_rotation,
    refine_array,
    sides,
)
from fouriscope.alignment.brightness import sides_of_edge
from fouriscope.alignment.orientation import AS_DESCRIBED
from fouriscope.alignment.trials import most_detailed_patch
from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.optics import Adjusted, Directions, LEDArray, Pupil
from fouriscope.optics.die import across_edge, smallest_distance
from fouriscope.simulation import simulate
from tests.calibration.problems import LEDS, smooth_x
from tests.conftest import OPTICS

DISPLACED = (2.0e-3, -1.5e-3)
FRAME = 32


def acquisition(
    *, lights: Any = LEDS, believed: Any = LEDS, pupil: Pupil | None = None, frame: int = FRAME, photons: float = 5000
) -> Acquisition:
    """Frames of the array ``lights``, with photon noise, described as if they were of ``believed``."""
    model = ForwardModel(OPTICS, lights, (frame, frame), pupil=pupil, object="complex")
    frames = np.random.default_rng(0).poisson(model.intensity(smooth_x(model)) * photons) / photons
    return Acquisition(OPTICS, believed, ArrayFrames(frames.astype(np.float32)), periodic=True)


def off_by(found: Any, truth: LEDArray) -> float:
    """Farthest difference of an LED's direction, in millimetres at the array's height."""
    return float(np.abs(found.directions() - truth.directions()).max()) * 70


def test_circles_find_a_displaced_array() -> None:
    right = LEDS.moved(shift=DISPLACED)
    fit = find_array(acquisition(lights=right))
    assert off_by(fit.illumination, right) < 0.3
    assert fit.misplaced[1] < fit.misplaced[0]


@pytest.mark.parametrize("orientation", ORIENTATIONS, ids=str)
def test_circles_tell_the_orientation(orientation: Orientation) -> None:
    """A rectangle of LEDs off the axis: no flip and no transpose is the same array."""
    believed = LEDArray.square((7, 9), pitch=4e-3, height=70e-3, offset=(1.3e-3, 0.7e-3))
    right = LEDArray(orientation(believed.positions), 70e-3, offset=believed.offset)
    fit = find_array(acquisition(lights=right, believed=believed), orientations=ORIENTATIONS)
    assert fit.orientation == orientation
    scores = sorted(fit.scores.values())
    assert scores[-1] > 1.5 * scores[-2]


def test_an_orientation_and_its_twin() -> None:
    turned = Orientation(transposed=True, flip_y=True, flip_x=False)
    points = np.array([[1.0, 2.0]])
    np.testing.assert_array_equal(turned(points), [[-2.0, 1.0]])
    np.testing.assert_array_equal(turned.twin(points), [[2.0, -1.0]])
    assert str(AS_DESCRIBED) == "as described"


def test_trials_place_the_array_within_hundredths_of_a_millimetre() -> None:
    right = LEDS.moved(shift=(0.10e-3, -0.07e-3), turn=0.004)
    fit = refine_array(acquisition(lights=right), motions=("shift", "rotation"))
    assert fit.moved
    assert off_by(fit.illumination, right) < 0.03


def test_directions_can_be_moved_too() -> None:
    right = LEDS.moved(shift=(0.12e-3, 0.0))
    fit = refine_array(acquisition(lights=right, believed=Directions(LEDS.directions())), motions=("shift",))
    assert off_by(fit.illumination, right) < 0.03


@pytest.mark.parametrize("defocus", [-40e-6, 0.0, 130e-6])
def test_the_focus_is_found(defocus: float) -> None:
    fit = find_focus(acquisition(pupil=Pupil(defocus=defocus)), reach=150e-6)
    assert fit.defocus == pytest.approx(defocus, abs=1.5e-6)
    assert fit.misfits.min() == fit.misfits[list(fit.tried).index(fit.defocus)]


def engraved(data: Acquisition, na: float) -> Acquisition:
    """The same frames, said to be of an objective with another aperture."""
    return replace(data, optics=replace(data.optics, na=na))


@pytest.mark.parametrize("believed", [0.17, 0.19, 0.23, 0.27])
def test_the_aperture_is_found(believed: float) -> None:
    fit = find_na(engraved(acquisition(), believed))
    assert fit.changed
    assert fit.na == pytest.approx(0.2, rel=0.01)
    assert fit.misfit_after == fit.misfits.min() < fit.misfit_before


def test_an_aperture_at_the_end_of_what_was_tried_is_none() -> None:
    fit = find_na(engraved(acquisition(), 0.3))
    assert fit.at_end
    assert not fit.changed
    assert fit.na == 0.3
    told: list[str] = []
    align(engraved(acquisition(), 0.3), circles=False, focus=False, array=False, tell=told.append)
    assert any("aperture: not found" in line for line in told)


def test_the_searches_are_counted() -> None:
    stages: list[str] = []
    align(acquisition(), circles=False, array=False, na=False, die=False, stage=stages.append, focus_reach=30e-6)
    named = [line.removeprefix("aligning the microscope: ") for line in stages]
    assert named[:2] == ["exposure of the dark field (1 of 5)", "focus (2 of 5)"]
    assert named[-2:] == ["LEDs at the pupil's edge (4 of 5)", "change of directions over the field (5 of 5)"]


def test_an_aperture_that_is_right_stays() -> None:
    fit = find_na(acquisition())
    assert fit.na == 0.2
    assert not fit.changed


@pytest.mark.slow
def test_a_wrong_aperture_does_not_lead_the_array_astray() -> None:
    """Circles of a wrong radius move the array; with the aperture found they are drawn again."""
    told: list[str] = []
    found = align(engraved(acquisition(frame=48), 0.235), focus_reach=30e-6, tell=told.append).acquisition
    assert found.optics.na == pytest.approx(0.2, rel=0.01)
    assert off_by(found.illumination, LEDS) < 0.06
    assert any("aperture: NA" in line and "(was 0.235)" in line for line in told)


def test_an_aperture_is_not_looked_for_where_all_is_masked() -> None:
    data = replace(acquisition(), mask=np.zeros((FRAME, FRAME), bool))
    with pytest.raises(InvalidInputError, match=r"no aperture explains .* Switch alignment.na off"):
        find_na(data)


def test_the_penumbra_is_on_neither_side() -> None:
    data = acquisition()
    na = np.hypot(*LEDS.directions().T)
    bright, dark = sides(data)
    np.testing.assert_array_equal(bright, na < 0.2)
    np.testing.assert_array_equal(dark, na > 0.2)
    near = int(np.flatnonzero(na > 0.2)[na[na > 0.2].argmin()])
    frames = np.array([data.frames.frame(led) for led in range(len(data))])
    frames[near] += 0.1  # a tenth of the direct light comes through
    bright, dark = sides(replace(data, frames=ArrayFrames(frames)))
    assert np.flatnonzero(~(bright | dark)).tolist() == [near]
    lifted = [side.copy() for side in sides(replace(data, frames=ArrayFrames(frames + 0.03)))]
    np.testing.assert_array_equal(lifted, (bright, dark), err_msg="what even the dark has does not count")


def test_what_is_right_is_left_alone() -> None:
    data = acquisition()
    found = align(data, focus_reach=60e-6)
    assert found.acquisition.illumination is data.illumination
    assert found.acquisition.optics == data.optics
    assert abs(found.acquisition.pupil.defocus) < 1e-6
    assert any("as described" in note for note in found.notes)
    assert any("trials found no better place" in note for note in found.notes)


@pytest.mark.slow
def test_all_at_once() -> None:
    right = LEDS.moved(shift=DISPLACED)
    told: list[str] = []
    found = align(acquisition(lights=right, pupil=Pupil(defocus=30e-6)), focus_reach=60e-6, tell=told.append)
    assert off_by(found.acquisition.illumination, right) < 0.06
    assert found.acquisition.pupil.defocus == pytest.approx(30e-6, abs=2e-6)
    assert tuple(told) == found.notes


def test_a_patch_is_a_part_of_the_field_with_its_own_centre() -> None:
    frames = np.ones((81, 100, 90), np.float32)
    frames[:, 70:80, 60:70] += np.random.default_rng(0).normal(0, 0.5, (10, 10)).astype(np.float32)
    mask = np.ones((100, 90), bool)
    mask[75, 65] = False
    data = Acquisition(OPTICS, LEDS, ArrayFrames(frames), mask=mask, patch_center=(1e-5, 0.0))
    patch = most_detailed_patch(data, 32)
    assert patch.frame_shape == (32, 32)
    assert not patch.periodic
    top = round((patch.patch_center[0] - 1e-5) / OPTICS.pixel + 50 - 16)
    left = round(patch.patch_center[1] / OPTICS.pixel + 45 - 16)
    assert top <= 70 <= 80 <= top + 32
    assert left <= 60 <= 70 <= left + 32
    np.testing.assert_array_equal(patch.frames.frame(3), frames[3, top : top + 32, left : left + 32])
    assert patch.mask is not None
    assert not np.asarray(patch.mask)[0, 75 - top, 65 - left]


def test_a_guess_that_fits_nothing_is_infinitely_bad() -> None:
    trials = Trials.of(acquisition())
    assert trials.misfit(illumination=LEDS.moved(shift=(0.2, 0.0))) == np.inf


def test_sides_of_the_edge() -> None:
    means = np.array([1.0, 0.95, 1.02, 0.4, 0.02, 0.01, 0.015, 0.02])
    inside = np.arange(8) < 3
    np.testing.assert_array_equal(sides_of_edge(means, inside), [1, 1, 1, 0, -1, -1, -1, -1])
    np.testing.assert_array_equal(sides_of_edge(means, inside[::-1]), [1, 1, 1, 0, -1, -1, -1, -1])
    assert not sides_of_edge(np.linspace(0.9, 1.1, 8), inside).any(), "frames of one kind"


def test_wrong_questions() -> None:
    data = acquisition(frame=32)
    with pytest.raises(InvalidInputError, match="motions"):
        refine_array(data, motions=("shiver",))  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="reach"):
        find_focus(data, reach=-1.0)
    dark = replace(data, frames=ArrayFrames(np.zeros((81, 32, 32), np.float32)))
    two = replace(dark, weights=np.eye(81)[0] + np.eye(81)[1])
    with pytest.raises(InvalidInputError, match="bright-field frames"):
        find_array(two)
    found = align(two, focus=False, array=False)
    assert found.acquisition is two
    assert "not searched for: 0 frames surely hold direct light" in found.notes[0]


def test_pixels_under_a_mask_may_hold_anything() -> None:
    data = acquisition(lights=LEDS.moved(shift=DISPLACED))
    stack = np.stack([data.frames.frame(led) for led in range(81)])
    stack[:, 10, 12] = np.nan
    mask = np.ones((FRAME, FRAME), bool)
    mask[10, 12] = False
    hidden = replace(data, frames=ArrayFrames(stack), mask=mask)
    assert off_by(find_array(hidden).illumination, LEDS.moved(shift=DISPLACED)) < 0.3


def test_a_patch_that_nothing_explains_is_said() -> None:
    data = replace(acquisition(frame=32), mask=np.zeros((32, 32), bool))
    with pytest.raises(InvalidInputError, match="no defocus explains"):
        find_focus(data, reach=20e-6)
    with pytest.raises(InvalidInputError, match="explains nothing"):
        refine_array(data)


def test_a_measured_pupil_does_not_stop_the_focus() -> None:
    data = acquisition(pupil=Pupil(defocus=20e-6), frame=FRAME)
    known = replace(data, pupil=Pupil(array=np.ones((FRAME, FRAME), np.complex128)))
    assert find_focus(known, reach=40e-6).defocus == pytest.approx(20e-6, abs=1.5e-6)


@pytest.mark.parametrize("degrees", [-2.0, 2.0])
def test_inner_leds_tell_how_far_the_array_is_turned(degrees: float) -> None:
    right = LEDS.moved(turn=float(np.radians(degrees)))
    found = find_rotation(acquisition(lights=right, pupil=Pupil({5: 0.4, 7: -0.3})))
    assert np.degrees(found.turn) == pytest.approx(degrees, abs=0.3)
    assert off_by(found.illumination, right) < 0.25 * off_by(LEDS, right)


def test_exposures_and_masked_pixels_do_not_turn_an_array() -> None:
    """Likeness does not depend on how bright a frame is, and looks only where pixels count."""
    data = acquisition(lights=LEDS.moved(turn=float(np.radians(2))))
    plain = find_rotation(data)
    frames = np.array([data.frames.frame(led) for led in range(len(data))])
    longer = np.where(np.hypot(*LEDS.directions().T) > 0.2, 8.0, 1.0)
    exposed = replace(data, frames=ArrayFrames(frames * longer[:, None, None]), gains=longer)
    assert find_rotation(exposed).turn == pytest.approx(plain.turn, abs=np.radians(0.1))
    mask = np.ones(frames.shape, bool)
    mask[:, 10:14, 20:24] = False
    frames[~mask] = np.nan
    masked = find_rotation(replace(data, frames=ArrayFrames(frames), mask=mask))
    assert masked.turn == pytest.approx(plain.turn, abs=np.radians(0.3))


def test_an_array_that_is_right_or_has_no_dark_field_is_not_turned() -> None:
    data = acquisition()
    assert not find_rotation(data).changed
    assert find_rotation(data).illumination is data.illumination
    inner = np.flatnonzero(np.hypot(*LEDS.directions().T) < 0.15)
    assert not find_rotation(replace(data, weights=np.isin(np.arange(len(data)), inner).astype(float))).changed


def test_a_frame_on_the_wrong_side_of_the_edge_is_left_out_in_the_end() -> None:
    """A dark frame in the place of a bright one: no alignment can place that LED on the other side alone."""
    data = acquisition()
    na = np.hypot(*LEDS.directions().T)
    wrong, dark = int(np.flatnonzero(na < 0.2)[na[na < 0.2].argmax()]), int(na.argmax())
    frames = np.array([data.frames.frame(led) for led in range(len(data))])
    frames[wrong] = frames[dark]
    found = align(
        replace(data, frames=ArrayFrames(frames)), circles=False, exposure=False, focus=False, na=False, array=False
    )
    weights = found.acquisition.weights
    assert weights is not None
    assert np.flatnonzero(np.asarray(weights) == 0).tolist() == [wrong]
    assert any("wrong side" in note for note in found.notes)


def frames_of_sized_leds(die: float) -> Acquisition:
    """Frames of LEDs with a size, from many points of each, described as points."""
    model = ForwardModel(OPTICS, replace(LEDS, die=die), (FRAME, FRAME))
    phase = 0.5 * (np.random.default_rng(0).random((12, 12)) < 0.5).repeat(20, 0).repeat(20, 1)
    rows, columns = model.object_shape
    return replace(simulate(model, phase[:rows, :columns], seed=0), illumination=LEDS)


NOTHING: dict[str, Any] = dict.fromkeys(("circles", "exposure", "focus", "response", "na", "array", "die"), False)


def test_a_frame_in_the_penumbra_stays_if_the_size_of_the_leds_explains_it() -> None:
    data, lights = frames_of_sized_leds(0.5e-3), replace(LEDS, die=0.5e-3)
    across = across_edge(lights, OPTICS, (0.0, 0.0))
    assert across.any()
    assert not align(data, **NOTHING).acquisition.frame_weights[across].any()
    assert align(replace(data, illumination=lights), **NOTHING).acquisition.frame_weights.all()


def test_a_frame_across_the_edge_that_holds_other_light_than_its_size_says_is_left_out() -> None:
    lights = replace(LEDS, die=0.5e-3)
    data = replace(frames_of_sized_leds(0.5e-3), illumination=lights)
    wrong = int(np.flatnonzero(across_edge(lights, OPTICS, (0.0, 0.0)))[0])
    frames = np.array([data.frames.frame(led) for led in range(len(data))])
    frames[wrong] *= 0.2 / frames[wrong].mean() if frames[wrong].mean() > 0.5 else 0.8 / frames[wrong].mean()
    found = align(replace(data, frames=ArrayFrames(frames)), **NOTHING)
    assert np.flatnonzero(found.acquisition.frame_weights == 0).tolist() == [wrong]


@pytest.mark.parametrize("die", [0.3e-3, 0.5e-3, 1e-3])
def test_the_size_of_the_leds_is_found(die: float) -> None:
    found = find_die(frames_of_sized_leds(die))
    assert found.changed
    assert 0.8 * die < found.die < 1.2 * die
    assert found.misfits[found.tried == found.die] == found.misfits.min() == found.misfit_after


def test_points_stay_points_and_a_size_that_is_right_stays() -> None:
    points = frames_of_sized_leds(0.0)
    found = find_die(points)
    assert not found.changed
    assert found.illumination is points.illumination
    right = replace(frames_of_sized_leds(0.5e-3), illumination=replace(LEDS, die=0.5e-3))
    assert find_die(right).illumination is right.illumination


def test_single_leds_that_were_moved_keep_their_place_with_a_size() -> None:
    shifts = np.zeros((len(LEDS), 2))
    data = replace(frames_of_sized_leds(0.5e-3), illumination=Adjusted(LEDS, shifts))
    found = find_die(data).illumination
    assert isinstance(found, Adjusted)
    assert not found.shifts.any()
    assert isinstance(found.base, LEDArray)
    assert 0.4e-3 < found.base.die < 0.6e-3


def test_the_alignment_says_and_uses_the_size_of_the_leds() -> None:
    found = align(frames_of_sized_leds(0.5e-3), **(NOTHING | {"die": True}))
    assert any("mm explains the frames better than points" in note for note in found.notes)
    assert isinstance(found.acquisition.illumination, LEDArray)
    assert 0.4e-3 < found.acquisition.illumination.die < 0.6e-3
    assert found.acquisition.frame_weights.all()


def test_directions_without_a_height_have_no_size() -> None:
    data = replace(frames_of_sized_leds(0.5e-3), illumination=Directions(LEDS.directions()))
    found = align(data, **(NOTHING | {"die": True, "edge": False}))
    assert found.notes == ("size of the LEDs: not searched for: their directions have no height",)
    assert found.acquisition.illumination is data.illumination


def test_unevenly_spaced_leds_have_a_size_below_their_smallest_distance() -> None:
    """The search must stop before neighbours overlap, not with an error."""
    positions = LEDS.positions.copy()
    positions[0] += 0.9 * (positions[1] - positions[0])
    found = find_die(replace(frames_of_sized_leds(1e-3), illumination=LEDArray(positions, 70e-3)))
    assert found.tried.max() <= smallest_distance(positions) < 0.5e-3
