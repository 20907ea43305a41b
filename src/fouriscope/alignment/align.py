"""All of the alignment in one call: circles, focus, the objective's aperture, then the array as a rigid body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.aperture import find_na
from fouriscope.alignment.array import Motion, refine_array
from fouriscope.alignment.circles import (
    AS_DESCRIBED,
    ORIENTATIONS,
    CircleFit,
    TooFewBrightFramesError,
    find_array,
)
from fouriscope.alignment.focus import find_focus
from fouriscope.alignment.trials import Trials
from fouriscope.calibration.positions import as_array
from fouriscope.optics import Adjusted, Illumination, LEDArray

# Circles must explain the spectra better by this share before an array is displaced for them...
CIRCLES_GAIN = 0.03
# ... and another orientation must explain them twice as well as the described one.
ORIENTATION_GAIN = 2.0
# A share of the variance below this is what noise explains.
LEAST_SCORE = 0.02

Tell = Callable[[str], object]


@dataclass(frozen=True, eq=False)
class Alignment:
    """An acquisition with the geometry and the focus that its frames show, and what was found, a line each."""

    acquisition: Acquisition
    notes: tuple[str, ...]


def align(
    acquisition: Acquisition,
    *,
    circles: bool = True,
    focus: bool = True,
    focus_reach: float = 300e-6,
    na: bool = True,
    array: bool = True,
    motions: Sequence[Motion] = ("shift", "rotation", "height"),
    tell: Tell | None = None,
) -> Alignment:
    """Find where the LEDs are and where the focus lies, from the frames alone.

    1. ``circles``: place the array by the circles in the spectra of the bright-field frames, and test its orientation
       (:func:`~fouriscope.alignment.find_array`);
    2. ``focus``: search for the defocus within ±``focus_reach`` (:func:`~fouriscope.alignment.find_focus`);
    3. ``na``: search for the objective's aperture (:func:`~fouriscope.alignment.find_na`); if it is another one, all
       before is done again with it;
    4. ``array``: move the array as a rigid body (:func:`~fouriscope.alignment.refine_array`), and focus once more.

    Another orientation or place of the array is used only if it explains the frames clearly better than the described
    one; of the defocus the best is taken. ``tell`` is called with each finding as soon as it is made.
    """
    notes: list[str] = []

    def say(line: str) -> None:
        notes.append(line)
        if tell is not None:
            tell(line)

    described = acquisition
    if circles:
        acquisition = _by_circles(acquisition, say)
    if focus:
        acquisition = _focused(acquisition, focus_reach, say)
    if na:
        aperture = _aperture(acquisition, described.illumination, say)
        if aperture != described.optics.na:
            optics = replace(described.optics, na=aperture)
            if circles:  # whose radius is the aperture's
                placed = _by_circles(replace(described, optics=optics), say)
                acquisition = replace(acquisition, illumination=placed.illumination)
            acquisition = replace(acquisition, optics=optics)
            if focus:
                acquisition = _focused(replace(acquisition, pupil=described.pupil), focus_reach, say)
    if array:
        fit = refine_array(acquisition, motions=motions)
        if fit.moved:
            say(
                f"array: {_description(fit.illumination)} explains the frames better "
                f"(misfit {fit.misfit_before:.4g} → {fit.misfit_after:.4g} in {fit.trials} trials)"
            )
            acquisition = replace(acquisition, illumination=fit.illumination)
            if focus:
                depth = acquisition.optics.wavelength / acquisition.optics.na**2
                acquisition = _focused(acquisition, min(depth, focus_reach), say)
        else:
            say(f"array: right as it is, to what {fit.trials} trials can tell")
    return Alignment(acquisition, tuple(notes))


def _by_circles(acquisition: Acquisition, say: Tell) -> Acquisition:
    try:
        fit = find_array(acquisition, orientations=ORIENTATIONS)
    except TooFewBrightFramesError as error:
        say(f"circles: not used, {error}")
        return acquisition
    described, best = fit.scores[AS_DESCRIBED], fit.scores[fit.orientation]
    if fit.orientation != AS_DESCRIBED and best > ORIENTATION_GAIN * max(described, LEAST_SCORE):
        say(
            f"circles: the LEDs lie {fit.orientation} (or {fit.orientation.twin}; intensities cannot tell), which "
            f"explains {best:.1%} of the spectra, as described {described:.1%}; {_moved_by(fit)}"
        )
        return replace(acquisition, illumination=fit.illumination)
    if fit.orientation != AS_DESCRIBED:
        fit = find_array(acquisition)
    if fit.scores[AS_DESCRIBED] > fit.score_before * (1 + CIRCLES_GAIN):
        say(f"circles: orientation as described; {_moved_by(fit)}")
        _, shifts = as_array(acquisition.illumination)
        found = fit.illumination if shifts is None else Adjusted(fit.illumination, shifts)
        return replace(acquisition, illumination=found)
    say("circles: orientation and place as described")
    return acquisition


def _aperture(acquisition: Acquisition, described: Illumination, say: Tell) -> float:
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
            f"aperture: not found; the frames agree best with one at the end of what was tried, {best.tried[0]:.4f} to "
            f"{best.tried[-1]:.4f}. NA {believed:g} stays: are microscope.na and illumination right?"
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


def _moved_by(fit: CircleFit) -> str:
    y, x = fit.illumination.offset
    before, after = fit.misplaced
    return f"offset ({y * 1e3:.2f}, {x * 1e3:.2f}) mm; frames on the wrong side of the pupil's edge: {before} → {after}"


def _focused(acquisition: Acquisition, reach: float, say: Tell) -> Acquisition:
    fit = find_focus(acquisition, reach=reach, trials=Trials.of(acquisition, room=0.0))
    say(
        f"focus: {fit.defocus * 1e6:.1f} µm (was {acquisition.pupil.defocus * 1e6:.1f}), the best of {len(fit.tried)} "
        f"from {fit.tried[0] * 1e6:.0f} to {fit.tried[-1] * 1e6:.0f} µm"
    )
    return replace(acquisition, pupil=replace(acquisition.pupil, defocus=fit.defocus))


def _description(illumination: Illumination) -> str:
    base = getattr(illumination, "base", illumination)
    if not isinstance(base, LEDArray):
        return "another place"
    y, x = base.offset
    return (
        f"offset ({y * 1e3:.3f}, {x * 1e3:.3f}) mm, rotation {np.degrees(base.rotation):.3f}°, "
        f"height {base.height * 1e3:.2f} mm"
    )
