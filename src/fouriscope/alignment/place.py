"""Orientation and place of the LED array, from the bright frames alone: no exposure or dark field can mislead them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.array import refine_array
from fouriscope.alignment.brightness import frame_means, misplaced, place_by_brightness, sides_of_frames
from fouriscope.alignment.circles import TooFewBrightFramesError, find_array
from fouriscope.alignment.orientation import ORIENTATIONS, Orientation
from fouriscope.alignment.trials import Trials
from fouriscope.calibration.positions import as_array
from fouriscope.optics import LEDArray

# Short reconstructions need this many bright frames that surely hold direct light.
LEAST_FRAMES = 5


@dataclass(frozen=True, eq=False)
class PlaceFit:
    """For each orientation of the array, its best place and the misfit of the bright frames there.

    Attributes
    ----------
    arrays, misfits
        The array at its best place, and the misfit there.
    misfit_before
        Misfit of the array as described.
    misplaced, misplaced_before
        How many frames are bright but should be dark, or the other way round, at the best place and as described.
    """

    arrays: dict[Orientation, LEDArray]
    misfits: dict[Orientation, float]
    misfit_before: float
    misplaced: dict[Orientation, int]
    misplaced_before: int

    @property
    def best(self) -> Orientation:
        return min(self.misfits, key=lambda orientation: (self.misplaced[orientation], self.misfits[orientation]))


def find_place(acquisition: Acquisition) -> PlaceFit:
    """Place and orientation of the array, by short reconstructions of the bright frames.

    For each orientation three places are tried: the described one, the one that brings the bright frames inside the
    pupil (:func:`~fouriscope.alignment.brightness.place_by_brightness`) and the one that the circles in their spectra
    show (:func:`~fouriscope.alignment.find_array`). From the best of them the array is moved as a whole to where the
    bright frames are explained best.

    Raises :class:`~fouriscope.alignment.circles.TooFewBrightFramesError` if too few frames are surely bright.

    Parameters
    ----------
    acquisition
        The frames and what is known about the microscope.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
    >>> model = fs.ForwardModel(optics, leds.moved(shift=(2e-3, -1.5e-3)), (64, 64))
    >>> phase = np.random.default_rng(0).normal(0, 0.5, model.object_shape)
    >>> frames = fs.simulate(model, phase, seed=0).frames
    >>> found = find_place(fs.Acquisition(optics, leds, frames, periodic=True))
    >>> bool(np.allclose(found.arrays[found.best].offset, (2e-3, -1.5e-3), atol=0.05e-3))
    True
    """
    array, _ = as_array(acquisition.illumination)
    sides = sides_of_frames(acquisition, frame_means(acquisition))
    if np.count_nonzero(sides > 0) < LEAST_FRAMES:
        raise TooFewBrightFramesError(
            f"{np.count_nonzero(sides > 0)} frames surely hold direct light, but {LEAST_FRAMES} are needed; are the "
            "frames in the order of the LEDs?"
        )
    bright = replace(acquisition, weights=np.where(sides > 0, acquisition.frame_weights, 0.0))
    trials = Trials.of(bright)
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
        arrays[orientation] = min((start, as_array(fit.illumination)[0]), key=judged)
        misfits[orientation] = trials.misfit(illumination=arrays[orientation])
    counts = {orientation: wrong(found) for orientation, found in arrays.items()}
    return PlaceFit(arrays, misfits, trials.misfit(illumination=array), counts, wrong(array))
