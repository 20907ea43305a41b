"""The memory of a quasi-Newton method: the secant condition, quadratics, safeguards, state."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.solvers.secants import LONGEST, MEMORY, Secants

CURVATURE = np.linspace(0.2, 1, 12)


def walk(secants: Secants, steps: int, seed: int = 0) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """Places and residuals of so many steps down a quadratic."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=12) + 1j * rng.normal(size=12)
    places, residuals = [], []
    for _ in range(steps):
        r = CURVATURE * z
        places.append(z)
        residuals.append(r)
        z = z + secants.direction(z, r, objective=float(np.sum(CURVATURE * np.abs(z) ** 2)))
    return np.array(places), np.array(residuals)


def test_without_a_memory_the_direction_is_the_plain_step() -> None:
    r = np.array([1 + 2j, -3j])
    np.testing.assert_array_equal(Secants().direction(np.zeros(2, complex), r, objective=1.0), -r)


def test_the_last_change_of_the_residual_is_mapped_to_the_step_that_made_it() -> None:
    """The secant condition: B y = s."""
    secants = Secants()
    places, residuals = walk(secants, 4)
    s, y = places[-1] - places[-2], residuals[-1] - residuals[-2]
    np.testing.assert_allclose(secants._descent(y), -s, rtol=1e-10)


def test_a_quadratic_is_solved_faster_than_by_plain_steps() -> None:
    places, _ = walk(Secants(), 25)
    plain = np.abs(places[0]) * (1 - CURVATURE) ** 24
    assert np.linalg.norm(places[-1]) < 1e-3 * np.linalg.norm(plain)


def test_pairs_that_led_astray_are_forgotten() -> None:
    secants = Secants()
    walk(secants, 4)
    z, r = np.ones(12, complex), np.arange(12.0) + 0j
    np.testing.assert_array_equal(secants.direction(z, r, objective=1e9), -r)


def test_a_direction_is_never_much_longer_than_the_plain_step() -> None:
    secants = Secants()
    z, r = np.zeros(2, complex), np.array([1.0 + 0j, 1.0])
    secants.direction(z, r, objective=1.0)
    nearly_the_same = r * (1 - 1e-6)  # hardly any curvature: the step that it implies is a million times as long
    found = secants.direction(z - r, nearly_the_same, objective=1.0)
    assert np.linalg.norm(found) <= LONGEST * np.linalg.norm(nearly_the_same) * (1 + 1e-12)


def test_no_more_is_kept_than_was_promised() -> None:
    secants = Secants()
    walk(secants, 10)
    arrays = secants.state_arrays()
    assert arrays["pairs"].shape == (MEMORY, 2, 12)
    assert sum(array.size for array in arrays.values()) == (2 * MEMORY + 2) * 12 + 1


def test_a_state_goes_on_to_the_last_bit() -> None:
    one, other = Secants(), Secants()
    places, residuals = walk(one, 5)
    other.load_state_arrays(one.state_arrays(), places[0])
    r = residuals[-1] * 0.5
    np.testing.assert_array_equal(
        one.direction(places[-1] * 0.5, r, objective=0.1), other.direction(places[-1] * 0.5, r, objective=0.1)
    )
    with pytest.raises(InvalidInputError, match="saved secants"):
        other.load_state_arrays(one.state_arrays(), places[0].astype(np.complex64))
