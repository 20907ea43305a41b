"""Frames that are incoherent sums of sources: forward model, gradient, EPRY, calibration, and LEDs with a size."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.calibration.model_arrays import model_arrays, model_from_arrays
from fouriscope.calibration.pixel_pupil import PixelPupil
from fouriscope.calibration.zernike_pupil import ZernikePupil
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import AllLEDs, Contributions
from fouriscope.optics import Adjusted, Directions, Sources
from fouriscope.optics.die import die_in_points, die_points
from fouriscope.solvers import EPRY, Iterations, Spectral
from fouriscope.solvers.start import bright_field_deconvolution

OPTICS = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
LEDS = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)  # (±2, ±3) pitches are at NA 0.2018, 0.13 mm beyond the edge
LOSSES = ("intensity", "amplitude", "poisson")


def model_of(die: float = 0.5e-3, **options: object) -> fs.ForwardModel:
    return fs.ForwardModel(OPTICS, replace(LEDS, die=die), (24, 20), **options)  # type: ignore[arg-type]


def a_mixture(dtype: type = np.float64, **options: object) -> fs.ForwardModel:
    """One to four sources a frame, in any direction near the LED's, of any weight."""
    model = fs.ForwardModel(OPTICS, LEDS, (24, 20), dtype=dtype, object_shape=(120, 120), **options)  # type: ignore[arg-type]
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 5, len(model))
    na = np.repeat(model.geometry.na, counts, axis=0) + rng.normal(0, 0.02, (counts.sum(), 2))
    return model.revised(sources=Sources(na, rng.uniform(0.2, 1.0, len(na)), np.concatenate([[0], np.cumsum(counts)])))


def an_object(model: fs.ForwardModel, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.3, model.x_shape).astype(model.dtype)


