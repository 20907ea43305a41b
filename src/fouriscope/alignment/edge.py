"""Doubtful frames at the pupil's edge: those that others predict as well as their neighbours are used after all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.brightness import amplitudes
from fouriscope.alignment.trials import Trials

Leds = NDArray[np.int64]

# So many frames nearest to the edge, on either side of it, show how well a frame there can be predicted.
WITNESSES = 8
# A doubtful frame may be predicted worse than half of them by this share.
TOLERANCE = 0.1


def explained(acquisition: Acquisition, doubtful: Leds) -> Leds:
    """Those of the ``doubtful`` LEDs whose frames are predicted as well as others near the pupil's edge.

    Brightness alone takes a dark frame that is full of slow scattered light for a penumbra, and without such frames the
    slow phase of the object is lost. A reconstruction that has not seen a frame predicts how much direct light it
    holds: all of it or none, as its side of the edge says, or what the size of the LEDs says. If that is wrong, the
    misfit ‖√y − √I‖/‖√y‖ is far above that of the other frames on this side, which are left out and predicted, too.

    Parameters
    ----------
    acquisition
        After the alignment. What it says about the weight of the doubtful LEDs does not matter.
    doubtful
        Numbers of the LEDs.
    """
    radius, inside = acquisition.illumination_na, acquisition.bright_field
    weights = acquisition.frame_weights
    weights[doubtful] = 0
    by_distance = np.argsort(np.abs(radius - acquisition.optics.na), kind="stable")
    near = by_distance[weights[by_distance] > 0]
    witnesses = np.concatenate([near[inside[near] == side][:WITNESSES] for side in (True, False)])
    trials = Trials.of(replace(acquisition, weights=weights), every_edge=True)
    misfits = np.zeros(len(acquisition))
    halves = witnesses[::2], witnesses[1::2]  # so that each half has neighbours
    for half in halves:
        held = np.concatenate([doubtful, half])
        misfits[held] += _misfits(trials, held)
    misfits[doubtful] /= len(halves)
    limits = {}
    for side in (True, False):
        others = misfits[witnesses[inside[witnesses] == side]]
        limits[side] = (1 + TOLERANCE) * float(np.median(others)) if len(others) else 0.0
    return np.array([led for led in doubtful if misfits[led] <= limits[bool(inside[led])]], np.int64)


def _misfits(trials: Trials, leds: Leds) -> NDArray[np.float64]:
    """‖√y − √I‖/‖√y‖ of ``leds``, which are left out of the reconstruction; infinite where there is no light."""
    found = np.full(len(leds), np.inf)
    for place, (measured, predicted) in enumerate(predicted_amplitudes(trials, leds, leds)):
        if measured.any():
            found[place] = np.linalg.norm(measured - predicted) / np.linalg.norm(measured)
    return found


def predicted_amplitudes(
    trials: Trials, leds: Leds, unseen: Leds, sweeps: int | None = None
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """√y and √I of each of ``leds``, from a reconstruction without the frames of ``unseen``; pixels that count only.

    Parameters
    ----------
    trials
        Of the patch.
    leds, unseen
        Numbers of LEDs.
    sweeps
        Of the reconstruction, if it is not to be as short as others.
    """
    patch, weights = trials.patch, trials.patch.frame_weights
    weights[unseen] = 0
    seen = replace(patch, weights=weights)
    solver = trials.sweeps(trials.model(patch.illumination), seen, free_pupil=True, count=sweeps)
    for _, measured, predicted in amplitudes(patch, leds, solver.model.intensity(solver.x, leds)):
        yield measured, predicted
