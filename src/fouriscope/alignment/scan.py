"""A look around: whether unseen frames are predicted much better with the LED array somewhere else."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.array import as_array, moved_array, one_bin, with_array
from fouriscope.alignment.brightness import frame_means, lattice_pitch, misplaced, sides_of_frames
from fouriscope.alignment.cross_validation import (
    LEAST_FRAMES,
    CrossValidation,
    Guess,
    askable,
    in_standard_errors,
)
from fouriscope.alignment.trials import Trials
from fouriscope.optics import Illumination

Floats = NDArray[np.float64]

# The distance of the places that are tried, in bins: the right one is seen from about two bins away. They go as far as
# one pitch, and no farther than so many steps.
STEP, MOST = 1.25, 12
# Nearer places are left to the searches that follow: with the focus unknown, the edge of large LEDs misled by one step.
NEAR = 2.0
# LEDs up to this many NA from the axis take part. A rotation or another height hardly moves them.
INNER = 1.6
# A place must predict frames better by so many standard errors to be gone to, and in the end in other folds, too.
PROMISING, CERTAIN = 1.5, 3.0
# A place may bring so many more frames than the present one to a side of the pupil's edge that their brightness
# contradicts: vignetting and long exposures mislead there.
MISPLACED = 2
# How often each axis is looked along, as long as something moves.
ROUNDS = 3


@dataclass(frozen=True, eq=False)
class ScanFit:
    """What the look around found.

    Attributes
    ----------
    illumination
        As found, or as it was.
    before, after
        Mean correlation of the frames with their predictions, in folds that took no part in the search.
    evidence
        The improvement in standard errors; 0 if nothing is used.
    """

    illumination: Illumination
    before: float
    after: float
    evidence: float

    @property
    def changed(self) -> bool:
        return self.evidence > 0


def scan(acquisition: Acquisition) -> ScanFit | None:
    """Look for another place of the LED array, up to a pitch away.

    Searches that follow a misfit end in the next minimum, and the bright frames of a sample with several turns of phase
    show no circles. The prediction of unseen frames
    (:class:`~fouriscope.alignment.cross_validation.CrossValidation`) has a peak at the right place and is flat
    elsewhere. Inner LEDs show it best: a rotation hardly moves them, and one that is still unknown hides the peak of
    the others. So places in even distances are tried along both axes, in turn, unless the brightness of frames
    contradicts them. One is used if it is at least two bins away and predicts frames better by three standard errors in
    other folds, which took no part in the search. Returns None if there are too few frames.

    Parameters
    ----------
    acquisition
        The frames and what is known about the microscope.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> from fouriscope.alignment import scan
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
    >>> model = fs.ForwardModel(optics, leds.moved(shift=(3e-3, 0)), (48, 48))
    >>> phase = np.random.default_rng(0).normal(0, 0.5, model.object_shape)
    >>> frames = fs.simulate(model, phase, seed=0).frames
    >>> fit = scan(fs.Acquisition(optics, leds, frames, periodic=True))
    >>> bool(np.hypot(*(fit.illumination.offset - np.array([3e-3, 0]))) < 1e-3)
    True
    """
    inner = np.where(acquisition.illumination_na < INNER * acquisition.optics.na, acquisition.frame_weights, 0.0)
    if not np.count_nonzero(inner):
        return None
    trials = Trials.of(replace(acquisition, weights=inner))
    asked = askable(trials)
    if np.count_nonzero(asked) < LEAST_FRAMES:
        return None
    search, check = CrossValidation(trials, asked, 0), CrossValidation(trials, asked, 1)
    array = as_array(acquisition.illumination)
    units = np.array([one_bin(trials, array, name) for name in ("y", "x")])
    reach = min(MOST, int(lattice_pitch(array) / (STEP * units.max())))
    steps = STEP * np.setdiff1d(np.arange(-reach, reach + 1), [0])

    def guess(values: Floats) -> Guess:
        place = moved_array(array, ["y", "x"], values * units)
        return Guess(with_array(acquisition.illumination, place), trials.patch.pupil)

    sides = sides_of_frames(acquisition, frame_means(acquisition))

    def wrong(values: Floats) -> int:
        directions = guess(values).illumination.directions(acquisition.patch_center)
        return misplaced(acquisition.optics, sides, directions)

    here = np.zeros(2)
    most = wrong(here) + MISPLACED
    level = search.likeness([guess(here)])[0]
    settled = 0  # looks since the last move: after one along each axis, nothing more comes
    for axis in range(2 * ROUNDS):
        if settled == 2:
            break
        settled += 1
        places = [place for place in here + steps[:, None] * np.eye(2)[axis % 2] if wrong(place) <= most]
        if not places:
            continue
        levels = search.likeness([guess(place) for place in places])
        best = int(levels.mean(axis=1).argmax())
        if in_standard_errors(levels[best] - level) >= PROMISING:
            here, level, settled = places[best], levels[best], 1
    far = np.hypot(*here) >= NEAR
    old, *new = check.likeness([guess(np.zeros(2)), *([guess(here)] if far else [])])
    evidence = in_standard_errors(new[0] - old) if far else 0.0
    before = float(old.mean())
    if evidence < CERTAIN:
        return ScanFit(acquisition.illumination, before, before, 0.0)
    return ScanFit(guess(here).illumination, before, float(new[0].mean()), evidence)
