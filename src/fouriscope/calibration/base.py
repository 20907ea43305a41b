"""What every calibration shares: it watches the gradients of a solver, and revises the model between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fouriscope.fidelity import Contributions, DataFidelity, Minibatch
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray

# After this many passes over the measurements a step has half its length: minibatches are noisy to the end.
PASSES_TO_FADE = 5.0
# Of the curvature: the rate of its running mean, and what is added to its diagonal, in units of the mean diagonal.
MEMORY, DAMPING = 0.1, 1e-3


class Calibrator(ABC):
    """One thing about the microscope that is not known well, refined while a solver works.

    The solver computes a gradient over a minibatch, and :meth:`watch` sees each LED's contribution. Then
    :meth:`revise` may return a better model, with which the solver continues. Nothing is read twice.
    """

    name: ClassVar[str]
    watches: ClassVar[bool] = False
    """Whether :meth:`watch` is to be called."""
    finds_the_pupil: ClassVar[bool] = False
    """Whether it is the pupil that is refined."""

    def watch(self, seen: Contributions) -> None:  # noqa: B027 - only for those that watch
        """Note what a group of LEDs adds to the gradient that is being computed."""

    def forget(self) -> None:  # noqa: B027 - only for those that watch
        """Drop what was watched since the last revision: that gradient is not used."""

    @abstractmethod
    def revise(self, fidelity: DataFidelity, x: RealArray, batch: Minibatch) -> ForwardModel | None:
        """A better model, from what was watched or from ``x`` and the frames of ``batch``; None leaves it as it is."""

    @abstractmethod
    def measurements_grew(self, share: float) -> None:
        """Measurements were added: the old ones are now this ``share`` of all, so past passes count that much less."""

    @abstractmethod
    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything besides the model that is needed to continue exactly."""

    @abstractmethod
    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take back what :meth:`state_arrays` gave."""


class Schedule:
    """When a calibrator that predicts frames has its turn: every ``every``-th gradient, after ``start`` passes."""

    def __init__(self, every: int, start: float) -> None:
        self.every, self.start = every, start
        self.gradients = 0
        self.passes = 0.0

    def is_due(self, fidelity: DataFidelity, batch: Minibatch) -> bool:
        """Take note of a gradient over ``batch``; True if it is the calibrator's turn."""
        self.gradients += 1
        self.passes += batch.size / np.count_nonzero(fidelity.weights)
        return self.gradients % self.every == 0 and bool(self.passes >= self.start)

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        return {"counters": np.array([self.gradients, self.passes])}

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.gradients, self.passes = int(arrays["counters"][0]), float(arrays["counters"][1])


class GaussNewton:
    """θ ← θ − rate/(1 + passes/5) · H⁻¹ g, with g from each minibatch and H averaged over the minibatches seen.

    A minibatch gives the gradient of its own measurements, and says little about the curvature. So H is a running mean
    with the rate :data:`MEMORY`, which follows an object that is still changing. A small multiple of its mean diagonal
    holds parameters still about which the frames say nothing.
    """

    def __init__(self, size: int, *, rate: float, largest_step: float) -> None:
        self.rate, self.largest_step = rate, largest_step
        self.curvature = np.zeros((size, size))
        self.weight = 0.0
        self.passes = 0.0

    def step(self, slope: NDArray[np.float64], curvature: NDArray[np.float64], share: float) -> NDArray[np.float64]:
        """The change of θ, in which nothing exceeds ``largest_step``; ``share`` of all measurements were seen."""
        rate = self.rate / (1 + self.passes / PASSES_TO_FADE)
        self.passes += share
        self.weight += MEMORY * (1 - self.weight)
        self.curvature += MEMORY * (curvature - self.curvature)
        mean = self.curvature / self.weight
        floor = DAMPING * float(np.trace(mean)) / len(mean)
        if not floor > 0:
            return np.zeros_like(slope)
        change = -rate * np.linalg.solve(mean + floor * np.eye(len(mean)), slope)
        largest = float(np.abs(change).max())
        return np.asarray(change * min(1.0, self.largest_step / largest) if largest > 0 else change)

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        return {"curvature": self.curvature, "counters": np.array([self.weight, self.passes])}

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.curvature = arrays["curvature"].copy()
        self.weight, self.passes = (float(number) for number in arrays["counters"])


def stiffness(seen: Contributions, energies: NDArray[np.float64]) -> NDArray[np.float64]:
    """½ w d″ of each source for a change of its spectrum b with Σ|b|² = ``energies``.

    Half of a change of the field is a change of its modulus, the only one that the loss resists. Of a frame that is a
    sum, d″ is taken at its whole intensity, and a change of √I is at most that of its sources' fields together.
    """
    if not seen.model.sources.are_points:
        _, frame = np.unique(seen.leds, return_inverse=True)
        energies = np.asarray(np.bincount(frame, energies)[frame], np.float64)
    area = float(np.prod(seen.model.geometry.grid_shape))
    to_frame = area / float(seen.spectrum.size) ** 2  # Parseval: Σ|field|² = to_frame · Σ|b|²
    return np.asarray(0.5 * seen.weights * seen.loss.curvature(energies * to_frame / area) * to_frame)
