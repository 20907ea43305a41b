"""Orientation and place of the LED array, from the bright frames alone: no exposure or dark field can mislead them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.array import as_array, refine_array
from fouriscope.alignment.brightness import frame_means, misplaced, place_by_brightness, sides_of_frames
from fouriscope.alignment.circles import TooFewBrightFramesError, find_array
from fouriscope.alignment.orientation import AS_DESCRIBED, ORIENTATIONS, Orientation
from fouriscope.alignment.prediction import likeness
from fouriscope.alignment.trials import LARGE_PATCH, Trials
from fouriscope.optics import LEDArray

# Short reconstructions need this many bright frames that surely hold direct light.
LEAST_FRAMES = 5
# Another orientation predicts unseen frames clearly better than the described one if its likeness is larger by this
# share, and by so much at least.
CLEARLY, LEAST_LIKENESS = 0.05, 0.01
# One whose likeness is smaller by this share cannot be right. Right ones had up to 9 % less than wrong ones. Of others,
# so many are compared with the described one.
UNLIKELY, MOST_RIVALS = 0.15, 2
# Its misfit of the bright frames may be worse by this share; if nothing can be predicted, it must be so much better.
WORSE, BETTER = 0.1, 0.2


@dataclass(frozen=True, eq=False)
class PlaceFit:
    """For each orientation of the array, its best place and how well it explains the frames there.

    Attributes
    ----------
    arrays, misfits
        The array at its best place, and the misfit of the bright frames there.
    likeness
        How well inner LEDs predict outer ones there (:func:`~fouriscope.alignment.prediction.likeness`).
    misfit_before
        Misfit of the array as described.
    misplaced, misplaced_before
        How many frames are bright but should be dark, or the other way round, at the best place and as described.
    """

    arrays: dict[Orientation, LEDArray]
    misfits: dict[Orientation, float]
    likeness: dict[Orientation, float]
    misfit_before: float
    misplaced: dict[Orientation, int]
    misplaced_before: int

    @property
    def rivals(self) -> list[Orientation]:
        """The other orientations that may be right, at most two, the likeliest first.

        They must explain the bright frames about as well as the described one, and what inner LEDs then predict of
        outer ones must be about as good as with it, or better.
        """
        level = self._known_likeness(AS_DESCRIBED)
        least = level - max(UNLIKELY * abs(level), LEAST_LIKENESS)
        rivals = [
            one
            for one, misfit in self.misfits.items()
            if one != AS_DESCRIBED
            and misfit <= (1 + WORSE) * self.misfits[AS_DESCRIBED]
            and self._known_likeness(one) >= least
        ]
        return sorted(rivals, key=lambda one: (-self._known_likeness(one), self.misfits[one]))[:MOST_RIVALS]

    @property
    def likelier(self) -> Orientation | None:
        """The first rival, if it predicts outer frames clearly better than the described orientation.

        If nothing can be predicted (without a dark field, say), it must explain the bright frames clearly better, and
        leave no more of them on the wrong side of the pupil's edge.
        """
        for rival in self.rivals[:1]:
            if all(map(math.isnan, self.likeness.values())):
                no_worse = self.misplaced[rival] <= self.misplaced[AS_DESCRIBED]
                clear = no_worse and self.misfits[rival] < (1 - BETTER) * self.misfits[AS_DESCRIBED]
            else:
                level = self._known_likeness(AS_DESCRIBED)
                clear = self._known_likeness(rival) > level + max(CLEARLY * abs(level), LEAST_LIKENESS)
            if clear:
                return rival
        return None

    def _known_likeness(self, orientation: Orientation) -> float:
        found = self.likeness[orientation]
        return 0.0 if math.isnan(found) else found


def find_place(acquisition: Acquisition) -> PlaceFit:
    """Place of the array by short reconstructions of the bright frames, and its orientation by what they predict.

    For each orientation three places are tried: the described one, the one that brings the bright frames inside the
    pupil (:func:`~fouriscope.alignment.brightness.place_by_brightness`) and the one that the circles in their spectra
    show (:func:`~fouriscope.alignment.find_array`). From the best of them the array is moved as a whole to where the
    bright frames are explained best.

    Misfits of the bright frames do not tell the orientation: with a wrong one, an object with several turns of phase
    explains them as well. What inner LEDs then predict of outer ones tells more, and names the orientations that may be
    right instead of the described one (``rivals``). Which of them is right shows later, when the exposure of the dark
    field and the focus are known for each.

    Raises :class:`~fouriscope.alignment.circles.TooFewBrightFramesError` if too few frames are surely bright.

    Parameters
    ----------
    acquisition
        The frames and what is known about the microscope.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> from fouriscope.alignment.orientation import AS_DESCRIBED
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
    >>> model = fs.ForwardModel(optics, leds.moved(shift=(2e-3, -1.5e-3)), (64, 64))
    >>> phase = np.random.default_rng(0).normal(0, 0.5, model.object_shape)
    >>> frames = fs.simulate(model, phase, seed=0).frames
    >>> found = find_place(fs.Acquisition(optics, leds, frames, periodic=True))
    >>> bool(np.allclose(found.arrays[AS_DESCRIBED].offset, (2e-3, -1.5e-3), atol=0.05e-3))
    True
    """
    array = as_array(acquisition.illumination)
    sides = sides_of_frames(acquisition, frame_means(acquisition))
    if np.count_nonzero(sides > 0) < LEAST_FRAMES:
        raise TooFewBrightFramesError(
            f"{np.count_nonzero(sides > 0)} frames surely hold direct light, but {LEAST_FRAMES} are needed; are the "
            "frames in the order of the LEDs?"
        )
    bright = replace(acquisition, weights=np.where(sides > 0, acquisition.frame_weights, 0.0))
    # Bright frames are few, so a large patch is affordable. On frames of 96 pixels, patches of 64 left 0.45 bins of a
    # displacement, and patches as large as the frames 0.3.
    trials = Trials.of(bright, side=LARGE_PATCH)
    circles = find_array(acquisition, orientations=ORIENTATIONS)

    def wrong(place: LEDArray) -> int:
        return misplaced(acquisition.optics, sides, place.directions(acquisition.patch_center))

    def judged(place: LEDArray) -> tuple[int, float]:
        # A frame on the wrong side is certain evidence; misfits are not.
        return wrong(place), trials.misfit(illumination=place)

    arrays, misfits = dict[Orientation, LEDArray](), dict[Orientation, float]()
    for orientation in ORIENTATIONS:
        turned = replace(array, positions=orientation(array.positions))
        places = [turned, place_by_brightness(acquisition, turned, sides), circles.arrays[orientation]]
        start = min(places, key=judged)
        placed = replace(bright, illumination=start)
        fit = refine_array(placed, motions=("shift",), free_pupil=False, trials=trials.at(start))
        arrays[orientation] = min((start, as_array(fit.illumination)), key=judged)
        misfits[orientation] = trials.misfit(illumination=arrays[orientation])
    counts = {orientation: wrong(found) for orientation, found in arrays.items()}
    predicted = {one: likeness(replace(acquisition, illumination=found)) for one, found in arrays.items()}
    return PlaceFit(arrays, misfits, predicted, trials.misfit(illumination=array), counts, wrong(array))
