"""Dark-field frames that were exposed longer although the file does not say so: by how much, from the frames alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.brightness import frame_means, sides_of_frames
from fouriscope.alignment.trials import Trials

# Factors tried, as powers of two, and how finely the best one is looked for in the end.
LEAST, MOST, STEP, FINEST = -2.0, 6.0, 0.5, 0.125
# Another ratio must explain the frames this much better than 1. People who expose dark field longer do so by a factor
# of two at least, and hardly anybody exposes it shorter. Weak samples scatter little light into it, so their evidence
# is weak; but a wrong focus or array gives evidence of the same size.
GAIN_IF_MUCH_LONGER, GAIN_IF_LONGER, GAIN_IF_SHORTER = 0.02, 0.05, 0.2
MUCH_LONGER = 2.0


@dataclass(frozen=True, eq=False)
class ExposureFit:
    """What the search for the exposures found.

    Attributes
    ----------
    ratio
        The best of ``tried``, or 1.
    gains
        Of all frames: the ratio where ``dark``, 1 elsewhere, times what was known before.
    dark
        Whether each frame is dark field.
    tried, misfits
        The ratios that were tried, and the misfit of each.
    """

    ratio: float
    gains: NDArray[np.float64]
    dark: NDArray[np.bool_]
    tried: NDArray[np.float64]
    misfits: NDArray[np.float64]

    @property
    def changed(self) -> bool:
        return self.ratio != 1.0


def find_exposure(acquisition: Acquisition, *, trials: Trials | None = None, certain: bool = False) -> ExposureFit:
    """By which factor dark-field frames are brighter than bright-field ones predict, from 1/4 to 64.

    Dark-field frames are nearly always exposed longer, and files seldom say so. Where the pupils of neighbouring LEDs
    overlap, bright-field frames predict a part of what dark-field frames show. The factor with which a short
    reconstruction leaves the least misfit is the ratio of the exposures. It stays 1 unless another one explains the
    frames by 5 % better, or by 20 % if dark field would have been exposed shorter. If focus and LEDs are ``certain``,
    2 % are enough for a ratio of 2 or more, as people choose it.

    Parameters
    ----------
    acquisition
        The frames and what is known about the microscope.
    trials
        The short reconstructions to use. By default, those of the patch with the most structure.
    certain
        Whether focus and LEDs are known.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> from fouriscope.alignment import find_exposure
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
    >>> model = fs.ForwardModel(optics, leds, (32, 32))
    >>> phase = np.random.default_rng(0).normal(0, 0.5, model.object_shape)
    >>> exposed = np.where(model.geometry.bright_field, 1, 8)
    >>> stack = model.intensity(phase.astype(np.float32)) * exposed[:, None, None]
    >>> found = find_exposure(fs.Acquisition(optics, leds, stack, periodic=True))
    >>> bool(abs(found.ratio - 8) < 1)
    True
    """
    # In units of the measurement: in those of the object, the misfit of any dark field vanishes with its exposure.
    trials = Trials.of(replace(acquisition, gains=None)) if trials is None else trials
    known = np.ones(len(acquisition)) if acquisition.gains is None else np.asarray(acquisition.gains, np.float64)
    dark = dark_frames(acquisition)
    seen: dict[float, float] = {}

    def look(*powers: float) -> None:
        new = [power for power in powers if LEAST <= power <= MOST and power not in seen]
        misfits = trials.misfits([{"gains": known * np.where(dark, 2.0**power, 1.0)} for power in new])
        seen.update(zip(new, misfits, strict=True))

    if dark.any() and not dark.all():
        look(*np.arange(LEAST, MOST + STEP / 2, STEP).tolist())
        step = STEP
        while step > FINEST:
            step /= 2
            best = min(seen, key=lambda power: seen[power])
            look(best - step, best + step)
    best = min(seen, key=lambda power: seen[power], default=0.0)
    # The best at an end of what was tried is no minimum: something else is wrong.
    if (
        not seen
        or not LEAST < best < MOST
        or not seen[best] < (1 - _least_gain(2.0**best, certain=certain)) * seen[0.0]
    ):
        best = 0.0
    powers = np.array(sorted(seen))
    misfits = np.array([seen[float(power)] for power in powers])
    gains = known * np.where(dark, 2.0**best, 1.0)
    return ExposureFit(2.0**best, gains, dark, 2.0**powers, misfits)


def _least_gain(ratio: float, *, certain: bool) -> float:
    if ratio < 1:
        return GAIN_IF_SHORTER
    return GAIN_IF_MUCH_LONGER if certain and ratio >= MUCH_LONGER else GAIN_IF_LONGER


def dark_frames(acquisition: Acquisition) -> NDArray[np.bool_]:
    """Frames without direct light: by their brightness if that is certain, otherwise by the direction of their LED."""
    sides = sides_of_frames(acquisition, frame_means(acquisition))
    return np.asarray(np.where(sides > 0, False, np.where(sides < 0, True, ~acquisition.bright_field)))
