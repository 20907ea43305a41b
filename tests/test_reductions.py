"""Compiled sums equal NumPy's in double precision, whatever the shape and precision."""

from __future__ import annotations

import numpy as np
import pytest

from fouriscope.reductions import distance, dot, norm, spread


@pytest.mark.parametrize("shape", [(1,), (1023,), (1025,), (37, 91), (2, 64, 65)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_equal_numpy_in_double(shape: tuple[int, ...], dtype: type[np.float32] | type[np.float64]) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(dtype) for _ in range(2))
    tolerance = 2e-6 if dtype is np.float32 else 1e-13
    exact_a, exact_b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    scale = float(np.linalg.norm(exact_a) * np.linalg.norm(exact_b))
    assert dot(a, b) == pytest.approx(float(exact_a @ exact_b), abs=tolerance * scale)
    assert norm(a) == pytest.approx(float(np.linalg.norm(exact_a)), rel=tolerance)
    assert distance(a, b) == pytest.approx(float(np.linalg.norm(exact_a - exact_b)), rel=tolerance)
    assert spread(a) == pytest.approx(float(np.linalg.norm(exact_a - exact_a.mean())), rel=tolerance, abs=1e-12)


def test_spread_ignores_a_large_constant() -> None:
    a = np.random.default_rng(1).standard_normal(5000)
    assert spread(a + 1e6) == pytest.approx(spread(a), rel=1e-6)


def test_not_finite_values_show() -> None:
    a = np.ones(5000, np.float32)
    a[77] = np.nan
    assert np.isnan(dot(a, a))
    a[77] = np.inf
    assert not np.isfinite(dot(a, a))
