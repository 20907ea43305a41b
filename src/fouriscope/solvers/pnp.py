"""Plug-and-play ISTA, FISTA and SGD: one step, told apart by the sampler and the momentum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from fouriscope.errors import FouriscopeError, InvalidInputError
from fouriscope.fidelity import DataFidelity, Sampler
from fouriscope.forward.objects import RealArray
from fouriscope.priors import Prior
from fouriscope.solvers.base import Solver, SolverState, StepReport, relative_norm
from fouriscope.solvers.start import StartName, starting_point
from fouriscope.solvers.step_size import curvature

class PnP(Solver):
    def __init__(self, fidelity: DataFidelity, sampler: Sampler, priors: Sequence[Prior], *, step="auto", acceleration=True, start="flat", seed=0, truth=None, lam=None, guard=True):
        super().__init__(truth=truth)
        self.fidelity, self.sampler, self.priors = fidelity, sampler, list(priors)
        self.acceleration = acceleration
        self.rng = np.random.default_rng(seed)
        self._x = starting_point(start, fidelity)
        self._s = self._x
        self._q = 1.0
        self.lam = lam
        if step == "auto":
            n = 1 if sampler.is_fixed else 3
            L = max(curvature(fidelity, self._x, sampler.draw(self.rng), self.rng) for _ in range(n))
            self.gamma = 1 / L
        else:
            self.gamma = step
    @property
    def x(self): return self._x
    def state(self): ...
    def load_state(self, s): ...
    def step(self):
        batch = self.sampler.draw(self.rng)
        value, g = self.fidelity.gradient(self._s, batch)
        z = self._s - np.float32(self.gamma) * g
        lam = self.lam(self, z) if callable(self.lam) else (self.lam or 0.0)
        self._lam = lam
        x = self.priors[0].denoise(z, math.sqrt(self.gamma*lam))
        q = 0.5*(1+math.sqrt(1+4*self._q**2)) if self.acceleration else 1.0
        s = x + np.float32((self._q-1)/q)*(x-self._x)
        r = relative_norm(x-self._s, x)
        self._x, self._s, self._q = x, s, q
        return StepReport(value, r, self.gamma, lam, len(batch.leds))
