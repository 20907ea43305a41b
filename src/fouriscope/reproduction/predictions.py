"""How well a reconstruction predicts frames that it has not seen: the one score that needs no truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.calibration.gains import gain_ratios
from fouriscope.fidelity import DataFidelity
from fouriscope.solvers import Solver


class Prediction(NamedTuple):
    """Misfit of each held-out frame, in the order of the LEDs: as predicted, and with its brightness fitted."""

    plain: NDArray[np.float64]
    fitted: NDArray[np.float64]


def predict(solver: Solver, acquisition: Acquisition, held_out: NDArray[np.int64]) -> Prediction:
    """Misfits of ``held_out`` frames under the object, the pupil and the LED positions that ``solver`` found.

    The brightness of an LED whose frame was never seen is unknown. It is 1 in the plain prediction, as bright as the
    bright field in its mean; the fitted one multiplies each frame by the one number that suits it best. Where gains are
    calibrated, the second is what compares methods: the first would mostly measure how far an LED is from the mean.
    """
    model = solver.model
    gains = np.ones(len(model)) if model.gains is None else np.array(model.gains, np.float64)
    gains[held_out] = 1  # whatever the gauge of the others has made of them
    fidelity = DataFidelity.of(acquisition, model.revised(gains=gains), loss=solver.fidelity.loss)
    plain = fidelity.misfits(solver.x, held_out)
    gains[held_out] = gain_ratios(fidelity, solver.x, held_out)
    fidelity.use(model.revised(gains=gains))
    return Prediction(plain, fidelity.misfits(solver.x, held_out))
