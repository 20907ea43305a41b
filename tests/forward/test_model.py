from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel, PhaseObject, check_adjoint, pupils
from fouriscope.optics import Directions, LEDArray, Optics, Pupil
from fouriscope.parallel import threads
from tests.conftest import ABERRATED, CASES, LEDS, OPTICS, random_x, small_model

PRECISIONS = [(np.float32, 1e-5), (np.float64, 1e-12)]


def random_field(shape: tuple[int, ...], seed: int = 0) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
def test_adjoint(case: str, dtype: DTypeLike, tolerance: float) -> None:
    model = small_model(case, dtype=dtype)
    assert check_adjoint(model).error < tolerance
    assert check_adjoint(model, [len(model) - 1], seed=1).error < tolerance
    # ⟨H o, H o⟩ = ⟨o, H†H o⟩: random fields are almost orthogonal, these are not, so the check is sharper.
    o = random_field(model.object_shape).astype(model.complex_dtype)
    image = model.apply(o)
    energy = np.linalg.norm(image.astype(complex)) ** 2
    assert np.vdot(o, model.adjoint(image)) == pytest.approx(energy, rel=tolerance)


def test_apply_is_linear(model: ForwardModel) -> None:
    a, b = random_field(model.object_shape, 1), random_field(model.object_shape, 2)
    combined = model.apply((2 - 1j) * a + 0.3j * b)
    np.testing.assert_allclose(combined, (2 - 1j) * model.apply(a) + 0.3j * model.apply(b), atol=1e-13)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
def test_compiled_intensity_is_the_squared_field(case: str, dtype: DTypeLike, tolerance: float) -> None:
    model = small_model(case, dtype=dtype)
    x = random_x(model)
    intensity = model.intensity(x)
    assert intensity.dtype == model.dtype
    assert intensity.shape == (len(model), *model.frame_shape)
    np.testing.assert_allclose(intensity, np.abs(model.field(x)) ** 2, rtol=0, atol=tolerance * intensity.max())


def test_complex_object_absorbs() -> None:
    model = small_model(object="complex")
    x = random_x(model)
    np.testing.assert_allclose(model.transmittance(x), np.exp(1j * x[0] - x[1]), rtol=1e-14)
    np.testing.assert_allclose(model.intensity(x), np.abs(model.field(x)) ** 2, atol=1e-13)
    x[1] += np.log(2)
    darker = model.intensity(x)
    x[1] -= np.log(2)
    np.testing.assert_allclose(4 * darker, model.intensity(x), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("case", ["square", "aberrated", "margin", "object of 89 × 101"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-6), (np.float64, 1e-14)])
def test_an_empty_object_gives_unit_bright_field_and_no_dark_field(
    case: str, dtype: DTypeLike, tolerance: float
) -> None:
    model = small_model(case, dtype=dtype)
    intensity = model.intensity(np.zeros(model.x_shape))
    bright = model.geometry.bright_field
    assert 0 < bright.sum() < len(model)
    np.testing.assert_allclose(intensity[bright], 1, rtol=0, atol=tolerance)
    # What is left is the rounding of an FFT of ones, squared.
    assert intensity[~bright].max() < tolerance**2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_ring_just_outside_the_pupil_is_exactly_dark(dtype: DTypeLike) -> None:
    model = small_model(dtype=dtype)
    na = model.geometry.illumination_na
    ring = (na > 0.2) & (na < 0.203)
    assert ring.sum() == 8
    # 72 = 2³·3²: the FFT of ones is exact, so the frames are.
    assert model.object_shape == (72, 72)
    assert not model.intensity(np.zeros(model.x_shape), np.flatnonzero(~model.geometry.bright_field)).any()


def test_sub_bin_directions_equal_whole_bins_of_a_tiled_object(optics: Optics) -> None:
    """Tile the object 4 × 4 on frames 4 times as large: quarter bins become whole bins, and frames are tiled."""
    frame, fine = (10, 12), (38, 40)
    bins = np.array([(0.25, -0.75), (-1.5, 2.25), (3.75, 0.5), (-4.25, -5.0), (6.25, -5.5)])
    na = bins * optics.wavelength / (np.array(frame) * optics.pixel)
    shapes = [(frame, fine), ((40, 48), (152, 160))]
    small, large = (
        ForwardModel(optics, Directions(na), a, object_shape=b, pupil=ABERRATED, dtype=np.float64) for a, b in shapes
    )
    np.testing.assert_allclose(large.geometry.fractions, 0, atol=1e-12)
    np.testing.assert_allclose(np.abs(small.geometry.fractions).max(axis=0), [0.5, 0.5], atol=1e-12)
    x = random_x(small)
    expected = np.tile(small.intensity(x), (1, 4, 4))
    np.testing.assert_allclose(large.intensity(np.tile(x, (4, 4))), expected, atol=1e-12)


