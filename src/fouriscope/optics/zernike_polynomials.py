"""Zernike polynomials, the usual names of lens aberrations, in Noll's order and normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, factorial, isqrt, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriscope.errors import InvalidInputError

HIGHEST_MODE = 136  # radial orders up to 15; the alternating sums of higher ones lose their digits


def noll_to_nm(j: int) -> tuple[int, int]:
    """Radial order n and azimuthal frequency m of Noll's index j = 1, 2, 3, …

    m > 0 stands for cos(mθ) and m < 0 for sin(|m|θ); even j have the cosine, odd j the sine.

    ====  ==================  ====  ======================
    j     name                j     name
    ====  ==================  ====  ======================
    1     piston              5, 6  astigmatism (45°, 0°)
    2, 3  tilt in x, in y     7, 8  coma in y, in x
    4     defocus             11    spherical aberration
    ====  ==================  ====  ======================

    Parameters
    ----------
    j
        Noll's index, from 1 on.

    Examples
    --------
    >>> [noll_to_nm(j) for j in (1, 2, 3, 4, 5, 11)]
    [(0, 0), (1, 1), (1, -1), (2, 0), (2, -2), (4, 0)]
    """
    if not 1 <= j <= HIGHEST_MODE or int(j) != j:
        raise InvalidInputError(
            f"a Noll index must be an integer from 1 (piston) to {HIGHEST_MODE} (radial order 15), got {j!r}."
        )
    j = int(j)
    n = (isqrt(8 * j - 7) - 1) // 2
    place_in_order = j - n * (n + 1) // 2 - 1
    frequency = 1 + 2 * (place_in_order // 2) if n % 2 else 2 * ((place_in_order + 1) // 2)
    return n, frequency if j % 2 == 0 else -frequency


def zernike(n: int, m: int, rho: ArrayLike, theta: ArrayLike) -> NDArray[np.float64]:
    """The Zernike polynomial Z_n^m at the polar coordinates (ρ, θ) of the unit disc, with unit RMS over it.

    Z_n^m = √(n+1) R_n^0(ρ) for m = 0, √(2(n+1)) R_n^m(ρ) cos(mθ) for m > 0 and √(2(n+1)) R_n^|m|(ρ) sin(|m|θ) for
    m < 0, with the radial polynomial

    R_n^m(ρ) = Σ_s (−1)^s (n−s)! / (s! ((n+m)/2−s)! ((n−m)/2−s)!) ρ^(n−2s),  s = 0 … (n−m)/2.

    The polynomials are orthonormal: the mean of Z_a·Z_b over the disc is 1 for a = b and 0 otherwise. A coefficient in
    radians is therefore the RMS phase that its term contributes. Nothing is cut off at ρ = 1; that is the pupil's task.

    Parameters
    ----------
    n, m
        Order and frequency: |m| ≤ n, and n − |m| even.
    rho, theta
        Radius (1 at the rim) and angle from x towards y, of shapes that broadcast.

    Examples
    --------
    Defocus is √3 (2ρ² − 1): −√3 in the centre and √3 on the rim.

    >>> zernike(2, 0, [0.0, 1.0], 0.0).round(3).tolist()
    [-1.732, 1.732]
    """
    frequency = abs(m)
    if n < 0 or frequency > n or (n - frequency) % 2:
        raise InvalidInputError(f"Zernike orders need |m| ≤ n and n − |m| even, got n = {n!r}, m = {m!r}.")
    radius = np.asarray(rho, dtype=np.float64)
    angle = np.asarray(theta, dtype=np.float64)
    radial = np.zeros_like(radius)
    for s in range((n - frequency) // 2 + 1):
        radial = radial + _radial_weight(n, frequency, s) * radius ** (n - 2 * s)
    if m == 0:
        value = sqrt(n + 1) * radial * np.ones_like(angle)
    else:
        value = sqrt(2 * (n + 1)) * radial * (np.cos(m * angle) if m > 0 else np.sin(frequency * angle))
    return np.asarray(value, dtype=np.float64)


def zernike_in_powers(n: int, m: int) -> NDArray[np.float64]:
    """The coefficients a[p, q] of Z_n^m = Σ a[p, q] y^p x^q, with y = ρ sin θ and x = ρ cos θ.

    A phase in powers is cheap to evaluate on a grid, and a moved one, Z(y − a, x − b), needs no angles.

    Examples
    --------
    Defocus is √3 (2y² + 2x² − 1):

    >>> (zernike_in_powers(2, 0) / sqrt(3)).round(12).tolist()
    [[-1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [2.0, 0.0, 0.0]]
    """
    frequency = abs(m)
    powers = np.zeros((n + 1, n + 1))
    # ρ^k cos(kθ) and ρ^k sin(kθ) are the real and imaginary part of (x + iy)^k.
    for p in range(frequency + 1):
        turned = 1j**p
        angular = comb(frequency, p) * (turned.real if m >= 0 else turned.imag)
        for s in range((n - frequency) // 2 + 1):
            rest = (n - frequency) // 2 - s
            for r in range(rest + 1):
                weight = _radial_weight(n, frequency, s) * comb(rest, r)
                powers[p + 2 * r, frequency - p + 2 * (rest - r)] += weight * angular
    return powers * (sqrt(n + 1) if m == 0 else sqrt(2 * (n + 1)))


def fit_zernike(
    pupil: NDArray[np.complexfloating], fy: ArrayLike, fx: ArrayLike, modes: Sequence[int]
) -> dict[int, float]:
    """The coefficients of ``modes`` (Noll) in the phase of ``pupil``, by least squares; its zeros do not count.

    ``fy`` (down) and ``fx`` (across) are coordinates in units of the disc's radius. The fit uses steps from bin to bin
    instead of the phase itself, so the phase may go through any number of turns. Tilts are fitted too, and left out.

    Examples
    --------
    >>> y, x = np.mgrid[-1:1:41j, -1:1:41j]
    >>> disc = np.hypot(y, x) <= 1
    >>> pupil = disc * np.exp(1j * (6 * zernike(2, 0, np.hypot(y, x), 0.0) + 2 * x))
    >>> [round(abs(c), 6) for c in fit_zernike(pupil, y[:, 0], x[0], (4, 11)).values()]
    [6.0, 0.0]
    """
    y, x = np.meshgrid(np.asarray(fy, np.float64), np.asarray(fx, np.float64), indexing="ij")
    wanted = (2, 3, *modes)
    basis = np.stack([zernike(*noll_to_nm(j), np.hypot(y, x), np.arctan2(y, x)) for j in wanted])
    rows: list[NDArray[np.float64]] = []
    steps: list[NDArray[np.float64]] = []
    for ahead, behind in (
        ((slice(1, None), slice(None)), (slice(-1), slice(None))),
        ((slice(None), slice(1, None)), (slice(None), slice(-1))),
    ):
        product = pupil[ahead] * np.conj(pupil[behind])
        inside = product != 0
        weight = np.sqrt(np.abs(product[inside]))
        rows.append((basis[:, *ahead] - basis[:, *behind])[:, inside] * weight)
        steps.append(np.angle(product[inside]) * weight)
    matrix, right = np.concatenate(rows, axis=1).T, np.concatenate(steps)
    if len(right) < len(wanted):
        return dict.fromkeys(modes, 0.0)
    found = np.linalg.lstsq(matrix, right, rcond=None)[0]
    return {int(j): float(c) for j, c in zip(modes, found[2:], strict=True)}


def _radial_weight(n: int, frequency: int, s: int) -> float:
    """The coefficient of ρ^(n − 2s) in R_n^frequency."""
    below = factorial(s) * factorial((n + frequency) // 2 - s) * factorial((n - frequency) // 2 - s)
    return float((-1) ** s * factorial(n - s) / below)
