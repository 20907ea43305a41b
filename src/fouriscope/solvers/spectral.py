"""Each spatial frequency with a step of its own: as fast as EPRY, but parallel, online and open to priors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import AmplitudeLoss, DataFidelity, Minibatch, Sampler, WarmUp
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import ComplexArray, RealArray
from fouriscope.priors import Prior
from fouriscope.solvers.base import Solver, SolverState, StepReport, relative_distance
from fouriscope.solvers.continuation import continued
from fouriscope.solvers.descent import Descent
from fouriscope.solvers.frame_worth import harmonic_mean, noise_background
from fouriscope.solvers.pace import LOOK, Pace
from fouriscope.solvers.secants import Secants
from fouriscope.solvers.settlement import Settlement
from fouriscope.solvers.start import Start

# From a flat start, the iteration at which residuals are first taken for noise: before, they are the object itself.
SETTLED = 10
# The most momentum: 0.8 makes a step five times as long in the end, and still averages the noise of minibatches. More
# would carry it on (1 is Nesterov's, and lets it grow from pass to pass).
MOMENTUM = 0.8
# During a warm-up, while the estimate goes farther than it trembles: slow parts of the object need long steps, and all
# frames together will remove the noise.
LONG_MOMENTUM = 0.95
# Looks of :class:`Pace` in which a warm-up makes an object of a flat start.
LOOKS_FROM_FLAT = 2


@door_class
class Spectral(Descent):
    r"""Ô ← V̂ − α [ Ĝ_B(v)/C_B + τ F(v − denoise_σ(v)) ] / (1 + τ)   at every frequency that the minibatch B sees.

    v = o + β (o − o_before) carries on the last step, with β growing as Nesterov's to at most 0.8. If all iterations
    see the same frames, the steps themselves show the curvature, and the direction is that of a quasi-Newton method
    instead (L-BFGS with three pairs, in the metric of the coverage; :class:`~fouriscope.solvers.secants.Secants`).

    For a wave o (``object="wave"``) and the amplitude loss. With u_i = H_i o, the loss of a frame is never above the
    quadratic ‖u_i − √y_i u_i⁰/\|u_i⁰\|‖² that touches it at the present estimate, and that is diagonal in the spectrum:
    its curvature at a frequency is the *coverage* C, the mean of \|P_i\|² over the frames that see it. One over it is
    the step that no guess or search could better. Bright field and dark field, whose coverages differ by a factor of
    a hundred, move equally fast, and with all frames in each iteration, α = 1 and β = 0 the objective never rises.

    G_B is the gradient ∂d/∂ō over a minibatch, C_B its coverage: Ĝ_B/C_B estimates the same quotient over all frames,
    frequency by frequency. Frequencies that no frame of the minibatch sees stay as they are, and those that no
    frame at all sees stay zero: the object lives in its band.

    The prior pulls every frequency towards the denoised image, τ times as hard as the data (``denoiser_weight``), with
    σ² = λ/(2τC₀) and C₀ the harmonic mean of the coverage over the band. If all frequencies had this coverage, that
    would be the gradient of λr, smoothed over the distance σ² (Moreau), or regularisation by denoising. In the metric
    of the coverage the prior holds no frequency back by more than a factor 1 + τ, however few frames see it; with one
    weight for all it held back what bright-field frames alone see, a hundred times where dark frames weigh much more.

    What a frame is worth follows from how well a model can explain it at all. At the start (after ten iterations, if it
    is flat) and once more 30 iterations later, residuals are taken for noise. They weigh the frames (``balance``) and
    say how strong an automatic prior is: :class:`~fouriscope.solvers.settlement.Settlement`. Until then it waits.

    A frame that is little but noise has √y > 0 wherever its noise is positive, and a fit of \|u\| to it finds light
    that is not there. So the loss compares √(\|u\|² + ε) with √(y + ε), where ε (``background``) is twice the noise of
    dark frames: over such noise √(y + ε) is nearly linear, and its mean is that of the light. ε is one more source of
    every frame, of constant intensity, so the bound by a quadratic holds as it is.

    Online α is 1 while the estimate travels. When it only trembles with the noise of minibatches, α falls as
    1/(1 + passes/5), and the iterates average this noise: :class:`~fouriscope.solvers.pace.Pace`. With all frames in
    each iteration α = 1 throughout. ``step`` is its first value. A warm-up (``sampler="warm-up"``) goes on, with a
    momentum of up to 0.95, while the estimate goes farther within the frames' window than it trembles. From a flat
    start, the margin is filled once with a smooth continuation of the window.

    Parameters
    ----------
    fidelity, sampler, priors, start, seed, truth
        See :class:`fouriscope.solvers.descent.Descent`. Of the two priors the first is for the real part and the
        second for the imaginary part.
    step
        α at the start, at most 1; "auto" is 1, and is halved if the run diverges (during a calibration, say).
    denoiser_weight
        τ.
    balance
        Whether frames are weighted by their residuals; weights that the user gives are additional factors.
    background
        ε, in units of the bright field; "auto" is that of the loss, if it has one, otherwise it is measured when the
        solver begins. 0 is the plain loss.
    strength_factor
        What the automatic strength of the priors is multiplied by. "auto" is 1 here: frames that are held out decide
        it before a run, in :func:`fouriscope.reconstruct`.
    long_steps
        Whether α stays 1 while the estimate travels. Otherwise it falls from the first pass on, which holds back what
        few frames determine; that is better if the model is wrong there. "auto" is true here, like ``strength_factor``.
    acceleration
        Whether there is a momentum, or a quasi-Newton direction if all iterations see the same frames. Without it
        β = 0, and with all frames in each iteration the misfit never rises.

    References
    ----------
    K. Lange, "MM optimization algorithms" (2016); P. Thibault and A. Menzel, "Reconstructing state mixtures from
    diffraction measurements" (2013) for the averaged projections that this is without a prior; E. T. Reehorst and
    P. Schniter, "Regularization by denoising: clarifications and new interpretations" (2019).

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> model = fs.ForwardModel(optics, fs.LEDArray.square(7, pitch=4e-3, height=70e-3), (24, 24))
    >>> phase = 0.2 * (np.indices(model.object_shape).sum(axis=0) % 40 < 20)
    >>> data = fs.Acquisition(optics, model.illumination, fs.simulate(model, phase, snr_db=40, seed=0).frames)
    >>> result = fs.reconstruct(data, method=fs.settings.Spectral(acceleration=False), object="wave",
    ...                         loss="amplitude", prior=None, batch=None, align=(), calibrate=(), start="flat",
    ...                         iterations=20)
    >>> bool(np.all(np.diff(result.history["misfit"]) <= 0))
    True
    """

    def __init__(
        self,
        fidelity: DataFidelity,
        sampler: Sampler,
        priors: Sequence[Prior],
        *,
        step: float | Literal["auto"] = "auto",
        denoiser_weight: float = 1.0,
        balance: bool = True,
        background: float | Literal["auto"] = "auto",
        strength_factor: float | Literal["auto"] = "auto",
        long_steps: bool | Literal["auto"] = "auto",
        acceleration: bool = True,
        start: Start = "flat",
        seed: int = 0,
        truth: RealArray | None = None,
    ) -> None:
        if fidelity.model.object.name != "wave" or not fidelity.loss.is_projection:
            raise InvalidInputError(
                'the method "spectral" steps along the spectrum of a wave and bounds the amplitude loss: use '
                f'object="wave" and loss="amplitude" with it, or another method; got object='
                f"{fidelity.model.object.name!r} and loss={fidelity.loss.name!r}"
            )
        if not (math.isfinite(denoiser_weight) and denoiser_weight > 0):
            raise InvalidInputError(f"denoiser_weight must be a positive number, got {denoiser_weight!r}")
        if step != "auto" and not 0 < step <= 1:
            raise InvalidInputError(
                f'step must lie between 0 and 1 for the method "spectral", or be "auto", got {step}'
            )
        if background != "auto" and not 0 <= background < math.inf:
            raise InvalidInputError(f'background must be a number ≥ 0, or "auto", got {background!r}')
        if strength_factor != "auto" and not 0 < strength_factor < math.inf:
            raise InvalidInputError(f'strength_factor must be a positive number, or "auto", got {strength_factor!r}')
        if background == "auto" and fidelity.loss.epsilon:
            background = fidelity.loss.epsilon  # who made the loss has chosen it
        self.denoiser_weight, self.balance, self.background = float(denoiser_weight), balance, background
        self.strength_factor = 1.0 if strength_factor == "auto" else float(strength_factor)
        self.acceleration = acceleration
        # In a warm-up the frames' window decides: the margin travels on when all else has arrived.
        window = (slice(None), *fidelity.model.geometry.object_window)
        self._secants, self._pace = Secants(), Pace(window) if sampler.warms_up else Pace()
        batches = math.ceil(len(sampler.population) / sampler.batch) if isinstance(sampler, WarmUp) else 0
        self._found_at = LOOKS_FROM_FLAT * max(LOOK, batches)
        if not long_steps:
            self._pace.fade_from(0.0)
        self._passes = 0.0
        self._known: tuple[ForwardModel | None, float] | None = None
        super().__init__(fidelity, sampler, priors, step=step, start=start, seed=seed, truth=truth)
        self._settlement = Settlement(fidelity, self.denoise, balance=balance)

    @property
    def fades(self) -> bool:
        return False  # α does

    @property
    def travels(self) -> bool:
        return self._pace.heads_on

    def go_to_start(self) -> None:
        self._measure_background()
        super().go_to_start()

    def _measure_background(self) -> None:
        background = self.background
        if background == "auto":
            background = noise_background(self.fidelity, self.sampler.population)
        self.fidelity.loss = AmplitudeLoss(background)

    def begin_at(self, x: RealArray) -> None:
        self._before, self._q = x, 1.0
        self._secants.forget()
        self._pace.begin_at(x)

    def find_step(self) -> None:
        if self._control.automatic:
            self._control.size = 1.0

    def take_temperature(self) -> None:
        pass  # residuals tell it

    def watch_step(self, s: RealArray, gradient: RealArray) -> None:
        pass  # the coverage bounds the curvature: there is nothing to find out

    def measurements_changed(
        self, leds: NDArray[np.int64], before: NDArray[np.int64], population: NDArray[np.int64], *, begin_again: bool
    ) -> None:
        """Coverage and weights follow the frames that are there.

        If many came, what a frame is worth is found again, and the momentum ends: it led to where another mean is
        least.
        """
        Solver.measurements_changed(self, leds, before, population, begin_again=begin_again)
        self._safeguard.measurements_changed(leds)
        self._known = None
        self._secants.forget()
        if self._settlement.rounds and begin_again:
            self._safeguard.begin_again()
            self._measure_background()
            self._settlement.begin_again()
            self.begin_at(self._x)
        else:
            self._settlement.weigh()

    def iterate(self) -> StepReport:
        if isinstance(self.sampler, WarmUp) and self.sampler.warms_up:
            self._warm_up(self.sampler)
        elif self._settlement.is_due(self._iterations, SETTLED if self._starts_with("flat") else 0):
            self._settle()
        same_frames = self.acceleration and self.sampler.is_fixed
        start = self._x if same_frames else self._carried_on()
        slope = self.slope(start)
        batch, model = slope.batch, self.fidelity.model
        everything = len(batch.leds) == len(self.sampler.population)
        coverage = self._coverage(model)
        seen = coverage if everything else self._covered(model, batch)
        residual = self._residual(start, slope.gradient, seen, harmonic_mean(coverage))
        alpha = self.step_size / (1.0 if everything else self._pace.fading)
        if same_frames:
            root = np.sqrt(coverage)
            change = self._secants.direction(
                model.spectrum(_as_wave(start)) * root, residual * root, objective=slope.misfit
            )
            change *= np.divide(alpha, root, out=np.zeros_like(root), where=root > 0)
        else:
            change = residual * residual.real.dtype.type(-alpha)
        moved = model.inverse_spectrum(change, out=change)
        before, self._x = self._x, start + np.stack([moved.real, moved.imag])
        self._before = before
        share = batch.size / len(self.sampler.population)
        self._passes += share
        if not everything:
            self._pace.note(self._x, share)
        return StepReport(
            slope.misfit, relative_distance(self._x, before), alpha, self.denoise.strengths[0], len(batch.leds)
        )

    def _warm_up(self, sampler: WarmUp) -> None:
        """Go on with minibatches until it is known that the estimate no longer strides.

        A flat start has become an object after two looks, but its margin has not. Only then a common way of two looks
        shows slow parts of the object.
        """
        model = self.fidelity.model
        if self._starts_with("flat") and self._iterations == self._found_at:
            if model.geometry.margin:
                spectrum = model.spectrum(_as_wave(continued(model, self._x)))
                wave = model.inverse_spectrum(np.where(self._coverage(model) > 0, spectrum, 0))
                self._x = np.stack([wave.real, wave.imag])
                self.begin_at(self._x)
            self._pace.begin_at(self._x)
        if self._pace.strides or not self._pace.is_known:
            sampler.prolong()

    def _carried_on(self) -> RealArray:
        """v, the estimate carried on by its last step."""
        q = (1 + math.sqrt(1 + 4 * self._q**2)) / 2 if self.acceleration else 1.0
        share = min((self._q - 1) / q, LONG_MOMENTUM if self.sampler.warms_up and self._pace.strides else MOMENTUM)
        self._q = q
        return np.asarray(self._x + self._x.dtype.type(share) * (self._x - self._before))

    def _residual(self, v: RealArray, gradient: RealArray, seen: RealArray, typical: float) -> ComplexArray:
        """[ Ĝ/C + τ F(v − denoise_σ(v)) ] / (1 + τ) at the frequencies that are ``seen``, 0 elsewhere."""
        model, real, tau = self.fidelity.model, v.dtype.type, 0.0
        residual = model.spectrum(_as_wave(gradient))
        residual *= np.divide(real(0.5), seen, out=np.zeros_like(seen), where=seen > 0)  # ∇ by (a, b) is twice ∂d/∂ō
        automatic = any(prior.strength == "auto" for prior in self.priors)
        if any(prior.name != "none" for prior in self.priors) and (self._settlement.rounds or not automatic):
            tau = self.denoiser_weight
            denoised = self.denoise(v, 1 / (2 * tau * typical))
            residual += model.spectrum(_as_wave(v - denoised)) * real(tau)
        residual *= np.where(seen > 0, real(1 / (1 + tau)), real(0))
        return residual

    def _settle(self) -> None:
        first = not self._settlement.rounds
        temperature = self._settlement.settle(self._x, self.sampler.population, self._iterations)
        temperature *= self.strength_factor
        self._known = None
        if first:
            self.denoise.fix(temperature, self._x)
            self._secants.forget()  # weights and prior are others now
        else:
            self.denoise.cool(temperature)
            self.begin_at(self._x)

    def settle_like(self, other: Self) -> None:
        """Weigh the frames and fix the strength as ``other`` has, too."""
        super().settle_like(other)
        self._settlement.like(other._settlement)
        self._known = None

    def _covered(self, model: ForwardModel, batch: Minibatch) -> RealArray:
        return model.coverage(batch.leds, batch.weights * self.fidelity.weights[batch.leds] / batch.size)

    def _coverage(self, model: ForwardModel) -> RealArray:
        """C of all frames; a calibration changes it slowly, so it is computed once per pass."""
        if self._known is None or (self._known[0] is not model and self._passes >= self._known[1] + 1):
            leds = self.sampler.population
            self._full = model.coverage(leds, self.fidelity.weights[leds] / len(leds))
            self._known = (model, self._passes)
        return self._full

    def load_estimate(self, state: SolverState) -> None:
        super().load_estimate(state)
        # A checkpoint of before there was a background goes on without one.
        self.fidelity.loss = AmplitudeLoss(float(state.values["own"].get("background", 0.0)))

    def own_state(self) -> SolverState:
        arrays = self._settlement.state_arrays() | {"before": self._before}
        arrays |= {} if self._known is None else {"coverage": self._full}
        arrays |= {f"secants.{name}": array for name, array in self._secants.state_arrays().items()}
        arrays |= {f"pace.{name}": array for name, array in self._pace.state_arrays().items()}
        measured_at = None if self._known is None else self._known[1]
        values: dict[str, Any] = {"passes": self._passes, "measured_at": measured_at, "q": self._q}
        values["pace"] = self._pace.state_values()
        values |= self._settlement.state_values() | {"background": self.fidelity.loss.epsilon}
        return SolverState(arrays, values)

    def load_own_state(self, state: SolverState) -> None:
        values = state.values
        self._passes = float(values["passes"])
        # A checkpoint of before there was momentum begins it anew.
        self._before, self._q = state.arrays.get("before", self._x), float(values.get("q", 1.0))
        self._settlement.load(state.arrays, values)
        if "pace" in values:
            self._pace.load(state.part("pace"), values["pace"])
        else:
            self._pace.fade_from(self._passes)
        self._secants.load_state_arrays(state.part("secants"), _as_wave(self._x))
        self._known = None
        if "coverage" in state.arrays:
            self._full = state.arrays["coverage"]
            # Of which model is not kept. It is measured again when its pass is over: the same if the model stayed.
            self._known = (None, float(values["measured_at"]))


def _as_wave(images: RealArray) -> ComplexArray:
    wave = np.empty(images.shape[1:], np.result_type(images.dtype, np.complex64))
    wave.real, wave.imag = images
    return wave
