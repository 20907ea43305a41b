"""What inner LEDs predict of outer ones tells a wrong microscope from a right one, whatever the exposures are."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fouriscope.acquisition import Acquisition, ArrayFrames
from fouriscope.alignment import PlaceFit, find_place, likeness
from fouriscope.alignment.orientation import ORIENTATIONS, Orientation
from fouriscope.alignment.prediction import Unseen
from fouriscope.alignment.steps import likelier, predicted_better
from fouriscope.alignment.trials import Trials
from fouriscope.alignment.ways import Way, right_way_round
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray
from tests.conftest import OPTICS

LEDS = LEDArray.square(9, pitch=4e-3, height=70e-3, offset=(0.9e-3, 0.4e-3))
MIRRORED = replace(LEDS, positions=LEDS.positions * (-1, 1))


@pytest.fixture(scope="module")
def rough() -> Acquisition:
    """Frames of a rough phase, which scatters into all of them; the dark field was exposed eight times longer."""
    model = ForwardModel(OPTICS, LEDS, (48, 48))
    phase = np.random.default_rng(0).normal(0, 0.5, model.object_shape).astype(np.float32)
    exposed = np.where(model.geometry.bright_field, 1.0, 8.0)[:, None, None]
    frames = np.random.default_rng(1).poisson(model.intensity(phase) * exposed * 5000) / 5000
    return Acquisition(OPTICS, LEDS, ArrayFrames(frames.astype(np.float32)), periodic=True)


def test_the_right_microscope_predicts_best(rough: Acquisition) -> None:
    right = likeness(rough)
    assert 0 < right <= 1
    wrong = {
        "mirrored": replace(rough, illumination=MIRRORED),
        "turned": replace(rough, illumination=LEDS.moved(turn=0.1)),
        "aperture": replace(rough, optics=replace(OPTICS, na=0.85 * OPTICS.na)),
    }
    assert all(likeness(one, na=OPTICS.na) < 0.95 * right for one in wrong.values())


def test_gains_do_not_matter_to_the_frames_that_are_predicted(rough: Acquisition) -> None:
    """Those of outer frames, which no other frame is predicted from."""
    outer = np.hypot(*LEDS.directions().T) > 1.8 * OPTICS.na
    stack = np.stack([rough.frames.frame(led) * (5.0 if outer[led] else 1.0) for led in range(len(rough))])
    inner = replace(rough, weights=np.where(np.hypot(*LEDS.directions().T) < 2.0 * OPTICS.na, 1.0, 0.0))
    assert likeness(replace(inner, frames=ArrayFrames(stack))) == pytest.approx(likeness(inner), rel=1e-3)


def test_without_dark_field_nothing_is_predicted(rough: Acquisition) -> None:
    bright = np.hypot(*LEDS.directions().T) < OPTICS.na
    assert math.isnan(likeness(replace(rough, weights=bright.astype(float))))


def test_a_mirrored_array_has_the_right_rival(rough: Acquisition) -> None:
    found = find_place(replace(rough, illumination=MIRRORED))
    assert found.likelier == found.rivals[0] == Orientation(transposed=False, flip_y=True, flip_x=False)
    assert find_place(rough).rivals == []


def test_orientations_that_may_be_right_are_rivals() -> None:
    def fit(likeness: list[float], misfits: list[float]) -> PlaceFit:
        of_misfits = dict(zip(ORIENTATIONS, misfits, strict=True))
        of_likeness = dict(zip(ORIENTATIONS, likeness, strict=True))
        arrays, wrong = dict.fromkeys(ORIENTATIONS, LEDS), dict.fromkeys(ORIENTATIONS, 0)
        return PlaceFit(arrays, of_misfits, of_likeness, misfits[0], wrong, 0)

    _, other, another, third = ORIENTATIONS
    even = [1.0] * len(ORIENTATIONS)
    low = [0.1] * (len(ORIENTATIONS) - 2)
    assert fit([0.4, 0.3, *low], even).rivals == []
    for predicted, clearly in ((0.35, None), (0.41, None), (0.45, other)):
        found = fit([0.4, predicted, *low], even)
        assert (found.rivals, found.likelier) == ([other], clearly)
    assert fit([0.4, 0.36, 0.38, 0.37], even).rivals == [another, third], "the two that are likeliest"
    assert fit([0.4, 0.45, *low], [1.0, 1.3, *even[2:]]).rivals == [], "bright frames contradict"
    nothing = [math.nan] * len(ORIENTATIONS)
    for misfit, clearly in ((0.9, None), (0.7, other)):
        found = fit(nothing, [1.0, misfit, *even[2:]])
        assert (found.rivals[0], found.likelier) == (other, clearly)


def test_of_several_orientations_unseen_frames_choose(rough: Acquisition) -> None:
    """Whatever inner frames predicted of outer ones, and with another one than described, they have to be certain."""
    right, wrong = rough, replace(rough, illumination=MIRRORED)
    transposed = replace(rough, illumination=replace(LEDS, positions=LEDS.positions[:, ::-1]))
    for described, others in ((right, [wrong]), (wrong, [right]), (wrong, [transposed, right])):
        ways = [Way(*pair) for pair in zip(ORIENTATIONS, [described, *others], strict=False)]
        said: list[str] = []
        for guessed in (None, ORIENTATIONS[1]):
            assert ways[right_way_round(ways, guessed, described, said.append)].acquisition is right
        assert ("orientation as described" in said[0]) == (described is right)
        assert "cannot tell it" not in said[0]


def test_the_described_orientation_stays_if_nobody_can_tell(rough: Acquisition) -> None:
    said: list[str] = []
    ways = [Way(orientation, rough) for orientation in ORIENTATIONS[:2]]
    assert right_way_round(ways, None, rough, said.append) == 0
    assert len(said) == 1
    assert "as described, but the frames cannot tell it from y reversed; position as described" in said[0]
    few = replace(rough, weights=np.where(np.arange(len(rough)) < 15, 1.0, 0.0))
    ways = [Way(orientation, few) for orientation in ORIENTATIONS[:2]]
    assert right_way_round(ways, ORIENTATIONS[1], few, said.append) == 1


def test_an_aperture_that_predicts_worse_is_only_a_rival(rough: Acquisition) -> None:
    smaller = replace(rough, optics=replace(OPTICS, na=0.85 * OPTICS.na))
    assert likelier(smaller, rough) == (rough, smaller)
    assert likelier(rough, smaller) == (rough, None)


def test_of_two_apertures_the_one_that_predicts_better_is_used(rough: Acquisition) -> None:
    said: list[str] = []
    smaller = replace(rough, optics=replace(OPTICS, na=0.85 * OPTICS.na))
    assert predicted_better(smaller, rough, said.append) is rough
    assert predicted_better(rough, smaller, said.append) is rough
    assert all(line.startswith("aperture: NA 0.2000 is used; of NA") for line in said)


def test_frames_of_noise_are_not_asked(rough: Acquisition) -> None:
    """They are as dark in every prediction, right or wrong: with them, likeness says less."""
    outer = np.hypot(*LEDS.directions().T) > 2 * OPTICS.na
    noise = np.random.default_rng(2).poisson(5, (len(rough), *rough.frame_shape)) / 5000
    stack = np.stack([noise[led] if outer[led] else rough.frames.frame(led) for led in range(len(rough))])
    data = replace(rough, frames=ArrayFrames(stack.astype(np.float32)))
    assert not Unseen(Trials.of(data)).tells[outer].any()
    assert Unseen(Trials.of(data)).tells[~outer].all()
    inner = replace(data, weights=np.where(outer, 0.0, 1.0))
    assert likeness(data) == pytest.approx(likeness(inner), rel=0.02)
    only_noise = replace(rough, frames=ArrayFrames(noise.astype(np.float32)), weights=outer.astype(float))
    assert Unseen(Trials.of(only_noise)).tells.all(), "too few frames would be left"
