"""Which way round the LED array is, and where: as described, unless unseen frames clearly contradict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.brightness import lattice_pitch
from fouriscope.alignment.circles import TooFewBrightFramesError
from fouriscope.alignment.cross_validation import evidence_for
from fouriscope.alignment.orientation import AS_DESCRIBED, Orientation
from fouriscope.alignment.place import find_place
from fouriscope.alignment.steps import CERTAIN, Tell, offset_of
from fouriscope.calibration.positions import as_array
from fouriscope.optics import Adjusted

# Another place must explain the bright frames this much better than the described one, and so much more for each pitch
# of the distance, unless fewer frames are then on the wrong side of the pupil's edge.
BETTER_PLACE, BETTER_PER_PITCH = 0.05, 0.3
# An orientation that predicts unseen frames worse by at least so many standard errors is not the right one.
UNSURE = 1.5


@dataclass(frozen=True, eq=False)
class Ways:
    """The ways round that the LED array may have, as far as bright frames tell.

    Attributes
    ----------
    acquisitions
        With the array at its place: as it is described and, if there is a rival, in its orientation.
    rival
        The other orientation that may be right.
    rival_is_likelier
        Whether it would be chosen if nothing else could be asked.
    """

    acquisitions: tuple[Acquisition, ...]
    rival: Orientation | None = None
    rival_is_likelier: bool = False


def by_bright_frames(acquisition: Acquisition, say: Tell) -> Ways:
    """Says where the array is, unless it is still open which way round it is."""
    try:
        fit = find_place(acquisition)
    except TooFewBrightFramesError as error:
        say(f"place: not searched for: {error}")
        return Ways((acquisition,))
    described = fit.misfits[AS_DESCRIBED]
    fewer = fit.misplaced[AS_DESCRIBED] < fit.misplaced_before
    array, (before, shifts) = fit.arrays[AS_DESCRIBED], as_array(acquisition.illumination)
    pitches = float(np.hypot(*np.subtract(array.offset, before.offset))) / lattice_pitch(before)
    straight = acquisition
    if fewer or described < (1 - BETTER_PLACE - BETTER_PER_PITCH * pitches) * fit.misfit_before:
        straight = replace(acquisition, illumination=array if shifts is None else Adjusted(array, shifts))
    if fit.rival is None:
        say(f"place: orientation as described; {_moved(straight, acquisition)}")
        return Ways((straight,))
    turned = replace(acquisition, illumination=fit.arrays[fit.rival])
    return Ways((straight, turned), fit.rival, fit.rival_is_likelier)


def right_way_round(ways: Ways, found: Sequence[Acquisition], given: Acquisition, say: Tell) -> int:
    """Which of two ``ways`` predicts unseen frames better, once exposure and focus are ``found`` for both.

    A wrong way round must be certain, or descriptions that are right would be given up. If too few frames can be asked,
    what the inner LEDs predicted decides.
    """
    straight, turned = found
    evidence = evidence_for(turned, straight)
    if evidence >= CERTAIN or (evidence == 0 and ways.rival_is_likelier):
        assert ways.rival is not None
        proof = "unseen frames are predicted better than as described"
        proof += f", by {evidence:.1f} standard errors" if evidence else ""
        say(
            f"place: orientation {ways.rival} (or {ways.rival.twin}; intensities cannot tell): {proof}; "
            f"{offset_of(as_array(turned.illumination)[0])}"
        )
        return 1
    doubt = f", but the frames cannot tell it from {ways.rival}" if evidence > -UNSURE else ""
    say(f"place: orientation as described{doubt}; {_moved(straight, given)}")
    return 0


def _moved(acquisition: Acquisition, given: Acquisition) -> str:
    if acquisition.illumination is given.illumination:
        return "position as described"
    return offset_of(as_array(acquisition.illumination)[0])
