"""Plug-and-play ISTA, FISTA and SGD: one step, told apart by the sampler and the momentum."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import DivergenceError, InvalidInputError
from fouriscope.fidelity import DataFidelity, Minibatch, Sampler
from fouriscope.forward.objects import RealArray
from fouriscope.priors import Prior
from fouriscope.reductions import distance
from fouriscope.solvers.base import Solver, SolverState, StepReport, relative_distance
from fouriscope.solvers.safeguard import Safeguard
from fouriscope.solvers.start import StartName, starting_point
from fouriscope.solvers.step_size import curvature
from fouriscope.solvers.strength import noise_temperature

# An online step must suit every minibatch: the largest curvature of so many is taken, and of more where they are so
# small that these could all miss the bright field, which holds the curvature.
MINIBATCHES_PROBED = 3
FRAMES_PROBED = 40
RETREATS_AT_MOST = 30
# Iterations before which the temperature of the noise is measured (again): it depends on the object.
TEMPERATURE_TAKEN_AT = (0, 10, 30, 100)


class PnP(Solver):
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

    Parameters
    ----------
    fidelity
        d.
    sampler
        Which measurements an iteration sees.
    priors
        One prior for each image of the object (phase; or phase and absorption), each with its own strength λ.
        ``strength="auto"`` is λ = T · natural_strength(x): see :func:`fouriscope.solvers.strength.noise_temperature`.
    step
        γ. "auto" takes one over the curvature of the measurements really used, shortens it where it proves too long,
        and goes back to the last good estimate if the run goes astray. A number is used as it is; if the run then
        diverges, :class:`DivergenceError` says so.
    start
        "flat", "linear" (bright-field deconvolution) or an array.
    seed
        Of the sampler and of the probes. Same seed, same result.
    truth
        Only to report the SNR.

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

    def __init__(
        self,
        fidelity: DataFidelity,
        sampler: Sampler,
        priors: Sequence[Prior],
        *,
        step: float | Literal["auto"] = "auto",
        acceleration: bool = True,
        start: StartName | RealArray = "flat",
        seed: int = 0,
        truth: RealArray | None = None,
    ) -> None:
        model = fidelity.model
        self.fidelity, self.sampler, self.priors = fidelity, sampler, list(priors)
        if len(self.priors) != len(model.object.channels):
            raise InvalidInputError(
                f"one prior for each of {', '.join(model.object.channels)} is needed, got {len(self.priors)}"
            )
        if len({id(prior) for prior in self.priors}) != len(self.priors):
            raise InvalidInputError("each image needs a prior object of its own: a prior keeps a warm state")
        if step != "auto" and not (math.isfinite(step) and step > 0):
            raise InvalidInputError(f'step must be a positive number or "auto", got {step}')
        super().__init__(truth=None if truth is None else self._observed_truth(np.asarray(truth)))
        self.acceleration = acceleration
        self.automatic_step = step == "auto"
        self.step_size = math.nan if step == "auto" else float(step)
        self.temperature = math.nan
        self.rng = np.random.default_rng(seed)
        self._x = starting_point(start, fidelity)
        self._s = self._x
        self._q = 1.0
        self._strengths = [0.0 for _ in self.priors]
        self._safeguard = Safeguard(fidelity)
        self._retreats = 0
        self._prepared = False
        self._iterations = 0
        self._before: tuple[RealArray, RealArray] | None = None

    @property
    def x(self) -> RealArray:
        return self._x

    def observed(self) -> RealArray:
        return self._observed(self._x)

    def _observed(self, x: RealArray) -> RealArray:
        model = self.fidelity.model
        return model.object.images(x)[0][model.geometry.object_window]

    def _observed_truth(self, truth: RealArray) -> RealArray:
        """The phase of a truth given as x, as a phase on the object's grid, or already cut to the window."""
        if np.iscomplexobj(truth):
            raise InvalidInputError(
                f"the truth must be a real phase in radians, got {truth.dtype}; give the phase of a transmittance: "
                "np.angle(truth)"
            )
        if truth.dtype.kind not in "fiu":
            raise InvalidInputError(f"the truth must be a real phase in radians, got {truth.dtype}")
        phase = self._cut_truth(truth)
        bad = int(phase.size - np.count_nonzero(np.isfinite(phase)))
        if bad:
            raise InvalidInputError(
                f"the truth holds {bad} NaN or infinite pixels of {phase.size}; mend it, or leave the truth out"
            )
        return phase

    def _cut_truth(self, truth: RealArray) -> RealArray:
        model = self.fidelity.model
        window = model.geometry.object_window
        if truth.shape == model.x_shape:
            return self._observed(truth)
        if truth.shape == model.object_shape:
            return truth[window]
        expected = np.empty(model.object_shape, bool)[window].shape
        if truth.shape == expected:
            return truth
        raise InvalidInputError(
            f"the truth has shape {truth.shape}, the reconstruction {expected}: reconstruct on the truth's grid with "
            "object_shape, or leave the truth out"
        )

    @np.errstate(over="ignore", invalid="ignore")  # the safeguard notices a step that goes astray, and acts
    def step(self) -> StepReport:
        if not self._prepared:
            self._prepare()
        if self._iterations in TEMPERATURE_TAKEN_AT and any(prior.strength == "auto" for prior in self.priors):
            self._take_temperature()
        while True:
            batch = self.sampler.draw(self.rng)
            misfit, gradient = self.fidelity.gradient(self._s, batch)
            if self._safeguard.accepts(misfit, gradient, self._x, batch):
                break
            self._retreat(misfit)
        if self.automatic_step and self.sampler.is_fixed:
            self._shorten_step(gradient)
        x = self._denoise(self._s - gradient * gradient.dtype.type(self.step_size))
        q = (1 + math.sqrt(1 + 4 * self._q**2)) / 2 if self.acceleration else 1.0
        s = x + (x - self._x) * x.dtype.type((self._q - 1) / q)
        residual = relative_distance(x, self._s)
        self._before = (self._s, gradient) if self.automatic_step and self.sampler.is_fixed else None
        self._x, self._s, self._q = x, s, q
        self._iterations += 1
        return StepReport(misfit, residual, self.step_size, self._strengths[0], len(batch.leds))

    def _prepare(self) -> None:
        """What can only be known with the data at hand."""
        if self.automatic_step:
            largest = max(curvature(self.fidelity, self._x, batch, self.rng) for batch in self._probes())
            if not (math.isfinite(largest) and largest > 0):
                raise InvalidInputError(
                    f"the data fidelity has no curvature at the starting point (estimated {largest:g}), so no step "
                    "size can be found: are there bright-field frames among the measurements, and not all zero?"
                )
            self.step_size = 1 / largest
        for prior in self.priors:
            prior.reset()  # what a prior kept from an earlier run must not change this one
        self._prepared = True

    def _probes(self) -> Iterator[Minibatch]:
        """Minibatches to look at: one that stays the same, or enough of those that change."""
        count = frames = 0
        while count < 1 or not (self.sampler.is_fixed or (count >= MINIBATCHES_PROBED and frames >= FRAMES_PROBED)):
            batch = self.sampler.draw(self.rng)
            yield batch
            count, frames = count + 1, frames + len(batch.leds)

    def _take_temperature(self) -> None:
        """How much noise the data term carries, seen from where the iterations have got to.

        At a flat start dark-field frames say nothing to first order, and only bright-field LEDs can be asked.
        """
        population = self.sampler.population
        bright = population[self.fidelity.model.geometry.bright_field[population]]
        flat_start = not self._iterations and len(bright)
        temperature = noise_temperature(self.fidelity, self._x, bright if flat_start else population, self.rng) * (
            len(bright) / len(population) if flat_start else 1.0
        )
        if math.isfinite(temperature):
            self.temperature = temperature

    def _denoise(self, z: RealArray) -> RealArray:
        x = np.empty_like(z)
        images = zip(self.fidelity.model.object.images(z), self.fidelity.model.object.images(x), strict=True)
        for channel, (prior, (before, after)) in enumerate(zip(self.priors, images, strict=True)):
            strength = prior.strength
            if strength == "auto":
                strength = self.temperature * prior.natural_strength(before) if self.temperature > 0 else 0.0
                strength = strength if math.isfinite(strength) else 0.0  # a flat image: any strength would do
            self._strengths[channel] = strength
            after[...] = prior.denoise_next(before, math.sqrt(self.step_size * strength))
        return x

    def _shorten_step(self, gradient: RealArray) -> None:
        """Two gradients over the same measurements show the curvature on the way between them, for nothing."""
        if self._before is None:
            return
        s, previous = self._before
        moved = distance(self._s, s)
        if moved > 0:
            seen = distance(gradient, previous) / moved
            if math.isfinite(seen) and seen * self.step_size > 1:
                self.step_size = 1 / seen

    def _retreat(self, misfit: float) -> None:
        if not self.automatic_step:
            raise DivergenceError(
                f"diverged after {self._iterations} iterations with step={self.step_size:g} (the misfit is "
                f'{misfit:.3g} and far above its best); use step="auto" or a smaller number'
            )
        self._retreats += 1
        refuge = self._safeguard.retreat()
        if refuge is None or self._retreats > RETREATS_AT_MOST:
            raise DivergenceError(
                f"no step size works: the misfit is {misfit:.3g} even at step={self.step_size:.3g}; "
                "are the frames in units of the bright field, and free of NaN?"
            )
        self.step_size /= 2
        self._x = self._s = refuge
        self._q = 1.0
        self._before = None
        for prior in self.priors:
            prior.reset()

    def state(self) -> SolverState:
        arrays: dict[str, NDArray[Any]] = {"x": self._x, "s": self._s}
        if self._safeguard.refuge is not None:
            arrays["refuge"] = self._safeguard.refuge
        if self._before is not None:
            arrays["before_s"], arrays["before_gradient"] = self._before
        for channel, prior in enumerate(self.priors):
            arrays |= {f"prior{channel}.{name}": array for name, array in prior.state_arrays().items()}
        arrays |= {f"sampler.{name}": array for name, array in self.sampler.state_arrays().items()}
        values = {
            "q": self._q,
            "step_size": self.step_size,
            "temperature": self.temperature,
            "retreats": self._retreats,
            "prepared": self._prepared,
            "iterations": self._iterations,
            "safeguard": self._safeguard.values(),
            "rng": self.rng.bit_generator.state,
        }
        return SolverState(arrays, values)

    def load_state(self, state: SolverState) -> None:
        arrays, values = state.arrays, state.values
        if arrays["x"].shape != self._x.shape:
            raise InvalidInputError(f"the saved estimate has shape {arrays['x'].shape}, this solver {self._x.shape}")

        def part(prefix: str) -> dict[str, NDArray[Any]]:
            return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

        self._x, self._s, self._q = arrays["x"], arrays["s"], values["q"]
        self.step_size, self.temperature = float(values["step_size"]), float(values["temperature"])
        self._retreats, self._prepared = values["retreats"], values["prepared"]
        self._iterations = values["iterations"]
        self._safeguard.load(values["safeguard"], arrays.get("refuge"))
        self._before = (arrays["before_s"], arrays["before_gradient"]) if "before_s" in arrays else None
        for channel, prior in enumerate(self.priors):
            prior.load_state_arrays(part(f"prior{channel}."))
        self.sampler.load_state_arrays(part("sampler."))
        self.rng.bit_generator.state = values["rng"]
