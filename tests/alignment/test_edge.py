"""Frames at the pupil's edge that brightness calls doubtful."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.edge import explained
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray
from tests.conftest import OPTICS

LEDS = LEDArray.square(9, pitch=4e-3, height=70e-3)


@pytest.fixture(scope="module")
def frames() -> np.ndarray:
    model = ForwardModel(OPTICS, LEDS, (48, 48))
    phase = np.random.default_rng(0).normal(0, 0.5, model.object_shape).astype(np.float32)
    return np.random.default_rng(1).poisson(model.intensity(phase) * 5000) / 5000


@pytest.fixture(scope="module")
def at_the_edge() -> np.ndarray:
    """Two LEDs inside the pupil and two outside, the nearest to its edge."""
    radius = np.hypot(*LEDS.directions().T)
    order = np.argsort(np.abs(radius - OPTICS.na), kind="stable")
    inside = radius[order] < OPTICS.na
    return np.sort(np.concatenate([order[inside][:2], order[~inside][:2]]))


def taken(frames: np.ndarray) -> Acquisition:
    return Acquisition(OPTICS, LEDS, frames.astype(np.float32), periodic=True)


def test_frames_that_the_others_predict_are_kept(frames: np.ndarray, at_the_edge: np.ndarray) -> None:
    np.testing.assert_array_equal(explained(taken(frames), at_the_edge), at_the_edge)


def test_their_weight_does_not_matter(frames: np.ndarray, at_the_edge: np.ndarray) -> None:
    weights = np.ones(len(LEDS))
    weights[at_the_edge] = 0
    kept = explained(replace(taken(frames), weights=weights), at_the_edge)
    np.testing.assert_array_equal(kept, at_the_edge)


def test_a_penumbra_is_not_kept(frames: np.ndarray, at_the_edge: np.ndarray) -> None:
    """Half of the direct light where all of it, or none, should be."""
    mixed, outer = frames.copy(), np.hypot(*LEDS.directions()[at_the_edge].T) > OPTICS.na
    bright = frames[len(LEDS) // 2]
    for led, is_outer in zip(at_the_edge, outer, strict=True):
        mixed[led] = mixed[led] + 0.5 * bright if is_outer else 0.3 * mixed[led]
    assert not len(explained(taken(mixed), at_the_edge))


def test_one_bad_frame_does_not_take_the_others_with_it(frames: np.ndarray, at_the_edge: np.ndarray) -> None:
    mixed = frames.copy()
    mixed[at_the_edge[0]] = frames[at_the_edge[0], ::-1] * 0.2 + 2.0
    np.testing.assert_array_equal(explained(taken(mixed), at_the_edge), at_the_edge[1:])
