"""Which part of an estimate is compared with a truth, and a truth cut to that part."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray


def observed_phase(model: ForwardModel, x: RealArray) -> RealArray:
    """The phase inside the window that the frames show."""
    return model.object.phase_and_absorption(x)[0][model.geometry.object_window]


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
