"""What may be asked of every solver, EPRY like any other, so that nobody has to know which one it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fouriscope.calibration import Calibration, LEDGains, ZernikePupil
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import AllLEDs, DataFidelity
from fouriscope.forward import ForwardModel
from fouriscope.optics import Pupil
from fouriscope.priors import TV, NoPrior, Prior
from fouriscope.solvers import ADMM, EPRY, RED, Iterations, PnP, Solver, Spectral
from tests.conftest import LEDS, OPTICS
from tests.solvers.problems import noisy, shapes

SOLVERS = ("PnP", "ADMM", "RED", "Spectral", "EPRY", "EPRY, pupil recovered")
LENS = Pupil({5: 0.8})


def make(name: str, *, known: Pupil | None = None, prior: type[Prior] = NoPrior, seed: int = 0) -> Solver:
    """A solver of a wave seen through :data:`LENS`, of which the model knows ``known``."""
    lens = ForwardModel(OPTICS, LEDS, (24, 24), pupil=LENS, object="wave")
    wave = np.exp(1j * shapes(lens.object_shape, 0.3))
    frames = noisy(lens, lens.object.of_transmittance(wave), sigma=1e-3).frames
    model = ForwardModel(OPTICS, LEDS, (24, 24), pupil=LENS if known is None else known, object="wave")
    fidelity, leds = DataFidelity(model, frames, loss="amplitude"), AllLEDs(np.arange(len(model)))
    if name.startswith("EPRY"):
        return EPRY(fidelity, leds, pupil_step=1.0 if "recovered" in name else 0.0, seed=seed)
    method: Any = {"PnP": PnP, "ADMM": ADMM, "RED": RED, "Spectral": Spectral}[name]
    solver: Solver = method(fidelity, leds, [prior(), prior()], seed=seed)
    return solver


def misfits(solver: Solver) -> Any:
    """Of all frames, as the solver predicts them."""
    asked = DataFidelity(solver.model, solver.fidelity.frames, loss=solver.fidelity.loss)
    return asked.misfits(solver.x)


@pytest.mark.parametrize("name", SOLVERS)
class TestEverySolver:
    def test_its_model_and_its_estimate_predict_the_frames(self, name: str) -> None:
        solver = make(name)
        before = misfits(solver).mean()
        solver.solve(Iterations(15))
        assert misfits(solver).mean() < 0.5 * before
        assert solver.model.x_shape == solver.x.shape

    def test_fidelity_and_sampler_are_those_it_was_given(self, name: str) -> None:
        solver = make(name)
        assert len(solver.fidelity) == len(solver.sampler.population) == len(LEDS)
        assert solver.calibration is None

    def test_a_pupil_is_recovered_only_where_one_was_looked_for(self, name: str) -> None:
        solver = make(name)
        solver.solve(Iterations(2))
        found = solver.recovered_pupil
        assert (found is not None) == ("recovered" in name)
        assert (solver.model is solver.fidelity.model) == (found is None)
        if found is not None:
            assert found.shape == solver.fidelity.model.geometry.grid_shape

    def test_there_is_a_strength_for_each_image(self, name: str) -> None:
        solver = make(name, prior=TV)
        solver.solve(Iterations(12))  # from a flat start the prior of "spectral" waits for ten
        assert len(solver.strengths) == 2
        assert all(strength > 0 for strength in solver.strengths) == (not name.startswith("EPRY"))
        assert (solver.denoiser_weight > 0) == (name in ("RED", "Spectral"))
        assert solver.balance == (name == "Spectral")

    @pytest.mark.parametrize("calibrated", [False, True])
    def test_a_state_tells_another_solver_what_was_found(self, name: str, calibrated: bool) -> None:
        """Whatever its seed and its priors are, it then predicts the very same frames."""
        solver, other = make(name, prior=TV), make(name, seed=7)
        for one in (solver, other):
            one.calibration = Calibration([LEDGains(every=1, start=1)]) if calibrated else None
        solver.solve(Iterations(6))
        other.load_estimate(solver.state())
        np.testing.assert_array_equal(other.x, solver.x)
        np.testing.assert_array_equal(misfits(other), misfits(solver))
        assert (other.model.gains is not None) == calibrated

    def test_a_state_of_another_size_is_refused(self, name: str) -> None:
        state = make(name).state()
        arrays = {key: array[..., :-1] for key, array in state.arrays.items()}
        with pytest.raises(InvalidInputError):
            make(name).load_estimate(type(state)(arrays, state.values))


@pytest.mark.parametrize("known", [Pupil(), Pupil({6: 0.2}), Pupil(array=np.exp(0.2j * shapes((24, 24), 1.0)))])
def test_epry_predicts_with_its_correction_times_what_was_known(known: Pupil) -> None:
    solver = make("EPRY, pupil recovered", known=known)
    solver.solve(Iterations(40))
    without = solver.fidelity.misfits(solver.x)
    assert misfits(solver).mean() < 0.6 * without.mean()
    found = solver.recovered_pupil
    assert found is not None
    np.testing.assert_allclose(solver.model.pupil_on_grid(), found, atol=1e-5)
    assert solver.fidelity.model.pupil is known


def test_a_pupil_that_a_calibration_found_is_recovered() -> None:
    solver = make("PnP", known=Pupil())
    solver.calibration = Calibration([ZernikePupil()])
    solver.solve(Iterations(10))
    np.testing.assert_array_equal(solver.recovered_pupil, solver.fidelity.model.pupil_on_grid())
    assert solver.model.pupil.zernike[5] != 0


@pytest.mark.parametrize("name", SOLVERS)
def test_a_trial_goes_on_with_the_microscope_of_another(name: str) -> None:
    first, trial = make(name, known=Pupil()), make(name, known=Pupil())
    for one in (first, trial):
        one.calibration = Calibration([LEDGains(every=1, start=1)])
    first.solve(Iterations(12))
    trial.settle_like(first)
    assert trial.fidelity.model is first.fidelity.model
    np.testing.assert_array_equal(trial.fidelity.weights, first.fidelity.weights)
