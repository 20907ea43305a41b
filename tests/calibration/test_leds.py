"""Gains and positions of LEDs are found, stay within their bounds, and leave a perfect array alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fouriscope as fs
from fouriscope.acquisition import Acquisition, ArrayFrames
from fouriscope.calibration import Calibration, Calibrator, LEDGains, LEDPositions
from fouriscope.calibration.gains import contrasts
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import AllLEDs, DataFidelity
from fouriscope.metrics import field_nrmse
from fouriscope.optics import Adjusted
from fouriscope.solvers import EPRY, Iterations
from tests.calibration.problems import LEDS, fidelity_of, model_of, smooth_x, solver_of
from tests.conftest import OPTICS


def bin_na() -> float:
    model = model_of()
    return model.geometry.frequency_step[0] * model.optics.wavelength


def jittered() -> Adjusted:
    """Each LED off by some 0.3 bins, but for those whose direct light would change sides."""
    shifts = np.random.default_rng(2).normal(0.0, 0.3, (81, 2))
    nominal = LEDS.directions()
    near = np.abs(np.hypot(nominal[:, 0], nominal[:, 1]) - 0.2) < 1.5 * bin_na()
    shifts[near] = 0
    return Adjusted(LEDS, (shifts - shifts.mean(axis=0)) * bin_na())


def test_gains_are_found() -> None:
    gains = np.exp(np.random.default_rng(0).normal(0.0, 0.2, 81))
    gains /= np.exp(np.log(gains[model_of().geometry.bright_field]).mean())
    solver = solver_of(fidelity_of(model_of(gains=gains), model_of()), LEDGains(every=1))
    solver.solve(Iterations(160))
    found = solver.fidelity.model.gains
    assert found is not None
    bright = solver.fidelity.model.geometry.bright_field
    assert np.log(found[bright]).mean() == pytest.approx(0.0, abs=1e-9), "the gauge"
    assert np.abs(np.log(found / gains))[bright].max() < 0.02
    dark = np.sqrt(np.mean(np.log(np.stack([found, np.ones(81)]) / gains)[:, ~bright] ** 2, axis=1))
    assert dark[0] < 0.6 * dark[1], "nearer than no calibration"


def test_gains_stay_within_their_bound() -> None:
    gains = np.ones(81)
    gains[40] = 5.0  # the LED on the axis
    solver = solver_of(fidelity_of(model_of(gains=gains), model_of()), LEDGains(every=1, start=1, bound=1.5))
    solver.solve(Iterations(40))
    found = solver.fidelity.model.gains
    assert found is not None
    assert found.max() <= 1.5 + 1e-9
    assert found.min() >= 1 / 1.5 - 1e-9


def test_dark_gains_do_not_grow_with_light_that_the_model_does_not_explain() -> None:
    """Stray light makes dark frames brighter. A larger gain with a smaller object would explain that, too."""
    lens = model_of()
    bright = lens.geometry.bright_field
    frames = np.array(lens.intensity(smooth_x(lens)), np.float64)
    frames[~bright] += 0.2 * frames[~bright].mean()
    solver = solver_of(DataFidelity(lens, ArrayFrames(frames), loss="amplitude"), LEDGains(every=1, start=1))
    solver.solve(Iterations(120))
    found = solver.fidelity.model.gains
    assert found is not None
    moved = np.log(found[~bright])
    assert abs(float(moved.mean())) < 0.15
    assert np.abs(moved).max() < 0.25
    solver = solver_of(
        DataFidelity(lens, ArrayFrames(frames), loss="amplitude"), LEDGains(every=1, start=1, by="brightness")
    )
    solver.solve(Iterations(120))
    by_brightness = solver.fidelity.model.gains
    assert by_brightness is not None
    assert np.log(by_brightness[~bright]).max() > 0.5


def test_a_constant_does_not_change_the_contrast_and_nothing_in_common_moves_no_gain() -> None:
    lens = model_of()
    x = smooth_x(lens)
    leds = np.flatnonzero(~lens.geometry.bright_field)[:3]
    predicted = np.asarray(lens.intensity(x), np.float64)

    def contrast_of(frames: np.ndarray) -> np.ndarray:
        return contrasts(DataFidelity(lens, ArrayFrames(frames), loss="amplitude"), x, leds)

    np.testing.assert_allclose(contrast_of(2 * predicted), np.log(2), rtol=1e-5)
    np.testing.assert_allclose(contrast_of(2 * predicted + 0.5), np.log(2), rtol=1e-4)
    assert np.all(contrast_of(np.full_like(predicted, 0.3)) == 0)
    assert np.all(contrast_of(predicted.max() - predicted) == 0)


def test_positions_of_bright_field_leds_are_found() -> None:
    lens = model_of(illumination=jittered())
    solver = solver_of(fidelity_of(lens, model_of()), LEDPositions(every=1))
    solver.solve(Iterations(200))
    bright = lens.geometry.bright_field

    def error(model: object) -> float:
        off = (model.geometry.na - lens.geometry.na)[bright] / bin_na()  # type: ignore[attr-defined]
        return float(np.sqrt(np.mean((off - off.mean(axis=0)) ** 2)))

    assert error(solver.fidelity.model) < 0.5 * error(model_of())


def test_positions_keep_gauge_and_bound() -> None:
    solver = solver_of(
        fidelity_of(model_of(illumination=jittered()), model_of()), LEDPositions(every=1, start=1, bound=0.1)
    )
    solver.solve(Iterations(30))
    lights = solver.fidelity.model.illumination
    assert isinstance(lights, Adjusted)
    assert np.abs(lights.shifts).max() <= 0.1 * bin_na() * (1 + 1e-9)
    assert np.abs(lights.shifts.mean(axis=0)).max() < 0.02 * bin_na()


@pytest.mark.parametrize("calibrator", [LEDGains(), LEDPositions()], ids=lambda one: one.name)
def test_a_perfect_array_is_not_made_worse(calibrator: Calibrator) -> None:
    lens = model_of()
    truth = lens.transmittance(smooth_x(lens))
    errors = []
    for calibrators in ([], [calibrator]):
        solver = solver_of(fidelity_of(lens, model_of(), photons=2000), *calibrators)
        solver.solve(Iterations(100))
        errors.append(field_nrmse(lens.transmittance(solver.x), truth))
    assert errors[1] < 1.08 * errors[0]


def test_epry_can_be_calibrated_too() -> None:
    gains = np.ones(81)
    gains[40] = 1.4
    fidelity = fidelity_of(model_of(gains=gains), model_of())
    solver = EPRY(fidelity, AllLEDs(np.arange(81)), pupil_step=0.5)
    solver.calibration = Calibration([LEDGains(every=1, start=3), LEDPositions(every=2)])
    solver.solve(Iterations(20))
    found = solver.fidelity.model.gains
    assert found is not None
    assert found[40] == found.max()
    assert found[40] == pytest.approx(1.4, rel=0.1)
    assert solver.pupil.shape == (32, 32)


def test_wrong_parameters() -> None:
    with pytest.raises(InvalidInputError, match="bound above 1"):
        LEDGains(bound=0.5)
    with pytest.raises(InvalidInputError, match="by must be"):
        LEDGains(by="colour")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="every"):
        LEDPositions(every=0)


def test_epry_beside_a_phase_object_is_refused() -> None:
    model = model_of(object="phase")
    fidelity = DataFidelity(model, model.intensity(smooth_x(model_of())[0]))
    solver = EPRY(fidelity, AllLEDs(np.arange(81)))
    solver.calibration = Calibration([LEDGains()])
    with pytest.raises(InvalidInputError, match="object='complex'"):
        solver.step()


def test_room_for_moving_leds_is_asked_for_at_the_start() -> None:
    tight = model_of(object_shape=(43, 43))
    data = Acquisition(OPTICS, LEDS, ArrayFrames(tight.intensity(smooth_x(tight))), periodic=True)
    options: dict[str, Any] = {
        "object": fs.settings.Object(model="complex", shape=(43, 43)),
        "prior": None,
        "iterations": 1,
    }
    fs.reconstruct(data, **options)
    with pytest.raises(InvalidInputError, match=r"calibration\.leds needs room"):
        fs.reconstruct(data, calibrate="leds", **options)
