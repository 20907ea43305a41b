"""Aberrations are found beside the object, by the true gradient, and a clear pupil stays clear."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fouriscope.calibration import Calibration, PixelPupil, ZernikePupil
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import Contributions, DataFidelity, Minibatch
from fouriscope.forward import ForwardModel
from fouriscope.metrics import field_nrmse
from fouriscope.optics import Directions, Pupil
from fouriscope.solvers import Iterations
from tests.calibration.problems import fidelity_of, model_of, smooth_x, solver_of
from tests.conftest import CASES, OPTICS, noisy_frames, random_x, small_model

ABERRATIONS = {4: -0.6, 5: 0.3, 7: -0.25, 11: 0.2}


def seen_by(calibrator: Any, fidelity: DataFidelity, x: Any, leds: Any) -> None:
    weights = np.linspace(0.5, 1.5, len(leds))
    fidelity.gradient(x, Minibatch(np.asarray(leds), weights, len(leds)), calibrator.watch)


@pytest.mark.parametrize("loss", ["intensity", "amplitude", "poisson"])
@pytest.mark.parametrize("case", ["aberrated", "margin", "object of 89 × 101"])
def test_slopes_are_derivatives(case: str, loss: str) -> None:
    """Against central differences of the fidelity itself, for every coefficient."""
    assert case in CASES
    model = small_model(case, object="complex")
    x, frames = random_x(model), noisy_frames(model)
    leds = np.arange(0, len(model), 3)
    weights = np.linspace(0.5, 1.5, len(leds))
    batch = Minibatch(leds, weights, len(leds))
    calibrator = ZernikePupil((4, 5, 7, 8, 11, 14))
    fidelity = DataFidelity(model, frames, loss=loss)
    fidelity.gradient(x, batch, calibrator.watch)
    step = 1e-5
    for place, mode in enumerate(calibrator.modes):
        values = []
        for sign in (1, -1):
            zernike = dict(model.pupil.zernike) | {mode: model.pupil.zernike.get(mode, 0.0) + sign * step}
            moved = model.revised(pupil=replace(model.pupil, zernike=zernike))
            values.append(DataFidelity(moved, frames, loss=loss).value(x, batch))
        expected = (values[0] - values[1]) / (2 * step)
        assert calibrator._slope[place] == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_pixelwise_slopes_are_derivatives() -> None:
    """On directions that fall on whole bins, where no interpolation between bins comes in."""
    plain = small_model()
    bin_na = np.asarray(plain.geometry.frequency_step) * plain.optics.wavelength
    lights = Directions(np.array([(0, 0), (1, 2), (-3, 1), (2, -2)]) * bin_na)
    model = ForwardModel(OPTICS, lights, (24, 24), object_shape=plain.object_shape, dtype=np.float64)
    x, frames = random_x(model), model.intensity(random_x(model, 1))
    calibrator = PixelPupil()
    fidelity = DataFidelity(model, frames, loss="amplitude")
    fidelity.gradient(x, None, calibrator.watch)
    assert calibrator._product is not None
    slope = calibrator._product / np.prod(model.object_shape)
    for place in ((12, 12), (10, 14), (15, 9)):
        for direction, part in ((1.0, slope.real), (1j, slope.imag)):
            values = []
            for sign in (1, -1):
                array = np.ones((24, 24), np.complex128)
                array[place] = np.exp(sign * 1e-5 * direction)
                values.append(DataFidelity(model.revised(pupil=Pupil(array=array)), frames, loss="amplitude").value(x))
            assert 2 * part[place] == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("loss", ["amplitude", "poisson"])
def test_aberrations_are_found_beside_the_object(loss: str) -> None:
    lens = model_of(pupil=Pupil(ABERRATIONS))
    fidelity = fidelity_of(lens, model_of())
    fidelity = DataFidelity(model_of(), fidelity.frames, loss=loss)
    solver = solver_of(fidelity, ZernikePupil())
    solver.solve(Iterations(80))
    found = solver.fidelity.model.pupil.zernike
    errors = {mode: found[mode] - ABERRATIONS.get(mode, 0.0) for mode in found}
    assert max(map(abs, errors.values())) < 0.03
    without = solver_of(DataFidelity(model_of(), fidelity.frames, loss=loss))
    without.solve(Iterations(80))
    truth = lens.transmittance(smooth_x(lens))
    right, wrong = (field_nrmse(lens.transmittance(one.x), truth) for one in (solver, without))
    assert right < 0.6 * wrong


def test_a_clear_pupil_stays_clear_and_the_object_as_good() -> None:
    lens = model_of()
    truth = lens.transmittance(smooth_x(lens))
    errors = []
    for calibrators in ([], [ZernikePupil()]):
        solver = solver_of(fidelity_of(lens, model_of(), photons=2000), *calibrators)
        solver.solve(Iterations(80))
        errors.append(field_nrmse(lens.transmittance(solver.x), truth))
    assert max(map(abs, solver.fidelity.model.pupil.zernike.values())) < 0.02
    assert errors[1] < 1.05 * errors[0]


def test_pixels_find_what_no_polynomial_describes() -> None:
    """Half of the pupil transmits less: a modulus, which Zernike phases cannot explain."""
    rows = np.arange(32)[:, None] - 16
    array = (np.where(rows > 3, 0.7, 1.0) * np.ones((32, 32))).astype(np.complex128)
    lens = model_of(pupil=Pupil(array=array))
    misfits = {}
    for name, calibrators in {"none": [], "pixels": [PixelPupil(rate=0.7)]}.items():
        solver = solver_of(fidelity_of(lens, model_of()), *calibrators)
        solver.solve(Iterations(150))
        misfits[name] = solver.fidelity.value(solver.x)
    found = solver.fidelity.model.pupil.array
    assert found is not None
    disc = np.hypot(rows, rows.T) < 8
    dimmed, clear = (np.abs(found)[disc & side].mean() for side in (rows > 4, rows < 2))
    assert dimmed / clear == pytest.approx(0.7, abs=0.1)
    assert misfits["pixels"] < 0.3 * misfits["none"]


def test_pixels_keep_their_gauge() -> None:
    calibrator = PixelPupil()
    disc = np.hypot(*np.meshgrid(np.arange(-16, 16), np.arange(-16, 16))) < 10
    y, x = np.indices((32, 32)) / 32
    array = 3 * np.exp(1j * (0.4 + 2 * y - x + 0.1 * np.sin(20 * x)))
    kept = calibrator._in_gauge(array, disc)
    assert np.abs(kept[disc]).mean() == pytest.approx(1.0)
    assert abs(np.angle(kept[disc].sum())) < 1e-12
    gradients = np.gradient(np.angle(kept))
    assert all(abs(one[disc].mean()) < 0.01 for one in gradients), "no tilt is left"
    np.testing.assert_array_equal(kept[~disc], 1)


def test_what_is_watched_can_be_forgotten() -> None:
    calibrator = ZernikePupil()
    fidelity = fidelity_of(model_of(), model_of())
    x = smooth_x(fidelity.model)
    seen_by(calibrator, fidelity, x, [0, 5])
    calibrator.forget()
    assert calibrator.revise(fidelity, x, Minibatch(np.array([0, 5]), np.ones(2), 2)) is None


@pytest.mark.parametrize("modes", [(), (2, 4), (4, 4)])
def test_modes_that_cannot_be_told(modes: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInputError, match="Noll indices from 4"):
        ZernikePupil(modes)


def test_no_calibration_twice() -> None:
    with pytest.raises(InvalidInputError, match="once"):
        Calibration([ZernikePupil(), ZernikePupil()])


def test_an_observer_sees_every_led_once() -> None:
    fidelity = fidelity_of(model_of(), model_of())
    seen: list[int] = []

    def observe(part: Contributions) -> None:
        seen.extend(part.leds.tolist())
        assert part.boxes.shape == (len(part.leds), *part.model.pupils.box_shape)

    fidelity.gradient(smooth_x(fidelity.model), None, observe)
    assert seen == list(range(81))


def test_a_smooth_pupil_follows_less_of_the_noise() -> None:
    """A clear lens, few photons: what is found beside 1 is noise, and the smoothed pupil has less of it."""
    found = {}
    disc = np.hypot(*np.meshgrid(np.arange(-16, 16), np.arange(-16, 16))) < 8
    for smooth in (0.0, 0.15):
        solver = solver_of(fidelity_of(model_of(), model_of(), photons=200), PixelPupil(rate=0.7, smooth=smooth))
        solver.solve(Iterations(60))
        array = solver.fidelity.model.pupil.array
        assert array is not None
        found[smooth] = float(np.abs(array - 1)[disc].mean())
    assert found[0.15] < 0.6 * found[0.0]
