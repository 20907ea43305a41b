"""Curved light: directions that change over a frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.fidelity import AllLEDs
from fouriscope.field.patchwork import PatchworkModel
from fouriscope.solvers import EPRY, Iterations

OPTICS = fs.Optics(wavelength=532e-9, na=0.1, magnification=2, camera_pixel=3.45e-6)
LEDS = fs.LEDArray.square(5, pitch=4e-3, height=80e-3)
CURVED = replace(OPTICS, wave_curvature=1 / 80e-3)


def model_of(optics: fs.Optics, kind: str = "wave", dtype: type = np.float64) -> fs.ForwardModel:
    return fs.ForwardModel(optics, LEDS, (48, 40), object=kind, margin=16, dtype=dtype)  # type: ignore[arg-type]


def some_x(model: fs.ForwardModel) -> np.ndarray:
    return np.asarray(np.random.default_rng(0).normal(0, 0.2, model.x_shape))


@pytest.mark.parametrize("kind", ["phase", "complex", "wave"])
def test_frames_are_those_of_the_sample_times_a_bowl(kind: str) -> None:
    plain, curved = model_of(OPTICS, kind), model_of(CURVED, kind)
    x = some_x(curved)
    wave = curved.transmittance(x)
    np.testing.assert_allclose(curved.intensity(x), np.abs(plain.apply(wave)) ** 2, atol=1e-10)
    clear, sample = curved.object.clear, plain.transmittance(x)
    assert clear is not None
    if kind == "wave":  # its unknowns are what is added to the clear wave
        np.testing.assert_allclose(wave, sample - 1 + clear)
    else:
        np.testing.assert_allclose(wave, sample * clear)
    np.testing.assert_allclose(curved.sample(x), wave * clear.conj() / np.abs(clear))
    np.testing.assert_allclose(np.abs(curved.sample(x)), np.abs(wave))
    if kind == "complex":
        phase, _ = curved.object.phase_and_absorption(x)
        np.testing.assert_array_equal(phase, x[0])


@pytest.mark.parametrize("kind", ["phase", "complex", "wave"])
def test_the_gradient_is_that_of_the_misfit(kind: str) -> None:
    model = model_of(CURVED, kind)
    x = some_x(model)
    fidelity = fs.DataFidelity(model, model.intensity(0.5 * x), loss="amplitude")
    direction = np.random.default_rng(1).normal(size=x.shape)
    step = 1e-5

    def misfit(at: np.ndarray) -> float:
        return fidelity.gradient(at, AllLEDs(np.arange(len(model))).draw(np.random.default_rng(0)))[0]

    gradient = fidelity.gradient(x, AllLEDs(np.arange(len(model))).draw(np.random.default_rng(0)))[1]
    slope = (misfit(x + step * direction) - misfit(x - step * direction)) / (2 * step)
    assert float(np.sum(gradient * direction)) == pytest.approx(slope, rel=1e-5)


def test_an_led_at_the_edge_lights_one_side_of_the_frame() -> None:
    frame = 256
    optics = replace(OPTICS, wave_curvature=4 / 80e-3)
    leds = fs.Directions([(0.0, 0.1)])  # on the edge, seen from the middle
    model = fs.ForwardModel(optics, leds, (frame, frame), object="wave", margin=32)
    image = model.intensity(np.zeros(model.x_shape, np.float32))[0]
    # Its direction is k − c r: to the right it is nearer to the axis.
    assert image[:, 160:].mean() == pytest.approx(1, abs=0.1)
    assert image[:, :96].mean() < 0.1
    mirrored = replace(optics, wave_curvature=-4 / 80e-3)
    other = fs.ForwardModel(mirrored, leds, (frame, frame), object="wave", margin=32)
    assert other.intensity(np.zeros(model.x_shape, np.float32))[0][:, :96].mean() == pytest.approx(1, abs=0.1)


def test_a_clear_sample_is_flat() -> None:
    model = model_of(CURVED, dtype=np.float32)
    nothing = np.zeros(model.x_shape, np.float32)
    phase, absorption = model.object.phase_and_absorption(nothing)
    window = model.geometry.object_window
    assert absorption is not None
    assert np.abs(phase[window]).max() < 1e-5
    assert np.abs(absorption[window]).max() < 0.01
    fidelity = fs.DataFidelity(model, model.intensity(nothing), loss="amplitude")
    solver = EPRY(fidelity, AllLEDs(np.arange(len(model))))
    assert solver.solve(Iterations(2)).last.misfit < 1e-3
    assert np.abs(solver.x[0][window]).max() < 0.01


def test_without_a_curvature_nothing_changes() -> None:
    assert model_of(OPTICS).object.clear is None
    assert model_of(replace(OPTICS, wave_curvature=0.0)).object.clear is None


@pytest.mark.parametrize("curvature", [np.nan, np.inf, 1e7, "14"])
def test_what_is_no_curvature_is_refused(curvature: object) -> None:
    with pytest.raises(fs.errors.InvalidInputError, match="wave_curvature"):
        replace(OPTICS, wave_curvature=curvature)  # type: ignore[arg-type]


@pytest.mark.slow
def test_directions_that_change_over_a_field_are_explained() -> None:
    """A model that knows nothing of a bowl (patches, each with the angles of its place) tells which sign is right."""
    leds = fs.LEDArray.square(9, pitch=3e-3, height=50e-3)
    field = PatchworkModel(OPTICS, leds, (96, 96), pitch=16)
    phase = np.zeros(field.object_shape, np.float32)
    rng = np.random.default_rng(0)
    y, x = (np.arange(size) for size in phase.shape)
    for _ in range(60):
        middle = rng.uniform(0, phase.shape[0], 2)
        phase += 0.5 * (np.hypot(y[:, None] - middle[0], x - middle[1]) < rng.uniform(8, 25))
    frames = np.asarray(field.intensity(phase))
    misfits = {}
    for curvature in (-1 / leds.height, 0.0, 1 / leds.height):
        data = fs.Acquisition(replace(OPTICS, wave_curvature=curvature), leds, frames)
        method = fs.settings.Spectral(strength_factor=1.0, long_steps=True)
        result = fs.reconstruct(data, method=method, prior=None, align=(), calibrate=(), iterations=40)
        misfits[round(curvature * leds.height)] = result.history.last.misfit
    assert misfits[1] < 0.9 * misfits[0]
    assert misfits[1] < 0.9 * misfits[-1]
