"""Plug-and-play ADMM, with the proximal operator of the data fidelity taken by a few gradient steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import DataFidelity, Sampler
from fouriscope.forward.objects import RealArray
from fouriscope.priors import Prior
from fouriscope.reductions import distance
from fouriscope.solvers.base import SolverState, StepReport, relative_distance
from fouriscope.solvers.descent import Descent
from fouriscope.solvers.start import Start

# Momentum starts anew when the trend of what an iteration moves has grown to so many times its least. Minibatches let
# it fluctuate by less.
GROWTH = 1.5
SMOOTHING = 0.3


@door_class
class ADMM(Descent):
    r"""v ← prox_{ρd}(z − u),  z ← denoise_σ(v + u),  u ← u + v − z.

    The first line is the minimiser of d(v) + ‖v − (z − u)‖²/(2ρ). The data fidelity is not convex and has no closed
    form of it, so it is approached by ``data_steps`` = n gradient steps of length 1/(L + 1/ρ), L = 1/γ the curvature,
    beginning at the v of the iteration before (carried on by the momentum). With ρ = nγ those steps go as far as the
    minimiser is away, and σ = √(ρλ). Online, each of them sees a minibatch of its own.

    At a fixed point v = z, u = −ρ∇d(z) and z = denoise_σ(z − ρ∇d(z)): that of :class:`PnP`, and for a prior with an
    objective a stationary point of d + λr, however few the inner steps.

    ``acceleration`` adds Nesterov's momentum to v, z and u. Unlike that of :class:`PnP` it is not stable by itself: it
    starts anew when ‖z − ẑ‖² + ‖u − û‖² grows, the distance from where an iteration began (ẑ, û) to where it led. The
    estimate x is z, the denoised one.

    Parameters
    ----------
    fidelity, sampler, priors, step, start, loss_from_noise, seed, truth
        See :class:`fouriscope.solvers.descent.Descent`; ``step`` is γ.
    data_steps
        n.
    acceleration
        Momentum on v, z and u.
    restart
        Whether the momentum restarts as described above. With a strong prior it must, or z and u oscillate for ever.
        With a weak one, from a flat start, it should not: an object that emerges from nothing moves more and more.

    References
    ----------
    S. V. Venkatakrishnan, C. A. Bouman, B. Wohlberg, "Plug-and-play priors for model based reconstruction" (2013);
    T. Goldstein et al., "Fast alternating direction optimization methods" (2014) for the momentum and its restart.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> model = fs.ForwardModel(optics, fs.LEDArray.square(7, pitch=4e-3, height=70e-3), (24, 24))
    >>> data = fs.simulate(model, 0.2 * (np.indices(model.object_shape).sum(axis=0) % 40 < 20), snr_db=40, seed=0)
    >>> result = fs.reconstruct(data, method="admm", prior=fs.TV(), batch=15, iterations=10, seed=0)
    >>> bool(result.history["misfit"][-1] < result.history["misfit"][0])
    True
    """

    def __init__(
        self,
        fidelity: DataFidelity,
        sampler: Sampler,
        priors: Sequence[Prior],
        *,
        step: float | Literal["auto"] = "auto",
        data_steps: int = 5,
        acceleration: bool = True,
        restart: bool = True,
        start: Start = "flat",
        loss_from_noise: bool = False,
        seed: int = 0,
        truth: RealArray | None = None,
    ) -> None:
        if isinstance(data_steps, bool) or not (isinstance(data_steps, int) and data_steps >= 1):
            raise InvalidInputError(f"data_steps must be a whole number ≥ 1, got {data_steps!r}")
        self.data_steps, self.acceleration, self.restart = data_steps, acceleration, restart
        super().__init__(
            *(fidelity, sampler, priors),
            step=step,
            start=start,
            loss_from_noise=loss_from_noise,
            seed=seed,
            truth=truth,
        )

    def begin_at(self, x: RealArray) -> None:
        self._v = self._z = x
        self._last_v = x
        self._u = self._last_u = x * 0
        self._q = 1.0
        self._trend, self._least = math.nan, math.inf

    def iterate(self) -> StepReport:
        penalty = self.data_steps * self.step_size
        real = self._z.dtype.type
        target = self._z - self._u
        v, misfit, frames = self._v, 0.0, 0
        for _ in range(self.data_steps):
            slope = self.slope(v)
            misfit += slope.misfit / self.data_steps
            frames += len(slope.batch.leds)
            length = 1 / (1 / self.step_size + 1 / penalty)
            v = v - (slope.gradient + (v - target) * real(1 / penalty)) * real(length)
        x = self.denoise(v + self._u, penalty)
        u = self._u + v - x
        residual = relative_distance(x, self._z)
        if self.restart and self._moved_more(distance(x, self._z) ** 2 + distance(u, self._u) ** 2):
            self._q = 1.0
        q = (1 + math.sqrt(1 + 4 * self._q**2)) / 2 if self.acceleration else 1.0
        momentum = real((self._q - 1) / q)
        self._z = x + (x - self._x) * momentum
        self._u = u + (u - self._last_u) * momentum
        # The inner steps begin where v is heading: from where it was, a few of them could not keep up with z and u.
        self._v = v + (v - self._last_v) * momentum
        self._last_v, self._x, self._last_u, self._q = v, x, u, q
        return StepReport(misfit, residual, self.step_size, self.denoise.strengths[0], frames)

    def _moved_more(self, moved: float) -> bool:
        """Whether the trend of ``moved`` has turned upwards; it is then measured from where it is."""
        self._trend = moved if math.isnan(self._trend) else self._trend + SMOOTHING * (moved - self._trend)
        grown = self._trend > GROWTH * self._least
        self._least = self._trend if grown else min(self._least, self._trend)
        return grown

    def own_state(self) -> SolverState:
        arrays = {"v": self._v, "last_v": self._last_v, "z": self._z, "u": self._u, "last_u": self._last_u}
        return SolverState(arrays, {"q": self._q, "trend": self._trend, "least": self._least})

    def load_own_state(self, state: SolverState) -> None:
        arrays = state.arrays
        self._v, self._last_v, self._z = arrays["v"], arrays["last_v"], arrays["z"]
        self._u, self._last_u = arrays["u"], arrays["last_u"]
        self._q, self._trend, self._least = (float(state.values[name]) for name in ("q", "trend", "least"))
