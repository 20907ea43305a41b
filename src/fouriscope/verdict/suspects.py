"""LEDs whose frames contradict the model that explains all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.fidelity import DataFidelity
from fouriscope.forward import ForwardModel

# A frame is compared with this many others of the nearest |na| in its own field; with fewer, nothing is said.
NEIGHBOURS, LEAST_NEIGHBOURS = 12, 5
# In robust standard deviations of the logarithm of the neighbours' misfits, which are never taken for smaller than
# SPREAD: a frame must be some twice as bad as they are, and badly explained in itself.
FAR, SPREAD, LEAST_MISFIT = 6.0, 0.12, 0.15
# Measured light divided by the predicted light, below and above which the brightness is the problem.
DIM, GLARING = 0.5, 2.0


@dataclass(frozen=True)
class Contradiction:
    """An LED whose frame contradicts the model.

    Attributes
    ----------
    led
        Its number.
    misfit, usual
        Relative misfit of its frame, and that of its neighbours.
    guess
        A possible reason.
    """

    led: int
    misfit: float
    usual: float
    guess: str

    def __str__(self) -> str:
        return f"LED {self.led} ({self.guess})"


def contradictions(
    acquisition: Acquisition, model: ForwardModel, x: NDArray[Any], leds: NDArray[np.int64]
) -> tuple[Contradiction, ...]:
    """The LEDs of ``leds`` whose frames stand out by ‖|u| − √y‖/‖√y‖, the worst first.

    Frames are compared with others of similar NA, separately in bright and dark field, because misfits grow with the NA
    in every reconstruction. Frames are read once; nothing is reconstructed.

    Parameters
    ----------
    acquisition
        The measured frames.
    model, x
        The model and the object that predict them.
    leds
        Numbers of the LEDs to compare.
    """
    fidelity = DataFidelity.of(acquisition, model, loss="amplitude")
    light = np.array([_light(fidelity, int(led)) for led in leds])
    misfits = np.sqrt(fidelity.misfits(x, leds) / np.maximum(light, 1e-12))
    geometry = model.geometry
    found = []
    for side in (geometry.bright_field[leds], ~geometry.bright_field[leds]):
        group = np.flatnonzero(side)
        for index in map(int, group):
            usual, distance = _beside_neighbours(index, group, misfits, geometry.illumination_na[leds])
            if distance > FAR and misfits[index] > LEAST_MISFIT:
                led = int(leds[index])
                guess = _guess(model, x, led, float(light[index]), fidelity.mask_of(led))
                found.append((distance, Contradiction(led, float(misfits[index]), usual, guess)))
    return tuple(one for _, one in sorted(found, key=lambda pair: -pair[0]))


def _beside_neighbours(
    index: int, group: NDArray[np.int64], misfits: NDArray[np.float64], sizes: NDArray[np.float64]
) -> tuple[float, float]:
    """The neighbours' median misfit, and how far above it this one lies, in robust standard deviations."""
    others = group[group != index]
    if len(others) < LEAST_NEIGHBOURS:
        return float(misfits[index]), 0.0
    nearest = others[np.argsort(np.abs(sizes[others] - sizes[index]), kind="stable")[:NEIGHBOURS]]
    logs = np.log(np.maximum(misfits[nearest], 1e-12))
    middle = float(np.median(logs))
    spread = max(1.4826 * float(np.median(np.abs(logs - middle))), SPREAD)
    return float(np.exp(middle)), (float(np.log(max(misfits[index], 1e-12))) - middle) / spread


def _light(fidelity: DataFidelity, led: int) -> float:
    frames, index, _, _ = fidelity.data_of(np.array([led]))
    return float(np.sum(np.maximum(frames[index[0]], 0), dtype=np.float64))


def _guess(model: ForwardModel, x: NDArray[Any], led: int, light: float, mask: NDArray[np.bool_]) -> str:
    geometry = model.geometry
    bin_na = max(geometry.frequency_step) * geometry.optics.wavelength
    if abs(float(geometry.illumination_na[led]) - geometry.optics.na) < bin_na:
        return "at the pupil's edge"
    predicted = float(np.sum(model.intensity(x, [led])[0][mask], dtype=np.float64))
    if light < DIM * predicted:
        return "dark: a dead LED?"
    if light > GLARING * predicted:
        return "bright: stray light or another LED?"
    return "another image: a wrong LED, or something that moved?"
