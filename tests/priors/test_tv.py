"""Total variation against independent solutions, its symmetries, its certificate and its threads."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriscope.errors import InvalidInputError
from fouriscope.parallel import threads
from fouriscope.priors import TV

Image = npt.NDArray[np.floating[Any]]


def exact_tv(isotropic: bool = True) -> TV:
    return TV(isotropic=isotropic, accuracy=1e-7, max_iterations=50_000)


def scene(shape: tuple[int, int], seed: int = 0, noise: float = 0.1, dtype: npt.DTypeLike = np.float64) -> Image:
    y, x = np.mgrid[: shape[0], : shape[1]]
    clean = ((y - shape[0] / 2) ** 2 + (x - shape[1] / 2) ** 2 < min(shape) ** 2 / 9) + 0.3 * x / shape[1]
    noisy: Image = (clean + np.random.default_rng(seed).normal(0, noise, shape)).astype(dtype)
    return noisy


def difference_matrix(height: int, width: int) -> Image:
    """Rows: the differences down, then along, pixel by pixel; zero where there is no neighbour."""
    pixels = np.arange(height * width).reshape(height, width)
    matrix = np.zeros((2, height * width, height * width))
    for here, there in zip(pixels[:-1].ravel(), pixels[1:].ravel(), strict=True):
        matrix[0, here, there], matrix[0, here, here] = 1, -1
    for here, there in zip(pixels[:, :-1].ravel(), pixels[:, 1:].ravel(), strict=True):
        matrix[1, here, there], matrix[1, here, here] = 1, -1
    return matrix.reshape(2 * height * width, height * width)


def prox_by_admm(z: Image, weight: float, isotropic: bool, iterations: int = 20_000) -> Image:
    """min ½‖x − z‖² + w‖v‖ subject to v = Dx, with dense matrices: shares no line with the code under test."""
    D = difference_matrix(*z.shape)
    rho = 1.0
    inverse = np.linalg.inv(np.eye(z.size) + rho * D.T @ D)
    v, u = np.zeros(len(D)), np.zeros(len(D))
    x = z.ravel()
    for _ in range(iterations):
        x = inverse @ (z.ravel() + rho * D.T @ (v - u))
        target = (D @ x + u).reshape(2, -1)
        length = np.hypot(*target) if isotropic else np.abs(target)
        v = (target * np.maximum(1 - weight / rho / np.maximum(length, 1e-300), 0)).ravel()
        u = u + D @ x - v
    return x.reshape(z.shape)


@pytest.mark.slow
@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("shape", [(6, 7), (1, 9), (9, 1), (2, 5)])
@pytest.mark.parametrize("weight", [0.05, 0.6])
def test_equals_an_independent_solver(shape: tuple[int, int], weight: float, isotropic: bool) -> None:
    z = np.random.default_rng(3).normal(size=shape)
    expected = prox_by_admm(z, weight, isotropic)
    np.testing.assert_allclose(exact_tv(isotropic).denoise(z, math.sqrt(weight)), expected, atol=2e-6)


@pytest.mark.parametrize("isotropic", [True, False])
def test_objective_is_the_sum_of_gradient_lengths(isotropic: bool) -> None:
    z = np.random.default_rng(3).normal(size=(6, 7))
    gradient = (difference_matrix(6, 7) @ z.ravel()).reshape(2, -1)
    expected = np.sum(np.hypot(*gradient)) if isotropic else np.sum(np.abs(gradient))
    assert TV(isotropic=isotropic).objective(z) == pytest.approx(expected)
    assert TV(isotropic=isotropic).objective(np.full((3, 4), 7.0)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("isotropic", [True, False])
def test_symmetries(isotropic: bool) -> None:
    z, sigma = scene((17, 23)), 0.4
    x = exact_tv(isotropic).denoise(z, sigma)
    same: list[tuple[Image, Image]] = [
        (exact_tv(isotropic).denoise(np.ascontiguousarray(z.T), sigma).T, x),
        (exact_tv(isotropic).denoise(-z, sigma), -x),
        (exact_tv(isotropic).denoise(z + 5.0, sigma), x + 5.0),
        # TV has degree one: a prox of s·z with weight s·w is s times the prox of z.
        (exact_tv(isotropic).denoise(1e-30 * z, math.sqrt(1e-30) * sigma) / 1e-30, x),
        (exact_tv(isotropic).denoise(1e6 * z, 1e3 * sigma) / 1e6, x),
    ]
    for got, expected in same:
        np.testing.assert_allclose(got, expected, atol=1e-6)


def test_a_large_offset_costs_no_accuracy_in_float32() -> None:
    z = scene((40, 50), dtype=np.float32)
    offset = np.float32(1024.0)
    shifted = TV(accuracy=1e-3).denoise(z + offset, 0.3)
    expected = exact_tv().denoise((z + offset).astype(np.float64) - 1024.0, 0.3)
    np.testing.assert_allclose(shifted - offset, expected, atol=3e-4)


def test_smooths_more_with_sigma_down_to_the_mean() -> None:
    z = scene((20, 31))
    tv = TV(accuracy=1e-5, max_iterations=20_000)
    left = [tv.objective(tv.denoise(z, sigma)) for sigma in (0.0, 0.1, 0.3, 0.6, 1.0, 2.0)]
    assert all(more >= less - 1e-4 for more, less in itertools.pairwise(left))
    for sigma in (5.0, 1e3, 1e200):
        np.testing.assert_allclose(tv.denoise(z, sigma), z.mean(), atol=2e-3)
    assert tv.denoise(z, 0.7).mean() == pytest.approx(z.mean(), abs=1e-12)


def test_a_weight_below_the_resolution_changes_nothing() -> None:
    z = scene((8, 9), dtype=np.float32)
    for sigma in (1e-8, 1e-30, 1e-170):
        np.testing.assert_array_equal(TV().denoise(z, sigma), z)


def test_a_constant_comes_back_exactly_even_when_warm() -> None:
    tv = TV()
    tv.denoise(scene((12, 13)), 0.5)
    constant = np.full((12, 13), 0.1)
    np.testing.assert_array_equal(tv.denoise(constant, 0.5), constant)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("accuracy", [0.3, 0.05, 0.01])
@pytest.mark.parametrize("sigma", [0.1, 0.3, 1.0])
def test_the_gap_bounds_the_distance(dtype: npt.DTypeLike, isotropic: bool, accuracy: float, sigma: float) -> None:
    z = scene((150, 40), dtype=dtype)
    tv = TV(isotropic=isotropic, accuracy=accuracy)
    x = tv.denoise(z, sigma)
    exact = TV(isotropic=isotropic, accuracy=1e-5, max_iterations=5000)
    distance = float(np.linalg.norm(x - exact.denoise(z.astype(np.float64), sigma)))
    slack = math.sqrt(exact.last_gap)
    assert distance <= math.sqrt(tv.last_gap) + slack
    promised = accuracy * min(sigma**2, float(np.std(z)))
    assert math.sqrt(tv.last_gap / z.size) <= promised * (1 + 1e-6)
    assert 0 < tv.last_iterations < tv.max_iterations


def test_the_guard_returns_the_best_seen_without_a_warning() -> None:
    z = scene((40, 41))
    gaps = []
    for limit in (1, 3, 10, 50):
        tv = TV(accuracy=1e-9, max_iterations=limit)
        tv.denoise(z, 1.0)
        assert tv.last_iterations == limit
        gaps.append(tv.last_gap)
    assert gaps == sorted(gaps, reverse=True)


def test_warm_equals_cold_within_the_accuracy_and_is_cheaper() -> None:
    sigma, accuracy = 0.5, 0.02
    tv = TV(accuracy=accuracy)
    z = scene((60, 70))
    tv.denoise(z, sigma)
    first = tv.last_iterations
    moved = z + np.random.default_rng(9).normal(0, 1e-3, z.shape)
    warm = tv.denoise(moved, sigma)
    assert tv.last_iterations < first / 2
    cold = TV(accuracy=accuracy).denoise(moved, sigma)
    assert math.sqrt(np.mean((warm - cold) ** 2)) <= 2 * accuracy * sigma**2


def test_another_shape_or_dtype_starts_cold() -> None:
    tv = TV()
    for z in (scene((20, 30)), scene((30, 20)), scene((30, 20), dtype=np.float32)):
        np.testing.assert_array_equal(tv.denoise(z, 0.4), TV().denoise(z, 0.4))


@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("shape", [(700, 33), (129, 64)])
def test_the_number_of_threads_does_not_change_a_bit(shape: tuple[int, int], isotropic: bool) -> None:
    z = scene(shape, dtype=np.float32)
    moved = scene(shape, seed=1, dtype=np.float32)
    results = []
    for count in (1, 2, 3, 8):
        with threads(count):
            tv = TV(isotropic=isotropic, accuracy=0.01)
            results.append((tv.denoise(z, 0.5), tv.denoise(moved, 0.5), tv.last_gap))
    for cold, warm, gap in results[1:]:
        np.testing.assert_array_equal(cold, results[0][0])
        np.testing.assert_array_equal(warm, results[0][1])
        assert gap == results[0][2]


@pytest.mark.parametrize("isotropic", [True, False])
def test_strips_equal_the_plain_iteration(isotropic: bool) -> None:
    """The fused strips with halos, after a fixed number of iterations, against ten lines of NumPy."""
    z, weight, iterations = scene((300, 9)), 0.5, 12
    tv = TV(isotropic=isotropic, accuracy=1e-12, max_iterations=iterations)
    got = tv.denoise(z, math.sqrt(weight))

    def divergence(p: Image) -> Image:
        total: Image = np.diff(p[0], axis=0, prepend=0) + np.diff(p[1], axis=1, prepend=0)
        return total

    p, r, t = np.zeros((2, *z.shape)), np.zeros((2, *z.shape)), 1.0
    for _ in range(iterations):
        x = z + weight * divergence(r)
        gradient = np.stack([np.diff(x, axis=0, append=x[-1:]), np.diff(x, axis=1, append=x[:, -1:])])
        new = r + gradient / (8 * weight)
        new /= np.maximum(1, np.hypot(*new) if isotropic else np.abs(new))
        following = (1 + math.sqrt(1 + 4 * t * t)) / 2
        p, r, t = new, new + (t - 1) / following * (new - p), following
    np.testing.assert_allclose(got, z + weight * divergence(p), atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    sigma=st.floats(1e-3, 30),
    seed=st.integers(0, 1000),
    isotropic=st.booleans(),
)
def test_never_adds_range_variation_or_mean(shape: tuple[int, int], sigma: float, seed: int, isotropic: bool) -> None:
    z = np.random.default_rng(seed).normal(size=shape)
    tv = TV(isotropic=isotropic, accuracy=1e-4, max_iterations=20_000)
    x = tv.denoise(z, sigma)
    slack = 1e-3 * z.size
    assert tv.objective(x) <= tv.objective(z) + slack
    assert x.min() >= z.min() - slack
    assert x.max() <= z.max() + slack
    assert x.mean() == pytest.approx(z.mean(), abs=1e-9)


@pytest.mark.parametrize("wrong", [{"accuracy": 0.0}, {"accuracy": math.nan}, {"max_iterations": 0}])
def test_impossible_parameters(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        TV(**wrong)


def test_a_sequence_gets_there_with_few_iterations_a_call() -> None:
    """A weight that nearly flattens the image takes far more than a hundred iterations, in one call or over several."""
    rng = np.random.default_rng(0)
    image = (rng.normal(0.0, 0.01, (96, 96)) + np.linspace(0, 0.5, 96)).astype(np.float32)
    sigma = 2.0
    exact, sequence = TV(accuracy=1e-3, max_iterations=20000), TV()
    wanted = exact.denoise(image, sigma)
    assert exact.last_iterations > 200
    found = [sequence.denoise_next(image, sigma) for _ in range(10)]
    assert sequence.last_iterations <= 100
    spread = float(np.std(image))
    assert np.sqrt(np.mean((found[-1] - wanted) ** 2)) < 0.02 * spread
