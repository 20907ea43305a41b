from __future__ import annotations

import numpy as np
import pytest

from fouriscope.errors import InvalidInputError
from fouriscope.optics import noll_to_nm, zernike

NOLL = [(0, 0), (1, 1), (1, -1), (2, 0), (2, -2), (2, 2), (3, -1), (3, 1), (3, -3), (3, 3), (4, 0)]
NOLL += [(4, 2), (4, -2), (4, 4), (4, -4), (5, 1), (5, -1), (5, 3), (5, -3), (5, 5), (5, -5), (6, 0)]


def test_noll_order_is_the_published_one() -> None:
    assert [noll_to_nm(j) for j in range(1, 23)] == NOLL


def test_orthonormal_over_the_disc() -> None:
    """Gauss–Legendre in ρ² and equal steps in θ integrate these products exactly."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    rho = np.sqrt((nodes + 1) / 2)[:, None]
    theta = (np.arange(40) * 2 * np.pi / 40)[None, :]
    modes = np.stack([zernike(*noll_to_nm(j), rho, theta) for j in range(1, 37)])
    gram = np.einsum("arc,brc,r->ab", modes, modes, weights / 2) / 40
    np.testing.assert_allclose(gram, np.eye(36), atol=1e-12)


def test_known_forms() -> None:
    rho, theta = np.linspace(0, 1, 7), 0.3
    np.testing.assert_allclose(zernike(1, 1, rho, theta), 2 * rho * np.cos(theta))
    np.testing.assert_allclose(zernike(2, -2, rho, theta), np.sqrt(6) * rho**2 * np.sin(2 * theta))
    np.testing.assert_allclose(zernike(4, 0, rho, theta), np.sqrt(5) * (6 * rho**4 - 6 * rho**2 + 1), atol=1e-14)
    assert zernike(0, 0, np.ones((3, 1)), np.ones(4)).shape == (3, 4)


@pytest.mark.parametrize(("n", "m"), [(2, 1), (1, 3), (-1, 1)])
def test_impossible_orders_are_refused(n: int, m: int) -> None:
    with pytest.raises(InvalidInputError, match=r"n − \|m\| even"):
        zernike(n, m, 0.5, 0.0)


@pytest.mark.parametrize("j", [0, -3, 1.5])
def test_impossible_indices_are_refused(j: int) -> None:
    with pytest.raises(InvalidInputError, match="from 1"):
        noll_to_nm(j)
