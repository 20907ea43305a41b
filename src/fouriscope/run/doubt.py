"""Whether the sample of a simulation is a phase alone: when that is asked, how a run sees it, and what is done if not.

What is clear at once, a run need not find out: :mod:`fouriscope.run.first_look`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.run.recipe import Document, completed
from fouriscope.settings import RunConfig
from fouriscope.solvers import Descent, Record, Solver, StopRule

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
AS_A_WAVE = "reconstructing a wave, with an unknown pupil"
BEGINS_AGAIN = f"{REASON}: beginning again with a wave and an unknown pupil"
# Keys that do not depend on what kind of object it is, of sections in which others do.
OPEN = {"object": {"shape", "margin", "precision"}, "solver": {"batch", "sampler", "seed"}}
CLOSING = ("calibration", "prior", "prior_absorption")


def leaves_object_open(said: Document) -> bool:
    """Whether nothing is said that depends on what kind of object it is.

    Parameters
    ----------
    said
        What the user has set, by the sections and keys of a configuration.

    Examples
    --------
    >>> leaves_object_open({"object": {"margin": 0}, "solver": {"seed": 1}, "stop": {"iterations": 90}})
    True
    >>> leaves_object_open({"object": {"margin": 0}, "prior": {"name": "tv"}})
    False
    """
    return not any(said.get(section) for section in CLOSING) and all(
        set(said.get(section, {})) <= keys for section, keys in OPEN.items()
    )


def repeats_itself(config: RunConfig) -> bool:
    """Whether a file describes a simulated field that repeats itself: no margin, and no kind of object.

    `fouriscope simulate` writes such files. `fouriscope import` names the object, and measured frames need a margin.
    """
    section = config.object
    return section.margin == 0 and "model" not in section.model_fields_set and config.frames.roi is None


def may_be_doubted(config: RunConfig) -> bool:
    """Whether a file describes a simulation, and leaves open what its object is."""
    return repeats_itself(config) and leaves_object_open(config.model_dump(mode="json", exclude_unset=True))


def as_a_wave(said: Document, truth: NDArray[Any] | None) -> Document:
    """The sections of a configuration for frames that a phase does not explain; what is said is kept.

    A known ``truth`` tells the SNR only on its own grid.
    """
    shape = {} if truth is None else {"shape": list(truth.shape[-2:])}
    return completed(said | {"object": shape | said.get("object", {})}, measured=False, unexplained=True)


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

    def asks_again(self, solver: Solver, rule: StopRule) -> bool:
        """Whether the run of ``solver``, which ``rule`` or this has ended, is to begin again. Another callback that
        ended it at the same time, such as an interrupt, has the last word."""
        return self.unexplained and solver.stop_reason in (REASON, rule(solver.history))


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
