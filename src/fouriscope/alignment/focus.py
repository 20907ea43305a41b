"""Autofocus: the defocus with which the frames agree best."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.trials import Trials
from fouriscope.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class FocusFit:
    """What the search for the focus found.

    Attributes
    ----------
    defocus
        The best of ``tried``, in metres.
    tried, misfits
        The defocus of each trial, and its misfit.
    at_end
        Whether the best is at the end of the range. It is then not a minimum.
    """

    defocus: float
    tried: NDArray[np.float64]
    misfits: NDArray[np.float64]
    at_end: bool = False


def find_focus(
    acquisition: Acquisition, *, reach: float = 300e-6, steps_per_depth: float = 2.0, trials: Trials | None = None
) -> FocusFit:
    """The defocus z within ±``reach`` metres of the pupil's whose short reconstruction leaves the least misfit.

    The search begins on a grid, with ``steps_per_depth`` points for each depth of focus λ/NA². If its best point is its
    last, the grid continues up to twice as far. Then parabolas around the best point find it to a hundredth of that
    depth. Each trial is a few sweeps on a small patch (:class:`~fouriscope.alignment.Trials`).

    Parameters
    ----------
    acquisition
        The frames and what is known about the microscope.
    reach
        How far to search to both sides, in metres.
    steps_per_depth
        Points of the first grid per depth of focus.
    trials
        The short reconstructions to use. By default, those of the patch with the most structure.

    Examples
    --------
    >>> import numpy as np, fouriscope as fs
    >>> from fouriscope.alignment import find_focus
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> leds = fs.LEDArray.square(7, pitch=4e-3, height=70e-3)
    >>> model = fs.ForwardModel(optics, leds, (32, 32), pupil=fs.Pupil(defocus=25e-6))
    >>> phase = np.random.default_rng(0).normal(0, 0.5, model.object_shape)
    >>> frames = fs.simulate(model, phase, seed=0).frames
    >>> found = find_focus(fs.Acquisition(optics, leds, frames, periodic=True), reach=60e-6)
    >>> bool(abs(found.defocus - 25e-6) < 1e-6)
    True
    """
    if not (0 < reach < 0.1):
        raise InvalidInputError(f"reach must be a length in metres below 0.1, got {reach:g}")
    trials = Trials.of(acquisition, room=0.0) if trials is None else trials
    optics, pupil = acquisition.optics, trials.patch.pupil
    depth = optics.wavelength / optics.na**2
    seen: dict[float, float] = {}

    def look(*places: float) -> None:
        new = [defocus for defocus in places if defocus not in seen]
        seen.update(zip(new, trials.misfits([{"pupil": replace(pupil, defocus=z)} for z in new]), strict=True))

    count = max(1, int(np.ceil(reach * steps_per_depth / depth)))
    grid = reach / count
    look(*(pupil.defocus + place * grid for place in range(-count, count + 1)))
    # The best at the end of the range is not a minimum: the search continues there, up to twice its reach.
    for _ in range(count):
        best = min(seen, key=lambda z: seen[z])
        if min(seen) < best < max(seen):
            break
        look(best + (grid if best == max(seen) else -grid))
    if not np.isfinite(min(seen.values())):
        raise InvalidInputError(
            "no defocus explains the frames of the patch at all; are they masked there, or is the geometry far off? "
            "Switch alignment.focus off, or correct that first"
        )
    step = grid
    while step > depth / 100:
        best = min(seen, key=lambda z: seen[z])
        step /= 2
        look(best - step, best + step)
    tried, best = np.array(sorted(seen)), min(seen, key=lambda z: seen[z])
    misfits = np.array([seen[float(z)] for z in tried])
    return FocusFit(best, tried, misfits, at_end=not tried[0] + grid / 2 < best < tried[-1] - grid / 2)
