"""A black level that cuts off negative noise is seen, and its false light is taken away; nothing else is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fouriscope as fs
from fouriscope.acquisition import ArrayFrames
from fouriscope.fidelity import DataFidelity
from fouriscope.fidelity.black_level import LoweredFrames, noise_cut_off
from tests.conftest import LEDS, OPTICS
from tests.solvers.problems import shapes

SIGMA, COUNT = 0.01, 12
EVERY = list(range(COUNT))


def dark(light: float, seed: int = 0) -> NDArray[Any]:
    return np.random.default_rng(seed).normal(light, SIGMA, (COUNT, 64, 64))


@pytest.mark.parametrize("level", [-0.015, -0.003, 0.0, 0.006])
def test_the_noise_and_the_mean_below_the_cut_are_found(level: float) -> None:
    cut = np.maximum(dark(0.001), level)
    frames = ArrayFrames(cut)
    sigma = noise_cut_off(frames, None, EVERY)
    assert sigma == pytest.approx(SIGMA, rel=0.06)
    lowered = LoweredFrames(frames, None, sigma)
    means = [lowered.frame(led).mean() for led in EVERY]
    assert np.mean(means) == pytest.approx(0.001, abs=0.03 * SIGMA)
    assert cut.mean() > 0.001 + 0.02 * SIGMA, "otherwise nothing was to be found"


@pytest.mark.parametrize(
    "frames",
    [
        dark(0.001),
        np.random.default_rng(1).poisson(0.4, (COUNT, 64, 64)) / 200,  # electrons, counted one by one
        np.random.default_rng(1).poisson(np.linspace(0, 0.6, 64) ** 2, (COUNT, 64, 64)) / 200,
        np.random.default_rng(1).poisson(np.linspace(0, 2, 64) ** 4, (COUNT, 64, 64)) / 200,
        np.random.default_rng(2).poisson(2.0, (COUNT, 64, 64)) / 200,
        np.rint(np.maximum(dark(0.001), 0) / 0.02) * 0.02,  # a coarse converter
        np.zeros((COUNT, 64, 64)),
    ],
    ids=["nothing is cut", "0.4 electrons", "0.1 electrons", "uneven light", "2 electrons", "coarse steps", "no noise"],
)
def test_other_repeated_values_are_no_cut(frames: NDArray[Any]) -> None:
    assert noise_cut_off(ArrayFrames(frames), None, EVERY) == 0


def test_bright_frames_and_those_without_a_cut_stay_as_they_are() -> None:
    stack = np.maximum(dark(0.001), 0)
    stack[3] = dark(1.0)[3]
    frames = ArrayFrames(stack)
    assert LoweredFrames(frames, None, SIGMA).frame(3) is not None
    np.testing.assert_array_equal(LoweredFrames(frames, None, SIGMA).frame(3), stack[3])


def test_masked_pixels_do_not_count() -> None:
    stack, mask = np.maximum(dark(0.001), 0), np.ones((64, 64), bool)
    mask[:30] = False
    spoilt = np.where(mask, stack, -7.0)
    whole = ArrayFrames(stack[:, 30:])
    assert noise_cut_off(ArrayFrames(spoilt), mask, EVERY) == noise_cut_off(whole, None, EVERY)
    lowered = LoweredFrames(ArrayFrames(spoilt), mask, SIGMA).frame(2)[30:]
    np.testing.assert_array_equal(lowered, LoweredFrames(whole, None, SIGMA).frame(2))


def test_a_run_corrects_it_says_so_and_gets_a_better_picture() -> None:
    model = fs.ForwardModel(OPTICS, LEDS, (24, 24))
    phase = shapes(model.object_shape, 0.3)
    low, high = (fs.Camera(photons=200, read_noise=4, offset=offset, bits=16) for offset in (0, 4000))
    snr = {}
    for name, camera in (("cut", low), ("whole", high)):
        data = fs.simulate(model, phase, camera=camera, seed=0)
        snr[name] = fs.reconstruct(data, object="phase", seed=0).snr(phase).aligned
    assert snr["cut"] > snr["whole"] - 2
    fidelity = DataFidelity.of(fs.simulate(model, phase, camera=low, seed=0), model)
    solver = fs.solvers.PnP(fidelity, fs.fidelity.AllLEDs(np.arange(len(model))), [fs.TV()], loss_from_noise=True)
    solver.begin()
    assert any("black level" in finding for finding in solver.findings)
    assert isinstance(solver.fidelity.frames, LoweredFrames)
