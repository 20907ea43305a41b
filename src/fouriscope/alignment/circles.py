"""Where the LEDs are, from the raw frames alone: the edges of the pupil in the spectra of bright-field frames.

In the spectrum of a bright-field frame the sample shows within two discs of the pupil's radius, around k and −k, where
k is the direction of the LED, measured from the direct light at DC. So the discs show the direction without any
reconstruction. Nothing tells k from −k: an array turned by half a turn gives the conjugate of the object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.array import as_array
from fouriscope.alignment.brightness import counted_pixels, frame_means, misplaced, place_by_brightness, sides_of_frames
from fouriscope.alignment.orientation import AS_DESCRIBED, Orientation
from fouriscope.errors import InvalidInputError
from fouriscope.optics import LEDArray, Optics

Floats = NDArray[np.float64]

# At most this many pixels are used: the spectrum is sharp enough, and each LED has one direction there.
LARGEST_PART = 192
# Bright-field frames used at most; more would only cost time.
MOST_FRAMES = 80
# If all frames lay on the wrong side of the pupil's edge, that would cost this share of the variance of the spectra.
COST_OF_WRONG_SIDES = 0.5


class TooFewBrightFramesError(InvalidInputError):
    """The frames hold too little direct light for circles to be seen."""


@dataclass(frozen=True, eq=False)
class CircleFit:
    """What the circles say.

    Attributes
    ----------
    illumination
        The LED array as found.
    orientation
        Which of the eight flips and transposes of the described array fits best (or its twin: intensities cannot tell).
    scores
        The share of the variance in the spectra that the circles explain, for each orientation tried.
    arrays
        The array as found, for each orientation tried.
    score_before
        That share for the array as described.
    frames
        The bright-field frames that were looked at.
    misplaced
        Frames that are bright but should be dark, or the other way round, before and after.
    """

    illumination: LEDArray
    orientation: Orientation
    scores: dict[Orientation, float]
    arrays: dict[Orientation, LEDArray]
    score_before: float
    frames: NDArray[np.int64]
    misplaced: tuple[int, int]


def find_array(
    acquisition: Acquisition,
    *,
    motions: Sequence[str] = ("shift",),
    reach: float = 0.5,
    orientations: Sequence[Orientation] = (AS_DESCRIBED,),
) -> CircleFit:
    """Place the LED array so that it predicts the circles in the bright-field frames.

    For each frame the mean over all bright-field frames is subtracted from the logarithm of the power spectrum. The
    rest is split into what lies inside exactly one of the two discs and what lies outside both. The better the discs
    are placed, the more of its variance this split explains. (Where both discs overlap, a phase object shows nothing
    and an absorbing one twice as much: that part is left out.) The sum over frames is maximised over the few parameters
    of a rigid array, after a search over shifts on a grid around the place where bright frames are inside the pupil
    (:func:`~fouriscope.alignment.brightness.place_by_brightness`). Frames on the wrong side of the pupil's edge count
    against a place.

    Parameters
    ----------
    acquisition
        What was measured, and where the LEDs are believed to be.
    motions
        Which of "shift", "rotation" and "height" are free.
    reach
        How far the array may be displaced, in units of the objective's NA.
    orientations
        Flips and transposes of the described array to try; ``ORIENTATIONS`` are all that can be told apart.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
    >>> displaced = leds.moved(shift=(2e-3, -1.5e-3))
    >>> model = fs.ForwardModel(optics, displaced, (64, 64))
    >>> phase = np.random.default_rng(0).normal(0, 0.5, model.object_shape)
    >>> frames = fs.simulate(model, phase, seed=0).frames
    >>> found = find_array(fs.Acquisition(optics, leds, frames), motions=("shift",)).illumination
    >>> bool(np.allclose(found.offset, (2e-3, -1.5e-3), atol=0.1e-3))
    True
    """
    array = as_array(acquisition.illumination)
    spectra = _Spectra.of(acquisition)
    names = [n for motion in motions for n in (("y", "x") if motion == "shift" else (motion,))]
    unknown = [name for name in names if name not in ("y", "x", "rotation", "height")]
    if unknown or not names:
        raise InvalidInputError(f"motions must be some of shift, rotation and height, got {tuple(motions)}")
    fits: dict[Orientation, tuple[float, LEDArray]] = {}
    for orientation in orientations:
        start = replace(array, positions=orientation(array.positions))
        if "y" in names:
            start = place_by_brightness(acquisition, start, spectra.sides)
        fits[orientation] = _fit(spectra, start, names, reach)
    best = max(fits, key=lambda orientation: fits[orientation][0])
    before, after = (
        misplaced(acquisition.optics, spectra.sides, a.directions(acquisition.patch_center))
        for a in (array, fits[best][1])
    )
    scores = {orientation: score for orientation, (score, _) in fits.items()}
    arrays = {orientation: found for orientation, (_, found) in fits.items()}
    return CircleFit(fits[best][1], best, scores, arrays, spectra.score(array), spectra.leds, (before, after))


@dataclass(frozen=True, eq=False)
class _Spectra:
    """Spectra of bright-field frames, ready to be split by discs."""

    optics: Optics
    center: tuple[float, float]
    leds: NDArray[np.int64]
    sides: NDArray[np.int8]
    na_y: Floats
    na_x: Floats
    contrast: Floats
    total: float

    @classmethod
    def of(cls, acquisition: Acquisition) -> _Spectra:
        optics = acquisition.optics
        means = frame_means(acquisition)
        sides = sides_of_frames(acquisition, means)
        leds = np.flatnonzero(sides > 0) if sides.any() else np.flatnonzero(means > 0)
        if len(leds) < 3:
            raise TooFewBrightFramesError(
                f"only {len(leds)} bright-field frames were found, but circles need three; are the frames in the order "
                "of the LEDs?"
            )
        # The brightest are surely inside the pupil, and seen with the least noise.
        leds = np.sort(leds[np.argsort(-means[leds])[:MOST_FRAMES]])
        rows, columns = (min(size, LARGEST_PART) for size in acquisition.frame_shape)
        top, left = ((size - part) // 2 for size, part in zip(acquisition.frame_shape, (rows, columns), strict=True))
        na_y = np.fft.fftfreq(rows, optics.pixel)[:, None] * optics.wavelength
        na_x = np.fft.rfftfreq(columns, optics.pixel)[None, :] * optics.wavelength
        radius = np.hypot(na_y, na_x)
        # Twice the NA is as far as discs reach; around DC the taper spreads the direct light.
        seen = (radius <= 2 * optics.na) & (radius > 2.5 * optics.wavelength / (min(rows, columns) * optics.pixel))
        taper = np.outer(np.hanning(rows + 2)[1:-1], np.hanning(columns + 2)[1:-1])
        logs = np.empty((len(leds), int(seen.sum())))
        for b, led in enumerate(leds):
            frame = np.asarray(acquisition.frames.frame(int(led)), np.float64)
            frame = np.where(counted_pixels(acquisition, int(led), frame), frame, means[led])
            part = frame[top : top + rows, left : left + columns]
            power = np.abs(np.fft.rfft2((part / means[led] - 1) * taper)[seen]) ** 2
            logs[b] = np.log(power + 1e-3 * np.median(power))
        contrast = logs - logs.mean(axis=0)
        contrast -= contrast.mean(axis=1, keepdims=True)
        fy, fx = np.broadcast_arrays(na_y, na_x)
        total = float(np.sum(contrast**2))
        return cls(optics, acquisition.patch_center, leds, sides, fy[seen], fx[seen], contrast, total)

    def score(self, array: LEDArray) -> float:
        """The share of the variance that the circles explain, less a price for frames on the wrong side."""
        na = array.directions(self.center)
        explained = 0.0
        for row, (y, x) in zip(self.contrast, na[self.leds], strict=True):
            # A soft edge, one bin of the largest part wide, keeps the score smooth for the search.
            one, other = self._disc(y, x), self._disc(-y, -x)
            inside, outside = one + other - 2 * one * other, (1 - one) * (1 - other)
            n_in, n_out = inside.sum(), outside.sum()
            if n_in > 1 and n_out > 1:
                gap = np.dot(inside, row) / n_in - np.dot(outside, row) / n_out
                explained += n_in * n_out / (n_in + n_out) * max(gap, 0.0) ** 2
        wrong = misplaced(self.optics, self.sides, na) / len(na)
        return float(explained / self.total - COST_OF_WRONG_SIDES * wrong)

    def _disc(self, y: float, x: float) -> Floats:
        step = self.optics.wavelength / (LARGEST_PART * self.optics.pixel)
        distance = self.optics.na - np.hypot(self.na_y - y, self.na_x - x)
        return np.asarray(np.clip(distance / step + 0.5, 0.0, 1.0))


def _fit(spectra: _Spectra, array: LEDArray, names: list[str], reach: float) -> tuple[float, LEDArray]:
    from scipy.optimize import minimize

    # Units in which each parameter moves an LED at the pupil's edge by about a bin.
    unit = {"y": 1.0, "x": 1.0, "rotation": 0.05, "height": 0.05}

    def moved(values: Floats, by: list[str]) -> LEDArray:
        change = {name: float(value) * unit[name] for name, value in zip(by, values, strict=True)}
        step = 0.05 * spectra.optics.na * array.height  # in metres, for y and x
        return array.moved(
            shift=(change.get("y", 0.0) * step, change.get("x", 0.0) * step),
            turn=change.get("rotation", 0.0),
            height=1 + float(np.clip(change.get("height", 0.0), -0.5, 0.5)),
        )

    start = np.zeros(len(names))
    if "y" in names:
        steps = np.arange(-np.ceil(reach / 0.1), np.ceil(reach / 0.1) + 1) * 2.0
        grid = np.array([(y, x) for y in steps for x in steps if np.hypot(y, x) * 0.05 <= reach + 1e-9])
        scores = [spectra.score(moved(point, ["y", "x"])) for point in grid]
        start[[names.index("y"), names.index("x")]] = grid[int(np.argmax(scores))]
    found = minimize(
        lambda values: -spectra.score(moved(values, names)),
        start,
        method="Nelder-Mead",
        options={"initial_simplex": np.vstack([start, start + np.eye(len(names))]), "xatol": 1e-3, "fatol": 1e-7},
    )
    return float(-found.fun), moved(found.x, names)
