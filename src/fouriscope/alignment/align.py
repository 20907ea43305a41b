"""All of the alignment in one call: where the LEDs are, how bright and how large, the focus and the aperture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.acquisition.straightening import straightened
from fouriscope.alignment.array import Motion
from fouriscope.alignment.brightness import bright_gains, holds_direct_light
from fouriscope.alignment.edge import explained
from fouriscope.alignment.haze import hazy
from fouriscope.alignment.sides import sides
from fouriscope.alignment.steps import (
    Tell,
    aperture,
    bent,
    better_of,
    by_trials,
    clearly_better,
    curved,
    exposed,
    focused,
    likelier,
    looked_around,
    polished,
    predicted_better,
    sized,
)
from fouriscope.alignment.ways import by_bright_frames, right_way_round
from fouriscope.checks import door
from fouriscope.optics.die import across_edge
from fouriscope.optics.frame_sources import frame_sources

# The searches in their order, in words.
SEARCHES = {
    "circles": "place of the LED array",
    "exposure": "exposure of the dark field",
    "focus": "focus",
    "response": "response of the camera",
    "array": "rotation and height of the LED array",
    "na": "aperture",
    "die": "size of the LEDs",
    "edge": "LEDs at the pupil's edge",
    "curvature": "change of directions over the field",
}


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
        predicts as well as others at the edge (:mod:`fouriscope.alignment.edge`). Dark frames beside the edge are left
        out if direct light leaks into them, so that bright frames are predicted better without them
        (:mod:`fouriscope.alignment.haze`);
    11. ``curvature``: find how much directions change over the field, on a larger patch
        (:func:`~fouriscope.alignment.find_curvature`).

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
    tell
        Called with a line about each finding, such as ``print``.
    stage
        Called before each search with its name and number. A search that is repeated keeps its number.
    """
    notes: list[str] = []
    wanted = (circles, exposure, focus, response, array, na, die, edge, curvature)
    searches = [name for name, is_wanted in zip(SEARCHES, wanted, strict=True) if is_wanted]

    def begin(name: str) -> None:
        if stage is not None:
            stage(f"aligning the microscope: {SEARCHES[name]} ({searches.index(name) + 1} of {len(searches)})")

    def say(line: str) -> None:
        notes.append(line)
        if tell is not None:
            tell(line)

    def placed(data: Acquisition) -> Acquisition:
        if not circles:
            return explored(data, say)
        begin("circles")
        ways = by_bright_frames(data, say)
        if ways.rival is None:
            return explored(ways.acquisitions[0], say)
        lines: tuple[list[str], list[str]] = ([], [])
        found = [explored(way, said.append) for way, said in zip(ways.acquisitions, lines, strict=True)]
        chosen = right_way_round(ways, found, data, say)
        for line in lines[chosen]:
            say(line)
        return found[chosen]

    def explored(data: Acquisition, say: Tell) -> Acquisition:
        if circles:
            data = looked_around(data, say)
        if edge:  # for the searches; which frames are left out in the end is decided when everything else is known
            data = _weighed(data, _weights_without_penumbra(data))
        if exposure:
            begin("exposure")
            data = exposed(data, data.gains, say)
        if focus:
            begin("focus")
            data = focused(data, focus_reach, say)
        return data

    def turned(data: Acquisition) -> Acquisition:
        if array:
            begin("array")
            data = by_trials(data, motions, say)
        return data

    def finished(data: Acquisition, described: Acquisition) -> Acquisition:
        if die:
            begin("die")
            data = sized(data, described, say)
        gains_before = data.gains
        if exposure:
            begin("exposure")
            data = exposed(data, described.gains, say, certain=focus and array)
        if focus and (data.illumination is not described.illumination or data.gains is not gains_before):
            begin("focus")
            depth = data.optics.wavelength / data.optics.na**2
            data = focused(data, min(depth, focus_reach), say)
        if array:
            begin("array")
            data = polished(data, motions, described.pupil.defocus, say, focus=focus)
        return data

    given = acquisition
    described, power = _with_bright_gains(given) if exposure else given, 1.0
    acquisition = placed(described)
    if response:
        begin("response")
        power = bent(acquisition, say, exposure=exposure)
        if power != 1.0:
            straight = replace(given, frames=straightened(given.frames, power))
            described = _with_bright_gains(straight) if exposure else straight
            acquisition = placed(described)
    acquisition, rival = turned(acquisition), None
    if na:
        begin("na")
        found = aperture(acquisition, described.illumination, say)
        if found != described.optics.na:
            other = turned(placed(replace(described, optics=replace(described.optics, na=found))))
            acquisition, rival = likelier(other, acquisition)
    acquisition = finished(acquisition, described)
    if rival is not None:
        acquisition = predicted_better(finished(rival, described), acquisition, say)
    if array and not clearly_better(acquisition, described):
        # Something misled the searches: once more from the description, with those that do not move the LEDs.
        other = exposed(described, described.gains, say) if exposure else described
        other = focused(other, focus_reach, say) if focus else other
        other = polished(other, motions, described.pupil.defocus, say, focus=focus)
        acquisition = better_of(acquisition, other, described, say)
    if power != 1.0:
        begin("response")
        as_given = replace(acquisition, frames=given.frames, gains=given.gains)
        if bent(as_given, lambda line: None, exposure=exposure) == 1.0:
            say("response: with LEDs and focus as found, no power is certain; all searches are repeated without one")
            again = align(
                given,
                circles=circles,
                exposure=exposure,
                focus=focus,
                focus_reach=focus_reach,
                response=False,
                na=na,
                array=array,
                die=die,
                edge=edge,
                curvature=curvature,
                motions=motions,
                tell=tell,
                stage=stage,
            )
            return Alignment(again.acquisition, (*notes, *again.notes))
    if edge:
        begin("edge")
        acquisition = _weighed(acquisition, described.frame_weights)
        weights = _weights_without_penumbra(acquisition, certain=True)
        between = np.flatnonzero(acquisition.frame_weights != weights)
        if len(between):
            kept = explained(acquisition, between)
            weights[kept] = acquisition.frame_weights[kept]
            between = np.setdiff1d(between, kept)
        if len(between):
            say(
                f"edge: {len(between)} frames are left out, because they hold only part of their direct light or lie "
                f"on the wrong side of the pupil's edge: {_listed(between)}"
            )
            acquisition = _weighed(acquisition, weights)
        leaking = hazy(acquisition)
        if len(leaking):
            say(
                f"edge: {len(leaking)} dark-field frames beside the pupil's edge are left out, because bright-field "
                f"frames are predicted better without them; some direct light leaks into them: {_listed(leaking)}"
            )
            weights = acquisition.frame_weights
            weights[leaking] = 0
            acquisition = _weighed(acquisition, weights)
    if curvature:
        begin("curvature")
        acquisition = curved(acquisition, say)
    return Alignment(acquisition, tuple(notes), power)


