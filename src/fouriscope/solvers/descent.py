"""What every method shares that walks down the data fidelity with priors: PnP, ADMM and RED write only their step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import DivergenceError, InvalidInputError
from fouriscope.fidelity import DataFidelity, IntensityLoss, Minibatch, Sampler
from fouriscope.forward.objects import RealArray
from fouriscope.placement import belongs_on_device, on_device, on_host
from fouriscope.priors import Prior
from fouriscope.solvers.base import Solver, SolverState, StepReport, relative_distance
from fouriscope.solvers.denoising import Denoising
from fouriscope.solvers.journey import Journey
from fouriscope.solvers.safeguard import Safeguard
from fouriscope.solvers.start import Start, StartName, checked_start, starting_point
from fouriscope.solvers.step_control import StepControl

RETREATS_AT_MOST = 30
# Minibatches of which the frames are announced before they are drawn, where frames are streamed from disk.
DRAWS_AHEAD = 8
# What :class:`StepControl` keeps in a state.
BEFORE = ("before_s", "before_gradient")


class WentAstrayError(Exception):
    """The estimate was put back to a good one with a smaller step: the iteration must begin again."""


class Slope(NamedTuple):
    """A gradient with the minibatch that it was taken over."""

    misfit: float
    gradient: RealArray
    batch: Minibatch


class Descent(Solver):
    """A solver with minibatch gradients, priors, an automatic step, and a return to the best estimate if it diverges.

    A subclass writes :meth:`iterate`, which replaces ``self._x`` when it is complete and calls :meth:`slope` for its
    gradients and ``self.denoise`` for its priors; :meth:`begin_at`, which sets what the method keeps beside x; and
    :meth:`own_state` and :meth:`load_own_state` for checkpoints.

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
        γ. "auto" is one over the curvature of the measurements really used. It is shortened if it proves too long, and
        the solver returns to the last good estimate if the run diverges. A number is used as it is; if the run then
        diverges, :class:`DivergenceError` says so.
    start
        "flat", "linear" (bright-field deconvolution), "epry" (four sweeps), an array, or a function that computes one.
    loss_from_noise
        Whether the loss is found from the noise in the frames when the solver begins, and approached on a
        :class:`~fouriscope.solvers.road.Road`. Otherwise it is that of the fidelity, from the first iteration on.
    seed
        Seed of the sampler and of the probes. Same seed, same result.
    truth
        Used only to report the SNR.

    Attributes
    ----------
    stays_on_device
        Whether the method's own arithmetic is that of arrays and of tensors alike. Its estimates then stay on the
        device of the engine, and ``x`` is a copy; see :mod:`fouriscope.placement`.
    """

    stays_on_device: ClassVar[bool] = False

    def __init__(
        self,
        fidelity: DataFidelity,
        sampler: Sampler,
        priors: Sequence[Prior],
        *,
        step: float | Literal["auto"] = "auto",
        start: Start = "flat",
        loss_from_noise: bool = False,
        seed: int = 0,
        truth: RealArray | None = None,
    ) -> None:
        self.denoise = Denoising(fidelity, priors)
        self._control = StepControl(step)
        super().__init__(fidelity, sampler, seed=seed, truth=truth)
        self._safeguard = Safeguard(fidelity)
        self._retreats = 0
        self._prepared = False
        self._iterations = 0
        self._began = 0  # the iteration at which the measurements became what they are
        self._start, self._seed = checked_start(start, fidelity.model), seed
        self.journey = Journey(fidelity, self.denoise, wanted=loss_from_noise)

    def go_to_start(self) -> None:
        self.journey.begin(self.sampler.population)
        self._x = self.placed(starting_point(self._start, self.fidelity, self.sampler.population, seed=self._seed))
        self.begin_at(self._x)

    def placed(self, array: NDArray[Any]) -> RealArray:
        """An array of x's shape where the method keeps it."""
        engine = self.fidelity.model.engine
        return on_device(array, engine) if self.stays_on_device and belongs_on_device(engine) else array

    @abstractmethod
    def iterate(self) -> StepReport:
        """One iteration of the method."""

    @abstractmethod
    def begin_at(self, x: RealArray) -> None:
        """Set everything that the method keeps beside x: at the start, and after going astray."""

    @abstractmethod
    def own_state(self) -> SolverState:
        """What the method keeps beside x."""

    @abstractmethod
    def load_own_state(self, state: SolverState) -> None:
        """Take back what :meth:`own_state` gave."""

    @property
    def x(self) -> RealArray:
        """The estimate: when it only trembles with the noise of minibatches, the mean of the last ones."""
        self.begin()
        mean = self.journey.mean
        return on_host(self._x) if mean is None else mean

    @property
    def averaged(self) -> int:
        return self.journey.averaged

    @property
    def findings(self) -> tuple[str, ...]:
        if self.journey.road is None:
            return ()
        noise = f"noise: {self.journey.road}"
        if not self.journey.cut_off:
            return (noise,)
        return (
            noise,
            "black level: it cuts off negative noise, which lifts the mean of dark frames; this is corrected",
        )

    @property
    def priors(self) -> list[Prior]:
        return self.denoise.priors

    @property
    def strengths(self) -> list[float]:
        return self.denoise.strengths

    @property
    def step_size(self) -> float:
        """γ as it is now. An automatic one fades over minibatches, where the method lets it."""
        fades = self._control.automatic and self.fades and not self.sampler.takes_all
        return self._control.size / (self.journey.fading if fades else 1.0)

    @step_size.setter
    def step_size(self, size: float) -> None:
        self._control.size = size

    @property
    def fades(self) -> bool:
        """Whether steps over minibatches become shorter in the end. With the intensity loss from the first iteration on
        they do not: its road is long, and it has to be gone."""
        return self.journey.road is not None or not isinstance(self.fidelity.loss, IntensityLoss)

    @np.errstate(over="ignore", invalid="ignore")  # the safeguard notices a step that goes astray, and acts
    def step(self) -> StepReport:
        self.begin()
        self.journey.look_ahead()
        if not self._prepared:
            self.find_step()
            self.denoise.reset()  # what a prior kept from an earlier run must not change this one
            self._prepared = True
        self.take_temperature()
        self.journey.go_on()
        while True:
            try:
                report = self.iterate()
            except WentAstrayError:
                continue
            self._iterations += 1
            report = report._replace(misfit=report.misfit * self.journey.misfit_factor)
            return self._watched(report) if self.fades and not self.sampler.takes_all else report

    def _watched(self, report: StepReport) -> StepReport:
        """Note where the iteration has led. If x is a mean, the residual is how much that has changed."""
        if self._control.automatic and self._starts_with("flat") and self.journey.is_astray(report.misfit):
            self._control.halve()
        before = self.journey.mean
        self.journey.note(on_host(self._x), report.frames / len(self.sampler.population))
        mean = self.journey.mean
        return report if before is None or mean is None else report._replace(residual=relative_distance(mean, before))

    def take_temperature(self) -> None:
        """Measure before some iterations how strong automatic priors are."""
        self.denoise.take_temperature(self._x, self._iterations - self._began, self.sampler.population, self.rng)

    def find_step(self) -> None:
        """Measure γ before the first iteration."""
        # An object that EPRY began absorbs, and is noisy: the flat one bounds its curvature, and costs less.
        at = np.zeros_like(self.x) if self._starts_with("epry") else self.x
        self._control.find(self.fidelity, at, self.sampler, self.rng)

    def _starts_with(self, name: StartName) -> bool:
        return isinstance(self._start, str) and self._start == name

    def watch_step(self, s: RealArray, gradient: RealArray) -> None:
        """Two gradients over the same measurements show whether γ is too long."""
        self._control.watch(s, gradient)

    def slope(self, s: RealArray) -> Slope:
        """d and ∇d at ``s`` over a new minibatch; raises where they show that s leads nowhere."""
        batch = self.sampler.draw(self.rng)
        calibration = self.calibration
        if self.fidelity.wants_hints:
            self.fidelity.expect(self.sampler.peek(self.rng, DRAWS_AHEAD))
        misfit, gradient = self.fidelity.gradient(s, batch, None if calibration is None else calibration.observer)
        if not self._safeguard.accepts(misfit, gradient, self._x, batch):
            if calibration is not None:
                calibration.forget()
            self._retreat(misfit)
            raise WentAstrayError
        self.journey.steps += 1
        gradient = self.fidelity.model.object.tempered(s, gradient)
        if calibration is not None:
            calibration.revise(self.fidelity, on_host(s), batch)
        elif self.sampler.is_fixed:
            self.watch_step(s, gradient)
        return Slope(misfit, gradient, batch)

    def settle_like(self, other: Self) -> None:
        """Go on from where ``other`` is on its road, too."""
        self.begin()  # which goes to the beginning of the road
        super().settle_like(other)
        self.journey.follow(other.journey)

    def measurements_changed(
        self, leds: NDArray[np.int64], before: NDArray[np.int64], population: NDArray[np.int64], *, begin_again: bool
    ) -> None:
        """Take note of frames that arrived, without measuring anything anew for one or two of them.

        d is a mean: its curvature, nearly all of it from bright-field frames, is as large as their share, so γ goes
        with one over that share; and T, the temperature of the noise, falls as 1/J. If the population has changed much,
        γ is measured again (at the flat object, which costs least), T in the iterations that follow, the momentum
        ends (it led to where another mean is least), and the road, if there is one, begins again for the new frames.
        """
        super().measurements_changed(leds, before, population, begin_again=begin_again)
        self._safeguard.measurements_changed(leds)
        self.journey.average_anew()
        self.denoise.temperature *= len(before) / len(population)
        bright = self.fidelity.model.geometry.bright_field
        self._control.scale(bright[before].mean() / max(bright[population].mean(), 1 / len(population)))
        if begin_again and self._prepared:
            self.journey.begin(self.sampler.population)
            self._control.find(self.fidelity, np.zeros_like(self.x), self.sampler.settled(), self.rng)
            self._safeguard.begin_again()
            self.begin_at(self._x)
            self._began = self._iterations - 1  # not 0: that is the flat start, at which dark field says nothing

    def _retreat(self, misfit: float) -> None:
        if not self._control.automatic:
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
        self._control.halve()
        self.journey.average_anew()
        self._x = refuge
        self.begin_at(refuge)
        self.denoise.reset()

    def state(self) -> SolverState:
        self.begin()
        own = self.own_state()
        arrays: dict[str, NDArray[Any]] = {"x": self._x, **{f"own.{name}": a for name, a in own.arrays.items()}}
        if self._safeguard.refuge is not None:
            arrays["refuge"] = self._safeguard.refuge
        arrays |= self._common_arrays() | self._control.state_arrays() | self.denoise.state_arrays()
        arrays |= self.journey.state_arrays()
        values = {
            "own": own.values,
            "step_size": self._control.size,
            "temperature": self.denoise.temperature,
            "retreats": self._retreats,
            "prepared": self._prepared,
            "iterations": self._iterations,
            "safeguard": self._safeguard.values(),
            "rng": self.rng.bit_generator.state,
        } | self.journey.state_values()
        return SolverState({name: on_host(array) for name, array in arrays.items()}, values)

    def load_estimate(self, state: SolverState) -> None:
        x = state.arrays["x"]
        model = self.fidelity.model
        if (x.shape, x.dtype) != (model.x_shape, model.dtype):
            raise InvalidInputError(
                f"the saved estimate is {x.dtype} of shape {x.shape}, but this solver's is {model.dtype} of "
                f"{model.x_shape}"
            )
        self._x, self._has_estimate = self.placed(x), True
        self.journey.load(state.values, state.arrays)
        self._load_calibration(state)

    def load_state(self, state: SolverState) -> None:
        arrays, values = state.arrays, state.values
        self.load_estimate(state)
        self.begin_at(self._x)  # what the method keeps must have the shapes that it would begin with
        own = {f"own.{name}": array for name, array in self.own_state().arrays.items()}
        for name, like in (own | dict.fromkeys(("refuge", *BEFORE), self.x)).items():
            like = on_host(like)
            if name in arrays and (arrays[name].shape, arrays[name].dtype) != (like.shape, like.dtype):
                raise InvalidInputError(
                    f"the saved {name} is {arrays[name].dtype} of shape {arrays[name].shape}, but this solver's is "
                    f"{like.dtype} of {like.shape}"
                )
        placed = {name: self.placed(array) for name, array in state.part("own").items()}
        self.load_own_state(SolverState(placed, values["own"]))
        self._control.load(float(values["step_size"]), {n: self.placed(arrays[n]) for n in BEFORE if n in arrays})
        self.denoise.temperature = float(values["temperature"])
        self._retreats, self._prepared = values["retreats"], values["prepared"]
        self._iterations = values["iterations"]
        self._safeguard.load(values["safeguard"], self.placed(arrays["refuge"]) if "refuge" in arrays else None)
        self.denoise.load_state_arrays(arrays)
        self.sampler.load_state_arrays(state.part("sampler"))
        self.rng.bit_generator.state = values["rng"]
