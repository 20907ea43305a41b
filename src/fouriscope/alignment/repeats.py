"""All searches once more from what they found, if the last of them has moved the LEDs far."""

from __future__ import annotations

from dataclasses import replace

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.array import as_array, with_array
from fouriscope.alignment.course import Course
from fouriscope.alignment.cross_validation import evidence_for
from fouriscope.alignment.steps import exposed

# In bins of a patch, root mean square over the LEDs: what was found before so long a way was found in the wrong place.
FAR = 2.0
# All searches are repeated so often at most.
MOST = 3


def until_settled(course: Course, given: Acquisition) -> tuple[Acquisition, float]:
    """The microscope as found, and the power of the intensity that counts are.

    Aperture, exposure and response of the camera are found with the LEDs where the first searches have them. If unseen
    frames then show in the last search that the LEDs are somewhere else, all this may be wrong: on a blood smear whose
    LEDs were described 12 % too far away, an aperture 10 % too small made up for that. So the searches begin again with
    the LEDs and the focus as found, and everything else as given. What they find is used if it predicts unseen frames
    better.

    Parameters
    ----------
    course
        The searches.
    given
        The acquisition as described.
    """
    found, power = course.search(given)
    for _ in range(MOST):
        if course.way < FAR:
            break
        again = replace(course, tell=None, notes=[], ways=[])
        course.say("place: the last search has moved the LEDs far; all searches are repeated from there")
        other, other_power = again.search(_from(found, given))
        evidence = evidence_for(other, found if power == other_power else _seen_in(other, found, given))
        if evidence <= 0:
            course.say("place: the repeated searches predict unseen frames no better, and are not used")
            break
        for line in again.notes:
            course.say(line)
        course.say(f"place: the repeated searches predict unseen frames better (by {evidence:.1f} standard errors)")
        course, found, power = replace(course, ways=again.ways), other, other_power
    return found, power


def _from(found: Acquisition, given: Acquisition) -> Acquisition:
    """``given`` with LEDs (of the size that was given) and focus where they were found."""
    place = replace(as_array(found.illumination), die=as_array(given.illumination).die)
    return replace(
        given,
        illumination=with_array(found.illumination, place),
        pupil=replace(given.pupil, defocus=found.pupil.defocus),
    )


def _seen_in(other: Acquisition, found: Acquisition, given: Acquisition) -> Acquisition:
    """``found`` with the frames of ``other``, which are straightened by another power, and the exposure that fits."""
    return exposed(replace(found, frames=other.frames), given.gains, lambda line: None)
