"""The numerical aperture that the objective really has: the one with which the frames agree best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.trials import Trials
from fouriscope.errors import InvalidInputError

# In units of the described NA: where to look. What is engraved on an objective is its largest aperture; a stop, a tube
# lens that is too small or an LED array that is nearer than described make it look smaller.
LEAST, MOST, STEP = 0.7, 1.2, 0.025
# How finely the best place is looked for in the end.
FINEST = 0.002
# Another NA must explain the frames this much better, and must differ by so much: the misfit has small steps where
# single frequencies enter the disc, and a wrong aperture can make up in part for an array in the wrong place. What is
# engraved is right more often than not.
LEAST_GAIN = 0.15
LEAST_CHANGE = 0.01


@dataclass(frozen=True, eq=False)
class ApertureFit:
    """What the search for the aperture found.

    Attributes
    ----------
    na
        The best of ``tried``, or the described one.
    tried, misfits
        The NAs that were tried, and the misfit of each.
    misfit_before, misfit_after
        At the described NA and at ``na``.
    at_end
        Whether the best was at the end of the range. It is then not a minimum, and the described NA is kept.
    """

    na: float
    tried: NDArray[np.float64]
    misfits: NDArray[np.float64]
    misfit_before: float
    misfit_after: float
    at_end: bool = False

    @property
    def changed(self) -> bool:
        return self.misfit_after < self.misfit_before


def find_na(acquisition: Acquisition, *, trials: Trials | None = None) -> ApertureFit:
    """The objective's NA, from 0.7 to 1.2 times the one described, whose short reconstruction leaves the least misfit.

    The radius of the pupil's disc decides which LEDs are bright field and where the spectra of dark-field frames end:
    a wrong one leaves a misfit that no object, pupil phase or array explains. The search uses a grid first, then halves
    its step. The described NA is kept unless one that differs by 1 % or more explains the frames by 15 % better.

    Parameters
    ----------
    acquisition
        The frames and what is known about the microscope.
    trials
        The short reconstructions to use. By default, those of the patch with the most structure.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> from dataclasses import replace
    >>> from fouriscope.alignment import find_na
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(9, pitch=4e-3, height=70e-3)
    >>> model = fs.ForwardModel(optics, leds, (32, 32))
    >>> phase = np.random.default_rng(0).normal(0, 0.5, model.object_shape)
    >>> frames = fs.simulate(model, phase, seed=0).frames
    >>> engraved = replace(optics, na=0.23)
    >>> found = find_na(fs.Acquisition(engraved, leds, frames, periodic=True))
    >>> bool(abs(found.na - 0.2) < 0.004)
    True
    """
    believed = acquisition.optics.na
    trials = Trials.of(acquisition) if trials is None else trials
    seen: dict[float, float] = {}

    def look(*factors: float) -> None:
        rounded = [round(factor, 6) for factor in factors]
        new = [factor for factor in rounded if LEAST <= factor <= MOST and factor not in seen]
        seen.update(zip(new, trials.misfits([{"na": factor * believed} for factor in new]), strict=True))

    look(*(count * STEP for count in range(round(LEAST / STEP), round(MOST / STEP) + 1)))
    before = seen[1.0]
    if not np.isfinite(min(seen.values())):
        raise InvalidInputError(
            "no aperture explains the frames of the patch at all; are they masked there, or is the geometry far off? "
            "Switch alignment.na off, or correct that first"
        )
    step = STEP
    while step > FINEST:
        best = min(seen, key=lambda factor: seen[factor])
        step /= 2
        look(best - step, best + step)
    best = min(seen, key=lambda factor: seen[factor])
    at_end = not LEAST + STEP / 2 < best < MOST - STEP / 2
    better = not at_end and abs(best - 1) >= LEAST_CHANGE and seen[best] < (1 - LEAST_GAIN) * before
    factors = np.array(sorted(seen))
    misfits = np.array([seen[float(factor)] for factor in factors])
    return ApertureFit(
        best * believed if better else believed,
        factors * believed,
        misfits,
        before,
        seen[best] if better else before,
        at_end,
    )
