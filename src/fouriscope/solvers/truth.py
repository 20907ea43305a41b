"""Which part of an estimate is compared with a truth, and a truth cut to that part."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray
from fouriscope.metrics import SNR, snr_both


def observed_phase(model: ForwardModel, x: RealArray) -> RealArray:
    """The phase inside the window that the frames show."""
    return model.object.phase(x)[model.geometry.object_window]


def observed_truth(model: ForwardModel, truth: NDArray[Any] | None) -> RealArray | None:
    """The phase of a truth given as x, as a phase on the object's grid, or already cut to the window."""
    if truth is None:
        return None
    truth = np.asarray(truth)
    if np.iscomplexobj(truth):
        raise InvalidInputError(
            f"the truth must be a real phase in radians, got {truth.dtype}; give the phase of a transmittance: "
            "np.angle(truth)"
        )
    if truth.dtype.kind not in "fiu":
        raise InvalidInputError(f"the truth must be a real phase in radians, got {truth.dtype}")
    phase = _cut(model, truth)
    bad = int(phase.size - np.count_nonzero(np.isfinite(phase)))
    if bad:
        raise InvalidInputError(
            f"the truth holds {bad} NaN or infinite pixels of {phase.size}; replace them, or leave the truth out"
        )
    return phase


class TruthScore:
    """The SNR of one estimate after the other against one truth: :func:`fouriscope.metrics.snr_both`, in less time.

    What the truth alone decides is computed once. An estimate is then read once, and no array is made for it.

    >>> truth = np.array([[0.0, 3.0], [4.0, 1.0]])
    >>> score = TruthScore(truth)
    >>> [round(value, 6) for value in score(truth + [[0.1, 0.0], [0.0, 0.2]])]
    [29.756407, 27.160033]
    """

    def __init__(self, truth: RealArray) -> None:
        self._truth = np.ascontiguousarray(truth, np.float64)
        self._signal = float(np.sum(np.square(self._truth)))
        self._difference = np.empty_like(self._truth)
        self.varies = bool(np.ptp(self._truth))  # an empty slide has no signal to speak of

    def __call__(self, estimate: RealArray) -> SNR:
        difference = np.subtract(self._truth, estimate, out=self._difference)
        raw = _squares(difference)
        if not math.isfinite(raw):
            return snr_both(estimate, self._truth)  # which says what is wrong
        difference -= difference.mean()
        return SNR(self._decibel(_squares(difference)), self._decibel(raw))

    def _decibel(self, noise: float) -> float:
        return math.inf if noise == 0 else 10 * (math.log10(self._signal) - math.log10(noise))


def _squares(values: RealArray) -> float:
    """Σ v², in one pass and without BLAS, whose threads cost more than the sum where the cores are busy."""
    return float(np.einsum("ij,ij->", values, values))


def _cut(model: ForwardModel, truth: NDArray[Any]) -> RealArray:
    window = model.geometry.object_window
    if truth.shape == model.x_shape:
        return observed_phase(model, truth)
    if truth.shape == model.object_shape:
        return truth[window]
    expected = np.empty(model.object_shape, bool)[window].shape
    if truth.shape == expected:
        return truth
    raise InvalidInputError(
        f"the truth has shape {truth.shape}, but the reconstruction {expected}: reconstruct on the truth's grid with "
        "object_shape, or leave the truth out"
    )