@pytest.mark.parametrize("margin", [0, 3])
def test_a_frame_is_the_sum_of_its_sources_intensities(margin: int) -> None:
    model = a_mixture(margin=margin, gains=np.linspace(0.5, 2, 81))
    x, leds = an_object(model), [80, 3, 40]
    sources, bounds = model.sources.of(np.array(leds))
    fields = model.field(x, leds)
    assert len(fields) == len(sources) == bounds[-1]
    sums = np.add.reduceat(np.abs(fields) ** 2, bounds[:-1])
    np.testing.assert_allclose(model.intensity(x, leds), sums, rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_adjoint(dtype: type) -> None:
    assert fs.check_adjoint(a_mixture(dtype, margin=2)).error < (1e-14 if dtype is np.float64 else 1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["phase", "complex", "wave"])
def test_gradient_by_finite_differences(loss: str, kind: str) -> None:
    model = a_mixture(object=kind, margin=2)
    fidelity = fs.DataFidelity(model, model.intensity(an_object(model, 1)), loss=loss)
    x = an_object(model)
    check = fs.check_gradient(fidelity.value, lambda x: fidelity.gradient(x).gradient, x, epsilon=1e-4)
    finer = fs.check_gradient(fidelity.value, lambda x: fidelity.gradient(x).gradient, x, epsilon=5e-5)
    # Richardson: what is left of the two central differences after their common ε² term.
    assert abs((4 * finer.numeric - check.numeric) / 3 - finer.analytic) / abs(finer.analytic) < 1e-8
    assert finer.error < 1e-6


@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_by_complex_sums_in_double_and_single(loss: str) -> None:
    model = a_mixture(object="wave", margin=2)
    frames, x = model.intensity(an_object(model, 1)), an_object(model)
    fidelity = fs.DataFidelity(model, frames, loss=loss)
    fields = model.field(x)
    _, bounds = model.sources.of(np.arange(len(model)))
    intensity = np.repeat(model.intensity(x), np.diff(bounds), axis=0)
    measured = np.repeat(frames, np.diff(bounds), axis=0)
    q = {
        "intensity": 2 * (intensity - measured),
        "amplitude": 1 - np.sqrt(measured / intensity),
        "poisson": 1 - (measured + 0.01) / (intensity + 0.01),
    }[loss]
    # ∂d/∂ō = Σ_m w_m H_m† q ψ_m; the adjoint is that of apply, whose inner product has no 1/N.
    derivative = model.adjoint(q * fields) / len(model)
    expected = np.stack([2 * derivative.real, 2 * derivative.imag])
    found = fidelity.gradient(x).gradient
    assert np.linalg.norm(found - expected) < 1e-10 * np.linalg.norm(expected)
    single = a_mixture(np.float32, object="wave", margin=2)
    found = fs.DataFidelity(single, frames.astype(np.float32), loss=loss).gradient(x.astype(np.float32)).gradient
    assert np.linalg.norm(found - expected) < 1e-5 * np.linalg.norm(expected)


def test_the_order_of_a_frames_sources_does_not_matter() -> None:
    model = a_mixture()
    sources, rng = model.sources, np.random.default_rng(0)
    order = np.concatenate([rng.permutation(np.arange(a, b)) for a, b in pairwise(sources.offsets)])
    other = model.revised(sources=Sources(sources.na[order], sources.weights[order], sources.offsets))
    frames, x = model.intensity(an_object(model, 1)), an_object(model)
    found = [fs.DataFidelity(one, frames, loss="amplitude").gradient(x) for one in (model, other)]
    assert found[0].value == pytest.approx(found[1].value, rel=1e-12)
    np.testing.assert_allclose(found[0].gradient, found[1].gradient, atol=1e-12 * np.abs(found[0].gradient).max())
    solved = []
    for one in (model, other):
        solver = EPRY(fs.DataFidelity(one, frames, loss="amplitude"), AllLEDs(np.arange(81)), pupil_step=0.5, seed=1)
        solver.solve(Iterations(2))
        solved.append(solver.x)
    np.testing.assert_allclose(solved[0], solved[1], atol=1e-9)


def test_groups_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from fouriscope.fidelity import pipeline

    model = a_mixture(np.float32)
    fidelity = fs.DataFidelity(model, model.intensity(an_object(model, 1)))
    before = fidelity.gradient(an_object(model))
    monkeypatch.setattr(pipeline, "GROUP", 3)
    monkeypatch.setattr(pipeline, "GROUP_AT_LEAST", 3)
    after = fs.DataFidelity(model, fidelity.frames).gradient(an_object(model))
    assert np.array_equal(before.gradient, after.gradient)
    assert before.value == after.value


@pytest.mark.parametrize("loss", LOSSES)
def test_two_halves_of_a_source_are_what_the_whole_is(loss: str) -> None:
    point = model_of(0.0, dtype=np.float64)
    # Two halves of the same source: the kernel of sums, and the same physics.
    na = np.repeat(point.geometry.na, 2, axis=0)
    halves = point.revised(sources=Sources(na, np.full(len(na), 0.5), 2 * np.arange(len(point) + 1)))
    assert point.sources.are_points
    assert not halves.sources.are_points
    frames, x = point.intensity(an_object(point, 1)), an_object(point)
    found = [fs.DataFidelity(model, frames, loss=loss).gradient(x) for model in (point, halves)]
    np.testing.assert_allclose(found[0].gradient, found[1].gradient, atol=1e-12 * np.abs(found[0].gradient).max())
    np.testing.assert_allclose(point.coverage(), halves.coverage(), rtol=1e-12)
    np.testing.assert_allclose(
        bright_field_deconvolution(fs.DataFidelity(point, frames)),
        bright_field_deconvolution(fs.DataFidelity(halves, frames)),
        atol=1e-10,
    )
    solved = []
    for model in (point, halves):
        solver = EPRY(fs.DataFidelity(model, frames, loss=loss), AllLEDs(np.arange(len(model))), seed=0)
        solver.solve(Iterations(1))
        solved.append(solver.x)
    np.testing.assert_allclose(solved[0], solved[1], atol=1e-9)


def test_a_frame_left_out_adds_nothing_even_if_it_holds_nan() -> None:
    model = a_mixture()
    frames = model.intensity(an_object(model, 1))
    weights = np.ones(len(model))
    weights[[3, 40]] = 0
    clean = fs.DataFidelity(model, frames, weights=weights).gradient(an_object(model)).gradient
    frames[3] = np.nan
    assert np.array_equal(fs.DataFidelity(model, frames, weights=weights).gradient(an_object(model)).gradient, clean)


def test_contributions_are_those_of_sources() -> None:
    model = a_mixture()
    fidelity = fs.DataFidelity(model, model.intensity(an_object(model, 1)))
    seen: list[Contributions] = []
    fidelity.gradient(an_object(model), [5, 7], seen.append)
    assert seen[0].leds.tolist() == [led for led in (5, 7) for _ in range(int(np.diff(model.sources.offsets)[led]))]
    assert np.array_equal(model.sources.frames[seen[0].sources], seen[0].leds)
    assert len(seen[0].boxes) == len(seen[0].sources) == len(seen[0].weights)


def test_zernike_slope_of_a_sum_by_finite_differences() -> None:
    model = a_mixture(object="complex")
    frames, x = model.intensity(an_object(model, 1)), an_object(model)
    finder = ZernikePupil((5, 7))
    fs.DataFidelity(model, frames, loss="amplitude").gradient(x, None, finder.watch)
    step = 1e-5
    for place, mode in enumerate((5, 7)):
        values = [
            fs.DataFidelity(model.revised(pupil=fs.Pupil({mode: side * step})), frames, loss="amplitude").value(x)
            for side in (1, -1)
        ]
        assert finder._slope[place] == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-5)


