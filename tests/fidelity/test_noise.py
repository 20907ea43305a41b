from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fouriscope.acquisition import ArrayFrames, Frames
from fouriscope.fidelity.noise import PerturbedFrames, frame_noise
from fouriscope.forward import ForwardModel
from tests.conftest import LEDS, OPTICS


def white(sigma: float, shape: tuple[int, int], seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0.0, sigma, shape)


@pytest.mark.parametrize("shape", [(128, 128), (150, 101)])
@pytest.mark.parametrize("sigma", [1e-3, 0.1, 30.0])
def test_known_noise(shape: tuple[int, int], sigma: float) -> None:
    estimates = [frame_noise(5 + white(sigma, shape, seed)) for seed in range(6)]
    assert np.mean(estimates) == pytest.approx(sigma, rel=0.05)


def test_a_frame_that_does_not_continue_at_its_borders() -> None:
    """A ramp of 1000 σ jumps at the border; without a window its spectrum would fill the corners."""
    y, x = np.meshgrid(np.linspace(0, 1, 128), np.linspace(0, 2, 150), indexing="ij")
    estimates = [frame_noise(10 * (y + x**2) + white(0.01, y.shape, seed)) for seed in range(6)]
    assert np.mean(estimates) == pytest.approx(0.01, rel=0.05)


def smooth_object(shape: tuple[int, int]) -> Any:
    """Phase of 0.3 rad RMS with the falling spectrum of an image."""
    spectrum = np.fft.fft2(white(1.0, shape, seed=3))
    frequency = np.hypot(np.fft.fftfreq(shape[0])[:, None], np.fft.fftfreq(shape[1])[None, :])
    image = np.fft.ifft2(spectrum / (frequency + 0.01) ** 1.5).real
    return 0.3 * image / image.std()


@pytest.mark.parametrize("led", [22, 25])
def test_a_simulated_bright_field_frame(led: int) -> None:
    model = ForwardModel(OPTICS, LEDS, (128, 128), dtype=np.float64)
    assert model.geometry.bright_field[led]
    frame = model.intensity(smooth_object(model.object_shape), [led])[0]
    assert frame.std() > 0.07
    estimates = [frame_noise(frame + white(0.01, frame.shape, seed)) for seed in range(6)]
    assert np.mean(estimates) == pytest.approx(0.01, rel=0.05)
    # Without noise next to nothing is found.
    assert frame_noise(frame) < 1e-4


def test_noise_scales_and_ignores_a_background() -> None:
    noise = white(1.0, (64, 64))
    assert frame_noise(3 * noise) == pytest.approx(3 * frame_noise(noise))
    assert frame_noise(noise + 1e3) == pytest.approx(frame_noise(noise), rel=1e-6)
    assert frame_noise(np.full((64, 64), 7)) == 0


def test_perturbed_frames_add_the_same_noise_each_time() -> None:
    frames = ArrayFrames(np.ones((3, 200, 150), np.float32))
    perturbed = PerturbedFrames(frames, {0: 0.1, 1: 0.1, 2: 0.3}, seed=4)
    assert isinstance(perturbed, Frames)
    assert perturbed.shape == (3, 200, 150)
    np.testing.assert_array_equal(perturbed.frame(1), perturbed.frame(1))
    noise = [perturbed.frame(index) - 1 for index in range(3)]
    assert [float(n.std()) for n in noise] == pytest.approx([0.1, 0.1, 0.3], rel=0.03)
    assert abs(np.corrcoef(noise[0].ravel(), noise[1].ravel())[0, 1]) < 0.05
    assert (PerturbedFrames(frames, {0: 0.1}, seed=5).frame(0) != perturbed.frame(0)).any()
    np.testing.assert_array_equal(frames.array, 1)


def test_masked_pixels_do_not_count_as_quiet() -> None:
    levels = []
    for seed in range(6):
        noise = np.random.default_rng(seed).normal(0, 0.1, (120, 120))
        mask = np.ones_like(noise)
        mask[:, :60] = 0
        noise[:, :60] = np.nan
        levels.append(frame_noise(noise, mask))
    assert np.mean(levels) == pytest.approx(0.1, rel=0.06)
    assert frame_noise(noise, np.zeros_like(noise)) == 0
