"""What noise alone leaves of a frame is what a perfect model leaves of it, in every loss."""

from __future__ import annotations

import numpy as np
import pytest

from fouriscope.fidelity import AmplitudeLoss, DataFidelity, IntensityLoss, Loss, PoissonLoss
from fouriscope.forward import ForwardModel
from fouriscope.viewer.expected_noise import PredictedFrames, expected_misfits
from tests.conftest import LEDS, OPTICS
from tests.solvers.problems import shapes

MODEL = ForwardModel(OPTICS, LEDS, (64, 64))
X = shapes(MODEL.object_shape, 0.3).astype(np.float32)
LEVELS = np.random.default_rng(0).uniform(0.005, 0.03, len(MODEL))


@pytest.fixture(scope="module")
def noisy() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    rng = np.random.default_rng(1)
    frames = MODEL.intensity(X) + LEVELS[:, None, None] * rng.normal(size=(len(MODEL), 64, 64))
    return frames.astype(np.float32)


@pytest.mark.parametrize("loss", [IntensityLoss(), AmplitudeLoss(), AmplitudeLoss(0.03), PoissonLoss()], ids=str)
def test_a_perfect_model_leaves_noise_alone(
    noisy: np.ndarray[tuple[int, ...], np.dtype[np.float32]], loss: Loss
) -> None:
    fidelity = DataFidelity(MODEL, noisy, loss=loss)
    ratio = fidelity.misfits(X) / expected_misfits(fidelity, X)
    assert np.median(ratio) == pytest.approx(1, abs=0.07)
    assert (np.abs(np.log(ratio)) < 0.8).all(), "the noise of a frame of 64 × 64 is known to some 11 %"


def test_what_the_model_does_not_explain_stands_out(
    noisy: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
) -> None:
    wrong = noisy.copy()
    wrong[24] *= 1.3
    fidelity = DataFidelity(MODEL, wrong)
    ratio = fidelity.misfits(X) / expected_misfits(fidelity, X)
    assert ratio.argmax() == 24
    assert ratio[24] > 10


def test_frames_and_pixels_that_do_not_count(noisy: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> None:
    broken = noisy.copy()
    broken[3] = np.nan
    broken[:, :5] = 100
    mask, weights = np.ones((64, 64)), np.ones(len(MODEL))
    mask[:5], weights[3] = 0, 0
    fidelity = DataFidelity(MODEL, broken, mask=mask, weights=weights)
    expected = expected_misfits(fidelity, X)
    assert np.flatnonzero(np.isnan(expected)).tolist() == [3]
    ratio = fidelity.misfits(X, np.flatnonzero(weights)) / expected[weights > 0]
    assert np.median(ratio) == pytest.approx(1, abs=0.1)


def test_predicted_frames_are_those_of_the_model() -> None:
    frames = PredictedFrames(MODEL, X)
    assert frames.shape == (49, 64, 64)
    np.testing.assert_array_equal(frames[7], MODEL.intensity(X, [7])[0])
