"""Choosing the step γ: measured at the start, shortened where it proves too long."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import DataFidelity, Minibatch, Sampler
from fouriscope.forward.objects import RealArray
from fouriscope.placement import namespace
from fouriscope.reductions import distance, norm
from fouriscope.solvers.step_size import curvature

# An online step must suit every minibatch: the largest curvature of so many is taken, and of more where they are so
# small that these could all miss the bright field, which holds the curvature.
MINIBATCHES_PROBED = 3
FRAMES_PROBED = 40
# Two estimates that are fewer roundings apart say nothing of the curvature between them.
ROUNDING = 100.0


class StepControl:
    """γ, a number of the user's or one over the curvature L of the measurements really used."""

    def __init__(self, step: float | Literal["auto"]) -> None:
        if step != "auto" and not (math.isfinite(step) and step > 0):
            raise InvalidInputError(f'step must be a positive number or "auto", got {step}')
        self.automatic = step == "auto"
        self.size = math.nan if step == "auto" else float(step)
        self._before: tuple[RealArray, RealArray] | None = None

    def find(self, fidelity: DataFidelity, x: RealArray, sampler: Sampler, rng: np.random.Generator) -> None:
        """Measure the curvature at ``x``, if the step is to be found."""
        if not self.automatic:
            return
        bright = None if np.any(x) else fidelity.model.geometry.direct_light > 0
        largest = max(curvature(fidelity, x, _part(batch, bright), rng) for batch in _probes(sampler, rng))
        if not (math.isfinite(largest) and largest > 0):
            raise InvalidInputError(
                f"the data fidelity has no curvature at the starting point (estimated {largest:g}), so no step "
                "size can be found: are there bright-field frames among the measurements, and not all zero?"
            )
        self.size = 1 / largest

    def scale(self, factor: float) -> None:
        """The curvature has become 1/``factor`` of what it was: the step grows with it, if it is ours to choose."""
        if self.automatic:
            self.size *= factor
            self._before = None

    def watch(self, s: RealArray, gradient: RealArray) -> None:
        """Two gradients over the same measurements show the curvature on the way between them, for nothing."""
        if not self.automatic:
            return
        if self._before is not None:
            moved = distance(s, self._before[0])
            if moved > ROUNDING * float(namespace(s).finfo(s.dtype).eps) * norm(s):
                seen = distance(gradient, self._before[1]) / moved
                if math.isfinite(seen) and seen * self.size > 1:
                    self.size = 1 / seen
        self._before = (s, gradient)

    def halve(self) -> None:
        self.size /= 2
        self._before = None

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        return {} if self._before is None else {"before_s": self._before[0], "before_gradient": self._before[1]}

    def load(self, size: float, arrays: dict[str, NDArray[Any]]) -> None:
        self.size = size
        self._before = (arrays["before_s"], arrays["before_gradient"]) if "before_s" in arrays else None


def _part(batch: Minibatch, bright: NDArray[np.bool_] | None) -> Minibatch:
    """The bright-field LEDs of a minibatch, which at a flat object hold all of the curvature and are a few."""
    if bright is None or not bright[batch.leds].any():
        return batch
    kept = bright[batch.leds]
    return Minibatch(batch.leds[kept], batch.weights[kept], batch.size)


def _probes(sampler: Sampler, rng: np.random.Generator) -> Iterator[Minibatch]:
    """Minibatches to look at: one that stays the same, or enough of those that change."""
    count = frames = 0
    while count < MINIBATCHES_PROBED or frames < FRAMES_PROBED:
        batch = sampler.draw(rng)
        yield batch
        if sampler.is_fixed or len(batch.leds) == len(sampler.population):
            return
        count, frames = count + 1, frames + len(batch.leds)
