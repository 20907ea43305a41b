"""Whether the sample is a phase alone: what that leaves of bright-field frames, and the light that it hides."""

from __future__ import annotations

import numpy as np

from fouriscope.solvers import Descent, Record, Solver

# The object is looked at every so many iterations.
LOOK = 30
# Frames that are explained leave their noise: 1.0 to 1.1 times its variance, after a road that may be long. A sample
# that absorbs, or a pupil that is another one, leaves 25 times as much.
UNEXPLAINED = 2.0
# While residuals fall to less than this share from look to look, the object is still being found.
FALLING = 0.5
# A phase takes no light away. Where the sample absorbs, it may still explain the frames, by detail that sends light
# where no LED looks. Phases of up to 9 rad in simulations send 0.4 % there; an absorption of 2 % looks like 4 %.
HIDDEN = 0.02
# Variance of the least noise, in units of the bright field: frames without noise need not be explained to the last.
LEAST_NOISE = 0.01**2
# Bright-field frames that are looked at.
FRAMES = 16
REASON = "the sample is no phase alone"


class Doubt:
    """A callback that ends a run whose object is a phase, if that is the wrong kind of object.

    Residuals of the run are compared with the noise of the camera, which the run has measured to find its loss, and the
    share of its light that no LED sees with :data:`HIDDEN`. A phase of many radians is found late, so the run goes on
    while residuals fall.

    Attributes
    ----------
    unexplained
        Whether the run was ended.
    """

    def __init__(self) -> None:
        self.unexplained = False
        self._before = np.inf

    def __call__(self, solver: Solver, record: Record) -> str | None:
        if record.iteration % LOOK:
            return None
        left, before = residuals_beside_noise(solver), self._before
        self._before = left
        if left > UNEXPLAINED:
            self.unexplained = left > FALLING * before
        else:
            self.unexplained = hidden_light(solver) > HIDDEN
        return REASON if self.unexplained else None


def hidden_light(solver: Solver) -> float:
    """The share of an estimate's light that lies outside the band of the LEDs."""
    model = solver.fidelity.model
    light = np.abs(model.spectrum(model.transmittance(solver.x))) ** 2
    return float(light[model.coverage() == 0].sum() / light.sum())


def residuals_beside_noise(solver: Solver) -> float:
    """The variance of what a solver's estimate leaves of bright-field frames, in units of their noise: the median.

    0 if the noise has not been measured.
    """
    road = solver.journey.road if isinstance(solver, Descent) else None
    fidelity = solver.fidelity
    bright = np.flatnonzero(fidelity.model.geometry.bright_field & (fidelity.weights > 0))
    if road is None or not len(bright):
        return 0.0
    chosen = bright[np.unique(np.linspace(0, len(bright) - 1, FRAMES).round().astype(int))]
    found = []
    for led, predicted in zip(chosen, fidelity.model.intensity(solver.x, chosen).astype(np.float64), strict=True):
        counted = fidelity.mask_of(int(led))
        if np.any(counted):
            frame = np.asarray(fidelity.frames.frame(int(led)), np.float64)
            noise = max(float(np.mean(road.noise.variance(predicted[counted]))), LEAST_NOISE)
            found.append(float(np.mean((predicted - frame)[counted] ** 2)) / noise)
    return float(np.median(found)) if found else 0.0
