"""Direct light that leaks into dark frames next to the pupil's edge, and how far it reaches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.cross_validation import in_standard_errors
from fouriscope.alignment.edge import Leds, predicted_amplitudes
from fouriscope.alignment.trials import LARGE_PATCH, Trials
from fouriscope.errors import DivergenceError
from fouriscope.optics.die import die_radius
from fouriscope.parallel import run_sliced

# How far from the pupil's edge frames may be left out, in units of NA.
REACHES = (0.1, 0.2)
# Bright frames beyond this share of NA are asked: they see slow phases too. A fold of them is left out at a time, and
# this many must be there.
ASKED, FOLDS, LEAST_ASKED = 0.6, 4, 4
# Slow phases need time, and room: a large patch.
SWEEPS = 8
# Without the hazy frames the misfit of the bright ones must be smaller by this share, and by so many standard errors.
# Of two reaches whose misfits differ by less, the smaller one is taken.
LEAST_GAIN, EVIDENCE = 0.01, 1.0


def hazy(acquisition: Acquisition) -> Leds:
    """Dark frames next to the pupil's edge without which bright frames are predicted better.

    The halo of an LED, its package or a scratch on a lens send some direct light through the pupil although the LED
    itself lies outside. It looks like a weak, slow haze. The frame counts it as light that the sample has scattered by
    a tiny angle, so the object gets a slow phase of some tenths of a radian that is not there. Bright frames whose LEDs
    lie near the edge see such phases as well. They are left out in turn and predicted, with and without the dark frames
    within a tenth and two tenths of NA from the edge. Of an LED with a size, the point nearest to the axis counts: one
    corner may send direct light to a part of the field. If the sample itself has slow phases, the dark frames help,
    and are kept.

    Parameters
    ----------
    acquisition
        After the alignment, with the weights that frames have by now.

    Returns
    -------
    Numbers of the LEDs, none if nothing is gained without them.
    """
    na, middles = acquisition.optics.na, acquisition.illumination_na
    nearest = middles - die_radius(acquisition.illumination, acquisition.patch_center)
    used, inside = acquisition.frame_weights > 0, acquisition.bright_field
    groups = [np.flatnonzero(used & ~inside & (nearest < (1 + reach) * na)) for reach in REACHES]
    # Two reaches may hold the same frames.
    groups = [group for place, group in enumerate(groups) if len(group) > (len(groups[place - 1]) if place else 0)]
    asked = np.random.default_rng(0).permutation(np.flatnonzero(used & inside & (middles > ASKED * na)))
    nothing = np.zeros(0, np.int64)
    if not groups or len(asked) < LEAST_ASKED:
        return nothing
    misfits = _misfits(Trials.of(acquisition, side=LARGE_PATCH, every_edge=True), asked, [nothing, *groups])
    means = np.sqrt(np.mean(misfits**2, axis=1))
    better = [
        place
        for place in range(1, len(means))
        if means[place] < (1 - LEAST_GAIN) * means[0] and in_standard_errors(misfits[0] - misfits[place]) >= EVIDENCE
    ]
    if not better:
        return nothing
    least = means[better].min()
    return groups[next(place for place in better if means[place] <= (1 + LEAST_GAIN) * least) - 1]


def _misfits(trials: Trials, asked: Leds, groups: list[Leds]) -> NDArray[np.float64]:
    """The misfit of every ``asked`` frame, one row per group that the reconstructions do without."""
    tasks = [(row, fold) for row in range(len(groups)) for fold in range(FOLDS)]
    found = np.zeros((len(groups), len(asked)))

    def work(start: int, stop: int) -> None:
        for row, fold in tasks[start:stop]:
            leds = asked[fold::FOLDS]
            pairs = predicted_amplitudes(trials, leds, np.concatenate([leds, groups[row]]), SWEEPS)
            try:
                found[row, fold::FOLDS] = [_misfit(*pair) for pair in pairs]
            except DivergenceError:
                found[row, fold::FOLDS] = 1.0  # nothing is predicted

    run_sliced(work, len(tasks))
    return found


def _misfit(measured: NDArray[np.float64], predicted: NDArray[np.float64]) -> float:
    """‖√y − g√I‖/‖√y‖ with the best brightness g of the LED; 1 where there is no light."""
    light = float(np.sum(predicted**2) * np.sum(measured**2))
    return float(np.sqrt(max(1 - np.sum(measured * predicted) ** 2 / light, 0.0))) if light else 1.0
