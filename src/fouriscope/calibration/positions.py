"""Where each LED really is: refined through the model while a solver works."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.calibration.base import PASSES_TO_FADE, Calibrator
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import DataFidelity, Minibatch
from fouriscope.fidelity.pipeline import GROUP
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray
from fouriscope.optics import Adjusted, Directions, Geometry, Illumination, LEDArray

Pairs = NDArray[np.float64]

# Half the distance, in bins, over which the misfit is differenced. The edge of the pupil is hard, so a frame's misfit
# is a staircase in its direction; over less than a bin only a few steps of it would be seen.
REACH = 0.75


def local_parabolas(fidelity: DataFidelity, x: RealArray, leds: NDArray[np.int64]) -> tuple[Pairs, Pairs]:
    """(slopes, curvatures) of each LED's own misfit along (y, x) of its direction, in units of bins.

    Five evaluations: where the LED is believed to be, and ``REACH`` bins to each side.
    """
    model = fidelity.model
    bin_na = _bin_na(model.geometry)
    directions = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))
    probes = [
        model.revised(illumination=_adjusted(model.illumination, np.tile(REACH * bin_na * direction, (len(model), 1))))
        for direction in directions
    ]
    misfits = np.empty((len(probes), len(leds)))
    try:
        # A few LEDs at a time, so that their frames are read once.
        for first in range(0, len(leds), GROUP):
            group = slice(first, first + GROUP)
            for k, probe in enumerate(probes):
                fidelity.use(probe)
                misfits[k, group] = fidelity.misfits(x, leds[group])
    finally:
        fidelity.use(model)
    here, *sides = misfits
    slopes = np.stack([(sides[0] - sides[1]), (sides[2] - sides[3])], axis=1) / (2 * REACH)
    curvatures = np.stack([sides[0] - 2 * here + sides[1], sides[2] - 2 * here + sides[3]], axis=1) / REACH**2
    return slopes, curvatures


class LEDPositions(Calibrator):
    """The direction of each LED on its own, within ``bound`` bins of where it was.

    Each turn moves the LEDs of the minibatch towards the bottom of the parabola through their own misfits. Gauge: the
    mean of the moves is taken off, because a common shift is the same as a wedge in the sample.

    Parameters
    ----------
    every
        Gradients from one turn to the next.
    rate
        The part of the way to the bottom of the parabola that is gone. It fades as that of the other calibrations.
    bound
        In bins: LEDs are where they should be, or nearly.
    """

    name = "leds"

    def __init__(self, *, every: int = 5, rate: float = 0.5, bound: float = 2.0) -> None:
        if not (0 < rate <= 1 and bound > 0):
            raise InvalidInputError(f"rate must lie in (0, 1] and bound be positive, got {rate} and {bound}")
        self.every, self.rate, self.bound = _checked_every(every), rate, bound
        self._turns = 0
        self._passes = 0.0

    def revise(self, fidelity: DataFidelity, x: RealArray, batch: Minibatch) -> ForwardModel | None:
        self._turns += 1
        self._passes += batch.size / len(fidelity)
        if self._turns % self.every:
            return None
        model = fidelity.model
        base, shifts = _parts(model.illumination)
        bin_na = _bin_na(model.geometry)
        bins = np.zeros((len(model), 2)) if shifts is None else shifts / bin_na
        slopes, curvatures = local_parabolas(fidelity, x, batch.leds)
        # A parabola that is flat, or upside down, says nothing: the typical one of its kind stands in for it.
        bright = model.geometry.bright_field[batch.leds]
        for kind in (bright, ~bright):
            if kind.any():
                typical = np.median(np.maximum(curvatures[kind], 0.0))
                curvatures[kind] = np.maximum(curvatures[kind], max(typical, np.finfo(np.float64).tiny))
        rate = self.rate / (1 + self._passes / PASSES_TO_FADE)
        steps = np.clip(-rate * slopes / curvatures, -0.5, 0.5)
        moved = bins.copy()
        moved[batch.leds] += steps
        moved = np.clip(moved - moved.mean(axis=0), -self.bound, self.bound)
        return model.revised(illumination=Adjusted(base, moved * bin_na))

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        return {"counters": np.array([self._turns, self._passes])}

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._turns, self._passes = int(arrays["counters"][0]), float(arrays["counters"][1])


def as_array(illumination: Illumination) -> tuple[LEDArray, Pairs | None]:
    """The illumination as LEDs in a plane, and what was moved LED by LED on top; directions without a height are
    taken to come from a plane one metre away."""
    base, shifts = _parts(illumination)
    if isinstance(base, LEDArray):
        return base, shifts
    if isinstance(base, Directions):
        return LEDArray.from_directions(base.na, base.height or 1.0), shifts
    raise InvalidInputError(f"only LED arrays and directions can be moved as a whole, got {type(base).__name__}")


def _parts(illumination: Illumination) -> tuple[Illumination, Pairs | None]:
    return (illumination.base, illumination.shifts) if isinstance(illumination, Adjusted) else (illumination, None)


def _adjusted(illumination: Illumination, moved: Pairs) -> Adjusted:
    base, shifts = _parts(illumination)
    return Adjusted(base, moved if shifts is None else shifts + moved)


def _bin_na(geometry: Geometry) -> NDArray[np.float64]:
    """NA of one bin of frequency along (y, x)."""
    return np.asarray(geometry.frequency_step) * geometry.optics.wavelength


def _checked_every(every: int) -> int:
    if every < 1:
        raise InvalidInputError(f"every counts gradients, a whole number of at least 1, got {every}")
    return every
