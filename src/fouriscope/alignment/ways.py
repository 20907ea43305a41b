"""Which way round the LED array is, and where: as described, unless unseen frames clearly contradict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.array import as_array, with_array
from fouriscope.alignment.brightness import lattice_pitch
from fouriscope.alignment.circles import TooFewBrightFramesError
from fouriscope.alignment.cross_validation import evidence_for
from fouriscope.alignment.orientation import AS_DESCRIBED, Orientation
from fouriscope.alignment.place import PlaceFit, find_place
from fouriscope.alignment.steps import CERTAIN, Tell, offset_of

# Another place must explain the bright frames this much better than the described one, and so much more for each pitch
# of the distance, unless fewer frames are then on the wrong side of the pupil's edge.
BETTER_PLACE, BETTER_PER_PITCH = 0.05, 0.3
# An orientation that predicts unseen frames worse by at least so many standard errors is not the right one.
UNSURE = 1.5


@dataclass(frozen=True, eq=False)
class Way:
    """One way round that the LED array may have, with the array where the bright frames show it."""

    orientation: Orientation
    acquisition: Acquisition


def ways_round(acquisition: Acquisition, say: Tell) -> tuple[list[Way], Orientation | None]:
    """The described way round, and those that may be right instead; with the one of them that is clearly likelier.

    Says where the array is, unless it is still open which way round it is.
    """
    try:
        fit = find_place(acquisition)
    except TooFewBrightFramesError as error:
        say(f"place: not searched for: {error}")
        return [Way(AS_DESCRIBED, acquisition)], None
    straight = _straight(acquisition, fit)
    if not fit.rivals:
        say(f"place: orientation as described; {_moved(straight, acquisition)}")
    turned = [Way(rival, replace(acquisition, illumination=fit.arrays[rival])) for rival in fit.rivals]
    return [Way(AS_DESCRIBED, straight), *turned], fit.likelier


def _straight(acquisition: Acquisition, fit: PlaceFit) -> Acquisition:
    """The described way round, moved if that explains the bright frames clearly better."""
    described = fit.misfits[AS_DESCRIBED]
    fewer = fit.misplaced[AS_DESCRIBED] < fit.misplaced_before
    array, before = fit.arrays[AS_DESCRIBED], as_array(acquisition.illumination)
    pitches = float(np.hypot(*np.subtract(array.offset, before.offset))) / lattice_pitch(before)
    if fewer or described < (1 - BETTER_PLACE - BETTER_PER_PITCH * pitches) * fit.misfit_before:
        return replace(acquisition, illumination=with_array(acquisition.illumination, array))
    return acquisition


def right_way_round(ways: Sequence[Way], likelier: Orientation | None, given: Acquisition, say: Tell) -> int:
    """The number of the way round that predicts unseen frames best, once exposure and focus are found for each.

    Another way round than the first, which is described, must be certain, or descriptions that are right would be given
    up. If too few frames can be asked, the ``likelier`` one is used.

    Parameters
    ----------
    ways
        With exposure and focus as found.
    likelier
        What :func:`ways_round` said.
    given
        The acquisition as described.
    """
    rivals = range(1, len(ways))
    best = rivals[0]
    for rival in rivals[1:]:
        if evidence_for(ways[rival].acquisition, ways[best].acquisition) > 0:
            best = rival
    evidence = evidence_for(ways[best].acquisition, ways[0].acquisition)
    proof = f", by {evidence:.1f} standard errors"
    if evidence == 0 and likelier is not None:
        best, proof = next(number for number in rivals if ways[number].orientation == likelier), ""
    elif evidence < CERTAIN:
        doubt = f", but the frames cannot tell it from {ways[best].orientation}" if evidence > -UNSURE else ""
        say(f"place: orientation as described{doubt}; {_moved(ways[0].acquisition, given)}")
        return 0
    orientation, turned = ways[best].orientation, as_array(ways[best].acquisition.illumination)
    say(
        f"place: orientation {orientation} (or {orientation.twin}; intensities cannot tell): unseen frames are "
        f"predicted better than as described{proof}; {offset_of(turned)}"
    )
    return best


def _moved(acquisition: Acquisition, given: Acquisition) -> str:
    if acquisition.illumination is given.illumination:
        return "position as described"
    return offset_of(as_array(acquisition.illumination))
