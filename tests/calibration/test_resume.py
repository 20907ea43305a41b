"""A calibrated run that is continued from its state gives the same numbers as one that was never interrupted."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from fouriscope.calibration import Calibration, Calibrator, LEDGains, LEDPositions, PixelPupil, ZernikePupil
from fouriscope.fidelity import AllLEDs, DataFidelity, StratifiedSampler
from fouriscope.optics import Pupil
from fouriscope.priors import TV
from fouriscope.solvers import EPRY, Iterations, Solver, SolverState, Spectral
from tests.calibration.problems import fidelity_of, model_of, solver_of


def all_kinds() -> list[Calibrator]:
    return [ZernikePupil(), PixelPupil(start=0.5), LEDGains(every=1, start=1), LEDPositions(every=2, start=1)]


def fresh(method: str) -> Solver:
    lens = model_of(pupil=Pupil({5: 0.4}))
    fidelity: DataFidelity = fidelity_of(lens, model_of(object="wave" if method.startswith("spectral") else "complex"))
    if method == "pnp":
        return solver_of(fidelity, *all_kinds())
    if method.startswith("spectral"):
        sampler = StratifiedSampler(np.arange(81), 20, fidelity.model.geometry.bright_field)
        spectral = Spectral(fidelity, sampler, [TV(), TV()], start="epry")
        # Some revise the model after each minibatch, others once in a while: the coverage follows either.
        spectral.calibration = Calibration([LEDGains(every=1, start=1)] if "gains" in method else all_kinds())
        return spectral
    solver = EPRY(fidelity, AllLEDs(np.arange(81)), pupil_step=0.5)
    solver.calibration = Calibration([LEDGains(every=1, start=1), LEDPositions(every=2, start=1)])
    return solver


@pytest.mark.parametrize("interrupted", [5, 7])
@pytest.mark.parametrize("method", ["pnp", "epry", "spectral", "spectral, gains alone"])
def test_going_on_is_exact(method: str, interrupted: int) -> None:
    whole = fresh(method)
    whole.solve(Iterations(12))
    begun = fresh(method)
    begun.solve(Iterations(interrupted))
    state = begun.state()
    state = SolverState({name: array.copy() for name, array in state.arrays.items()}, copy.deepcopy(state.values))
    continued = fresh(method)
    continued.load_state(state)
    continued.history = begun.history
    continued.solve(Iterations(12))
    np.testing.assert_array_equal(continued.x, whole.x)
    before, after = whole.fidelity.model, continued.fidelity.model
    np.testing.assert_array_equal(before.geometry.na, after.geometry.na)
    np.testing.assert_array_equal(before.gains, after.gains)
    assert before.pupil.zernike == after.pupil.zernike
