"""The steps of the alignment: what a search found is used if it explains the frames better, and said in one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.aperture import find_na
from fouriscope.alignment.array import Motion, as_array, refine_array, with_array
from fouriscope.alignment.cross_validation import evidence_for
from fouriscope.alignment.curvature import find_curvature, with_curvature
from fouriscope.alignment.die import find_die
from fouriscope.alignment.exposure import find_exposure
from fouriscope.alignment.focus import find_focus
from fouriscope.alignment.height import find_height
from fouriscope.alignment.place import CLEARLY
from fouriscope.alignment.polish import polish
from fouriscope.alignment.prediction import likeness
from fouriscope.alignment.response import find_response
from fouriscope.alignment.rotation import find_rotation
from fouriscope.alignment.scan import scan
from fouriscope.alignment.trials import LARGE_PATCH, PATCH, Trials
from fouriscope.optics import Illumination, LEDArray

# If all that was found predicts unseen frames better than the description by fewer standard errors than this, a search
# that begins with the description is compared with it. Right places have from 4 to 10 on hostile microscopes.
CERTAIN = 3.0
# Place and focus are polished on a patch of the usual side, and then more exactly on a large one, if frames have so
# many times the usual side.
LEAST_LARGER = 1.5

Tell = Callable[[str], object]


def exposed(acquisition: Acquisition, before: NDArray[Any] | None, say: Tell, *, certain: bool = False) -> Acquisition:
    """With the exposure that was found, times the gains that were known ``before``."""
    fit = find_exposure(replace(acquisition, gains=before), certain=certain)
    if not fit.changed:
        say("exposure: dark-field frames are as bright as bright-field ones predict")
        return acquisition if acquisition.gains is before else replace(acquisition, gains=before)
    say(
        f"exposure: {int(fit.dark.sum())} dark-field frames look {fit.ratio:.2g} times as bright as bright-field ones "
        f"predict; most likely they were exposed {'longer' if fit.ratio > 1 else 'shorter'}"
    )
    return replace(acquisition, gains=fit.gains)


def bent(acquisition: Acquisition, say: Tell, *, exposure: bool) -> float:
    """The power of the intensity that counts are, as far as unseen frames tell."""
    fit = find_response(acquisition, exposure=exposure)
    if fit is None or not fit.changed:
        return 1.0
    say(
        f"response: counts are the power {fit.power:.2f} of the intensity (gamma, as in pictures made for screens); "
        f"unseen frames are predicted better so (correlation {fit.tried[1.0]:.3f} → {fit.tried[fit.power]:.3f}, by "
        f"{fit.evidence:.1f} standard errors)"
    )
    return fit.power


def at_height(described: Acquisition, placed: Acquisition, say: Tell) -> Acquisition:
    """``described`` with the height that unseen frames show, seen with exposure and focus of ``placed``.

    It is looked for at the place that was found and at the described one: a wrong height has misled the circles.
    Another aperture at the described height moves the pupils of neighbouring LEDs apart in the same way. If that
    clearly predicts unseen frames better, the aperture is what was described wrongly: it is engraved, and better known.
    """
    places = [placed]
    if placed.illumination is not described.illumination:
        places.append(replace(placed, illumination=described.illumination))
    fits = [(fit, place) for place in places if (fit := find_height(place)) is not None]
    if not fits:
        return described
    fit, place = max(fits, key=lambda one: one[0].after)
    if not fit.changed:
        return described
    na = fit.factor * described.optics.na
    other_na = replace(place, optics=replace(place.optics, na=na))
    moved = with_array(place.illumination, as_array(place.illumination).moved(height=fit.factor))
    if (evidence := evidence_for(other_na, replace(place, illumination=moved))) >= CERTAIN:
        say(
            f"aperture: NA {na:.4f} (was {described.optics.na:g}) predicts unseen frames better than another height of "
            f"the LEDs (by {evidence:.1f} standard errors)"
        )
        return replace(described, optics=replace(described.optics, na=na))
    before = as_array(described.illumination)
    array = before.moved(height=fit.factor)
    other = f"{array.height * 1e3:.4g} mm (was {before.height * 1e3:.4g})"
    if getattr(described.illumination, "height", None) is None:
        other = f"{fit.factor:.3f} times the one that directions were computed with"
    say(
        f"height: {other} predicts unseen frames better (correlation {fit.before:.3f} → {fit.after:.3f}, by "
        f"{fit.evidence:.1f} standard errors)"
    )
    return replace(described, illumination=with_array(described.illumination, array))


def by_trials(acquisition: Acquisition, motions: Sequence[Motion], say: Tell) -> Acquisition:
    described = acquisition.illumination
    if "rotation" in motions:
        acquisition = _turned(acquisition, say)
    fit = refine_array(acquisition, motions=motions)
    if fit.moved:
        acquisition = replace(acquisition, illumination=fit.illumination)
        if "rotation" in motions:
            acquisition = _turned(acquisition, say)
    if acquisition.illumination is described:
        say(f"array: not moved; {fit.trials} trials found no better place")
    elif fit.moved:
        say(
            f"array: {_description(acquisition.illumination)} explains the frames better "
            f"(misfit {fit.misfit_before:.4g} → {fit.misfit_after:.4g} in {fit.trials} trials)"
        )
    return acquisition


def _turned(acquisition: Acquisition, say: Tell) -> Acquisition:
    fit = find_rotation(acquisition)
    if not fit.changed:
        return acquisition
    say(
        f"rotation: turned by {np.degrees(fit.turn):.2f}°, where inner LEDs predict the frames of outer ones better "
        f"(by {fit.evidence:.1f} standard errors)"
    )
    return replace(acquisition, illumination=fit.illumination)


def aperture(acquisition: Acquisition, described: Illumination, say: Tell) -> float:
    """The NA found with the array where it is now, or where it was described, if that explains the frames better.

    Circles of a wrong radius have moved the array to a wrong place, where no aperture explains the frames well.
    """
    believed = acquisition.optics.na
    # One patch for both, or their misfits could not be compared; directions without a height are known in one place.
    trials = Trials.of(replace(acquisition, illumination=described))
    fits = [find_na(acquisition, trials=trials)]
    if acquisition.illumination is not described:
        moved = replace(trials, patch=replace(trials.patch, illumination=acquisition.illumination))
        fits.append(find_na(acquisition, trials=moved))
    best = min(fits, key=lambda fit: fit.misfit_after)
    if best.at_end:
        say(
            f"aperture: not found; the best NA lies at the end of the range that was tried, {best.tried[0]:.4f} to "
            f"{best.tried[-1]:.4f}. NA {believed:g} is kept: are microscope.na and illumination right?"
        )
        return believed
    if not best.changed:
        say(f"aperture: NA {believed:g} as described")
        return believed
    say(
        f"aperture: NA {best.na:.4f} (was {believed:g}) explains the frames better "
        f"(misfit {best.misfit_before:.4g} → {best.misfit_after:.4g})"
    )
    return best.na


def likelier(other: Acquisition, acquisition: Acquisition) -> tuple[Acquisition, Acquisition | None]:
    """``other``, and no rival, unless it predicts outer frames clearly worse (:func:`likeness`); then ``acquisition``
    and ``other`` as its rival, because rotation and height are not found well enough yet to decide."""
    before, after = likeness(acquisition), likeness(other, na=acquisition.optics.na)
    return (acquisition, other) if after < (1 - CLEARLY) * before else (other, None)


def predicted_better(rival: Acquisition, acquisition: Acquisition, say: Tell) -> Acquisition:
    """The one of two with different apertures that predicts unseen frames better, now that all else is found."""
    evidence = evidence_for(rival, acquisition)
    best = rival if evidence > 0 else acquisition
    say(
        f"aperture: NA {best.optics.na:.4f} is used; of NA {acquisition.optics.na:.4f} and {rival.optics.na:.4f} it "
        f"predicts unseen frames better (by {abs(evidence):.1f} standard errors)"
    )
    return best


def sized(acquisition: Acquisition, described: Acquisition, say: Tell) -> Acquisition:
    """With LEDs of the size that explains the frames best, including those that were left out so far."""
    if getattr(described.illumination, "height", None) is None:
        say("size of the LEDs: not searched for: their directions have no height")
        return acquisition
    fit = find_die(replace(acquisition, weights=described.weights))
    if not fit.changed:
        say("size of the LEDs: as described, as far as the frames can tell")
        return acquisition
    say(
        f"size of the LEDs: {fit.die * 1e3:.2g} mm explains the frames better than points "
        f"(misfit {fit.misfit_before:.4g} → {fit.misfit_after:.4g})"
    )
    return replace(acquisition, illumination=fit.illumination)


def offset_of(array: LEDArray) -> str:
    y, x = array.offset
    return f"offset ({y * 1e3:.2f}, {x * 1e3:.2f}) mm"


def focused(acquisition: Acquisition, reach: float, say: Tell) -> Acquisition:
    fit = find_focus(acquisition, reach=reach, trials=Trials.of(acquisition, room=0.0))
    end = "; this is the end of the search: is the focus farther out, or are the LEDs elsewhere?" if fit.at_end else ""
    say(
        f"focus: {fit.defocus * 1e6:.1f} µm (was {acquisition.pupil.defocus * 1e6:.1f}), the best of {len(fit.tried)} "
        f"from {fit.tried[0] * 1e6:.0f} to {fit.tried[-1] * 1e6:.0f} µm{end}"
    )
    return replace(acquisition, pupil=replace(acquisition.pupil, defocus=fit.defocus))


def looked_around(acquisition: Acquisition, say: Tell) -> Acquisition:
    """With the LEDs up to a pitch away, if unseen frames are predicted much better there."""
    fit = scan(acquisition)
    if fit is None or not fit.changed:
        return acquisition
    say(
        f"place: {offset_of(as_array(fit.illumination))} predicts unseen frames much better (correlation "
        f"{fit.before:.3f} → {fit.after:.3f}, by {fit.evidence:.1f} standard errors)"
    )
    return replace(acquisition, illumination=fit.illumination)


def curved(acquisition: Acquisition, say: Tell) -> Acquisition:
    """With the change of directions over the field, if unseen frames tell."""
    fit = find_curvature(acquisition)
    if fit is None or not fit.changed:
        return acquisition
    height = float(acquisition.illumination.height)  # type: ignore[attr-defined]
    sign = (
        "; a negative number means that the array is turned by half a turn, so that phases have the wrong sign, or "
        "that the objective is far from telecentric"
        if fit.curvature < 0
        else ""
    )
    say(
        f"curvature: directions change over the field by NA {fit.curvature * 1e-3:.3g} per mm (with a telecentric "
        f"objective it would be {1e-3 / height:.3g}); unseen frames are predicted better so (correlation "
        f"{fit.before:.3f} → {fit.after:.3f}, by {fit.evidence:.1f} standard errors){sign}"
    )
    return with_curvature(acquisition, fit.curvature)


def polished(
    acquisition: Acquisition, motions: Sequence[Motion], described_focus: float, say: Tell, *, focus: bool
) -> Acquisition:
    """With LEDs and focus where frames are predicted best that reconstructions have not seen."""
    other_focus: float | None = described_focus if focus else None
    for side in (PATCH, LARGE_PATCH):
        if side > PATCH and min(acquisition.frame_shape) < LEAST_LARGER * PATCH:
            break
        fit = polish(acquisition, motions=motions, focus=focus, other_focus=other_focus, side=side)
        other_focus = None
        if fit is None or not fit.changed:
            continue
        moved = _description(fit.illumination) + (f", focus {fit.defocus * 1e6:.1f} µm" if focus else "")
        say(
            f"unseen frames: {moved} predicts them better (correlation {fit.before:.4f} → {fit.after:.4f}, by "
            f"{fit.evidence:.1f} standard errors)"
        )
        pupil = replace(acquisition.pupil, defocus=fit.defocus)
        acquisition = replace(acquisition, illumination=fit.illumination, pupil=pupil)
    return acquisition


def clearly_better(acquisition: Acquisition, described: Acquisition) -> bool:
    """Whether what was found predicts unseen frames clearly better than the description, or is no other place."""
    if acquisition.illumination is described.illumination:
        return True
    return evidence_for(acquisition, described) >= CERTAIN


def better_of(
    acquisition: Acquisition, from_description: Acquisition, described: Acquisition, say: Tell
) -> Acquisition:
    if evidence_for(from_description, acquisition) <= 0:
        return acquisition
    place = from_description.illumination
    now = "as described" if place is described.illumination else _description(place)
    say(
        "place: begun again from the description, because what had been found did not predict unseen frames clearly "
        f"better; now {now}"
    )
    return from_description


def _description(illumination: Illumination) -> str:
    base = getattr(illumination, "base", illumination)
    if not isinstance(base, LEDArray):
        return "another place"
    y, x = base.offset
    return (
        f"offset ({y * 1e3:.3f}, {x * 1e3:.3f}) mm, rotation {np.degrees(base.rotation):.3f}°, "
        f"height {base.height * 1e3:.2f} mm"
    )
