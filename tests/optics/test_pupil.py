from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.optics import Optics, Pupil

OPTICS = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
SHAPE = (100, 81)
STEP = (1 / (SHAPE[0] * OPTICS.pixel), 1 / (SHAPE[1] * OPTICS.pixel))


def grid(shift: tuple[float, float] = (0.0, 0.0)) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    fy = (np.arange(SHAPE[0], dtype=np.float64) - SHAPE[0] // 2 - shift[0]) * STEP[0]
    fx = (np.arange(SHAPE[1], dtype=np.float64) - SHAPE[1] // 2 - shift[1]) * STEP[1]
    return fy[:, None], fx[None, :]


def inside(fy: NDArray[np.float64], fx: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(np.hypot(fy, fx) <= OPTICS.cutoff)


def test_a_clear_pupil_is_the_hard_disc() -> None:
    fy, fx = grid((0.3, -0.2))
    assert Pupil().is_clear
    np.testing.assert_array_equal(Pupil().evaluate(fy, fx, OPTICS), inside(fy, fx).astype(complex))


def test_the_edge_is_hard_at_exact_coordinates() -> None:
    edge = OPTICS.cutoff
    pupil = Pupil({4: 0.5}, defocus=1e-6)
    assert abs(pupil.evaluate(0.0, edge, OPTICS)) == pytest.approx(1)
    assert pupil.evaluate(edge * (1 + 1e-8), 0.0, OPTICS) == 0
    # The ring of LEDs at 0.2017 NA must stay dark.
    assert pupil.evaluate(-0.2017 / OPTICS.wavelength, 0.0, OPTICS) == 0


@pytest.mark.parametrize("pupil", [Pupil({2: 0.1}), Pupil(defocus=1e-9), Pupil(array=np.ones(SHAPE, complex))])
def test_any_aberration_is_not_clear(pupil: Pupil) -> None:
    assert not pupil.is_clear
    assert Pupil({11: 0.0}).is_clear


def test_zernike_coefficients_are_radians_rms() -> None:
    fy, fx = (np.linspace(-1, 1, 601) * OPTICS.cutoff for _ in range(2))
    values = Pupil({5: 0.1, 11: 0.2}).evaluate(fy[:, None], fx[None, :], OPTICS)
    assert np.angle(values[values != 0]).std() == pytest.approx(np.hypot(0.1, 0.2), rel=5e-3)


def test_tilt_in_x_rises_along_x() -> None:
    left, right = Pupil({2: 0.1}).evaluate(0.0, [-0.5 * OPTICS.cutoff, 0.5 * OPTICS.cutoff], OPTICS)
    assert np.angle(right) == pytest.approx(0.1)
    assert np.angle(left) == pytest.approx(-0.1)


def test_defocus_composes_and_undoes_itself() -> None:
    fy, fx = grid()
    one, two, both = (Pupil(defocus=z).evaluate(fy, fx, OPTICS) for z in (10e-6, 25e-6, 35e-6))
    np.testing.assert_allclose(one * two, both, atol=1e-12)
    np.testing.assert_allclose(Pupil(defocus=-10e-6).evaluate(fy, fx, OPTICS), one.conj(), atol=1e-12)


def test_defocus_is_the_angular_spectrum_in_the_medium() -> None:
    optics = Optics(513e-9, 0.8, 40, 6.5e-6, medium_index=1.33)
    f, z, w = 0.7 / 513e-9, 2e-6, 1.33 / 513e-9
    expected = np.exp(2j * np.pi * z * (np.sqrt(w**2 - f**2) - w))
    assert Pupil(defocus=z).evaluate(f, 0.0, optics) == pytest.approx(expected)


def test_an_array_at_whole_bins_returns_its_own_values() -> None:
    rng = np.random.default_rng(0)
    array = rng.normal(size=SHAPE) + 1j * rng.normal(size=SHAPE)
    fy, fx = grid()
    np.testing.assert_array_equal(Pupil(array=array).evaluate(fy, fx, OPTICS, STEP), np.where(inside(fy, fx), array, 0))


@pytest.mark.parametrize("shift", [(0.5, -0.5), (0.2, 0.4), (-0.37, 0.0)])
def test_a_smooth_array_is_interpolated_close_to_the_analytic_pupil(shift: tuple[float, float]) -> None:
    """The array is zero outside the disc, and still nothing leaks in: the modulus stays near 1 up to the edge."""
    analytic = Pupil({4: 0.2, 7: 0.1}, defocus=2e-6)
    sampled = Pupil(array=analytic.evaluate(*grid(), OPTICS))
    truth = analytic.evaluate(*grid(shift), OPTICS)
    values = sampled.evaluate(*grid(shift), OPTICS, STEP)
    np.testing.assert_array_equal(values == 0, truth == 0)
    assert np.abs(np.abs(values[truth != 0]) - 1).max() < 0.01
    assert np.abs(values - truth).max() < 0.1
    assert np.sqrt(np.mean(np.abs(values - truth) ** 2)) < 0.01


def test_array_and_analytic_part_multiply() -> None:
    array = np.full(SHAPE, 0.5j)
    fy, fx = grid((0.25, 0.25))
    product = Pupil({6: 0.3}, 1e-6, array).evaluate(fy, fx, OPTICS, STEP)
    np.testing.assert_allclose(product, 0.5j * Pupil({6: 0.3}, 1e-6).evaluate(fy, fx, OPTICS), atol=1e-15)


def test_many_leds_broadcast() -> None:
    fy, fx = grid()
    fractions = np.array([[0.1, 0.2], [-0.3, 0.4]]) * STEP
    values = Pupil({4: 0.1}).evaluate(fy - fractions[:, 0, None, None], fx - fractions[:, 1, None, None], OPTICS)
    assert values.shape == (2, *SHAPE)
    np.testing.assert_array_equal(
        values[1], Pupil({4: 0.1}).evaluate(fy - fractions[1, 0], fx - fractions[1, 1], OPTICS)
    )


def test_a_pupil_travels_to_workers() -> None:
    pupil = Pupil({4: 0.1}, 1e-6, np.ones(SHAPE, complex))
    fy, fx = grid()
    copy = pickle.loads(pickle.dumps(pupil))
    np.testing.assert_array_equal(copy.evaluate(fy, fx, OPTICS, STEP), pupil.evaluate(fy, fx, OPTICS, STEP))


def test_errors_say_what_is_wrong() -> None:
    fy, fx = grid()
    with pytest.raises(InvalidInputError, match="needs frequency_step"):
        Pupil(array=np.ones(SHAPE, complex)).evaluate(fy, fx, OPTICS)
    with pytest.raises(InvalidInputError, match=r"expected shape \(100, 81\), got \(81, 100\)"):
        Pupil(array=np.ones(SHAPE[::-1], complex)).evaluate(fy, fx, OPTICS, STEP)
    with pytest.raises(InvalidInputError, match="must have shape"):
        Pupil(array=np.ones(4, complex))
    with pytest.raises(InvalidInputError, match="finite"):
        Pupil(array=np.full(SHAPE, np.nan, complex))
    with pytest.raises(InvalidInputError, match="Noll index"):
        Pupil({0: 0.1})
    with pytest.raises(InvalidInputError, match="Zernike coefficient 4"):
        Pupil({4: np.inf})
    with pytest.raises(InvalidInputError, match="defocus"):
        Pupil(defocus=np.nan)
