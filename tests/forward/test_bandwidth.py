"""Light of several wavelengths: pupils, frames and gradients against models of one wavelength each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.calibration.zernike_pupil import ZernikePupil
from fouriscope.errors import InvalidInputError
from fouriscope.optics import Multiplexed, Sources, random_patterns
from fouriscope.optics.bandwidth import coloured_sources, wavelength_modes
from fouriscope.paper import PAPER_BANDWIDTH, paper_model
from tests.forward.test_sums import LEDS, LOSSES, OPTICS, an_object

WIDE = replace(OPTICS, bandwidth=20e-9)
LINES = replace(OPTICS, spectrum=((505e-9, 1.0), (510e-9, 3.0), (523e-9, 2.0)))
SHAPE: dict[str, Any] = {"object_shape": (120, 120)}


def model_of(optics: fs.Optics = WIDE, frame: tuple[int, int] = (24, 20), **options: Any) -> fs.ForwardModel:
    return fs.ForwardModel(optics, options.pop("lights", LEDS), frame, **SHAPE, **options)


def in_three_lines(dtype: Any = np.float64, **options: Any) -> fs.ForwardModel:
    """Every LED in the three lines of LINES."""
    model = model_of(LINES, dtype=dtype, **options)
    return model.revised(sources=coloured_sources(Sources.points(model.geometry.na), LINES, 3))


def at(wavelength: float, pupil: fs.Pupil | None = None, **options: Any) -> fs.ForwardModel:
    """A model of this wavelength alone; of a lens with the same optical paths the phase is as many times larger."""
    scale = OPTICS.wavelength / wavelength
    own = None if pupil is None else replace(pupil, zernike={j: c * scale for j, c in pupil.zernike.items()})
    return model_of(replace(OPTICS, wavelength=wavelength), pupil=own, dtype=np.float64, **options)


@pytest.mark.parametrize("pupil", [None, fs.Pupil({5: 0.5, 8: -0.4}, defocus=8e-6)])
def test_frames_are_the_sums_of_those_of_each_wavelength(pupil: fs.Pupil | None) -> None:
    model = in_three_lines(pupil=pupil, margin=2)
    x = an_object(model)
    weights = [1 / 6, 3 / 6, 2 / 6]
    lines = [at(wavelength, pupil, margin=2).intensity(x) for wavelength, _ in LINES.spectrum]
    expected = sum(weight * line for weight, line in zip(weights, lines, strict=True))
    np.testing.assert_allclose(model.intensity(x), expected, rtol=1e-9, atol=1e-12)
    assert fs.check_adjoint(model).error < 1e-14


def test_a_pupils_array_is_one_of_angles() -> None:
    """A tilt over the pupil shifts the image by an angle; its array holds at every wavelength for the same angles."""
    rows, columns = 24, 20
    tilt = np.exp(0.05j * (np.arange(rows) - rows // 2))[:, None] * np.ones((1, columns))
    model = in_three_lines(pupil=fs.Pupil(array=tilt))
    stack, index = model.pupils(np.arange(len(model.sources)))
    box, fractions = model.geometry.support_box, model.geometry.fractions
    for source in (0, 1, 2, 121, 122):
        scale, found = model.sources.scales[source], stack[index[source]]
        rows_at = (box.row0 + np.arange(box.height) - fractions[source, 0]) / scale
        columns_at = (box.col0 + np.arange(box.width) - fractions[source, 1]) / scale
        radii = np.array([24, 20]) * OPTICS.pixel * OPTICS.cutoff
        # Near the rim of the disc the array is continued by its nearest bin inside.
        inner = np.hypot(rows_at[:, None] / radii[0], columns_at[None] / radii[1]) < 0.75
        wanted = np.broadcast_to(0.05 * rows_at[:, None], found.shape)
        np.testing.assert_allclose(np.angle(found)[inner], wanted[inner], atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_by_finite_differences(loss: Any) -> None:
    model = in_three_lines(object="wave", margin=2)
    fidelity, x = fs.DataFidelity(model, model.intensity(an_object(model, 1)), loss=loss), an_object(model)
    check = fs.check_gradient(fidelity.value, lambda x: fidelity.gradient(x).gradient, x, epsilon=1e-4)
    finer = fs.check_gradient(fidelity.value, lambda x: fidelity.gradient(x).gradient, x, epsilon=5e-5)
    assert abs((4 * finer.numeric - check.numeric) / 3 - finer.analytic) / abs(finer.analytic) < 1e-8


@pytest.mark.parametrize(("dtype", "limit"), [(np.float32, 1e-5), (np.float64, 1e-10)])
def test_gradient_by_brute_force(dtype: Any, limit: float) -> None:
    """∂d/∂ō = Σ_j Σ_λ w_λ H_λj† q_j ψ_λj, with the operators of models of one wavelength."""
    model = in_three_lines(dtype, object="wave")
    double = in_three_lines(object="wave")
    frames, x = double.intensity(an_object(double, 1)), an_object(double)
    q = 1 - np.sqrt(frames / double.intensity(x))
    derivative = np.zeros(double.object_shape, complex)
    for wavelength, weight in LINES.spectrum:
        alone = at(wavelength, object="wave")
        derivative += weight / 6 * alone.adjoint(q * alone.field(x)) / len(model)
    expected = np.stack([2 * np.real(derivative), 2 * np.imag(derivative)])
    found = fs.DataFidelity(model, frames.astype(dtype), loss="amplitude").gradient(x.astype(dtype)).gradient
    assert np.linalg.norm(found - expected) < limit * np.linalg.norm(expected)


def test_zernike_slope_by_finite_differences() -> None:
    model = in_three_lines(object="complex")
    frames, x = model.intensity(an_object(model, 1)), an_object(model)
    finder = ZernikePupil((5, 7))
    fs.DataFidelity(model, frames, loss="amplitude").gradient(x, None, finder.watch)
    for place, mode in enumerate((5, 7)):
        values = [
            fs.DataFidelity(model.revised(pupil=fs.Pupil({mode: side * 1e-5})), frames, loss="amplitude").value(x)
            for side in (1, -1)
        ]
        assert finder._slope[place] == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-5)


def test_modes_have_equal_shares_of_the_spectrum() -> None:
    lines = 513e-9 + np.linspace(-2.5, 2.5, 101) * 20e-9 / np.sqrt(8 * np.log(2))
    weights = np.exp(-(np.linspace(-2.5, 2.5, 101) ** 2) / 2)
    weights /= weights.sum()
    for count in (1, 2, 3, 5, 8):
        found, shares = wavelength_modes(WIDE, count)
        np.testing.assert_allclose(shares, 1 / count)
        assert shares @ found == pytest.approx(513e-9)
        # As many lines lie below the border of two modes as their shares say.
        for below, border in enumerate((found[1:] + found[:-1]) / 2, start=1):
            assert weights[lines < border].sum() == pytest.approx(below / count, abs=0.06)
    spread = [np.std(wavelength_modes(WIDE, count)[0]) for count in (2, 4, 8, 16)]
    assert np.all(np.diff(spread) > 0)
    assert spread[-1] == pytest.approx(np.sqrt(weights @ (lines - 513e-9) ** 2), rel=0.02)
    assert wavelength_modes(LINES, 5)[0].tolist() == [505e-9, 510e-9, 523e-9]
    assert wavelength_modes(LINES, 1)[0][0] == pytest.approx((505 + 3 * 510 + 2 * 523) / 6 * 1e-9)
    # A line across the border of two shares belongs to both.
    np.testing.assert_allclose(wavelength_modes(LINES, 2)[0], [(505 + 2 * 510) / 3e9, (510 + 2 * 523) / 3e9])


def test_direct_light_does_not_depend_on_the_wavelength() -> None:
    model = model_of(replace(OPTICS, bandwidth=60e-9))
    assert not model.sources.are_points
    flat = model.intensity(np.zeros(model.x_shape))
    np.testing.assert_allclose(flat.mean(axis=(1, 2)), model.geometry.bright_field, atol=1e-5)
    assert np.array_equal(model.geometry.direct_light > 0, model.geometry.bright_field)


def test_one_wavelength_stays_bit_for_bit() -> None:
    plain, x = model_of(OPTICS), an_object(model_of(OPTICS))
    narrow = model_of(replace(OPTICS, spectrum=((513e-9, 2.0),)))
    assert narrow.sources.are_points
    assert np.array_equal(narrow.intensity(x), plain.intensity(x))
    np.testing.assert_allclose(
        in_three_lines()
        .revised(sources=coloured_sources(Sources.points(plain.geometry.na), narrow.optics, 1))
        .intensity(x),
        model_of(OPTICS, dtype=np.float64).intensity(x),
        rtol=1e-6,
    )


def test_few_wavelengths_do_what_a_fine_sum_does(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fs.ForwardModel(WIDE, fs.LEDArray.disc(4e-3, 70e-3, 9.5), (48, 48), object="complex")
    counts = np.diff(model.sources.offsets)
    bright = model.geometry.bright_field
    assert counts[bright].min() == 1
    assert counts[bright].max() == 2
    assert set(counts[~bright]) == {2}
    k = np.hypot(*np.meshgrid(*(np.fft.fftfreq(n, 1 / n) for n in model.object_shape), indexing="ij"))
    noise = np.random.default_rng(0).standard_normal((2, *model.object_shape))
    images = np.fft.ifft2(np.fft.fft2(noise) / (1 + (k / 4) ** 1.5)).real
    x = images / images.std(axis=(1, 2), keepdims=True) * np.array([0.4, 0.15])[:, None, None]
    points = Sources.points(model.geometry.na)
    truth = model.revised(sources=coloured_sources(points, WIDE, 101)).intensity(x)
    amplitude = np.sqrt(truth.mean(axis=(1, 2)))

    def errors(of: fs.ForwardModel) -> np.ndarray:
        return np.asarray(np.sqrt(np.mean((np.sqrt(of.intensity(x)) - np.sqrt(truth)) ** 2, axis=(1, 2))) / amplitude)

    found, single = errors(model), errors(model.revised(sources=points))
    assert found[bright].max() < 0.015
    assert found.max() < 0.07
    assert np.sqrt(np.mean(found**2)) < 0.7 * np.sqrt(np.mean(single**2))
    monkeypatch.setattr("fouriscope.optics.bandwidth.PART", 0.02)
    finer = errors(
        fs.ForwardModel(WIDE, model.illumination, (48, 48), object="complex", object_shape=model.object_shape)
    )
    assert np.sqrt(np.mean(finer**2)) < 0.6 * np.sqrt(np.mean(found**2))


def test_die_bandwidth_and_patterns_together() -> None:
    lights = replace(LEDS, die=0.5e-3)
    patterns = random_patterns(LEDS, OPTICS, 4)
    both = model_of(replace(OPTICS, bandwidth=60e-9), lights=Multiplexed(lights, patterns), dtype=np.float64)
    alone = model_of(replace(OPTICS, bandwidth=60e-9), lights=lights, dtype=np.float64)
    x = an_object(both)
    expected = np.einsum("jm,mrc->jrc", patterns, alone.intensity(x))
    np.testing.assert_allclose(both.intensity(x), expected, rtol=1e-9, atol=1e-12)
    assert np.diff(alone.sources.offsets).max() >= 12


def test_the_paper_with_its_bandwidth() -> None:
    model = paper_model(frame=32, radius=4, bandwidth=PAPER_BANDWIDTH)
    assert model.optics.bandwidth == 20e-9
    data = fs.simulate(model, np.zeros(model.object_shape), seed=0)
    assert data.optics.bandwidth == 20e-9
    # Eleven wavelengths of a sample that is not empty are not what one is.
    x = np.random.default_rng(0).normal(0, 0.3, model.object_shape)
    fine, rough = np.asarray(fs.simulate(model, x, seed=0).frames), paper_model(frame=32, radius=4).intensity(x)
    assert np.abs(fine - rough).max() > 0.01


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"bandwidth": -1e-9}, "from 0 to"),
        ({"bandwidth": 20.0}, "20 nm is 20e-9"),
        ({"bandwidth": float("nan")}, "finite"),
        ({"bandwidth": 1e-9, "spectrum": ((513e-9, 1.0),)}, "one of the two"),
        ({"spectrum": ((513.0, 1.0),)}, "in metres"),
        ({"spectrum": ((513e-9, -1.0),)}, "at least 0"),
        ({"spectrum": ((513e-9, 0.0),)}, "not all 0"),
        ({"spectrum": ((513e-9, 1.0), (513e-9, 1.0))}, "once"),
        ({"spectrum": (513e-9, 1.0)}, "pairs"),
    ],
)
def test_bad_bandwidths(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInputError, match=sentence):
        replace(OPTICS, **options)
