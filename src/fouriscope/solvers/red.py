"""Regularisation by denoising: gradient steps on the data fidelity and on what a denoiser would change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import DataFidelity, Sampler
from fouriscope.forward.objects import RealArray
from fouriscope.priors import Prior
from fouriscope.solvers.base import SolverState, StepReport, relative_distance
from fouriscope.solvers.descent import Descent
from fouriscope.solvers.start import Start


@door_class
class RED(Descent):
    r"""x ← s − γ′ [∇d(s) + τ (s − denoise_σ(s))],  then momentum as in :class:`PnP`.

    τ = ``denoiser_weight`` · L with L = 1/γ the curvature of the data fidelity, γ′ = 1/(L + τ) the step that is then
    safe for a denoiser that does not expand distances, and σ = √(λ/τ): for the best denoiser of an image with density
    p, s − denoise_σ(s) = −σ² ∇log p_σ(s) with p_σ the density blurred by σ (Tweedie), so that τσ² = λ is the weight of
    the prior here as it is in :class:`PnP`. The smaller ``denoiser_weight``, the larger σ, and the more is blurred.

    The fixed point solves ∇d(x) + τ(x − denoise_σ(x)) = 0. The denoiser is evaluated at s itself, not after the data
    step: it need not be a proximal operator, and the two gradients could be computed side by side.

    Parameters
    ----------
    fidelity, sampler, priors, step, start, loss_from_noise, seed, truth
        See :class:`fouriscope.solvers.descent.Descent`; ``step`` is γ.
    denoiser_weight
        τ in units of the curvature.
    acceleration
        Momentum.

    References
    ----------
    Y. Romano, M. Elad, P. Milanfar, "The little engine that could: regularization by denoising (RED)" (2017);
    E. T. Reehorst, P. Schniter, "Regularization by denoising: clarifications and new interpretations" (2019).

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> model = fs.ForwardModel(optics, fs.LEDArray.square(7, pitch=4e-3, height=70e-3), (24, 24))
    >>> data = fs.simulate(model, 0.2 * (np.indices(model.object_shape).sum(axis=0) % 40 < 20), snr_db=40, seed=0)
    >>> result = fs.reconstruct(data, method="red", prior=fs.TV(), batch=15, iterations=20, seed=0)
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
        denoiser_weight: float = 0.25,
        acceleration: bool = True,
        start: Start = "flat",
        loss_from_noise: bool = False,
        seed: int = 0,
        truth: RealArray | None = None,
    ) -> None:
        if not (math.isfinite(denoiser_weight) and denoiser_weight > 0):
            raise InvalidInputError(f"denoiser_weight must be a positive number, got {denoiser_weight!r}")
        self.denoiser_weight, self.acceleration = float(denoiser_weight), acceleration
        super().__init__(
            *(fidelity, sampler, priors),
            step=step,
            start=start,
            loss_from_noise=loss_from_noise,
            seed=seed,
            truth=truth,
        )

    def begin_at(self, x: RealArray) -> None:
        self._s = x
        self._q = 1.0

    def iterate(self) -> StepReport:
        s, real = self._s, self._s.dtype.type
        slope = self.slope(s)
        weight = self.denoiser_weight / self.step_size
        pull = (s - self.denoise(s, 1 / weight)) * real(weight)
        x = s - (slope.gradient + pull) * real(1 / (1 / self.step_size + weight))
        q = (1 + math.sqrt(1 + 4 * self._q**2)) / 2 if self.acceleration else 1.0
        self._s = x + (x - self._x) * real((self._q - 1) / q)
        self._x, self._q = x, q
        return StepReport(
            slope.misfit, relative_distance(x, s), self.step_size, self.denoise.strengths[0], len(slope.batch.leds)
        )

    def own_state(self) -> SolverState:
        return SolverState({"s": self._s}, {"q": self._q})

    def load_own_state(self, state: SolverState) -> None:
        self._s, self._q = state.arrays["s"], float(state.values["q"])
