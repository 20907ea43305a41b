"""Notices that a run goes astray, and remembers where to go back to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fouriscope.forward.objects import RealArray

# Minibatches differ in their misfit: only a trend this many times above the best one counts as divergence.
ALARM = 10.0
# Far below the first misfit a trend may wander as it likes: noiseless data can be fitted to any depth.
DEPTH = 1e-3
SMOOTHING = 0.3


class Safeguard:
    """Watches the trend of the misfit. The estimate of the lowest trend is kept (arrays are never written in place,
    so keeping one costs no copy)."""

    def __init__(self) -> None:
        self.first = math.nan
        self.trend = math.nan
        self.best = math.inf
        self.refuge: RealArray | None = None

    def accepts(self, misfit: float, gradient: RealArray, x: RealArray) -> bool:
        """Take note of an iteration; False if it must not be used."""
        if not (math.isfinite(misfit) and math.isfinite(float(np.vdot(gradient, gradient)))):
            return False
        if math.isnan(self.first):
            self.first = self.trend = misfit
        self.trend += SMOOTHING * (misfit - self.trend)
        if self.trend <= self.best:
            self.best, self.refuge = self.trend, x
        return self.trend <= max(ALARM * self.best, DEPTH * self.first)

    def retreat(self) -> RealArray | None:
        """Where to start again; what was learnt about misfits on the way astray is forgotten."""
        self.trend = self.best
        return self.refuge

    def values(self) -> dict[str, Any]:
        return {"first": self.first, "trend": self.trend, "best": self.best}

    def load(self, values: dict[str, Any], refuge: RealArray | None) -> None:
        self.first, self.trend, self.best = values["first"], values["trend"], values["best"]
        self.refuge = refuge
