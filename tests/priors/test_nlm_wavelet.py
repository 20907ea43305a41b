"""Non-local means and wavelet shrinkage: noise falls, units do not matter, no shift is preferred."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fouriscope.errors import InvalidInputError
from fouriscope.priors import NLM, Prior, Wavelet

Image = npt.NDArray[np.floating[Any]]

PRIORS: dict[str, Prior] = {
    "nlm": NLM(),
    "wavelet": Wavelet(),
    "wavelet hard": Wavelet(mode="hard", wavelet="db2"),
}


@pytest.fixture(params=PRIORS, name="prior")
def _prior(request: pytest.FixtureRequest) -> Prior:
    return PRIORS[request.param]


def camera(dtype: npt.DTypeLike = np.float64) -> Image:
    from skimage.data import camera as picture

    return np.asarray(picture()[100:301, 150:330] / 255.0, dtype)


def noise(shape: tuple[int, ...], seed: int = 0) -> Image:
    values: Image = np.random.default_rng(seed).normal(size=shape)
    return values


def psnr(image: Image, truth: Image) -> float:
    return float(-10 * np.log10(np.mean((image - truth) ** 2, dtype=np.float64)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("sigma", "gain"), [(10 / 255, 3.5), (25 / 255, 6.5)])
def test_noise_falls_on_a_photograph(prior: Prior, sigma: float, gain: float, dtype: npt.DTypeLike) -> None:
    truth = camera()
    noisy = (truth + sigma * noise(truth.shape)).astype(dtype)
    assert psnr(prior.denoise(noisy, sigma), truth) > psnr(noisy, truth) + gain


@pytest.mark.parametrize(("scale", "offset"), [(255.0, 0.0), (1e-6, 3e-5), (1e20, -1e20)])
def test_units_do_not_matter(prior: Prior, scale: float, offset: float) -> None:
    image = camera()[:60, :70] + 0.1 * noise((60, 70))
    expected = scale * prior.denoise(image, 0.1) + offset
    denoised = prior.denoise(scale * image + offset, scale * 0.1)
    np.testing.assert_allclose(denoised, expected, rtol=0, atol=1e-9 * scale)


def test_transposed_image_gives_transposed_result(prior: Prior) -> None:
    image = camera()[:48, :64] + 0.1 * noise((48, 64))
    np.testing.assert_allclose(prior.denoise(image.T, 0.1), prior.denoise(image, 0.1).T, atol=1e-9)


def test_little_noise_changes_little(prior: Prior) -> None:
    image = camera()
    for sigma in (1e-3, 1e-5, 1e-12, 1e-300):
        assert np.sqrt(np.mean((prior.denoise(image, sigma) - image) ** 2)) <= sigma


def test_overwhelming_noise_leaves_no_fine_detail(prior: Prior) -> None:
    image = camera()
    smoothed = prior.denoise(image, 1e300)
    assert np.all(np.isfinite(smoothed))
    assert np.std(np.diff(smoothed)) < 0.3 * np.std(np.diff(image))


def test_white_noise_is_mostly_removed(prior: Prior) -> None:
    image = noise((64, 64))
    assert np.std(prior.denoise(image, 1.0)) < 0.25


def test_shifted_periodic_image_gives_shifted_result() -> None:
    # All shifts of the grid are averaged: away from the border, none is special.
    image = np.tile(camera()[:32, :32] + 0.1 * noise((32, 32)), (6, 6))
    prior = Wavelet(mode="hard", levels=3)
    inner = (slice(64, 128), slice(64, 128))
    shifted = prior.denoise(np.roll(image, (3, 5), (0, 1)), 0.1)
    np.testing.assert_allclose(np.roll(shifted, (-3, -5), (0, 1))[inner], prior.denoise(image, 0.1)[inner], atol=1e-10)


def test_a_threshold_that_nothing_passes_keeps_the_coarse_image() -> None:
    # The transform reconstructs perfectly, so removing all details of one level of Haar is a known local average.
    image = noise((8, 8))
    denoised = Wavelet(wavelet="haar", mode="hard", levels=1).denoise(image, 1e3)
    padded = np.pad(image, 1, mode="symmetric")
    kernel = np.array([0.25, 0.5, 0.25])
    rows = sum(weight * padded[start : start + 8] for start, weight in enumerate(kernel))
    expected = sum(weight * rows[:, start : start + 8] for start, weight in enumerate(kernel))
    np.testing.assert_allclose(denoised, expected, atol=1e-12)


@pytest.mark.parametrize(("row", "column"), [(5, 6), (0, 0), (11, 3)])
def test_nlm_equals_the_formula(row: int, column: int) -> None:
    image, sigma, size, reach = noise((12, 13)), 0.8, 5, 3
    denoised = NLM(patch_size=size, patch_distance=reach, h_factor=0.9).denoise(image, sigma)
    border, half = 8, size // 2
    padded = np.pad(image, border, mode="reflect")

    def patch(y: int, x: int) -> Image:
        first_y, first_x = border + y - half + 1, border + x - half + 1
        return padded[first_y : first_y + size - 1, first_x : first_x + size - 1]

    weights, values = [], []
    for y in range(row - reach, row + reach + 1):
        for x in range(column - reach, column + reach + 1):
            difference = float(np.sum((patch(row, column) - patch(y, x)) ** 2 - 2 * sigma**2))
            distance = max(difference, 0.0) / size**2 / (0.9 * sigma) ** 2
            if distance <= 5:
                weights.append(np.exp(-distance))
                values.append(padded[border + y, border + x])
    # scikit-image approximates the exponential to some per cent.
    assert denoised[row, column] == pytest.approx(np.dot(weights, values) / np.sum(weights), abs=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NLM(patch_size=4), "odd patch_size"),
        (lambda: NLM(patch_size=0), "odd patch_size"),
        (lambda: NLM(patch_distance=0), "patch_distance >= 1"),
        (lambda: NLM(h_factor=-1.0), "h_factor > 0"),
        (lambda: NLM(h_factor=float("nan")), "h_factor must be a finite number"),
        (lambda: Wavelet(wavelet="sym"), "orthogonal wavelet of PyWavelets, such as 'haar'.* got 'sym'"),
        (lambda: Wavelet(wavelet="bior4.4"), "orthogonal wavelet"),
        (lambda: Wavelet(mode="medium"), "'soft' or 'hard'"),  # type: ignore[arg-type]
        (lambda: Wavelet(levels=0), "levels from 1"),
    ],
)
def test_impossible_parameters(make: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()
