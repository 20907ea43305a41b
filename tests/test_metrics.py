"""The scores against closed forms and against what they must not see."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fouriscope import metrics
from fouriscope.errors import InvalidInputError

Image = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def truth() -> Image:
    rows, columns = np.mgrid[0:64, 0:48]
    return np.asarray(np.sin(rows / 5.0) * np.cos(columns / 7.0) + 0.7, dtype=np.float64)


@pytest.fixture(scope="module")
def noise(truth: Image) -> Image:
    """Noise of norm 1 and mean 0, so that the scores have closed forms."""
    values = np.random.default_rng(1).normal(size=truth.shape)
    values -= values.mean()
    return np.asarray(values / np.linalg.norm(values), dtype=np.float64)


@pytest.mark.parametrize("decibel", [-10.0, 0.0, 18.48, 60.0])
def test_snr_of_noise_of_known_power(truth: Image, noise: Image, decibel: float) -> None:
    estimate = truth + noise * np.linalg.norm(truth) * 10 ** (-decibel / 20)
    assert metrics.snr(estimate, truth) == pytest.approx(decibel, abs=1e-9)
    assert metrics.snr(estimate, truth, align=False) == pytest.approx(decibel, abs=1e-9)


@given(constant=st.floats(-100, 100))
def test_aligned_snr_does_not_see_a_constant(constant: float) -> None:
    generator = np.random.default_rng(2)
    truth, error = generator.uniform(size=(2, 9, 7))
    estimate = truth + 0.1 * error
    assert metrics.snr(estimate + constant, truth) == pytest.approx(metrics.snr(estimate, truth), abs=1e-6)


def test_raw_snr_sees_the_constant(truth: Image, noise: Image) -> None:
    both = metrics.snr_both(truth + 0.01 * noise + 0.5, truth)
    assert both.aligned > 40
    expected = 20 * math.log10(np.linalg.norm(truth) / math.sqrt(0.01**2 + 0.25 * truth.size))
    assert both.raw == pytest.approx(expected, abs=1e-9)


def test_snr_keeps_the_mean_of_the_truth_in_the_numerator(truth: Image, noise: Image) -> None:
    low, high = metrics.snr(truth + noise, truth), metrics.snr(truth + 10 + noise, truth + 10)
    expected = 20 * math.log10(np.linalg.norm(truth + 10) / np.linalg.norm(truth))
    assert high - low == pytest.approx(expected, abs=1e-9)


def test_equal_images_score_perfectly_without_warnings(truth: Image) -> None:
    assert metrics.snr_both(truth, truth) == (math.inf, math.inf)
    assert metrics.psnr(truth, truth) == math.inf
    assert metrics.ssim(truth, truth) == pytest.approx(1.0)


def test_single_precision_is_scored_in_double(truth: Image) -> None:
    single = truth.astype(np.float32)
    assert metrics.snr(single + np.float32(0.0), single) == math.inf
    assert metrics.remove_constant(single, truth).dtype == np.float64


def test_unsigned_images_do_not_wrap_around() -> None:
    truth = np.array([[0, 10], [200, 255]], dtype=np.uint8)
    estimate = np.array([[10, 0], [255, 200]], dtype=np.uint8)
    assert metrics.snr(estimate, truth) == metrics.snr(estimate.astype(float), truth.astype(float))


def test_psnr_of_known_error(truth: Image, noise: Image) -> None:
    estimate = truth + 0.1 * math.sqrt(truth.size) * noise + 3.0
    assert metrics.psnr(estimate, truth, data_range=1.0) == pytest.approx(20.0)
    assert metrics.psnr(estimate, truth) == pytest.approx(20.0 + 20 * math.log10(np.ptp(truth)))
    assert metrics.psnr(estimate, truth, align=False) < 0


def test_ssim_falls_with_noise_and_ignores_a_constant(truth: Image, noise: Image) -> None:
    little, much = truth + noise, truth + 20 * noise
    assert 1 > metrics.ssim(little, truth) > metrics.ssim(much, truth)
    assert metrics.ssim(little + 2, truth) == pytest.approx(metrics.ssim(little, truth))
    assert metrics.ssim(little + 2, truth, align=False) < metrics.ssim(little, truth)


@given(scale=st.complex_numbers(min_magnitude=1e-3, max_magnitude=1e3, allow_nan=False))
def test_field_nrmse_does_not_see_a_complex_scale(scale: complex) -> None:
    generator = np.random.default_rng(3)
    field = np.exp(1j * generator.normal(size=(8, 6)))
    estimate = field + 0.1 * generator.normal(size=field.shape)
    assert metrics.field_nrmse(scale * estimate, field) == pytest.approx(metrics.field_nrmse(estimate, field))
    assert metrics.field_nrmse(scale * field, field) < 1e-12


def test_field_nrmse_of_orthogonal_and_empty_fields_is_one() -> None:
    assert metrics.field_nrmse([1.0, 0.0], [0.0, 1j]) == pytest.approx(1.0)
    assert metrics.field_nrmse([0.0, 0.0], [1.0, 1j]) == 1.0


def test_field_nrmse_of_known_angle() -> None:
    # The best scale projects; what is left is the sine of the angle between the fields.
    assert metrics.field_nrmse([math.cos(0.3), math.sin(0.3)], [1.0, 0.0]) == pytest.approx(math.sin(0.3))


@given(phase=st.floats(-1e4, 1e4))
def test_wrap_stays_in_its_interval_and_keeps_the_field(phase: float) -> None:
    wrapped = float(metrics.wrap(phase))
    assert -math.pi < wrapped <= math.pi
    assert np.exp(1j * wrapped) == pytest.approx(np.exp(1j * phase), abs=1e-9)


def test_wrap_at_its_ends() -> None:
    just_above = math.nextafter(math.pi, 4)
    assert metrics.wrap([math.pi, -math.pi, 3 * math.pi]).tolist() == pytest.approx([math.pi] * 3)
    assert -math.pi < float(metrics.wrap(just_above)) <= math.pi


def test_phase_difference_of_wrapped_phases() -> None:
    generator = np.random.default_rng(4)
    phase = np.cumsum(generator.uniform(0, 1, size=(20, 30)), axis=1)
    error = generator.uniform(-0.2, 0.2, size=phase.shape)
    difference = metrics.phase_difference(metrics.wrap(phase + error + 2.5), phase)
    assert np.std(difference - error) < 1e-9
    assert np.abs(difference).max() < 0.45


# Fourier ring correlation ------------------------------------------------------------------------------------------


def _low_passed(image: Image, cutoff: float, pixel: tuple[float, float]) -> Image:
    rows, columns = (np.fft.fftfreq(n, size) for n, size in zip(image.shape, pixel, strict=True))
    inside = np.hypot(rows[:, np.newaxis], columns[np.newaxis, :]) <= cutoff
    return np.asarray(np.fft.ifft2(np.fft.fft2(image) * inside).real, dtype=np.float64)


@pytest.mark.parametrize("shape", [(64, 64), (65, 48), (40, 90)])
def test_frc_of_equal_images_is_one_in_rings_that_are_all_filled(shape: tuple[int, int]) -> None:
    image = np.random.default_rng(5).normal(size=shape)
    curve = metrics.fourier_ring_correlation(image, image, pixel=(0.1e-6, 0.17e-6))
    np.testing.assert_allclose(curve.correlation, 1.0, atol=1e-12)
    assert curve.count.min() >= 1
    assert curve.frequency[-1] <= 0.5 / 0.17e-6 * (1 + 1e-9)
    assert metrics.frc_resolution(curve) == pytest.approx(1 / curve.frequency[-1])


def test_frc_of_independent_noise_is_zero_within_its_spread() -> None:
    first, second = np.random.default_rng(6).normal(size=(2, 128, 128))
    curve = metrics.fourier_ring_correlation(first, second)
    standardised = curve.correlation[4:] * np.sqrt(curve.count[4:])
    assert abs(standardised.mean()) < 0.5
    assert np.abs(standardised).max() < 5


@pytest.mark.parametrize("threshold", ["1/7", "half-bit"])
@pytest.mark.parametrize(
    ("shape", "pixel"),
    [((256, 256), (0.16e-6, 0.16e-6)), ((256, 180), (0.16e-6, 0.16e-6)), ((200, 260), (0.2e-6, 0.13e-6))],
)
def test_known_cutoff_is_found(shape: tuple[int, int], pixel: tuple[float, float], threshold: str) -> None:
    cutoff = 1.32e6
    generator = np.random.default_rng(7)
    shared = _low_passed(generator.normal(size=shape), cutoff, pixel)
    halves = [shared + 1e-3 * generator.normal(size=shape) for _ in range(2)]
    curve = metrics.fourier_ring_correlation(halves[0], halves[1], pixel=pixel)
    step = curve.frequency[1]
    resolution = metrics.frc_resolution(curve, "1/7" if threshold == "1/7" else "half-bit")
    assert 1 / resolution == pytest.approx(cutoff, abs=1.5 * step)


def test_rounding_errors_are_not_resolution() -> None:
    image = _low_passed(np.random.default_rng(8).normal(size=(96, 96)), 0.2, (1.0, 1.0))
    curve = metrics.fourier_ring_correlation(image, image.copy())
    assert 1 / metrics.frc_resolution(curve) == pytest.approx(0.2, abs=0.02)


def test_hann_window_takes_away_the_cross_of_the_edges() -> None:
    # Two ramps with independent noise: without a window their common jump at the edge looks like shared detail.
    generator = np.random.default_rng(9)
    ramp = np.broadcast_to(np.linspace(0, 50, 128), (128, 128))
    first, second = ramp + generator.normal(size=(2, 128, 128))
    plain = metrics.fourier_ring_correlation(first, second)
    tapered = metrics.fourier_ring_correlation(first, second, window="hann")
    assert plain.correlation[30:].mean() > 0.2
    assert abs(tapered.correlation[30:].mean()) < 0.05


def test_frc_of_complex_fields_does_not_see_a_constant_phase() -> None:
    field = np.exp(1j * np.random.default_rng(10).normal(size=(32, 32)))
    curve = metrics.fourier_ring_correlation(field, field * np.exp(2.5j))
    np.testing.assert_allclose(curve.correlation, 1.0, atol=1e-12)


def test_resolution_of_a_curve_that_shares_nothing_is_infinite() -> None:
    curve = metrics.RingCorrelation(np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.0, 0.9]), np.array([1, 8, 12]))
    assert metrics.frc_resolution(curve) == math.inf


# What people get wrong ---------------------------------------------------------------------------------------------


PAIRWISE: list[Callable[[Image, Image], object]] = [
    metrics.snr,
    metrics.psnr,
    metrics.ssim,
    metrics.field_nrmse,
    metrics.phase_difference,
    metrics.remove_constant,
    metrics.fourier_ring_correlation,
]


@pytest.mark.parametrize("score", PAIRWISE)
def test_shapes_that_differ_are_both_named(score: Callable[[Image, Image], object]) -> None:
    with pytest.raises(InvalidInputError, match=r"\(16, 16\).*\(16, 1\)"):
        score(np.ones((16, 16)), np.ones((16, 1)))


@pytest.mark.parametrize("score", PAIRWISE)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_counted(score: Callable[[Image, Image], object], value: float) -> None:
    image = np.random.default_rng(0).normal(size=(16, 16))
    broken = image.copy()
    broken[3, 4:6] = value
    with pytest.raises(InvalidInputError, match=r"2 of its 256 values"):
        score(broken, image)


@pytest.mark.parametrize("score", PAIRWISE)
def test_empty_arrays_are_refused(score: Callable[[Image, Image], object]) -> None:
    with pytest.raises(InvalidInputError, match="at least one value"):
        score(np.ones((0, 4)), np.ones((0, 4)))


def test_truths_without_a_signal_are_refused() -> None:
    flat, image = np.full((16, 16), 2.0), np.random.default_rng(0).normal(size=(16, 16))
    with pytest.raises(InvalidInputError, match="every value of the truth is 0"):
        metrics.snr(image, 0 * flat)
    with pytest.raises(InvalidInputError, match="align=False"):
        metrics.snr(image, flat)
    assert math.isfinite(metrics.snr(image, flat, align=False))
    with pytest.raises(InvalidInputError, match="pass data_range"):
        metrics.psnr(image, flat)
    with pytest.raises(InvalidInputError, match="pass data_range"):
        metrics.ssim(image, flat)
    with pytest.raises(InvalidInputError, match="not 0 everywhere"):
        metrics.field_nrmse(image, 0 * flat)


def test_other_input_that_cannot_be_scored() -> None:
    image = np.random.default_rng(0).normal(size=(16, 16))
    with pytest.raises(InvalidInputError, match="use field_nrmse"):
        metrics.snr(image * 1j, image)
    with pytest.raises(InvalidInputError, match="array of numbers"):
        metrics.snr(["a"], ["b"])
    with pytest.raises(InvalidInputError, match="positive number"):
        metrics.psnr(image, image, data_range=-1.0)
    with pytest.raises(InvalidInputError, match=r"11 × 11.*\(8, 16\)"):
        metrics.ssim(image[:8], image[:8])
    with pytest.raises(InvalidInputError, match="2-D"):
        metrics.fourier_ring_correlation(image[0], image[0])
    with pytest.raises(InvalidInputError, match="positive size in metres"):
        metrics.fourier_ring_correlation(image, image, pixel=0.0)
    with pytest.raises(InvalidInputError, match="window must be"):
        metrics.fourier_ring_correlation(image, image, window="hamming")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="half-bit"):
        metrics.frc_resolution(metrics.fourier_ring_correlation(image, image), "0.5")  # type: ignore[arg-type]
