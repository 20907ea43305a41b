"""Where a solver is on its road: which loss an iteration has, how strong its prior is, and how long its steps are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Frames
from fouriscope.fidelity import DataFidelity
from fouriscope.fidelity.black_level import LoweredFrames, noise_cut_off
from fouriscope.fidelity.camera_noise import spread_evenly
from fouriscope.forward.objects import RealArray
from fouriscope.solvers.denoising import Denoising
from fouriscope.solvers.pace import Pace
from fouriscope.solvers.road import Road

# The road is behind after this many steps at the earliest. Then automatic strengths no longer change. A strength
# follows the image before denoising, noise of the minibatch included, so steps must not fade before that.
FEWEST = 120
# A flat object explains nothing. If the misfit of so many iterations behind the road is this much above that of a flat
# start, the estimate goes astray: where a phase has many turns, the curvature is larger than at the start.
LOOK, ASTRAY = 20, 5.0
# When the estimate no longer travels, the step over minibatches fades. It is halved after this many more.
STEPS_TO_FADE = 50.0


class Journey:
    """Where a solver is on its :class:`~fouriscope.solvers.road.Road`. Without a road, only the steps fade in the end.

    Attributes
    ----------
    road
        None until the journey begins, and for a solver that uses the loss of its fidelity from the first iteration.
    steps
        Gradients that were taken.
    arrived
        How many it had taken when its estimate had arrived, or None.
    mean
        The mean of the estimates since then, or None.
    misfit_factor
        The factor that brings the misfit of this iteration to units of the last loss.
    """

    def __init__(self, fidelity: DataFidelity, denoise: Denoising, *, wanted: bool) -> None:
        self.fidelity, self.denoise, self.wanted = fidelity, denoise, wanted
        self.road: Road | None = None
        self.steps = 0
        self.arrived: int | None = None
        self._pace: Pace | None = None
        self.mean: RealArray | None = None
        self.averaged = 0
        self.misfit_factor = 1.0
        self._flat_misfit: float | None = None
        self._misfits: list[float] = []

    def begin(self, leds: NDArray[np.int64]) -> None:
        """Find the road from the frames of ``leds``, and go to its first step."""
        self.arrived, self._pace = None, None
        self._flat_misfit, self._misfits = None, []
        self.average_anew()
        if self.wanted:
            self._lower(
                noise_cut_off(*self._frames, spread_evenly(leds[~self.fidelity.model.geometry.bright_field[leds]]))
            )
            self.road, self.steps, self.denoise.frozen = Road.of(self.fidelity, leds), 0, None
        self.look_ahead()

    @property
    def _frames(self) -> tuple[Frames, Frames | NDArray[Any] | None]:
        """The frames as they were given, and their masks."""
        frames = self.fidelity.frames
        return frames.frames if isinstance(frames, LoweredFrames) else frames, self.fidelity.mask

    @property
    def cut_off(self) -> float:
        """The standard deviation of noise whose negative part the black level of the camera cuts off, or 0."""
        frames = self.fidelity.frames
        return frames.sigma if isinstance(frames, LoweredFrames) else 0.0

    def _lower(self, sigma: float) -> None:
        """Look at frames without the light that a cut black level pretends."""
        if sigma != self.cut_off:
            frames, mask = self._frames
            self.fidelity.look_at(LoweredFrames(frames, mask, sigma) if sigma else frames)

    def look_ahead(self) -> None:
        """Use the last loss for a moment: the step and the temperature of the noise are measured with it."""
        if self.road is not None:
            self.fidelity.loss = self.road.last_loss

    def go_on(self) -> None:
        """Use the loss of this iteration, and the strength that is in balance with it.

        At the end of the road, the image has its structure. A strength that kept following the image would grow without
        limit with few photons: the smoother the image, the stronger the prior.
        """
        for prior in self.denoise.priors:  # one that another run has used on its way, too
            prior.rough = self.road is not None and self.steps < self.road.length
        if self.road is None:
            return
        if self.denoise.frozen is None and self.is_behind:
            self.denoise.freeze()
        self.fidelity.loss = self.road.loss(self.steps)
        self.denoise.factor = self.road.strength_factor(self.steps)
        self.misfit_factor = self.road.misfit_factor(self.steps)

    @property
    def is_behind(self) -> bool:
        """Whether the loss is the last one, and the image has its structure."""
        return self.steps >= max(FEWEST, 0.0 if self.road is None else self.road.length)

    def note(self, x: RealArray, passes: float) -> None:
        """An iteration that saw ``passes`` of the frames has led to ``x``. Behind the road, see whether it travels.

        When it no longer does, it trembles with the noise of minibatches about the place that it was to find, and the
        mean of all estimates from then on is nearer to it than any of them.
        """
        if not self.is_behind:
            return
        if self.arrived is not None:
            self.averaged += 1
            self.mean = x if self.mean is None else self.mean + (x - self.mean) * (1 / self.averaged)
        elif self._pace is None:
            self._pace = Pace()
            self._pace.begin_at(x)
        else:
            self._pace.note(x, passes)
            if self._pace.has_arrived:
                self.arrived, self._pace = self.steps, None

    def is_astray(self, misfit: float) -> bool:
        """Whether a run from a flat start, whose iterations have these misfits, explains less than its start did."""
        if self._flat_misfit is None:
            self._flat_misfit = misfit
        elif self.arrived is None and self.steps >= (LOOK if self.road is None else self.road.length):
            self._misfits.append(misfit)
            if len(self._misfits) == LOOK:
                mean, self._misfits = sum(self._misfits) / LOOK, []
                return mean > ASTRAY * self._flat_misfit
        return False

    def average_anew(self) -> None:
        """Forget the mean: the estimates were led somewhere else, or what they are fitted to has changed."""
        self.mean, self.averaged = None, 0

    @property
    def fading(self) -> float:
        """What a step over minibatches is divided by, so that the iterates average their noise.

        Without a road nothing tells whether the step suits the loss: it fades from a fixed number of steps on.
        """
        if self.road is None:
            return 1 + max(self.steps - FEWEST, 0) / STEPS_TO_FADE
        return 1.0 if self.arrived is None else 1 + (self.steps - self.arrived) / STEPS_TO_FADE

    def follow(self, other: Journey) -> None:
        """Go to the same place as ``other``, to travel on from there with long steps."""
        self._lower(other.cut_off)
        self.road, self.steps, self.denoise.frozen = other.road, other.steps, other.denoise.frozen
        self.arrived, self._pace = None, None
        self.average_anew()
        self.fidelity.loss = other.fidelity.loss

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        pace = {} if self._pace is None else self._pace.state_arrays()
        road = {} if self.road is None else {"road.brightness": self.road.brightness}
        mean = {} if self.mean is None else {"mean": self.mean}
        return road | mean | {f"pace.{name}": array for name, array in pace.items()}

    def state_values(self) -> dict[str, Any]:
        return {
            "gradients": self.steps,
            "frozen": self.denoise.frozen,
            "road": None if self.road is None else self.road.values(),
            "cut_off": self.cut_off,
            "arrived": self.arrived,
            "averaged": self.averaged,
            "flat_misfit": self._flat_misfit,
            "misfits": list(self._misfits),
            "pace": None if self._pace is None else self._pace.state_values(),
        }

    def load(self, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Load what the state of a solver kept. States of earlier versions have no road, or no pace."""
        self.steps, self.denoise.frozen = values.get("gradients", 0), values.get("frozen")
        self.arrived, self._pace = values.get("arrived"), None
        self.mean, self.averaged = arrays.get("mean"), values.get("averaged", 0)
        self._flat_misfit, self._misfits = values.get("flat_misfit"), list(values.get("misfits", []))
        if values.get("pace") is not None:
            self._pace = Pace()
            prefix = "pace."
            kept = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            self._pace.load(kept, values["pace"])
        self._lower(values.get("cut_off", 0.0))
        if values.get("road") is not None:
            self.road = Road.loaded(values["road"], arrays["road.brightness"])
            self.fidelity.loss = self.road.loss(self.steps)