@pytest.mark.parametrize("finder", [ZernikePupil, PixelPupil])
def test_two_halves_of_a_source_are_as_stiff_as_the_whole(finder: type) -> None:
    point = model_of(0.0, dtype=np.float64)
    na = np.repeat(point.geometry.na, 2, axis=0)
    halves = point.revised(sources=Sources(na, np.full(len(na), 0.5), 2 * np.arange(len(point) + 1)))
    frames, x = point.intensity(an_object(point, 1)), an_object(point)
    found = []
    for model in (point, halves):
        watcher = finder()
        fs.DataFidelity(model, frames, loss="intensity").gradient(x, None, watcher.watch)
        found.append(watcher._curvature)
    np.testing.assert_allclose(found[0], found[1], atol=1e-10 * np.abs(found[0]).max())


def test_a_die_is_divided_where_it_stands_across_the_edge() -> None:
    model = model_of(0.5e-3)
    counts = np.diff(model.sources.offsets)
    straddling = np.isclose(model.geometry.illumination_na, 0.2018, atol=1e-4)
    assert straddling.sum() == 8
    near = (model.geometry.illumination_na > 0.165) & model.geometry.bright_field
    assert (counts[straddling] == 6).all()  # 2 × 2, two of them cut by the edge
    assert (counts[near] == 4).all()
    assert (counts[~straddling & ~near] == 1).all()
    assert np.array_equal(model.geometry.direct_light[~straddling] > 0, model.geometry.bright_field[~straddling])
    np.testing.assert_allclose(np.add.reduceat(model.sources.weights, model.sources.offsets[:-1]), 1)
    # The share inside is that of the area, as a grid of 400² points has it.
    rows = replace(LEDS, die=0.5e-3).die_directions(die_points(400, "square"))[np.flatnonzero(straddling)[0]]
    area = np.mean(np.hypot(rows[:, 0], rows[:, 1]) <= OPTICS.na)
    assert model.geometry.direct_light[straddling][0] == pytest.approx(area, abs=1e-3)
    assert model_of(0.0).sources.are_points


