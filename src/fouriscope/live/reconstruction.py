"""A reconstruction to which frames are added while it runs."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition, arriving_below
from fouriscope.acquisition.masks import mask_of
from fouriscope.checks import door
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import ArrivingSampler, DataFidelity
from fouriscope.fidelity.arriving import CATCH_UP
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray
from fouriscope.live.outlook import Foresight, Outlook
from fouriscope.priors import Prior
from fouriscope.run import ReconstructionConfig, Result
from fouriscope.run.assemble import beginning_of, build_loss, build_model, solver_with
from fouriscope.run.provenance import FrameDigest, provenance
from fouriscope.solvers import History, Iterations, Record, Solver, SolverState

# When this many times as many frames are there as when the step was last measured, it is measured again.
GROWTH = 1.5
# A look at a frame costs as much as two or three iterations, and an outlook needs only some frames: one per this many
# iterations.
LOOK_EVERY = 20


class LiveReconstruction:
    """x^k → x^{k+1} over the frames that have arrived: d(x) = (1/J) Σ_{j arrived} w_j d_j(x), and J grows.

    :meth:`add` may be called from any thread, at any time, with frames in any order. A frame may be given again, and
    replaces the one before. To iterate, call :meth:`step` or :meth:`advance` from one thread: frames that have arrived
    are added between two iterations. The first iteration needs a bright-field frame, without which nothing fixes the
    phase.

    What the solver found from the frames is scaled as they arrive: the step γ with one over the share of bright-field
    frames, which determine the curvature of the mean; the temperature T of the noise, and with it the strength of the
    prior, with 1/J. Both are measured again, and the momentum starts again, each time the number of frames has grown by
    half, and when all are there. Late frames are drawn first until they have caught up
    (:class:`~fouriscope.fidelity.ArrivingSampler`).

    :func:`fouriscope.stream` makes one.

    Parameters
    ----------
    acquisition
        An acquisition of :class:`~fouriscope.acquisition.ArrivingFrames`, with or without corrections.
    config
        How to reconstruct; its [stop] is left to the caller.
    prior, prior_absorption, start
        What a configuration cannot hold.
    """

    def __init__(
        self,
        acquisition: Acquisition,
        config: ReconstructionConfig,
        *,
        prior: Prior | None = None,
        prior_absorption: Prior | None = None,
        start: NDArray[Any] | None = None,
    ) -> None:
        if config.solver.sampler not in ("stratified", "all"):
            raise InvalidInputError(
                f'a live reconstruction needs the sampler "stratified" or "all", got {config.solver.sampler!r}'
            )
        if config.alignment.is_wanted:
            raise InvalidInputError(
                "an alignment needs all frames before the reconstruction: align an earlier acquisition and use what it "
                "found, or reconstruct when all frames are there"
            )
        self.acquisition, self.config = acquisition, config
        frames = arriving_below(acquisition.frames)
        if frames is None:
            raise InvalidInputError(
                "a live reconstruction needs ArrivingFrames, which frames can be added to, got "
                f"{type(acquisition.frames).__name__}"
            )
        self.frames = frames
        self.model: ForwardModel = build_model(acquisition, config)
        self.solver: Solver | None = None
        self.weights = acquisition.frame_weights
        self._priors, self._start = (prior, prior_absorption), beginning_of(config, start)
        batch = None if config.solver.sampler == "all" else config.solver.batch_of(len(acquisition))
        self._sampler = ArrivingSampler(self.model.geometry.bright_field, batch)
        self._foresight = Foresight(self.model)
        self._population_begun, self._look_next = 0, 1
        self._replaced_at: int | None = None

    def __repr__(self) -> str:
        arrived, wanted = self.arrived, self.wanted
        return f"LiveReconstruction: {int((arrived & wanted).sum())} of {int(wanted.sum())} frames, {self.history!r}"

    @door
    def add(self, frame: NDArray[Any], led: int) -> None:
        """Add the frame of LED ``led``. Raises if it is not a frame, and then nothing changes."""
        self.frames.add(frame, led)

    @property
    def arrived(self) -> NDArray[np.bool_]:
        """One bool per LED: whether its frame is there."""
        return self.frames.arrived

    @property
    def wanted(self) -> NDArray[np.bool_]:
        """One bool per LED: whether its frame counts; weight 0 leaves it out."""
        return np.asarray(self.weights > 0)

    @property
    def is_complete(self) -> bool:
        """Whether every frame that counts is there."""
        return bool(np.all(self.arrived[self.wanted]))

    @property
    def x(self) -> RealArray:
        """The present estimate; flat before the first iteration."""
        return np.zeros(self.model.x_shape, self.model.dtype) if self.solver is None else self.solver.x

    @property
    def history(self) -> History:
        return History() if self.solver is None else self.solver.history

    def prepare(self) -> bool:
        """Add what has arrived. True once a bright-field frame is there, so that :meth:`step` can iterate."""
        fresh = np.array([led for led in self.frames.take_fresh() if self.weights[led] > 0], np.int64)
        self._begin_again_after_replacements()
        if not len(fresh):
            return self.solver is not None
        before = self._sampler.population
        self._sampler.admit(fresh, self.frames.checksums)
        if self.solver is None:
            self._begin()
        else:
            self._go_on_with(fresh, before)
        return self.solver is not None

    def step(self) -> Record | None:
        """Add what has arrived and iterate once. Does nothing and returns None while there is no bright-field frame."""
        if not self.prepare():
            return None
        assert self.solver is not None
        self.solver.frames_arrived = float(np.count_nonzero(self.arrived))
        self.solver.solve(Iterations(len(self.history) + 1))
        return self.history.last

    def advance(self, *, iterations: int | None = None, seconds: float | None = None) -> Record:
        """Iterate this many times, or for this many seconds, whichever ends first, adding frames as they arrive."""
        if iterations is None and seconds is None:
            raise InvalidInputError("give iterations, seconds or both: a live reconstruction does not end by itself")
        began, done = time.monotonic(), 0
        while True:
            record = self.step()
            if record is None:
                raise InvalidInputError(
                    "no bright-field frame has arrived yet, and nothing can be reconstructed without one; "
                    "add the frame of an LED inside the pupil first"
                )
            done += 1
            if done == iterations or (seconds is not None and time.monotonic() - began >= seconds):
                return record

    def outlook(self) -> Outlook:
        """Whether more frames would help, as far as those that have arrived can tell."""
        return self._foresight.outlook(self.arrived, self.wanted)

    def result(self, stop_reason: str = "") -> Result:
        """The picture as it is now."""
        if self.solver is None:
            raise InvalidInputError("there is no result yet: it needs a bright-field frame and one iteration")
        return Result.of(
            *(self.solver.fidelity.model, self.x, self.history, stop_reason),
            *(self.config.model_dump(mode="json", exclude_none=True), self.provenance()),
            pupil=self.solver.recovered_pupil,
            nominal_na=self.model.geometry.na,
        )

    def provenance(self, files: dict[str, Any] | None = None) -> dict[str, Any]:
        """Where the result comes from; the checksum is that of the frames that are there, in the order of the LEDs."""
        arrived, own = self.arrived, self.acquisition.mask
        digest = FrameDigest((int(arrived.sum()), *self.frames.shape[1:]))
        for led in np.flatnonzero(arrived):
            mask = mask_of(own, int(led)) if own is not None and len(own.shape) == 3 else None
            digest.add(self.acquisition.frames.frame(int(led)), mask)
        return provenance(self.acquisition, files, digest=digest) | {
            "live": {
                "arrived": int((arrived & self.wanted).sum()),
                "expected": int(self.wanted.sum()),
                "outlook": self.outlook().sentence,
            }
        }

    def restore(self, state: SolverState, history: History) -> None:
        """Continue from a checkpoint: exactly, if the frames are the same; with other frames, start again."""
        if not self.prepare():
            raise InvalidInputError("a live reconstruction can continue only when a bright-field frame is there again")
        assert self.solver is not None
        self.solver.load_state(state)
        self.solver.history = history
        if np.array_equal(state.part("sampler").get("checksums", ()), self._sampler.checksums):
            return
        population = self._sampler.population
        self.solver.measurements_changed(population, population, population, begin_again=True)

    def _begin(self) -> None:
        """Build the solver, if there is a bright-field frame to begin with."""
        population = self._sampler.population
        if not self.model.geometry.bright_field[population].any():
            return
        fidelity = DataFidelity(
            self.model,
            self.acquisition.frames,
            loss=build_loss(self.config),
            weights=self._weights_of(population),
            mask=self.acquisition.mask,
        )
        self.solver = solver_with(*(fidelity, self._sampler, self.acquisition, self.config, self._start), *self._priors)
        self._population_begun = len(population)

    def _go_on_with(self, fresh: NDArray[np.int64], before: NDArray[np.int64]) -> None:
        assert self.solver is not None
        population, fidelity = self._sampler.population, self.solver.fidelity
        fidelity.reweigh(self._weights_of(population))
        if len(self.history) >= self._look_next:
            self._foresight.look_at(fidelity, self.solver.x, int(fresh[-1]))
            self._look_next = len(self.history) + LOOK_EVERY
        if np.isin(fresh, before).any():
            self._replaced_at = len(self.history)
        grown = len(population) >= GROWTH * self._population_begun
        last = len(population) == int(np.count_nonzero(self.wanted)) and len(population) > len(before)
        self.solver.measurements_changed(fresh, before, population, begin_again=grown or last)
        if grown or last:
            self._population_begun = len(population)

    def _begin_again_after_replacements(self) -> None:
        """Step and strength were measured with frames that are no longer there: once their successors are in use."""
        if self._replaced_at is None or len(self.history) < self._replaced_at + CATCH_UP:
            return
        assert self.solver is not None
        population = self._sampler.population
        self.solver.measurements_changed(population[:0], population, population, begin_again=True)
        self._replaced_at = None

    def _weights_of(self, population: NDArray[np.int64]) -> NDArray[np.float64]:
        weights = np.zeros_like(self.weights)
        weights[population] = self.weights[population]
        return weights
