"""Where a solver is on its road: which loss an iteration has, how strong its prior is, and how long its steps are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.fidelity import DataFidelity
from fouriscope.solvers.denoising import Denoising
from fouriscope.solvers.road import Road

# The step over minibatches begins to fade after the road, or after this many steps without one. It is halved after this
# many more.
FEWEST_BEFORE_FADING, STEPS_TO_FADE = 120, 50.0
# Automatic strengths no longer change after the road, and after at least this many steps.
FEWEST_BEFORE_FREEZING = 120


class Journey:
    """Where a solver is on its :class:`~fouriscope.solvers.road.Road`. Without a road, only the steps fade in the end.

    Attributes
    ----------
    road
        None until the journey begins, and for a solver that uses the loss of its fidelity from the first iteration.
    steps
        Gradients that were taken.
    misfit_factor
        The factor that brings the misfit of this iteration to units of the last loss.
    """

    def __init__(self, fidelity: DataFidelity, denoise: Denoising, *, wanted: bool) -> None:
        self.fidelity, self.denoise, self.wanted = fidelity, denoise, wanted
        self.road: Road | None = None
        self.steps = 0
        self.misfit_factor = 1.0

    def begin(self, leds: NDArray[np.int64]) -> None:
        """Find the road from the frames of ``leds``, and go to its first step."""
        if self.wanted:
            self.road, self.steps, self.denoise.frozen = Road.of(self.fidelity, leds), 0, None
        self.look_ahead()

    def look_ahead(self) -> None:
        """Use the last loss for a moment: the step and the temperature of the noise are measured with it."""
        if self.road is not None:
            self.fidelity.loss = self.road.last_loss

    def go_on(self) -> None:
        """Use the loss of this iteration, and the strength that is in balance with it.

        At the end of the road, the image has its structure. A strength that kept following the image would grow without
        limit with few photons: the smoother the image, the stronger the prior.
        """
        if self.road is None:
            return
        if self.denoise.frozen is None and self.steps >= max(self.road.length, FEWEST_BEFORE_FREEZING):
            self.denoise.freeze()
        self.fidelity.loss = self.road.loss(self.steps)
        self.denoise.factor = self.road.strength_factor(self.steps)
        self.misfit_factor = self.road.misfit_factor(self.steps)

    @property
    def fading(self) -> float:
        """What a step over minibatches is divided by, so that the iterates average their noise."""
        behind = self.steps - (FEWEST_BEFORE_FADING if self.road is None else self.road.length)
        return 1 + max(behind, 0.0) / STEPS_TO_FADE

    def follow(self, other: Journey) -> None:
        """Go to the same place as ``other``."""
        self.road, self.steps, self.denoise.frozen = other.road, other.steps, other.denoise.frozen
        self.fidelity.loss = other.fidelity.loss

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        return {} if self.road is None else {"road.brightness": self.road.brightness}

    def state_values(self) -> dict[str, Any]:
        road = None if self.road is None else self.road.values()
        return {"gradients": self.steps, "frozen": self.denoise.frozen, "road": road}

    def load(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Load what the state of a solver kept. States of earlier versions have no road."""
        self.steps, self.denoise.frozen = values.get("gradients", 0), values.get("frozen")
        if values.get("road") is not None:
            self.road = Road.loaded(values["road"], arrays["road.brightness"])
            self.fidelity.loss = self.road.loss(self.steps)
