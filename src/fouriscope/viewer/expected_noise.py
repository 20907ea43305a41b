"""The misfit that noise alone would leave in each frame: what a misfit is to be compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import FrameSequence
from fouriscope.fidelity import DataFidelity
from fouriscope.fidelity.noise import PerturbedFrames, frame_noise
from fouriscope.forward import ForwardModel


class PredictedFrames(FrameSequence):
    """The frames that ``model`` predicts for x, computed when they are asked for."""

    def __init__(self, model: ForwardModel, x: NDArray[Any]) -> None:
        self.model, self.x = model, x

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.model), *self.model.frame_shape

    def frame(self, index: int) -> NDArray[Any]:
        return np.asarray(self.model.intensity(self.x, [index])[0])


def expected_misfits(fidelity: DataFidelity, x: NDArray[Any]) -> NDArray[np.float64]:
    """d_j(x) if the model were right and frame j had its noise and nothing else: (frames,).

    The noise is white, with the standard deviation that the corners of the frame's spectrum show
    (:func:`fouriscope.fidelity.noise.frame_noise`). It is put on the predicted frame, and the loss of the run compares
    the two. So it is right for every loss, also in the dark, where the root of noise is not noise. Frames that do not
    count are NaN. Every frame is read once.
    """
    used = np.flatnonzero(fidelity.weights > 0)
    levels = {int(j): frame_noise(fidelity.frames.frame(int(j)), fidelity.mask_of(int(j))) for j in used}
    noisy = PerturbedFrames(PredictedFrames(fidelity.model, x), levels, seed=0)
    found = np.full(len(fidelity), np.nan)
    found[used] = DataFidelity(fidelity.model, noisy, loss=fidelity.loss, mask=fidelity.mask).misfits(x, used)
    return found
