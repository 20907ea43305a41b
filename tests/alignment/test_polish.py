"""The last look at LEDs and focus: frames are predicted by reconstructions that have not seen them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fouriscope.acquisition import Acquisition
from fouriscope.alignment import PolishFit, Trials, polish, steps
from fouriscope.alignment.cross_validation import FOLDS, CrossValidation, Guess, askable, evidence_for
from fouriscope.alignment.steps import better_of, clearly_better, polished
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray, Optics, Pupil
from fouriscope.parallel import threads
from fouriscope.simulation import simulate

OPTICS = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
LEDS = LEDArray.square(9, pitch=4e-3, height=70e-3)


def taken(lights: LEDArray, pupil: Pupil | None = None, side: int = 48) -> Acquisition:
    """Frames of ``lights``, described as those of ``LEDS`` in focus."""
    model = ForwardModel(OPTICS, lights, (side, side), pupil=pupil)
    phase = np.random.default_rng(0).normal(0, 0.5, model.object_shape)
    return Acquisition(OPTICS, LEDS, simulate(model, phase, seed=0).frames, periodic=True)


@pytest.fixture(scope="module")
def turned() -> Acquisition:
    return taken(LEDS.moved(turn=np.radians(0.5), height=1.01))


def validation(data: Acquisition, seed: int = 0) -> CrossValidation:
    trials = Trials.of(data)
    return CrossValidation(trials, askable(trials), seed)


def as_described(data: Acquisition) -> Guess:
    return Guess(data.illumination, data.pupil)


def test_rotation_and_height_are_found_together(turned: Acquisition) -> None:
    fit = polish(turned, motions=("rotation", "height"), focus=False)
    assert fit is not None
    assert fit.changed
    assert fit.after > fit.before
    assert isinstance(fit.illumination, LEDArray)
    assert np.degrees(fit.illumination.rotation) == pytest.approx(0.5, abs=0.05)
    assert fit.illumination.height == pytest.approx(1.01 * LEDS.height, rel=1e-3)


def test_a_right_microscope_is_left_alone() -> None:
    data = taken(LEDS)
    fit = polish(data, motions=("rotation", "height"))
    assert fit is not None
    assert not fit.changed
    assert fit.illumination is data.illumination
    assert fit.defocus == data.pupil.defocus


def test_a_focus_that_explains_nothing_gives_way_to_the_described_one() -> None:
    data = replace(taken(LEDS), pupil=Pupil(defocus=80e-6))
    fit = polish(data, motions=("rotation",), other_focus=0.0)
    assert fit is not None
    assert fit.changed
    assert abs(fit.defocus) < 0.2 * OPTICS.wavelength / OPTICS.na**2


def test_few_frames_say_nothing() -> None:
    assert polish(replace(taken(LEDS), weights=(np.arange(len(LEDS)) < 15).astype(float))) is None


def test_each_frame_is_asked_once_and_none_at_the_edge(turned: Acquisition) -> None:
    folds = validation(turned).folds
    asked = np.concatenate(folds)
    assert len(folds) == FOLDS
    assert len(np.unique(asked)) == len(asked)
    radius = np.hypot(*LEDS.directions()[asked].T)
    assert np.abs(radius - OPTICS.na).min() > max(Trials.of(turned).bin_na)


def test_large_arrays_need_fewer_folds() -> None:
    trials = Trials.of(taken(LEDS))
    many = replace(
        trials,
        patch=replace(
            trials.patch,
            illumination=LEDArray.square(15, pitch=2e-3, height=70e-3),
            frames=np.ones((225, 48, 48), np.float32),
            weights=np.ones(225),
        ),
    )
    assert 1 < len(CrossValidation(many, askable(many), 0).folds) < FOLDS


def test_the_number_of_threads_changes_nothing(turned: Acquisition) -> None:
    found = []
    for count in (1, 2):
        with threads(count):
            found.append(validation(turned).likeness([as_described(turned)]))
    np.testing.assert_array_equal(found[0], found[1])


def test_a_frame_does_not_help_to_predict_itself(turned: Acquisition) -> None:
    """Another frame of the fold may be anything: the predictions of this fold stay as they are."""
    plain = validation(turned)
    fold = plain.folds[0]
    stack = np.array([turned.frames.frame(led) for led in range(len(turned))])
    stack[fold[0]] = stack[fold[0]][::-1]
    other = validation(replace(turned, frames=stack))
    before = plain.likeness([as_described(turned)])[0]
    after = other.likeness([as_described(turned)])[0]
    np.testing.assert_array_equal(before[1 : len(fold)], after[1 : len(fold)])
    assert before[0] != after[0]


def test_evidence_is_for_the_right_one(turned: Acquisition) -> None:
    right = replace(turned, illumination=LEDS.moved(turn=np.radians(0.5), height=1.01))
    assert evidence_for(right, turned) > 3
    assert evidence_for(turned, right) < -3
    assert evidence_for(turned, turned) == 0


def test_what_was_found_must_predict_clearly_better_than_the_description() -> None:
    described = taken(LEDS)
    misled = replace(described, illumination=LEDS.moved(shift=(8e-3, 0.0)))
    assert clearly_better(described, described)
    assert not clearly_better(misled, described)
    said: list[str] = []
    assert better_of(misled, described, described, said.append) is described
    assert "from the description" in said[0]
    assert better_of(described, misled, described, said.append) is described
    assert len(said) == 1


def test_misfits_of_several_beliefs_are_those_of_each(turned: Acquisition) -> None:
    trials = Trials.of(turned)
    pupils = [Pupil(defocus=z) for z in (-5e-6, 0.0, 5e-6)]
    with threads(2):
        together = trials.misfits([{"pupil": pupil} for pupil in pupils])
    assert together == [trials.misfit(pupil=pupil) for pupil in pupils]


def test_larger_bins_first_and_then_a_larger_patch(turned: Acquisition, monkeypatch: pytest.MonkeyPatch) -> None:
    """A larger patch has smaller bins, so it finds a place more exactly, but not from far away."""
    sides: list[int] = []

    def recorded(acquisition: Acquisition, *, side: int, **_: Any) -> PolishFit:
        sides.append(side)
        found = acquisition.illumination.moved(turn=0.01) if isinstance(acquisition.illumination, LEDArray) else LEDS
        return PolishFit(found, 0.0, 0.5, 0.6, 2.0, 10)

    monkeypatch.setattr(steps, "polish", recorded)
    for side, expected in ((48, [64]), (96, [64, 128])):
        sides.clear()
        data = replace(turned, frames=np.ones((81, side, side)))
        found = polished(data, ["rotation"], 0.0, lambda line: None, focus=False).illumination
        assert sides == expected
        assert isinstance(found, LEDArray)
        assert found.rotation == pytest.approx(0.01 * len(sides))


@pytest.mark.slow
def test_a_small_rotation_is_found_on_a_large_patch() -> None:
    data = replace(taken(LEDS, side=96), illumination=LEDS.moved(turn=np.radians(0.2)))
    fit = polish(data, motions=["rotation"], focus=False, side=96)
    assert fit is not None
    assert isinstance(fit.illumination, LEDArray)
    assert abs(np.degrees(fit.illumination.rotation)) < 0.03