def _with_bright_gains(acquisition: Acquisition) -> Acquisition:
    gains = bright_gains(acquisition)
    return acquisition if gains is acquisition.gains else replace(acquisition, gains=gains)


def _listed(leds: NDArray[np.int64]) -> str:
    return ", ".join(map(str, leds[:8])) + ("…" if len(leds) > 8 else "")


def _weighed(acquisition: Acquisition, weights: NDArray[np.float64]) -> Acquisition:
    same = np.array_equal(acquisition.frame_weights, weights)
    return acquisition if same else replace(acquisition, weights=weights)


def _weights_without_penumbra(acquisition: Acquisition, *, certain: bool = False) -> NDArray[np.float64]:
    """0 for frames in the penumbra; once the geometry is ``certain``, also for those on the wrong side of the edge.

    With LEDs of a known size, a frame whose LED lies across the edge is kept if it holds as much direct light as the
    size says. If not, its LED is in the wrong place, or its exposure is wrong.
    """
    bright, dark = sides(acquisition)
    kept = bright | dark
    if certain:
        place = (acquisition.optics, acquisition.patch_center)
        na = np.hypot(*acquisition.illumination.directions(acquisition.patch_center).T)
        inside = np.asarray(acquisition.optics.passes(na))
        across = across_edge(acquisition.illumination, *place)
        share = frame_sources(acquisition.illumination, *place).direct_light(acquisition.optics)
        kept = np.where(across, holds_direct_light(acquisition, share), (bright & inside) | (dark & ~inside))
    return np.where(kept, acquisition.frame_weights, 0.0)
