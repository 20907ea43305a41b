"""All of the alignment in one call: where the LEDs are, how bright and how large, the focus and the aperture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.array import Motion
from fouriscope.alignment.course import Course
from fouriscope.alignment.repeats import until_settled
from fouriscope.alignment.steps import Tell
from fouriscope.checks import door


@dataclass(frozen=True, eq=False)
class Alignment:
    """An acquisition with the geometry and the focus that its frames show, and a line about each finding.

    Attributes
    ----------
    acquisition
        The acquisition as aligned.
    notes
        What was found, one line each.
    power
        p, if counts were found to be the power p of the intensity; the frames of ``acquisition`` are straightened.
    """

    acquisition: Acquisition
    notes: tuple[str, ...]
    power: float = 1.0


@door
def align(
    acquisition: Acquisition,
    *,
    circles: bool = True,
    exposure: bool = True,
    focus: bool = True,
    focus_reach: float = 300e-6,
    response: bool = True,
    na: bool = True,
    array: bool = True,
    die: bool = True,
    edge: bool = True,
    curvature: bool = True,
    motions: Sequence[Motion] = ("shift", "rotation", "height"),
    tiles: bool = False,
    tell: Tell | None = None,
    stage: Tell | None = None,
) -> Alignment:
    """Find where the LEDs are, how long dark field was exposed and where the focus lies, from the frames alone.

    1. ``circles``: find place and orientation of the array from the bright frames alone, by the circles in their
       spectra and by short reconstructions of them (:func:`~fouriscope.alignment.find_place`), and move the array if
       unseen frames are predicted much better up to a pitch away (:func:`~fouriscope.alignment.scan`). If another
       orientation than the described one may be right, the searches 1 to 3 are made with both, and the other one is
       used if it predicts unseen frames better by three standard errors;
    2. ``exposure``: find how much longer dark-field frames were exposed (:func:`~fouriscope.alignment.find_exposure`):
       until that is known, no short reconstruction can tell anything else;
    3. ``focus``: search for the defocus within ±``focus_reach`` (:func:`~fouriscope.alignment.find_focus`);
       With ``array``, find the height of the array with which inner frames predict each other best, too
       (:func:`~fouriscope.alignment.find_height`). If it is another one, the searches so far are repeated;
    4. ``response``: find whether counts are a power of the intensity (:func:`~fouriscope.alignment.find_response`). If
       so, the frames are straightened, and the searches so far are repeated. If unseen frames no longer confirm it
       when all else is known, all searches are repeated without it: LEDs on the wrong side of the pupil's edge have
       looked like a power;
    5. ``array``: turn the array to where inner LEDs predict outer ones (:func:`~fouriscope.alignment.find_rotation`),
       move it as a rigid body (:func:`~fouriscope.alignment.refine_array`), and turn it once more;
    6. ``na``: search for the objective's aperture (:func:`~fouriscope.alignment.find_na`). It comes late, because
       a wrong aperture can make up for an array in the wrong place. If another aperture is found, the searches before
       are repeated with it. If outer frames are then predicted worse, the searches up to 9 are made with both
       apertures, and the one that predicts unseen frames better is used;
    7. ``die``: find how large the LEDs are (:func:`~fouriscope.alignment.find_die`), now that their places are known;
    8. exposure and focus again, with what is known by now;
    9. array and focus once more, by cross-validation: each frame is predicted from the others, and what predicts them
       better is used (:func:`~fouriscope.alignment.polish`). If all that was found does not predict them clearly better
       than the description, a search from the description is compared with it;
    10. ``edge``: leave out LEDs in the penumbra of the pupil's edge (:func:`~fouriscope.alignment.sides`), and those
        whose frames show that they lie on its other side. Their direct light passes in part, or is where it should not
        be. No direction nearby explains that, and an object that is forced to explain it gets stripes. If the size of
        the LEDs explains it, and they hold as much light as it says, they are kept. So are frames that a reconstruction
        predicts as well as others at the edge (:mod:`fouriscope.alignment.edge`). Frames whose direct light passes in a
        part of the field only are left out (:mod:`fouriscope.alignment.unevenness`). Dark frames beside the edge are
        left out if direct light leaks into them, so that bright frames are predicted better without them
        (:mod:`fouriscope.alignment.haze`);
    11. ``curvature``: find how much directions change over the field, on a larger patch
        (:func:`~fouriscope.alignment.find_curvature`).

    If the last search of 9 moves the LEDs far (two frequency bins of a patch), what was found before may be wrong, and
    all searches are repeated from there (:func:`~fouriscope.alignment.repeats.until_settled`).

    Another orientation or place of the array is used only if it explains the frames clearly better than the described
    one. The best defocus is always used. ``tell`` is called with each finding as soon as it is made.

    Parameters
    ----------
    acquisition
        The frames, and the microscope as described.
    circles, exposure, focus, response, na, array, die, edge, curvature
        Which searches to make, as above.
    focus_reach
        How far to search for the focus, to both sides, in metres.
    motions
        What ``array`` may change: "shift", "rotation", "height" and "pitch".
    tiles
        Whether the frames are reconstructed in tiles. Each tile then decides for itself which frames are uneven.
    tell
        Called with a line about each finding, such as ``print``.
    stage
        Called before each search with its name and number. A search that is repeated keeps its number.
    """
    course = Course(
        circles=circles,
        exposure=exposure,
        focus=focus,
        focus_reach=focus_reach,
        response=response,
        array=array,
        na=na,
        die=die,
        edge=edge,
        curvature=curvature,
        motions=motions,
        tiles=tiles,
        tell=tell,
        stage=stage,
    )
    found, power = until_settled(course, acquisition)
    return Alignment(course.end(found, acquisition), tuple(course.notes), power)
