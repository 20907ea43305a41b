"""The map to [0, 1] can be undone, takes σ along, and keeps within what a denoiser was trained for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fouriscope.errors import InvalidInputError
from fouriscope.priors.value_range import LARGEST_SIGMA, ValueRange, denoise_in_unit_range

Image = npt.NDArray[np.floating[Any]]


def picture(dtype: npt.DTypeLike = np.float64) -> Image:
    noise: Image = np.random.default_rng(0).normal(size=(7, 9)).astype(dtype)
    return noise


@given(scale=st.floats(1e-30, 1e30), offset=st.floats(-1e3, 1e3))
def test_it_can_be_undone(scale: float, offset: float) -> None:
    for dtype in (np.float32, np.float64):
        image: Image = (scale * (picture() + offset)).astype(dtype)
        units = ValueRange.of(image)
        normalised = units.normalise(image)
        assert normalised.dtype == dtype
        assert normalised.min() == 0
        assert normalised.max() == 1
        resolution = 4 * float(np.finfo(dtype).eps) * max(abs(units.low), abs(units.high))
        np.testing.assert_allclose(units.restore(normalised, dtype), image, rtol=0, atol=resolution)


def test_sigma_goes_along() -> None:
    image, sigma = picture(), 0.3
    units = ValueRange.of(image)
    noisy = image + sigma
    np.testing.assert_allclose(units.normalise(noisy) - units.normalise(image), units.normalise_sigma(sigma))
    assert ValueRange(0.0, 5e-324).normalise_sigma(1.0) == LARGEST_SIGMA


def test_single_precision_does_not_overflow() -> None:
    image = np.array([[-3e38, 0.0, 3e38]], np.float32)
    units = ValueRange.of(image)
    np.testing.assert_allclose(units.normalise(image), [[0, 0.5, 1]])
    np.testing.assert_array_equal(units.restore(units.normalise(image), np.float32), image)


@pytest.mark.parametrize("bounds", [(1.0, 0.0), (float("nan"), 1.0), (-1.7e308, 1.7e308), (0.0, float("inf"))])
def test_impossible_ranges(bounds: tuple[float, float]) -> None:
    with pytest.raises(InvalidInputError, match="finite width"):
        ValueRange(*bounds)


class Recorder:
    """A denoiser that notes what it was given."""

    def __call__(self, image: Image, sigma: float) -> Image:
        self.low, self.high, self.sigma = float(image.min()), float(image.max()), sigma
        return image


def test_a_denoiser_sees_the_unit_interval_and_its_result_comes_back() -> None:
    image, seen = 100 + 20 * picture(), Recorder()
    np.testing.assert_allclose(denoise_in_unit_range(seen, image, 2.0), image)
    assert (seen.low, seen.high) == (0.0, 1.0)
    assert seen.sigma == pytest.approx(2.0 / np.ptp(image))


def test_a_nearly_flat_image_is_not_stretched_beyond_the_training() -> None:
    image, seen = 5 + 1e-3 * picture(), Recorder()
    np.testing.assert_allclose(denoise_in_unit_range(seen, image, 0.1, largest_sigma=0.2), image)
    assert seen.sigma == pytest.approx(0.2)
    assert 0.49 < seen.low < 0.5 < seen.high < 0.51
    denoise_in_unit_range(seen, image, 1e-4, largest_sigma=0.2)
    assert (seen.low, seen.high) == (0.0, 1.0)


@pytest.mark.parametrize("sigma", [1e-3, 0.1, 10.0])
def test_a_denoiser_of_one_level_always_sees_that_level(sigma: float) -> None:
    image, seen = picture(), Recorder()
    np.testing.assert_allclose(denoise_in_unit_range(seen, image, sigma, only_sigma=0.05), image, atol=1e-12)
    assert seen.sigma == pytest.approx(0.05)


def test_nothing_to_do() -> None:
    def never(image: Image, sigma: float) -> Image:
        raise AssertionError("a constant image or negligible noise needs no denoiser")

    constant = np.full((3, 4), 0.1, np.float32)
    assert np.array_equal(denoise_in_unit_range(never, constant, 0.5), constant)
    image = picture(np.float32)
    for result in (denoise_in_unit_range(never, image, 1e-8), denoise_in_unit_range(never, constant, 0.5)):
        assert not np.shares_memory(result, image)
        assert not np.shares_memory(result, constant)
