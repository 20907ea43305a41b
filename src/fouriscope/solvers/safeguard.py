"""Notices that a run diverges, and remembers the estimate to return to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.fidelity import DataFidelity, Minibatch
from fouriscope.forward.objects import RealArray
from fouriscope.reductions import dot

# Minibatches differ in their misfit: only a trend this many times above the best one counts as divergence.
ALARM = 10.0
# Far below the misfit of an empty field a trend may wander as it likes: noiseless data can be fitted to any depth.
DEPTH = 1e-3
SMOOTHING = 0.3
TINY = float(np.finfo(np.float64).tiny)


class Safeguard:
    """Watches the trend of the misfit, in units of the misfit that an empty field has on the same measurements.

    The estimate of the lowest trend is kept (arrays are never written in place, so keeping one costs no copy).
    """

    def __init__(self, fidelity: DataFidelity) -> None:
        self.fidelity = fidelity
        self.trend = math.nan
        self.empty_trend = math.nan
        self.best = math.inf
        self.refuge: RealArray | None = None
        self.empty: NDArray[np.float64] | None = None

    def accepts(self, misfit: float, gradient: RealArray, x: RealArray, batch: Minibatch) -> bool:
        """Take note of an iteration; False if it must not be used.

        Even so the smallest minibatches differ by orders of magnitude: before an alarm, the misfit is compared with
        the one that the same measurements have at the refuge.
        """
        if not (math.isfinite(misfit) and math.isfinite(dot(gradient, gradient))):
            return False
        empty = self._empty_misfit(batch)
        if math.isnan(self.trend):
            self.trend, self.empty_trend = misfit, empty
        self.trend += SMOOTHING * (misfit - self.trend)
        self.empty_trend += SMOOTHING * (empty - self.empty_trend)
        ratio = self.trend / max(self.empty_trend, TINY)
        if ratio <= self.best or self.refuge is None:
            self.best, self.refuge = ratio, x
        if ratio <= max(ALARM * self.best, DEPTH):
            return True
        return misfit <= max(ALARM * self.fidelity.value(self.refuge, batch), DEPTH * empty)

    def _empty_misfit(self, batch: Minibatch) -> float:
        model, used = self.fidelity.model, self.fidelity.weights > 0
        if self.empty is None:
            self.empty = np.full(len(model), np.nan)
        unknown = np.flatnonzero(np.isnan(self.empty) & used)
        if len(unknown):
            self.empty[unknown] = self.fidelity.misfits(np.zeros(model.x_shape, model.dtype), unknown)
        weights = batch.weights * self.fidelity.weights[batch.leds]
        counted = weights > 0  # of a frame that is left out nothing is known, and NaN × 0 would still be NaN
        return float(np.dot(weights[counted], self.empty[batch.leds][counted])) / batch.size

    def measurements_changed(self, leds: NDArray[np.int64]) -> None:
        """Frames of ``leds`` have arrived, or others took their place: what an empty field makes of them is not known.

        What is known of the others stays: before an alarm the same measurements are compared anyway.
        """
        if self.empty is not None:
            self.empty[leds] = np.nan

    def begin_again(self) -> None:
        """Forget trend and refuge: the measurements have become others, and so have their misfits."""
        self.trend = self.empty_trend = math.nan
        self.best, self.refuge = math.inf, None

    def retreat(self) -> RealArray | None:
        """Where to start again; what was learnt about misfits on the way astray is forgotten."""
        self.trend = self.best * self.empty_trend
        return self.refuge

    def values(self) -> dict[str, Any]:
        # The misfits of an empty field too: a calibration has changed the model with which they were computed.
        # JSON has no NaN; null is read back as one.
        empty = None if self.empty is None else [None if math.isnan(one) else one for one in self.empty.tolist()]
        return {"trend": self.trend, "empty_trend": self.empty_trend, "best": self.best, "empty": empty}

    def load(self, values: dict[str, Any], refuge: RealArray | None) -> None:
        self.trend, self.empty_trend, self.best = (float(values[name]) for name in ("trend", "empty_trend", "best"))
        self.empty = None if values["empty"] is None else np.array(values["empty"], np.float64)
        self.refuge = refuge
