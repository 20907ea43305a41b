"""One loop. A method writes only ``step()``; the loop keeps the clock, the history and the truth's SNR."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriscope import metrics
from fouriscope.calibration import Calibration
from fouriscope.forward.objects import RealArray
from fouriscope.reductions import distance, spread
from fouriscope.solvers.history import History, Record
from fouriscope.solvers.stopping import StopRule


class StepReport(NamedTuple):
    """What a step tells the loop."""

    misfit: float
    residual: float
    step: float
    strength: float
    frames: int


@dataclass(frozen=True)
class SolverState:
    """Everything needed to go on exactly: arrays, and numbers and strings that JSON can hold."""

    arrays: dict[str, NDArray[Any]]
    values: dict[str, Any]


Callback = Callable[["Solver", Record], bool | None]


class Solver(ABC):
    """x^k → x^{k+1}. Subclasses write :meth:`step`, and declare their state for checkpoints.

    ``calibration``, if it is set before the first step, revises the model of the fidelity while the solver works.
    """

    def __init__(self, *, truth: RealArray | None = None) -> None:
        self.history = History()
        self.stop_reason: str | None = None
        self.calibration: Calibration | None = None
        self.frames_arrived: float = math.nan
        self._truth = truth

    @property
    @abstractmethod
    def x(self) -> RealArray:
        """The current estimate; do not write to it."""

    @abstractmethod
    def step(self) -> StepReport:
        """One iteration; x is replaced only when it is complete."""

    @abstractmethod
    def state(self) -> SolverState:
        """The state after the last completed iteration (history excluded)."""

    @abstractmethod
    def load_state(self, state: SolverState) -> None:
        """Go back to a state returned by :meth:`state`."""

    def measurements_changed(
        self, leds: NDArray[np.int64], before: NDArray[np.int64], population: NDArray[np.int64], *, begin_again: bool
    ) -> None:
        """Frames of ``leds`` arrived or were replaced: what the sampler draws from was ``before``, is ``population``.

        ``begin_again`` says that it has changed so much that what was learnt from it is outdated.
        """
        if self.calibration is not None:
            self.calibration.measurements_grew(len(before) / len(population))

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.x.shape))
        return f"{type(self).__name__}: x of {shape}, {self.history!r}"

    def observed(self) -> RealArray:
        """The part of x that is compared with the truth: all of it unless a subclass knows better."""
        return self.x

    def solve(self, stop: StopRule, callbacks: Sequence[Callback] = ()) -> History:
        """Iterate until ``stop`` says so, or a callback returns True. Callbacks run outside the clock."""
        self.stop_reason = stop(self.history)
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
            )
            self.history.append(record)
            interrupted = [bool(callback(self, record)) for callback in callbacks]
            self.stop_reason = stop(self.history)
            if self.stop_reason is None and any(interrupted):
                self.stop_reason = "interrupted"
        return self.history

    def _snr(self) -> metrics.SNR:
        if self._truth is None or not np.ptp(self._truth):  # an empty slide has no signal to speak of
            return metrics.SNR(math.nan, math.nan)
        return metrics.snr_both(self.observed(), self._truth)


def relative_distance(x: RealArray, s: RealArray) -> float:
    """‖x − s‖ / ‖x − mean(x)‖: the mean of a phase cannot be observed and must not make a residual small.

    Of a flat x nothing is left to divide by: 1 if anything moved, 0 at a fixed point.
    """
    moved, scale = distance(x, s), spread(x)
    if scale > 0:
        return moved / scale
    return 1.0 if moved > 0 else 0.0
