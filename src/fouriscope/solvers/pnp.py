"""Plug-and-play ISTA, FISTA and SGD: one step, which differs only in the sampler and the momentum."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Literal

import numpy as np

from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import DataFidelity, IntensityLoss, Sampler
from fouriscope.forward.objects import RealArray
from fouriscope.priors import Prior
from fouriscope.solvers.base import SolverState, StepReport, relative_distance
from fouriscope.solvers.descent import Descent
from fouriscope.solvers.start import Start

# More gradient steps than this between two denoisings save little more and cost quality (docs/solver.md).
STEPS_AT_MOST = 8
# The most momentum with minibatches: it makes a step ten times as long in the end, and averages their noise over ten.
# More carries the noise on, which then grows from pass to pass.
MOMENTUM = 0.9
# The first iterations compile, match blocks for the first time and warm caches: not a cost to plan with.
ITERATIONS_TIMED = (3, 6)


@door_class
class PnP(Descent):
    r"""x^k = denoise_σ(s^{k−1} − γ ∇d(s^{k−1})),  s^k = x^k + ((q_{k−1} − 1)/q_k)(x^k − x^{k−1}).

    ============  ==========================  ===================
    method        sampler                     ``acceleration``
    ============  ==========================  ===================
    PnP-ISTA      all, or a fixed subset      False: q_k = 1
    PnP-FISTA     all, or a fixed subset      True
    PnP-SGD       minibatches                 True (the paper's) or False
    ============  ==========================  ===================

    with q_0 = 1, q_k = (1 + √(1 + 4q²_{k−1}))/2 and σ = √(γλ), so that for a prior with an objective the method
    minimises d(x) + λ r(x), and the fixed point does not depend on the step.

    A denoiser that costs more than a gradient need not be called after every one. With ``steps_per_denoising`` = m > 1
    an iteration takes m gradient steps, each over a minibatch of its own and with momentum β = (q_{k−1} − 1)/q_k, and
    then denoises once, with

        σ² = λ γ m / (1 − β(1 − 1/m)).

    Without momentum that is λ times the sum of the steps. With it, the denoiser's displacement enters the velocity
    with 1/m of its size (it makes up for m steps at once, and would otherwise be repeated m times before the next
    call), and is to outweigh m gradients that the momentum carries on in full: where nothing moves any more, a
    displacement of γ∇d · m/(1 − β(1 − 1/m)) keeps the balance, which is the fixed point of one step per denoising.

    Parameters
    ----------
    fidelity, sampler, priors, step, start, loss_from_noise, seed, truth
        See :class:`fouriscope.solvers.descent.Descent`.
    acceleration
        Momentum, as in FISTA.
    momentum
        The largest momentum. "auto" is 0.9 with minibatches, and 1, the whole of FISTA's, with all frames in every
        iteration or with the intensity loss chosen by hand, which is the paper's method.
    steps_per_denoising
        m. "auto" measures the time of a gradient and of a denoising in the first iterations, and chooses m so that both
        cost about the same. The choice depends on the machine, so two such runs may differ. The state keeps it.

    References
    ----------
    Y. Sun et al., "Regularized Fourier ptychography using an online plug-and-play algorithm" (2018), Algorithms 1
    and 2, with the corrections that ``docs/paper-notes.md`` lists.

    Examples
    --------
    What :func:`fouriscope.reconstruct` puts together, piece by piece:

    >>> import numpy as np, fouriscope as fs
    >>> from fouriscope.fidelity import StratifiedSampler
    >>> from fouriscope.solvers import Iterations, PnP, Seconds
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> model = fs.ForwardModel(optics, fs.LEDArray.square(7, pitch=4e-3, height=70e-3), (24, 24))
    >>> truth = 0.2 * (np.indices(model.object_shape).sum(axis=0) % 40 < 20)
    >>> data = fs.simulate(model, truth, snr_db=40, seed=0)
    >>> fidelity = fs.DataFidelity(model, data.frames, loss="intensity")
    >>> sampler = StratifiedSampler(np.arange(len(model)), 15, model.geometry.bright_field)
    >>> solver = PnP(fidelity, sampler, [fs.TV(strength=1e-6)], seed=0, truth=truth)
    >>> history = solver.solve(Iterations(20) | Seconds(60))
    >>> bool(history["misfit"][-1] < history["misfit"][0])
    True
    """

    stays_on_device = True

    def __init__(
        self,
        fidelity: DataFidelity,
        sampler: Sampler,
        priors: Sequence[Prior],
        *,
        step: float | Literal["auto"] = "auto",
        acceleration: bool = True,
        steps_per_denoising: int | Literal["auto"] = 1,
        momentum: float | Literal["auto"] = "auto",
        start: Start = "flat",
        loss_from_noise: bool = False,
        seed: int = 0,
        truth: RealArray | None = None,
    ) -> None:
        if steps_per_denoising != "auto" and not (_is_count(steps_per_denoising)):
            raise InvalidInputError(
                f'steps_per_denoising must be a whole number ≥ 1, or "auto", got {steps_per_denoising!r}'
            )
        if momentum != "auto" and not 0 <= momentum <= 1:
            raise InvalidInputError(f'momentum must lie between 0 and 1, or be "auto", got {momentum!r}')
        self.acceleration, self.momentum = acceleration, momentum
        self._choosing = steps_per_denoising == "auto"
        self.steps_per_denoising = 1 if steps_per_denoising == "auto" else steps_per_denoising
        self._costs: list[tuple[float, float]] = []
        super().__init__(
            *(fidelity, sampler, priors),
            step=step,
            start=start,
            loss_from_noise=loss_from_noise,
            seed=seed,
            truth=truth,
        )

    @property
    def _most_momentum(self) -> float:
        if self.momentum != "auto":
            return self.momentum
        by_hand = self.journey.road is None and isinstance(self.fidelity.loss, IntensityLoss)
        return 1.0 if self.sampler.takes_all or by_hand else MOMENTUM

    def begin_at(self, x: RealArray) -> None:
        self._s = self._previous = x
        self._q = 1.0

    def iterate(self) -> StepReport:
        steps = self.steps_per_denoising
        # With several steps the velocity repeats in every iteration and never vanishes: x is compared with x.
        began = self._s if steps == 1 else self._x
        misfit, frames, denoising = 0.0, 0, 0.0
        clock = time.perf_counter()
        for left in reversed(range(steps)):
            slope = self.slope(self._s)
            misfit += slope.misfit / steps
            frames += len(slope.batch.leds)
            # Plain floats: a number of NumPy's double would make doubles of arrays.
            z = self._s - slope.gradient * float(self.step_size)
            q = (1 + math.sqrt(1 + 4 * self._q**2)) / 2 if self.acceleration else 1.0
            momentum = float(min((self._q - 1) / q, self._most_momentum))
            if left:
                x, velocity = z, z - self._previous
            else:
                denoising = time.perf_counter()
                x = self.denoise(z, self.step_size * steps / (1 - momentum * (1 - 1 / steps)))
                denoising = time.perf_counter() - denoising
                velocity = x - self._previous
                if steps > 1:
                    velocity -= (x - z) * (1 - 1 / steps)
            self._s = x + velocity * momentum
            self._previous, self._q = x, q
        self._x = x
        if self._choosing:
            self._choose_steps(time.perf_counter() - clock - denoising, denoising)
        return StepReport(misfit, relative_distance(x, began), self.step_size, self.denoise.strengths[0], frames)

    def _choose_steps(self, gradient: float, denoising: float) -> None:
        if self._iterations in range(*ITERATIONS_TIMED):
            self._costs.append((gradient, denoising))
        if self._iterations >= ITERATIONS_TIMED[1] - 1 and self._costs:
            gradients, denoisings = np.median(np.array(self._costs), axis=0)
            self.steps_per_denoising = min(max(1, round(denoisings / gradients)), STEPS_AT_MOST)
            self._choosing = False

    def own_state(self) -> SolverState:
        values = {
            "q": self._q,
            "steps_per_denoising": self.steps_per_denoising,
            "choosing": self._choosing,
            "costs": list(self._costs),  # the median needs them all: the first iteration after a resume warms up again
        }
        return SolverState({"s": self._s, "previous": self._previous}, values)

    def load_own_state(self, state: SolverState) -> None:
        self._s, self._previous = state.arrays["s"], state.arrays["previous"]
        self._q = float(state.values["q"])
        self.steps_per_denoising, self._choosing = state.values["steps_per_denoising"], state.values["choosing"]
        self._costs = [(gradient, denoising) for gradient, denoising in state.values["costs"]]


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
