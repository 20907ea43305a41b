"""How bright each LED is compared with the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fouriscope.calibration.base import Calibrator, Schedule
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import DataFidelity, Minibatch
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray


class LEDGains(Calibrator):
    """g_i of y_i ≈ g_i |H_i o|², frame by frame, within a factor ``bound`` of where they began.

    For a given object the best gain of a bright-field frame is known in closed form (:meth:`Loss.best_gain`). Every few
    gradients the gains of the minibatch go a part of the way there.

    In dark field this *brightness* makes gains too large: noise, and light that the model does not explain, make a
    frame brighter than its prediction, and a larger gain with a smaller object explains it equally well. So gains grow,
    often until they reach their bound, and most of all for the outermost LEDs. The *contrast* does not have this bias:
    the slope s of the frame over its prediction, with a free constant for what is not explained, and r their
    correlation:

        log g ← log g + rate · dark_share · [ r² log s − pull · log(g / g at the beginning) ].

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
    by
        What decides the gains of the dark field: "contrast", or "brightness", which weakens structures that the model
        explains badly.
    pull
        How strongly a gain of the dark field is drawn to where it began, if the contrast decides: the less the other
        frames tell about it, the closer it stays.
    bound
        Gains stay within 1/bound … bound of where they began.
    """

    name = "gains"

    def __init__(
        self,
        *,
        every: int = 3,
        start: float = 10.0,
        rate: float = 0.5,
        dark_share: float = 0.2,
        by: Literal["contrast", "brightness"] = "contrast",
        pull: float = 0.1,
        bound: float = 3.0,
    ) -> None:
        if every < 1 or not 0 < rate <= 1 or not 0 < dark_share <= 1 or not 0 <= pull <= 1 or not bound > 1:
            raise InvalidInputError(
                "every must be at least 1, rate and dark_share in (0, 1], pull in [0, 1] and bound above 1, got "
                f"{every}, {rate}, {dark_share}, {pull} and {bound}"
            )
        if by not in ("contrast", "brightness"):
            raise InvalidInputError(f'by must be "contrast" or "brightness", got {by!r}')
        self.rate, self.dark_share, self.by, self.pull, self.bound = rate, dark_share, by, pull, bound
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
        bright_field = model.geometry.bright_field[used]
        bright, dark = used[bright_field], used[~bright_field]
        logs[bright] += self.rate * np.log(gain_ratios(fidelity, x, bright))
        if self.by == "contrast":
            wanted = contrasts(fidelity, x, dark) - self.pull * (logs[dark] - self._began[dark])
        else:
            wanted = np.log(gain_ratios(fidelity, x, dark))
        logs[dark] += self.rate * self.dark_share * wanted
        counted = fidelity.weights > 0
        gauge = model.geometry.bright_field & counted
        # A frame that is left out is never fitted. Its gain stays 1 and does not drift with the gauge of the others.
        moved = logs - self._began
        moved[counted] -= moved[gauge if gauge.any() else counted].mean()
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
    return np.array([fidelity.loss.best_gain(expected, measured) for expected, measured in _pairs(fidelity, x, leds)])


def contrasts(fidelity: DataFidelity, x: RealArray, leds: NDArray[np.int64]) -> NDArray[np.float64]:
    """r² log s of each LED, with s the slope of its frame over its prediction and r their correlation.

    A constant that is added to a frame does not change it. It is 0 if frame and prediction have nothing in common.
    """
    return np.array([_contrast(expected, measured) for expected, measured in _pairs(fidelity, x, leds)])


def _contrast(expected: NDArray[np.float64], measured: NDArray[np.float64]) -> float:
    expected, measured = expected - expected.mean(), measured - measured.mean()
    common, own, of_frame = float(expected @ measured), float(expected @ expected), float(measured @ measured)
    if not (common > 0 and own > 0):
        return 0.0
    return common**2 / (own * of_frame) * float(np.log(common / own))


def _pairs(
    fidelity: DataFidelity, x: RealArray, leds: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Prediction and frame of each LED, where its pixels count."""
    if not len(leds):
        return
    predicted = fidelity.model.intensity(x, leds)
    frames, frame_index, masks, mask_index = fidelity.data_of(leds)
    for b in range(len(leds)):
        counts = np.asarray(masks[mask_index[b]]) > 0
        measured = np.asarray(frames[frame_index[b]], np.float64)[counts]
        yield np.asarray(predicted[b], np.float64)[counts], measured
