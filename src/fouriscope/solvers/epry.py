"""EPRY: measured moduli are put into one field after the other, as laboratories do it; a baseline."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.checks import door_class
from fouriscope.errors import DivergenceError, InvalidInputError
from fouriscope.fidelity import DataFidelity, Minibatch, Sampler
from fouriscope.fidelity.pipeline import group_size
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import ComplexArray, RealArray
from fouriscope.solvers._epry_arrays import mean_light, spectrum_of, union_of_pupils, visit, x_of
from fouriscope.solvers._epry_options import Order, check_options, visiting_order
from fouriscope.solvers.base import Solver, SolverState, StepReport, relative_distance
from fouriscope.solvers.start import Start, checked_start, starting_point

# The light of an object that explains the frames is at most that of all frames together; beyond this many times that,
# a run is lost.
ALARM = 100.0


@door_class
class EPRY(Solver):
    r"""O ← O + α · \|Q\|/max\|Q\| · Q̄/(\|Q\|² + δ) Δ,   Q = C P_i,   for one LED i after the other.

    O is the spectrum of a complex object, P_i the pupil that the model knows (moved by the LED's fraction of a bin) and
    C a correction of it that all LEDs share. With S_i the crop at LED i, one LED is

    1. ψ = C P_i S_i O, the spectrum of its field u = F⁻¹ψ;
    2. u' = √max(y_i, 0) · u/\|u\| where a pixel is measured; in the margin and under the mask u' = u;
    3. Δ = F(u' − u), which moves O as above and, if β > 0, from the same O,
       C ← C + β · \|E\|/(max\|P\| max\|O\|) · Ē/(\|E\|² + δ) Δ with E = P_i S_i O.

    The maximum of \|O\| is taken over the whole spectrum, before the sweep: with that of each crop, dark-field frames,
    however noisy, would move C as much as bright ones do.

    A step is a sweep over the LEDs that the sampler draws. After each sweep C is scaled to mean modulus 1 and O takes
    the factor, because the frames know only their product. Nothing tells either of a tilt of C from a shift of the
    object, and C is the same for all LEDs bin by bin: it does not move with the fraction of a bin as P_i does.

    There is no objective, no noise model and no prior: noise is fitted like everything else, and dark frames, whose √y
    is biased by noise, count as much as bright ones.

    Parameters
    ----------
    fidelity
        Where model, frames, mask and weights come from. Its loss is not minimised; the misfit is reported in it, from
        the fields as each LED finds them, so that it compares with the other solvers'. A frame of weight 0 is left
        out; other weights count in the reported misfit only.
    sampler
        Which LEDs a sweep visits; each of them is visited once, whatever its weight in the minibatch.
    order
        "random": a new order for each sweep; "na": from the axis outwards and round each ring, so that a dark-field
        frame finds the phase that its neighbours left; "sampler": as drawn. Random is better if the field continues
        beyond its frames, and with noise.
    object_step
        α. 1 replaces what the pupil sees; smaller averages over LEDs. Together with β above 2 it may diverge.
    pupil_step
        β; 0 leaves C = 1, the pupil is known.
    pupil_start
        The first iteration (from 1) that moves C. The object should mean something by then.
    decay
        Both steps are divided by 1 + decay · (k − 1) in iteration k. Without it, noise keeps a run moving for ever.
    start
        "flat", "linear" (bright-field deconvolution) or an array.
    seed
        Seed of the sampler and of a random order. Same seed, same result.
    truth
        Used only to report the SNR.

    Attributes
    ----------
    x
        What the model's object can hold. "wave": all of it. "complex": phase and absorption −log\|o\|. "phase": the
        phase alone, though inside EPRY the amplitude is free. The phase is measured from the direction of the mean of
        o, lies within ±π of it, and is not unwrapped.

    References
    ----------
    X. Ou, G. Zheng and C. Yang, "Embedded pupil function recovery for Fourier ptychographic microscopy" (2014).

    Examples
    --------
    A lens that is out of focus by 10 µm, which the model does not know:

    >>> import numpy as np, fouriscope as fs
    >>> from fouriscope.fidelity import AllLEDs
    >>> from fouriscope.solvers import EPRY, Iterations
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(7, pitch=4e-3, height=70e-3)
    >>> lens = fs.ForwardModel(optics, leds, (32, 32), pupil=fs.Pupil(defocus=10e-6))
    >>> truth = 0.4 * (np.indices(lens.object_shape).sum(axis=0) % 40 < 20)
    >>> data = fs.simulate(lens, truth, seed=0)
    >>> model = fs.ForwardModel(optics, leds, (32, 32))
    >>> fidelity = fs.DataFidelity(model, data.frames, loss="amplitude")
    >>> misfits = []
    >>> for beta in (0.0, 1.0):
    ...     solver = EPRY(fidelity, AllLEDs(np.arange(len(model))), pupil_step=beta)
    ...     misfits.append(solver.solve(Iterations(20)).last.misfit)
    >>> bool(misfits[1] < 0.3 * misfits[0]), solver.pupil.shape
    (True, (32, 32))
    """

    def __init__(
        self,
        fidelity: DataFidelity,
        sampler: Sampler,
        *,
        order: Order = "random",
        object_step: float = 1.0,
        pupil_step: float = 0.0,
        pupil_start: int = 1,
        decay: float = 0.0,
        start: Start = "flat",
        seed: int = 0,
        truth: RealArray | None = None,
    ) -> None:
        check_options(order, object_step, pupil_step, pupil_start, decay)
        super().__init__(fidelity, sampler, seed=seed, truth=truth)
        self.order = order
        self.object_step, self.pupil_step = float(object_step), float(pupil_step)
        self.pupil_start, self.decay = int(pupil_start), float(decay)
        self._start = checked_start(start, fidelity.model)
        self._iterations = 0

    def go_to_start(self) -> None:
        model = self.fidelity.model
        self._spectrum = spectrum_of(model, starting_point(self._start, self.fidelity))
        pupil = union_of_pupils(model)
        self._largest_pupil = float(pupil.max())
        self._correction = (pupil > 0).astype(model.complex_dtype)
        self._brightest = mean_light(self._spectrum)
        self._x = x_of(model, self._spectrum)

    @property
    def pupil(self) -> ComplexArray:
        """C on the frequency grid of the frame (margins included), zero frequency in the middle, 0 outside the disc."""
        self.begin()
        return self.fidelity.model.pupils.on_frame_grid(self._correction)

    @property
    def model(self) -> ForwardModel:
        """The model of the fidelity, with C in its pupil if that is recovered."""
        return self._corrected() if self.pupil_step else self.fidelity.model

    def _corrected(self) -> ForwardModel:
        """C as a factor of the pupil's array: what the pupil knows in numbers stays exact between bins."""
        model = self.fidelity.model
        known, found = model.pupil, self.pupil
        return model.revised(pupil=replace(known, array=found if known.array is None else known.array * found))

    @property
    def recovered_pupil(self) -> ComplexArray | None:
        # On the bins themselves nothing need be interpolated.
        return self.pupil * self.fidelity.model.pupil_on_grid() if self.pupil_step else super().recovered_pupil

    @np.errstate(over="ignore", invalid="ignore")  # _check notices what overflows, and says it
    def step(self) -> StepReport:
        self.begin()
        fading = 1 + self.decay * self._iterations
        object_step = self.object_step / fading
        pupil_step = self.pupil_step / fading if self._iterations + 1 >= self.pupil_start else 0.0
        batch = self.sampler.draw(self.rng)
        order = visiting_order(self.order, self.fidelity.model.geometry.na[batch.leds], self.rng)
        order = order[self.fidelity.weights[batch.leds[order]] > 0]
        if self.fidelity.wants_hints:
            self.fidelity.expect(self.sampler.peek(self.rng))
            self.fidelity.read_ahead(batch.leds[order])
        # Copies, so that an interrupted sweep leaves nothing half done.
        spectrum, correction = self._spectrum.copy(), self._correction.copy()
        largest = (float(np.abs(spectrum).max()) * self._largest_pupil) ** 2 if pupil_step else 0.0
        misfits, lights = np.zeros(len(batch.leds)), np.zeros(len(batch.leds))
        size = group_size(self.fidelity.model.geometry, self.fidelity.model.dtype.itemsize)
        for first in range(0, len(order), size):
            group = order[first : first + size]
            steps = (object_step, pupil_step, largest)
            misfits[group], lights[group] = visit(self.fidelity, spectrum, correction, batch.leds[group], steps)
        if pupil_step:
            scale = spectrum.real.dtype.type(np.abs(correction[correction != 0]).mean())
            correction /= scale
            spectrum *= scale
        misfit = self.fidelity.mean(misfits, batch)
        brightest = max(self._brightest, float(lights.max()))
        self._check(misfit, mean_light(spectrum), brightest)
        x = x_of(self.fidelity.model, spectrum)
        residual = relative_distance(x, self._x)
        self._spectrum, self._correction, self._x, self._brightest = spectrum, correction, x, brightest
        self._iterations += 1
        if self.calibration is not None:
            self._calibrate(batch)
        return StepReport(misfit, residual, object_step, 0.0, len(order))

    def _calibrate(self, batch: Minibatch) -> None:
        """Let the calibration revise the model; C stays on its bins, though their box may have become another.

        What a calibration predicts must be what EPRY predicts: with C in the pupil, and with the amplitude.
        """
        assert self.calibration is not None
        known, on_grid = self.fidelity.model.pupil, self.pupil
        if len(self.fidelity.model.object.channels) == 1:
            raise InvalidInputError(
                "a calibration with EPRY predicts frames from phase and absorption: use object='complex'"
            )
        self.fidelity.use(self._corrected())
        revised = self.calibration.revise(self.fidelity, self._x, batch)
        self.fidelity.use(self.fidelity.model.revised(pupil=known))
        if revised:
            self._largest_pupil = float(union_of_pupils(self.fidelity.model).max())
            support = union_of_pupils(self.fidelity.model) > 0
            correction = self.fidelity.model.pupils.from_frame_grid(on_grid)
            correction[support & (correction == 0)] = 1  # bins that no LED had lit
            self._correction = np.where(support, correction, 0).astype(correction.dtype)

    def _check(self, misfit: float, light: float, brightest: float) -> None:
        if light <= ALARM * brightest * len(self.fidelity) and math.isfinite(misfit):
            return
        raise DivergenceError(
            f"EPRY diverged in iteration {self._iterations + 1} with object_step={self.object_step:g} and "
            f"pupil_step={self.pupil_step:g} (misfit {misfit:.3g}, mean |o|² {light:.3g}); use steps of at most 1, "
            "and check that the frames have no NaN outside the mask"
        )

    def state(self) -> SolverState:
        self.begin()
        arrays: dict[str, NDArray[Any]] = {"spectrum": self._spectrum, "correction": self._correction}
        arrays |= self._common_arrays()
        values = {
            "iterations": self._iterations,
            "brightest": self._brightest,
            "rng": self.rng.bit_generator.state,
        }
        return SolverState(arrays, values)

    def load_estimate(self, state: SolverState) -> None:
        arrays = state.arrays
        self._load_calibration(state)
        model = self.fidelity.model
        for name, shape in (("spectrum", model.object_shape), ("correction", model.pupils.box_shape)):
            expected = f"{model.complex_dtype} {shape}"
            found = f"{arrays[name].dtype} {arrays[name].shape}" if name in arrays else "none"
            if found != expected:
                raise InvalidInputError(
                    f"the state must hold a {name} of {expected}, found {found}: continue with the solver, model and "
                    "precision that saved it"
                )
        self._largest_pupil = float(union_of_pupils(model).max())
        self._spectrum, self._correction = arrays["spectrum"], arrays["correction"]
        self._x, self._has_estimate = x_of(model, self._spectrum), True

    def load_state(self, state: SolverState) -> None:
        values = state.values
        self.load_estimate(state)
        self._iterations, self._brightest = int(values["iterations"]), float(values["brightest"])
        self.sampler.load_state_arrays(state.part("sampler"))
        self.rng.bit_generator.state = values["rng"]
