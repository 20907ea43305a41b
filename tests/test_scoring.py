"""The error of a field: blind to what no frame can tell, and to nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.simulation import HostileMicroscope, field_error

SMALL = HostileMicroscope(leds=7, frame=32, surround=16, sample="mixed")
TRUTH = SMALL.truth(1)
SHAPE = (96, 96)
FIELD = TRUTH.field(SHAPE)
PIXEL = SMALL.optics.pixel


def ramp(y: float, x: float, shape: tuple[int, int] = SHAPE) -> NDArray[np.complex128]:
    rows, columns = (np.arange(n) / n for n in shape)
    return np.asarray(np.exp(2j * np.pi * (y * rows[:, None] + x * columns[None])))


def test_the_truth_between_its_pixels_is_that_of_its_spectrum() -> None:
    frequencies = [
        np.fft.fftfreq(n, 1 / n) * step
        for n, step in zip(TRUTH.whole.shape, TRUTH.geometry.frequency_step, strict=True)
    ]
    seen = TRUTH.reached(frequencies[0][:, None], frequencies[1][None])
    limited = np.fft.ifft2(np.where(seen, np.fft.fft2(TRUTH.whole), 0))
    np.testing.assert_allclose(TRUTH.object, limited[TRUTH.geometry.object_window], atol=1e-10)
    step = TRUTH.geometry.object_pixel[0]
    moved = np.roll(limited, (-3, 2), (0, 1))[TRUTH.geometry.object_window]
    np.testing.assert_allclose(TRUTH.field(TRUTH.object.shape, (3 * step, -2 * step)), moved, atol=1e-10)


def test_the_slope_is_the_derivative() -> None:
    h = 1e-4 * PIXEL
    for axis, (y, x) in enumerate(((h, 0.0), (0.0, h))):
        difference = (TRUTH.field(SHAPE, (y, x)) - TRUTH.field(SHAPE, (-y, -x))) / (2 * h)
        np.testing.assert_allclose(TRUTH.field(SHAPE, slope=axis), difference, atol=1e-6 * np.abs(difference).max())


@pytest.mark.parametrize("shape", [(96, 96), (80, 112), (70, 70)])
def test_any_grid_will_do(shape: tuple[int, int]) -> None:
    assert field_error(TRUTH.field(shape), TRUTH) < 1e-9


def test_a_complex_factor_a_shift_and_a_ramp_do_not_count() -> None:
    moved = TRUTH.field(SHAPE, (1.37 * PIXEL, -0.61 * PIXEL))
    for field in (3 * np.exp(2j) * FIELD, moved, FIELD * ramp(5.3, -2.2), 0.2j * moved * ramp(-7.7, 3.4)):
        assert field_error(field, TRUTH) < 1e-6


def test_only_a_mirrored_array_allows_the_conjugate() -> None:
    assert field_error(FIELD.conj() * ramp(1.3, 0.4), TRUTH) > 0.2
    assert field_error(FIELD.conj() * ramp(1.3, 0.4), replace(TRUTH, twin=True)) < 1e-6


def test_what_no_led_reaches_does_not_count() -> None:
    chequerboard = 0.3 * (-1.0) ** np.indices(SHAPE).sum(axis=0)
    nyquist = 1 / (2 * TRUTH.extent[0] / SHAPE[0])
    assert not TRUTH.reached(nyquist, nyquist)
    assert field_error(FIELD + chequerboard, TRUTH) < 1e-3


def test_an_error_within_the_band_counts_with_its_size() -> None:
    other = SMALL.truth(2).field(SHAPE)
    for share in (0.02, 0.2):
        noisy = FIELD + share * np.linalg.norm(FIELD) / np.linalg.norm(other) * other * ramp(3, 4)
        assert field_error(noisy, TRUTH) == pytest.approx(share, rel=0.25)


def test_nothing_and_diverged_fields_have_numbers_and_a_stack_is_refused() -> None:
    assert field_error(np.zeros(SHAPE), TRUTH) == 1
    assert field_error(np.full(SHAPE, np.nan), TRUTH) == np.inf
    with pytest.raises(InvalidInputError, match="over the frames' window, got shape"):
        field_error(np.ones((2, 64, 64)), TRUTH)