@pytest.mark.parametrize("margin", [0, 2])
def test_brute_force(optics: Optics, margin: int) -> None:
    """Plane waves through the object, one by one, summed at the exact frequencies: no FFT, no crop, no whole bins.

    o(r) = Σ_n c_n e^{2πi n·r/L}. LED k adds e^{−2πi k·r}; the lens passes what lies in the pupil.
    """
    model = ForwardModel(
        optics,
        LEDArray.at([(0, 0), (3e-3, -7e-3), (-11e-3, 2e-3), (12e-3, 13e-3)], height=70e-3),
        (10, 12),
        margin=margin,
        object_shape=(46, 51),
        pupil=ABERRATED,
        dtype=np.float64,
    )
    x = random_x(model)
    extent = np.array(model.geometry.grid_shape) * optics.pixel
    orders = [np.arange(-(size // 2), (size + 1) // 2) for size in model.object_shape]

    def waves(axis: int, positions: NDArray[Any], frequencies: NDArray[Any]) -> NDArray[Any]:
        return np.exp(2j * np.pi * np.outer(positions, frequencies / extent[axis]))

    analysis = [
        np.conj(waves(a, np.arange(size) * extent[a] / size, orders[a])).T / size
        for a, size in enumerate(model.object_shape)
    ]
    coefficients = analysis[0] @ np.exp(1j * x) @ analysis[1].T
    camera = [(margin + np.arange(size)) * optics.pixel for size in model.frame_shape]
    for led, na in enumerate(model.illumination.directions()):
        frequency = [orders[a] / extent[a] - na[a] / optics.wavelength for a in range(2)]
        passed = coefficients * ABERRATED.evaluate(frequency[0][:, None], frequency[1][None, :], optics)
        synthesis = [waves(a, camera[a], frequency[a] * extent[a]) for a in range(2)]
        field = synthesis[0] @ passed @ synthesis[1].T
        np.testing.assert_allclose(model.intensity(x, [led])[0], np.abs(field) ** 2, atol=1e-12)
        # The model's field differs by the ramp of the illumination, whole bins of which the crop has taken out.
        ramps = [waves(a, camera[a], model.geometry.fractions[led, a : a + 1]) for a in range(2)]
        np.testing.assert_allclose(model.field(x, [led])[0], field * ramps[0] * ramps[1].T, atol=1e-12)


def test_a_prism_straightens_the_light_of_the_led_on_its_side(optics: Optics) -> None:
    """An LED at +x sends light towards −x; a prism of phase that rises along x sends it straight into the pupil."""
    bins = 12  # beyond the pupil's 7.5 bins: dark field
    na_x = bins * optics.wavelength / (24 * optics.pixel)
    model = ForwardModel(optics, Directions([(0, na_x), (0, -na_x), (na_x, 0)]), (24, 24), dtype=np.float64)
    columns = np.arange(model.object_shape[1])
    prism = np.broadcast_to(2 * np.pi * bins * columns / model.object_shape[1], model.object_shape)
    intensity = model.intensity(prism)
    np.testing.assert_allclose(intensity[0], 1, atol=1e-12)
    np.testing.assert_allclose(intensity[1:], 0, atol=1e-12)


def test_a_moved_object_moves_its_frames() -> None:
    model = small_model("aberrated")
    factor = model.object_shape[0] // model.frame_shape[0]
    assert model.object_shape == (factor * 18, factor * 29)
    x = random_x(model)
    moved = np.roll(x, (2 * factor, -5 * factor), axis=(0, 1))
    np.testing.assert_allclose(model.intensity(moved), np.roll(model.intensity(x), (2, -5), axis=(1, 2)), atol=1e-12)


def test_a_tilted_pupil_moves_the_image(optics: Optics) -> None:
    """Z₃ = 2ρ sin θ, so −c Z₃ = −2π f_y Δ with c = π Δ NA/λ: the image moves by Δ, here two pixels, along +y."""
    coefficient = np.pi * 2 * optics.pixel * optics.cutoff
    plain, tilted = (
        ForwardModel(optics, LEDArray.at([(0, 0)], 70e-3), (24, 24), pupil=pupil, dtype=np.float64)
        for pupil in (Pupil(), Pupil({3: -coefficient}))
    )
    x = random_x(plain)
    np.testing.assert_allclose(tilted.intensity(x)[0], np.roll(plain.intensity(x)[0], 2, axis=0), atol=1e-12)


def test_a_margin_only_hides_pixels(optics: Optics) -> None:
    shown = ForwardModel(optics, LEDS, (18, 20), margin=3, pupil=ABERRATED, dtype=np.float64)
    whole = ForwardModel(optics, LEDS, (24, 26), pupil=ABERRATED, dtype=np.float64)
    assert shown.object_shape == whole.object_shape
    x = random_x(shown)
    np.testing.assert_array_equal(shown.intensity(x), whole.intensity(x)[:, 3:-3, 3:-3])


def test_leds_are_chosen_in_the_order_given() -> None:
    model = small_model()
    x = random_x(model)
    everything, some = model.intensity(x), np.array([5, 0, 48, 5])
    np.testing.assert_array_equal(model.intensity(x, some), everything[some])
    np.testing.assert_array_equal(model.field(x, some), model.field(x)[some])
    assert model.intensity(x, some[:0]).shape == (0, 24, 24)


def test_pupils_asked_for_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    every = small_model("aberrated").pupils
    room = 5 * every(np.array([0]))[0][0].nbytes
    monkeypatch.setattr(pupils, "KEEP_AT_MOST_BYTES", room)
    some = small_model("aberrated").pupils
    evaluated: list[int] = []
    evaluate = some._evaluate

    def counted(sources: np.ndarray) -> np.ndarray:
        evaluated.extend(sources)
        return evaluate(sources)

    monkeypatch.setattr(some, "_evaluate", counted)
    # Four fit, the same again cost nothing, two more begin anew, six are too many to keep.
    for asked in ([3, 1, 30, 7], [7, 3, 7], [30, 8, 9], [9, 8], [0, 1, 2, 3, 4, 5], [8]):
        leds = np.array(asked)
        stack, index = some(leds)
        expected, where = every(leds)
        np.testing.assert_array_equal(stack[index], expected[where])
        assert len(stack) <= 6
    assert evaluated == [1, 3, 7, 30, 8, 9, 30, 0, 1, 2, 3, 4, 5]
    assert some.nbytes == room < every.nbytes


@pytest.mark.parametrize("case", ["aberrated", "array pupil, margin"])
def test_pupils_computed_when_needed_equal_kept_ones(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = small_model(case)
    monkeypatch.setattr(pupils, "KEEP_AT_MOST_BYTES", 0)
    lazy = small_model(case)
    assert lazy.pupils.nbytes == 0 < kept.pupils.nbytes
    x, leds = random_x(kept), [3, 1, 30]
    np.testing.assert_array_equal(lazy.intensity(x, leds), kept.intensity(x, leds))
    np.testing.assert_array_equal(lazy.field(x, leds), kept.field(x, leds))
    fields = random_field((3, *kept.frame_shape))
    np.testing.assert_array_equal(lazy.adjoint(fields, leds), kept.adjoint(fields, leds))


@pytest.mark.parametrize("largest", [1.0, 100.0, 1e4])
def test_single_precision_phase_against_double(largest: float) -> None:
    phase = np.random.default_rng(0).uniform(-largest, largest, (64, 500)).astype(np.float32)
    phase[0, :9] = np.float32(np.pi / 4) * np.arange(-4, 5, dtype=np.float32)  # the borders of the reduction
    out = PhaseObject().transmittance(phase)
    assert out.dtype == np.complex64
    # Against the cosine of the number that single precision holds: nothing is lost for large phases.
    exact = np.exp(1j * phase.astype(np.float64))
    assert np.abs(out - exact).max() < 2e-7


def test_spectrum_and_its_inverse() -> None:
    model = small_model("object of 89 × 101")
    o = random_field(model.object_shape)
    np.testing.assert_allclose(model.spectrum(o), np.fft.fft2(o), atol=1e-10)
    spectrum = model.spectrum(o)
    np.testing.assert_allclose(model.inverse_spectrum(spectrum), o, atol=1e-13)
    assert model.inverse_spectrum(spectrum, out=spectrum) is spectrum
    np.testing.assert_allclose(spectrum, o, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", ["aberrated", "margin", "object of 89 × 101"])
def test_results_do_not_depend_on_the_number_of_threads(case: str, dtype: DTypeLike) -> None:
    model = small_model(case, dtype=dtype)
    x = random_x(model)
    results = []
    for count in (1, 2, 3):
        with threads(count):
            results.append((model.transmittance(x), model.spectrum(model.transmittance(x)), model.intensity(x)))
    for other in results[1:]:
        for mine, theirs in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", ["phase", "complex"])
def test_inputs_are_not_modified(name: Any) -> None:
    model = small_model("margin", object=name)
    x, o = random_x(model), random_field(model.object_shape)
    fields = random_field((len(model), *model.frame_shape))
    inputs = (x, o, fields)
    copies = [array.copy() for array in inputs]
    for array in inputs:
        array.setflags(write=False)
    model.intensity(x)
    model.field(x)
    model.apply(o)
    model.spectrum(o)
    model.inverse_spectrum(o)
    model.adjoint(fields)
    model.pull_back(o, o)
    for array, copy in zip(inputs, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_lists_and_other_precisions_are_accepted() -> None:
    model = small_model(dtype=np.float32)
    x = random_x(model)
    np.testing.assert_array_equal(model.intensity(x.astype(np.float64)), model.intensity(x))
    np.testing.assert_array_equal(model.intensity(np.asfortranarray(x)), model.intensity(x))
    np.testing.assert_array_equal(model.transmittance(np.ones(model.x_shape, int)), model.transmittance(x * 0 + 1))


def test_errors(optics: Optics) -> None:
    model = small_model()
    with pytest.raises(InvalidInputError, match=r"phase object of this model has shape \(72, 72\), got \(72, 71\)"):
        model.intensity(np.zeros((72, 71)))
    with pytest.raises(InvalidInputError, match=r"complex object of this model has shape \(2, 72, 72\)"):
        small_model(object="complex").intensity(np.zeros((72, 72)))
    with pytest.raises(InvalidInputError, match="x must be real"):
        model.intensity(np.ones((72, 72), complex))
    for led in (-1, 49):
        with pytest.raises(InvalidInputError, match=f"must lie in 0…48, got {led}"):
            model.intensity(np.zeros((72, 72)), [led])
    for leds in ([0.5], [True, False], [[0, 1]]):
        with pytest.raises(InvalidInputError, match="whole numbers"):
            model.intensity(np.zeros((72, 72)), leds)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"the object has \(72, 72\) pixels, got \(24, 24\)"):
        model.apply(np.ones((24, 24), complex))
    with pytest.raises(
        InvalidInputError, match=r"2 fields of \(24, 24\) pixels were expected, got shape \(3, 24, 24\)"
    ):
        model.adjoint(np.ones((3, 24, 24), complex), [0, 1])
    for dtype in (np.float16, np.complex64, int):
        with pytest.raises(InvalidInputError, match="dtype must be float32 or float64"):
            ForwardModel(optics, LEDS, (24, 24), dtype=dtype)
    with pytest.raises(InvalidInputError, match=r"object must be 'phase' or 'complex' or 'wave' .*, got 'amplitude'"):
        ForwardModel(optics, LEDS, (24, 24), object="amplitude")  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [12, 24, 37])
def test_leds_matched_to_the_aperture_are_bright_for_the_geometry_and_for_the_pupil_alike(count: int) -> None:
    angles = 2 * np.pi * np.arange(count) / count
    matched = Directions(OPTICS.na * np.stack([np.sin(angles), np.cos(angles)], axis=1))
    model = ForwardModel(OPTICS, matched, (24, 24))
    assert model.geometry.bright_field.all()
    np.testing.assert_allclose(model.intensity(np.zeros(model.x_shape)), 1, atol=1e-5)
    assert "none" in str(model.report())
