"""Frames lit by several LEDs: forward model, gradient and solvers, against sums of frames of one LED each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.fidelity import AllLEDs
from fouriscope.optics import Multiplexed, half_circles, random_patterns
from fouriscope.solvers import EPRY, Iterations, Spectral
from tests.forward.test_sums import LEDS, LOSSES, OPTICS, an_object


def patterns_of(seed: int = 0) -> np.ndarray:
    """Dark field four at a time and the half circles, at any brightness; most LEDs are in several frames."""
    both = np.concatenate([random_patterns(LEDS, OPTICS, 4, seed=seed), half_circles(LEDS, OPTICS)])
    return both * np.random.default_rng(seed).uniform(0.3, 1.5, 81)


def model_of(patterns: np.ndarray | None = None, die: float = 0.0, **options: object) -> fs.ForwardModel:
    patterns = patterns_of() if patterns is None else patterns
    return fs.ForwardModel(OPTICS, Multiplexed(replace(LEDS, die=die), patterns), (24, 20), **options)  # type: ignore[arg-type]


def single(die: float = 0.0, **options: object) -> fs.ForwardModel:
    return fs.ForwardModel(OPTICS, replace(LEDS, die=die), (24, 20), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("die", [0.0, 0.5e-3])
@pytest.mark.parametrize(("dtype", "limit"), [(np.float32, 1e-5), (np.float64, 1e-10)])
def test_frames_are_the_weighted_sums_of_those_of_the_leds(die: float, dtype: type, limit: float) -> None:
    model, alone = model_of(die=die, dtype=dtype, margin=2), single(die, dtype=dtype, margin=2)
    x = an_object(model)
    expected = np.einsum("jm,mrc->jrc", patterns_of(), alone.intensity(x))
    assert np.linalg.norm(model.intensity(x) - expected) < limit * np.linalg.norm(expected)
    np.testing.assert_allclose(
        model.coverage(), alone.coverage(weights=patterns_of().sum(axis=0)), rtol=1e-4 if limit > 1e-9 else 1e-12
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adjoint(dtype: type) -> None:
    assert fs.check_adjoint(model_of(die=0.5e-3, dtype=dtype, margin=2)).error < (
        1e-14 if dtype is np.float64 else 1e-6
    )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["phase", "wave"])
def test_gradient_by_finite_differences(loss: str, kind: str) -> None:
    model = model_of(object=kind, margin=2, dtype=np.float64)
    fidelity = fs.DataFidelity(model, model.intensity(an_object(model, 1)), loss=loss)
    x = an_object(model)
    check = fs.check_gradient(fidelity.value, lambda x: fidelity.gradient(x).gradient, x, epsilon=1e-4)
    finer = fs.check_gradient(fidelity.value, lambda x: fidelity.gradient(x).gradient, x, epsilon=5e-5)
    assert abs((4 * finer.numeric - check.numeric) / 3 - finer.analytic) / abs(finer.analytic) < 1e-8


@pytest.mark.parametrize(("dtype", "limit"), [(np.float32, 1e-5), (np.float64, 1e-10)])
def test_gradient_by_brute_force(dtype: type, limit: float) -> None:
    """∂d/∂ō = Σ_j Σ_m w_jm H_m† q_j ψ_m, with the operators of single LEDs and a loop over the pattern."""
    alone, patterns = single(object="wave", dtype=np.float64, margin=2), patterns_of()
    frames, x = np.einsum("jm,mrc->jrc", patterns, alone.intensity(an_object(alone, 1))), an_object(alone)
    fields = alone.field(x)
    intensity = np.einsum("jm,mrc->jrc", patterns, np.abs(fields) ** 2)
    q = 1 - np.sqrt(frames / intensity)
    derivative = np.zeros(alone.object_shape, complex)
    for frame, led in zip(*np.nonzero(patterns), strict=True):
        derivative += patterns[frame, led] * alone.adjoint((q[frame] * fields[led])[None], [int(led)])
    derivative /= len(patterns)
    expected = np.stack([2 * derivative.real, 2 * derivative.imag])
    model = model_of(object="wave", dtype=dtype, margin=2)
    found = fs.DataFidelity(model, frames.astype(dtype), loss="amplitude").gradient(x.astype(dtype)).gradient
    assert np.linalg.norm(found - expected) < limit * np.linalg.norm(expected)


@pytest.mark.parametrize("die", [0.0, 0.5e-3])
def test_one_led_a_frame_is_the_plain_array_bit_for_bit(die: float) -> None:
    alone, model = single(die), model_of(np.eye(81), die)
    x, frames = an_object(alone), alone.intensity(an_object(alone, 1))
    assert model.sources.are_points == alone.sources.are_points == (die == 0)
    assert np.array_equal(model.geometry.na, alone.geometry.na)
    assert np.array_equal(model.intensity(x), alone.intensity(x))
    found = [fs.DataFidelity(one, frames).gradient(x).gradient for one in (alone, model)]
    assert np.array_equal(found[0], found[1])
    data = fs.Acquisition(OPTICS, alone.illumination, frames, periodic=True)
    results = [
        fs.reconstruct(replace(data, illumination=one.illumination), prior="tv", iterations=5, batch=20).phase
        for one in (alone, model)
    ]
    assert np.array_equal(results[0], results[1])


def test_numbers_of_leds_mean_nothing() -> None:
    order = np.random.default_rng(5).permutation(81)
    model, x = model_of(dtype=np.float64), an_object(model_of(dtype=np.float64))
    other = fs.ForwardModel(
        OPTICS, Multiplexed(LEDS.subset(order), patterns_of()[:, order]), (24, 20), dtype=np.float64
    )
    assert np.array_equal(model.geometry.na, other.geometry.na)
    np.testing.assert_allclose(other.intensity(x), model.intensity(x), rtol=1e-10)


def test_scaled_weights_scale_the_intensity() -> None:
    model, x = model_of(dtype=np.float64), an_object(model_of(dtype=np.float64))
    np.testing.assert_allclose(model_of(3.5 * patterns_of(), dtype=np.float64).intensity(x), 3.5 * model.intensity(x))
    gains = np.linspace(0.5, 2, len(model))
    scaled = model_of(gains[:, None] * patterns_of(), dtype=np.float64)
    np.testing.assert_allclose(model.revised(gains=gains).intensity(x), scaled.intensity(x))


def test_epry_goes_the_whole_way_with_leds_that_see_different_frequencies() -> None:
    """Two pupils that have nothing in common move the object as they would one after the other."""
    wide = fs.Directions([(0.0, 0.0), (0.0, 0.45), (0.0, -0.45)])
    alone = fs.ForwardModel(OPTICS, wide, (24, 24), object="wave", dtype=np.float64)
    pair = fs.ForwardModel(OPTICS, Multiplexed(wide, [[1, 0, 0], [0, 1, 1]]), (24, 24), object="wave", dtype=np.float64)
    truth, start = an_object(alone, 1), an_object(alone, 2)
    frames = pair.intensity(truth)
    solver = EPRY(fs.DataFidelity(pair, frames, loss="amplitude"), AllLEDs(np.arange(2)), start=start, order="sampler")
    solver.step()
    # Each field of the second frame gets the ratio of moduli that their sum gets.
    before, ratio = alone.field(start), np.sqrt(frames[1] / pair.intensity(start)[1])
    after = alone.field(solver.x)
    ours = [after[led] * np.exp(-1j * np.angle(np.vdot(before[led], after[led]))) for led in (1, 2)]
    expected = [
        np.fft.ifft2(np.where(np.abs(np.fft.fft2(before[led])) > 1e-9, np.fft.fft2(before[led] * ratio), 0))
        for led in (1, 2)
    ]
    for one, other in zip(ours, expected, strict=True):
        other *= np.exp(-1j * np.angle(np.vdot(one, other)))
        np.testing.assert_allclose(one, other, atol=1e-8)


@pytest.mark.parametrize("method", ["epry", "spectral"])
def test_multiplexed_frames_are_explained(method: str) -> None:
    model = model_of(random_patterns(LEDS, OPTICS, 8), object="wave", dtype=np.float64)
    phase = 0.3 * (np.indices(model.object_shape).sum(axis=0) % 30 < 15)
    frames = model.intensity(np.stack([np.cos(phase) - 1, np.sin(phase)]))
    fidelity, sampler = fs.DataFidelity(model, frames, loss="amplitude"), AllLEDs(np.arange(len(model)))
    if method == "epry":
        epry = EPRY(fidelity, sampler, decay=0.1, seed=0)
        epry.solve(Iterations(15))
        assert epry.step().misfit < 0.05 * EPRY(fidelity, sampler, seed=0).step().misfit
    else:
        priors = [fs.NoPrior(), fs.NoPrior()]
        spectral = Spectral(fidelity, sampler, priors, acceleration=False, balance=False)
        misfits = [spectral.step().misfit for _ in range(8)]
        assert np.all(np.diff(misfits) <= 0)


def test_half_circles_show_phase_where_annuli_do_not() -> None:
    from fouriscope.solvers.start import bright_field_deconvolution

    def found(patterns: np.ndarray) -> float:
        model = model_of(patterns)
        y, x = np.indices(model.object_shape) / model.object_shape[0] * 2 * np.pi
        phase = (0.05 * np.sin(5 * x) * np.sin(4 * y)).astype(np.float32)
        start = bright_field_deconvolution(fs.DataFidelity(model, model.intensity(phase)))
        return float(np.sum(start * phase) / np.sum(phase**2))

    bright = (OPTICS.passes(np.hypot(*LEDS.directions().T)) * 1.0)[None]
    assert found(half_circles(LEDS, OPTICS)) == pytest.approx(1, abs=0.1)
    assert abs(found(bright)) < 0.1
