"""One loop. A method writes only ``step()``; the loop keeps the clock, the history and the truth's SNR."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fouriscope import metrics
from fouriscope.calibration import Calibration
from fouriscope.checks import door, require_at_least
from fouriscope.fidelity import DataFidelity, Sampler
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import ComplexArray, RealArray
from fouriscope.placement import on_host
from fouriscope.reductions import distance, spread
from fouriscope.solvers.history import History, Record
from fouriscope.solvers.stopping import StopRule
from fouriscope.solvers.truth import TruthScore, observed_phase, observed_truth


class StepReport(NamedTuple):
    """What a step tells the loop.

    Attributes
    ----------
    misfit
        Mean misfit of the frames used.
    residual
        Relative change of the object, the fixed-point residual.
    step, strength
        γ and λ of this step.
    frames
        Number of frames used.
    """

    misfit: float
    residual: float
    step: float
    strength: float
    frames: int


@dataclass(frozen=True)
class SolverState:
    """Everything needed to continue exactly: arrays, and numbers and strings that JSON can hold.

    Parameters
    ----------
    arrays, values
        By name.
    """

    arrays: dict[str, NDArray[Any]]
    values: dict[str, Any]

    def part(self, name: str) -> dict[str, NDArray[Any]]:
        """The arrays that are called ``name.…``, without that."""
        prefix = f"{name}."
        return {key.removeprefix(prefix): array for key, array in self.arrays.items() if key.startswith(prefix)}


# Called after every iteration. True, or a reason in words, ends the run; None and False let it go on.
Callback = Callable[["Solver", Record], bool | str | None]
# The reason that Ctrl-C gives: such a run is not at its end and can be resumed.
INTERRUPTED = "interrupted"
BY_CALLBACK = "a callback returned True"


def reason_of(answers: Iterable[bool | str | None]) -> str | None:
    """Why callbacks with these ``answers`` end a run; None if they do not.

    Parameters
    ----------
    answers
        What the callbacks returned.

    Examples
    --------
    >>> reason_of([None, False]), reason_of([None, True]), reason_of(["sharp enough", True])
    (None, 'a callback returned True', 'sharp enough')
    """
    asked = next((answer for answer in answers if answer), None)
    return asked if asked is None or isinstance(asked, str) else BY_CALLBACK


class Solver(ABC):
    """x^k → x^{k+1}. Subclasses write :meth:`step`, which replaces ``self._x``, and declare their state.

    A new solver has no estimate. :meth:`begin` computes the first one when it is needed. It is not needed if a state is
    loaded.

    A method says what it has found: the estimate ``x``, the ``model`` that predicts frames from it, a
    ``recovered_pupil``, the ``strengths`` of its priors. A subclass overrides these where it knows better.

    Parameters
    ----------
    fidelity, sampler
        d, with the model as it is known outside the method, and which measurements an iteration sees.
    seed
        Seed of all random numbers.
    truth
        The object, if it is known. It is used only to report the SNR.

    Attributes
    ----------
    calibration
        If it is set before the first step, it revises the model of the fidelity while the solver works.
    denoiser_weight
        τ of a method that pulls towards the denoised image; 0 for others.
    balance
        Whether the method weights frames by how well they can be explained.
    """

    denoiser_weight: float = 0.0
    balance: bool = False
    _x: RealArray

    def __init__(
        self, fidelity: DataFidelity, sampler: Sampler, *, seed: int = 0, truth: RealArray | None = None
    ) -> None:
        self.fidelity, self.sampler = fidelity, sampler
        require_at_least("seed", seed, 0)
        self.rng = np.random.default_rng(seed)
        self.history = History()
        self.stop_rule: StopRule | None = None
        self.stop_reason: str | None = None
        self.calibration: Calibration | None = None
        self.frames_arrived: float = math.nan
        self._has_estimate = False
        known = observed_truth(fidelity.model, truth)
        self._score = None if known is None else TruthScore(known)

    @property
    def x(self) -> RealArray:
        """The current estimate; do not write to it."""
        self.begin()
        return on_host(self._x)

    def begin(self) -> None:
        """Go to x⁰, unless there is an estimate. Every property about what was found calls this first."""
        if not self._has_estimate:
            self.go_to_start()
            self._has_estimate = True

    @abstractmethod
    def go_to_start(self) -> None:
        """Compute x⁰ and what the method keeps beside it."""

    @property
    def model(self) -> ForwardModel:
        """The model that predicts frames from x, with everything that was found."""
        return self.fidelity.model

    @property
    def travels(self) -> bool:
        """Whether it is known that more iterations would lead farther."""
        return False

    @property
    def recovered_pupil(self) -> ComplexArray | None:
        """The pupil that was found, on the frame's frequency grid; None where the model's was taken as it is."""
        finds_it = self.calibration is not None and self.calibration.finds_the_pupil
        return self.fidelity.model.pupil_on_grid() if finds_it else None

    @property
    def strengths(self) -> list[float]:
        """λ of the prior of each image, as last used; 0 of a method without priors."""
        return [0.0 for _ in self.fidelity.model.object.channels]

    @property
    def averaged(self) -> int:
        """Of how many estimates x is the mean; 0 if it is the last one."""
        return 0

    @property
    def findings(self) -> tuple[str, ...]:
        """What the method has found about the frames before its first iteration, a sentence each."""
        return ()

    @abstractmethod
    def step(self) -> StepReport:
        """One iteration; x is replaced only when it is complete."""

    @abstractmethod
    def state(self) -> SolverState:
        """The state after the last completed iteration (history excluded)."""

    @abstractmethod
    def load_state(self, state: SolverState) -> None:
        """Go back to a state returned by :meth:`state`."""

    @abstractmethod
    def load_estimate(self, state: SolverState) -> None:
        """Take x and the model from a state, and nothing else: enough to predict frames, whatever the priors were."""

    def settle_like(self, other: Self) -> None:
        """Continue from the estimate of ``other``, of the same method, and what else it found.

        Object and microscope belong together: where there is a calibration, that is the model.
        """
        if self.calibration is not None:
            self.fidelity.use(other.fidelity.model)

    def measurements_changed(
        self, leds: NDArray[np.int64], before: NDArray[np.int64], population: NDArray[np.int64], *, begin_again: bool
    ) -> None:
        """Frames of ``leds`` arrived or were replaced: what the sampler draws from was ``before``, is ``population``.

        ``begin_again`` says that it has changed so much that what was learnt from it is outdated.
        """
        self.fidelity.frames_changed(leds)
        if self.calibration is not None:
            self.calibration.measurements_grew(len(before) / len(population))

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.fidelity.model.x_shape))
        return f"{type(self).__name__}: x of {shape}, {self.history!r}"

    def observed(self) -> RealArray:
        """The part of x that is compared with the truth: the phase that the frames show."""
        return observed_phase(self.fidelity.model, self.x)

    @door
    def solve(self, stop: StopRule, callbacks: Sequence[Callback] = ()) -> History:
        """Iterate until ``stop`` says so, or a callback returns True or a reason.

        The clock counts neither the start nor the callbacks. :attr:`stop_reason` then says why it ended.
        """
        self.begin()
        self.stop_rule, self.stop_reason = stop, stop(self.history)
        while self.stop_reason is None:
            seconds = self.history.last.seconds if len(self.history) else 0.0
            frames = self.history.last.frames_seen if len(self.history) else 0
            began = time.perf_counter()
            report = self.step()
            seconds += time.perf_counter() - began
            snr = self._snr()
            record = Record(
                iteration=len(self.history) + 1,
                frames_seen=frames + report.frames,
                seconds=seconds,
                misfit=report.misfit,
                residual=report.residual,
                step=report.step,
                strength=report.strength,
                snr=snr.aligned,
                snr_raw=snr.raw,
                frames_arrived=self.frames_arrived,
                averaged=self.averaged or math.nan,
            )
            self.history.append(record)
            answers = [callback(self, record) for callback in callbacks]
            self.stop_reason = stop(self.history) or reason_of(answers)
        return self.history

    def _common_arrays(self) -> dict[str, NDArray[Any]]:
        """What sampler and calibration need to continue."""
        arrays = {f"sampler.{name}": array for name, array in self.sampler.state_arrays().items()}
        if self.calibration is not None:
            found = self.calibration.state_arrays(self.fidelity.model)
            arrays |= {f"calibration.{name}": array for name, array in found.items()}
        return arrays

    def _load_calibration(self, state: SolverState) -> None:
        """The fidelity gets the model that the calibration, if there is one, had found."""
        if self.calibration is not None:
            self.calibration.load_state_arrays(state.part("calibration"), self.fidelity)

    def _snr(self) -> metrics.SNR:
        if self._score is None or not self._score.varies:
            return metrics.SNR(math.nan, math.nan)
        return self._score(self.observed())


def relative_distance(x: RealArray, s: RealArray) -> float:
    """‖x − s‖ / ‖x − mean(x)‖: the mean of a phase cannot be observed and must not make a residual small.

    Of a flat x nothing is left to divide by: 1 if anything moved, 0 at a fixed point.
    """
    moved, scale = distance(x, s), spread(x)
    if scale > 0:
        return moved / scale
    return 1.0 if moved > 0 else 0.0
