"""How bright each LED is compared with the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.calibration.base import Calibrator, Schedule
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import DataFidelity, Minibatch
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray


class LEDGains(Calibrator):
    """g_i of y_i ≈ g_i |H_i o|², frame by frame, within a factor ``bound`` of where they began.

    For a given object the best gain of a frame is known in closed form (:meth:`Loss.best_gain`). Every few gradients
    the gains of the minibatch go a part of the way there.

    Gauge: the brightness of the object. The geometric mean of the bright-field gains does not change (it is 1, unless
    the model has its own gains); if there is no bright field, that of all gains does not.

    Parameters
    ----------
    every
        Gradients from one turn to the next; a turn costs half as much as a gradient.
    start
        Passes over the measurements before the first turn. Predicted dark frames grow slowly with the object. A gain
        that makes up for what is still missing would keep it missing.
    rate
        How far the gains go towards the best ones in a turn, in the logarithm.
    dark_share
        The share of ``rate`` in the dark field. The object and the gain can both explain a dark frame, and the object
        must be faster.
    bound
        Gains stay within 1/bound … bound of where they began.
    """

    name = "gains"

    def __init__(
        self, *, every: int = 3, start: float = 10.0, rate: float = 0.5, dark_share: float = 0.2, bound: float = 3.0
    ) -> None:
        if every < 1 or not 0 < rate <= 1 or not 0 < dark_share <= 1 or not bound > 1:
            raise InvalidInputError(
                "every must be at least 1, rate and dark_share in (0, 1] and bound above 1, got "
                f"{every}, {rate}, {dark_share} and {bound}"
            )
        self.rate, self.dark_share, self.bound = rate, dark_share, bound
        self._schedule = Schedule(every, start)
        self._began: NDArray[np.float64] | None = None

    def revise(self, fidelity: DataFidelity, x: RealArray, batch: Minibatch) -> ForwardModel | None:
        if not self._schedule.is_due(fidelity, batch):
            return None
        model = fidelity.model
        logs = np.zeros(len(model)) if model.gains is None else np.log(model.gains)
        if self._began is None:
            self._began = logs.copy()
        used = batch.leds[fidelity.weights[batch.leds] > 0]
        rates = np.where(model.geometry.bright_field[used], self.rate, self.rate * self.dark_share)
        logs[used] += rates * np.log(gain_ratios(fidelity, x, used))
        counted = fidelity.weights > 0
        bright = model.geometry.bright_field & counted
        # A frame that is left out is never fitted. Its gain stays 1 and does not drift with the gauge of the others.
        moved = logs - self._began
        moved[counted] -= moved[bright if bright.any() else counted].mean()
        limit = np.log(self.bound)
        return model.revised(gains=np.exp(self._began + np.clip(moved, -limit, limit)))

    def measurements_grew(self, share: float) -> None:
        self._schedule.passes *= share

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        return self._schedule.state_arrays() | ({} if self._began is None else {"began": self._began})

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._schedule.load_state_arrays(arrays)
        self._began = arrays.get("began")


def gain_ratios(fidelity: DataFidelity, x: RealArray, leds: NDArray[np.int64]) -> NDArray[np.float64]:
    """The factor by which the prediction of each LED should be multiplied to fit its frame best; 1 in the dark."""
    ratios = np.empty(len(leds))
    predicted = fidelity.model.intensity(x, leds)
    frames, frame_index, masks, mask_index = fidelity.data_of(leds)
    for b in range(len(leds)):
        mask = masks[mask_index[b]]
        measured = np.asarray(frames[frame_index[b]] * mask, np.float64)
        expected = np.asarray(predicted[b] * mask, np.float64)
        ratios[b] = fidelity.loss.best_gain(expected, measured)
    return ratios
