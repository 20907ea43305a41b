"""Where each LED really is: refined through the model while a solver works."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.calibration.base import PASSES_TO_FADE, Calibrator, Schedule
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import DataFidelity, Minibatch
from fouriscope.forward import ForwardModel
from fouriscope.forward.objects import RealArray
from fouriscope.optics import Adjusted, Geometry, Illumination
from fouriscope.optics.die import die_radius

Pairs = NDArray[np.float64]

GROUP = 16

# Distance, in bins, over which a frame's change with its direction is differenced. The edge of the pupil is hard, so
# over much less than a bin only a few of its steps would be seen.
REACH = 0.5
# A frame must hold this many times the energy of its noise. The object explains the noise of fainter ones as well as a
# move would, so LEDs would follow the noise.
LEAST_SIGNAL = 25.0
# In one turn an LED moves by no more than this, in bins.
LONGEST = 0.25


class LEDPositions(Calibrator):
    """The direction of each LED on its own, within ``bound`` frequency bins of where it was.

    Every few gradients, for each LED of the minibatch, the amplitude a of its frame is predicted from the object as it
    is, and as it would be half a bin to each side. With J = Δa/Δδ and the residual √y − a one Gauss–Newton step is

        δ ← δ + (2 JᵀJ + T/s²)⁻¹ (2 Jᵀ(√y − a) − T/s² δ).

    T/s² expresses the belief that LEDs are within s bins (``spread``) of where they should be, against noise of the
    temperature T = 2 ‖√y − a‖²/pixels. (Comparing misfits around the place of an LED would not work: the object has
    adapted to that place, and the edge of the pupil gives the misfit a lopsided cusp everywhere.)

    Gauge: the mean of the moves is subtracted, because a common shift is the same as a wedge in the sample. LEDs whose
    direct light would enter or leave the pupil on the way are not moved, nor are those of frames fainter than 25 times
    the noise T.

    Parameters
    ----------
    every
        Gradients from one turn to the next; a turn costs as much as two or three of them.
    start
        Passes over the measurements before the first turn, so that the object means something.
    spread
        s, in bins.
    bound
        How far an LED may move, in bins.
    """

    name = "leds"

    def __init__(self, *, every: int = 3, start: float = 3.0, spread: float = 0.5, bound: float = 2.0) -> None:
        if every < 1 or not (start >= 0 and spread > 0 and bound > 0):
            raise InvalidInputError(
                f"every must be at least 1, start at least 0, spread and bound positive, got {every}, {start}, "
                f"{spread} and {bound}"
            )
        self.spread, self.bound = spread, bound
        self._schedule = Schedule(every, start)

    def revise(self, fidelity: DataFidelity, x: RealArray, batch: Minibatch) -> ForwardModel | None:
        if not self._schedule.is_due(fidelity, batch):
            return None
        model = fidelity.model
        leds = batch.leds[~_at_the_edge(model)[batch.leds] & (fidelity.weights[batch.leds] > 0)]
        if not len(leds):
            return None
        base, shifts = _parts(model.illumination)
        bin_na = _bin_na(model.geometry)
        bins = np.zeros((len(model), 2)) if shifts is None else shifts / bin_na
        pull, curvature, temperature, light = _normal_equations(fidelity, x, leds)
        clear = light > LEAST_SIGNAL * temperature
        leds, pull, curvature, temperature = leds[clear], pull[clear], curvature[clear], temperature[clear]
        belief = np.maximum(temperature, np.finfo(np.float64).tiny) / self.spread**2
        matrix = curvature + belief[:, None, None] * np.eye(2)
        steps = np.linalg.solve(matrix, (pull - belief[:, None] * bins[leds])[..., None])[..., 0]
        moved = bins.copy()
        fading = 1 + (self._schedule.passes - self._schedule.start) / PASSES_TO_FADE
        moved[leds] += np.clip(steps / fading, -LONGEST, LONGEST)
        counted = fidelity.weights > 0
        moved[counted] -= moved[counted].mean(axis=0)
        moved = np.clip(moved, -self.bound, self.bound)
        return model.revised(illumination=Adjusted(base, moved * bin_na))

    def measurements_grew(self, share: float) -> None:
        self._schedule.passes *= share

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        return self._schedule.state_arrays()

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._schedule.load_state_arrays(arrays)


def _normal_equations(
    fidelity: DataFidelity, x: RealArray, leds: NDArray[np.int64]
) -> tuple[Pairs, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(2 Jᵀ(√y − a), 2 JᵀJ, T, mean of y) of each LED."""
    model = fidelity.model
    base, shifts = _parts(model.illumination)
    step = REACH * _bin_na(model.geometry)
    known = np.zeros((len(model), 2)) if shifts is None else shifts
    probes = [
        model.revised(illumination=Adjusted(base, known + step * side)) for side in ((1, 0), (-1, 0), (0, 1), (0, -1))
    ]
    pull, curvature = np.empty((len(leds), 2)), np.empty((len(leds), 2, 2))
    temperature, light = np.empty(len(leds)), np.empty(len(leds))
    # A few LEDs at a time, because frames may be large.
    for first in range(0, len(leds), GROUP):
        group = slice(first, first + GROUP)
        frames, frame_index, masks, mask_index = fidelity.data_of(leds[group])
        mask = masks[mask_index]
        measured = np.sqrt(np.maximum(frames[frame_index], 0)) * mask
        residual = measured - np.sqrt(model.intensity(x, leds[group])) * mask
        sides = [np.sqrt(probe.intensity(x, leds[group])) * mask for probe in probes]
        changes = np.stack([sides[0] - sides[1], sides[2] - sides[3]], axis=1) / (2 * REACH)
        pull[group] = 2 * np.einsum("bkrc,brc->bk", changes, residual)
        curvature[group] = 2 * np.einsum("bkrc,blrc->bkl", changes, changes)
        pixels = np.maximum(mask.sum(axis=(1, 2)), 1)
        temperature[group] = 2 * np.einsum("brc,brc->b", residual, residual) / pixels
        light[group] = np.einsum("brc,brc->b", measured, measured) / pixels
    return pull, curvature, temperature, light


def _parts(illumination: Illumination) -> tuple[Illumination, Pairs | None]:
    return (illumination.base, illumination.shifts) if isinstance(illumination, Adjusted) else (illumination, None)


def _bin_na(geometry: Geometry) -> NDArray[np.float64]:
    """NA of one bin of frequency along (y, x)."""
    return np.asarray(geometry.frequency_step) * geometry.optics.wavelength


def _at_the_edge(model: ForwardModel) -> NDArray[np.bool_]:
    """LEDs whose direct light, or a part of it, enters or leaves the pupil within the reach of a probe."""
    geometry = model.geometry
    reach = (REACH + LONGEST) * float(_bin_na(geometry).max()) + die_radius(model.illumination, geometry.patch_center)
    return np.asarray(np.abs(geometry.illumination_na - geometry.optics.na) <= reach)