@pytest.mark.parametrize(
    ("die", "shape", "bound"), [(0.5e-3, "square", 0.12), (1e-3, "square", 0.16), (1e-3, "round", 0.16)]
)
def test_few_sources_do_what_nine_by_nine_do(
    die: float, shape: Literal["square", "round"], bound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    lights = replace(LEDS, die=die, die_shape=shape)
    model = fs.ForwardModel(OPTICS, lights, (48, 48), object="complex")
    rng = np.random.default_rng(0)
    k = np.hypot(*np.meshgrid(*(np.fft.fftfreq(n, 1 / n) for n in model.object_shape), indexing="ij"))
    images = np.fft.ifft2(np.fft.fft2(rng.standard_normal((2, *model.object_shape))) / (1 + (k / 4) ** 1.5)).real
    x = images / images.std(axis=(1, 2), keepdims=True) * np.array([0.4, 0.15])[:, None, None]
    truth = model.revised(sources=die_in_points(lights, (0.0, 0.0), 9)).intensity(x)
    amplitude = np.sqrt(truth.mean(axis=(1, 2)))

    def errors(of: fs.ForwardModel) -> np.ndarray:
        return np.asarray(np.sqrt(np.mean((np.sqrt(of.intensity(x)) - np.sqrt(truth)) ** 2, axis=(1, 2))) / amplitude)

    found, points = errors(model), errors(model.revised(sources=Sources.points(model.geometry.na)))
    direct = model.geometry.direct_light
    at_edge = (direct > 0) & (direct < 1)
    assert points[at_edge].min() > 0.4
    assert found[at_edge].max() < 0.04
    assert found[direct == 1].max() < 0.04
    assert found[direct > 0].max() < 0.03
    assert found.max() < bound  # dark field, beside its own amplitude
    monkeypatch.setattr("fouriscope.optics.die.PART", 0.01)
    monkeypatch.setattr("fouriscope.optics.die.GROWTH", 1.0)
    finer = errors(fs.ForwardModel(OPTICS, lights, (48, 48), object="complex", object_shape=model.object_shape))
    assert finer.max() < 0.4 * found.max()


def test_a_large_die_is_divided_everywhere() -> None:
    model = model_of(3e-3)
    assert (np.diff(model.sources.offsets) >= 4).all()


def test_simulated_frames_come_from_many_points() -> None:
    model = model_of(0.5e-3)
    truth = np.zeros(model.object_shape)
    means = np.mean(np.asarray(fs.simulate(model, truth, seed=0).frames), axis=(1, 2))
    inside = {}
    for count in (9, 27):
        points = replace(LEDS, die=0.5e-3).die_directions(die_points(count, "square"))
        inside[count] = np.mean(np.hypot(points[..., 0], points[..., 1]) <= OPTICS.na, axis=1)
    across = (inside[27] > 0) & (inside[27] < 1)
    np.testing.assert_allclose(means, np.where(across, inside[27], inside[9]), atol=1e-5)


@pytest.mark.parametrize("pupil_step", [0.0, 0.5])
def test_epry_of_sums_explains_what_points_cannot(pupil_step: float) -> None:
    model = model_of(0.5e-3, object="complex")
    rng = np.random.default_rng(0)
    rows, columns = model.object_shape
    o = np.exp(0.4j * (rng.random((15, 15)) < 0.4).repeat(8, 0).repeat(8, 1)[:rows, :columns])
    frames = fs.simulate(model, o.astype(np.complex64), seed=0).frames
    misfits = {}
    for name, one in (("die", model), ("point", model_of(0.0, object="complex", object_shape=model.object_shape))):
        fidelity = fs.DataFidelity(one, frames, loss="amplitude")
        solver = EPRY(fidelity, AllLEDs(np.arange(len(one))), pupil_step=pupil_step, decay=0.1, seed=0)
        misfits[name] = [solver.step().misfit for _ in range(12)]
    assert misfits["die"][-1] < 0.1 * misfits["die"][0]
    assert misfits["die"][-1] < 0.2 * misfits["point"][-1]


def test_spectral_never_rises_with_sums() -> None:
    model = model_of(0.5e-3, object="wave", dtype=np.float64)
    phase = 0.3 * (np.indices(model.object_shape).sum(axis=0) % 30 < 15)
    frames = model.intensity(np.stack([np.cos(phase) - 1, np.sin(phase)]))
    fidelity = fs.DataFidelity(model, frames, loss="amplitude")
    solver = Spectral(
        *(fidelity, AllLEDs(np.arange(len(model))), [fs.priors.NoPrior(), fs.priors.NoPrior()]),
        acceleration=False,
        balance=False,
    )
    misfits = [solver.step().misfit for _ in range(8)]
    assert np.all(np.diff(misfits) <= 0)


def test_moved_turned_adjusted_and_saved_leds_keep_their_size() -> None:
    lights = replace(LEDS, die=0.4e-3, die_shape="round")
    assert (lights.moved(turn=0.1).die, lights.subset([1, 2]).die_shape) == (0.4e-3, "round")
    adjusted = Adjusted(lights, np.full((81, 2), 0.001))
    model = fs.ForwardModel(OPTICS, adjusted, (24, 20))
    np.testing.assert_allclose(
        adjusted.die_directions(die_points(3, "round")), lights.die_directions(die_points(3, "round")) + 0.001
    )
    again = model_from_arrays(fs.ForwardModel(OPTICS, LEDS, (24, 20)), model_arrays(model))
    assert np.array_equal(again.sources.na, model.sources.na)
    assert Adjusted(Directions([(0.0, 0.1)]), [(0.0, 0.0)]).die == 0
    assert "round dies of 0.4 mm" in repr(lights)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"die": -1e-3}, "a length ≥ 0"),
        ({"die": float("nan")}, "finite"),
        ({"die": 0.5}, "larger than the distance from LED to LED"),
        ({"die": 1e-3, "die_shape": "star"}, "'square' or 'round'"),
    ],
)
def test_bad_dies(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInputError, match=sentence):
        fs.LEDArray.square(5, 4e-3, 70e-3, **options)


def test_bad_sources() -> None:
    na = np.zeros((3, 2))
    with pytest.raises(InvalidInputError, match="frame 1 has none"):
        Sources(na, np.ones(3), np.array([0, 1, 1, 3]))
    with pytest.raises(InvalidInputError, match="positive"):
        Sources(na, np.array([1.0, -1.0, 1.0]), np.arange(4))
    with pytest.raises(InvalidInputError, match="from 0 to the number of sources"):
        Sources(na, np.ones(3), np.array([0, 1]))
    with pytest.raises(InvalidInputError, match="needs sources for all of them"):
        model_of(0.0).revised(sources=Sources.points(na))
