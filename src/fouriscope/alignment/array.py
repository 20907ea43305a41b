"""The LED array as a rigid body, placed by how well short reconstructions explain the frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.trials import Trials
from fouriscope.errors import InvalidInputError
from fouriscope.optics import Adjusted, Directions, Illumination, LEDArray

Motion = Literal["shift", "rotation", "height", "pitch"]

# The new place must explain the frames this much better than the old one; otherwise the old one is kept.
LEAST_GAIN = 0.01
# In frequency bins (root mean square over the LEDs): steps that turn and stretch the array, then the first simplex.
STEPS = (1.0, 0.5)
SIMPLEX = 0.3
# The description counts: a displacement of this many bins costs this share of the misfit, times their square.
# Sparse arrays have minima far away that are as deep as the right one.
TRUST = 0.02


@dataclass(frozen=True, eq=False)
class ArrayFit:
    """The array as found.

    Attributes
    ----------
    illumination
        The array at its new place.
    misfit_before, misfit_after
        Misfits of the trials at the old and at the new place.
    trials
        How many short reconstructions it took.
    """

    illumination: Illumination
    misfit_before: float
    misfit_after: float
    trials: int

    @property
    def moved(self) -> bool:
        return self.misfit_after < self.misfit_before


def refine_array(
    acquisition: Acquisition,
    *,
    motions: Sequence[Motion] = ("shift", "rotation", "height"),
    bound: float = 6.0,
    free_pupil: bool = True,
    trials: Trials | None = None,
) -> ArrayFit:
    """Move the LED array as a rigid body to where a short reconstruction leaves the least misfit.

    The misfit after a few sweeps has a sharp minimum at the right place. Steps that turn and stretch the array
    lead near it, and a simplex search in all parameters finds it to some hundredths of a frequency bin. A place
    far from the described one is penalised. The new place is used only if it explains the frames by 1 % better: a
    geometry that is already right is not changed.

    Gauge: a common shift of all directions is the same as a wedge in the sample. EPRY starts from a flat object on a
    periodic grid, which has no wedge.

    Parameters
    ----------
    acquisition
        Its array must be near its place: within a few frequency bins (:func:`~fouriscope.alignment.find_array`).
    motions
        Which of "shift", "rotation", "height" and "pitch" are free. Height and pitch together are nearly one
        parameter too many: only the sine of the steepest LEDs tells them apart.
    bound
        How far the search may go, in bins.
    free_pupil
        Whether the pupil is recovered in each trial.
    trials
        The short reconstructions to use. By default, those of the patch with the most structure.
    """
    names = names_of(motions)
    trials = Trials.of(acquisition) if trials is None else trials
    array = as_array(acquisition.illumination)
    # What moves no LED (the rotation of a single one on the axis) cannot be found.
    names = [name for name in names if one_bin(trials, array, name) < np.inf]
    units = [one_bin(trials, array, name) for name in names]

    def moved(values: NDArray[np.float64]) -> Illumination:
        return with_array(acquisition.illumination, moved_array(array, names, np.asarray(values) * units))

    before = trials.misfit(illumination=moved(np.zeros(len(names))), free_pupil=free_pupil)
    if not np.isfinite(before):
        raise InvalidInputError(
            "the array as described explains nothing of the patch; are its frames masked? Switch alignment.array off, "
            "or correct that first"
        )
    if not names:
        return ArrayFit(acquisition.illumination, before, before, 1)
    tried: dict[tuple[float, ...], float] = {tuple(np.zeros(len(names))): before}

    def misfit(values: NDArray[np.float64]) -> float:
        place = tuple(np.round(values, 6).tolist())
        if place not in tried:
            outside = np.abs(values).max() > bound
            price = 1 + TRUST * float(np.sum(np.square(place)))
            guess = moved(np.array(place))
            tried[place] = np.inf if outside else price * trials.misfit(illumination=guess, free_pupil=free_pupil)
        return tried[place]

    turned = _compass(misfit, np.zeros(len(names)), [place for place, name in enumerate(names) if name not in "yx"])
    # From the described place too: a turn that makes up for a shift ends in another minimum.
    starts = [np.zeros(len(names)), *([turned] if turned.any() else [])]
    found = min((_simplex(misfit, start, before) for start in starts), key=lambda one: one[1])
    if not found[1] < (1 - LEAST_GAIN) * before:
        return ArrayFit(acquisition.illumination, before, before, len(tried))
    return ArrayFit(moved(found[0]), before, found[1], len(tried))


def names_of(motions: Sequence[Motion]) -> list[str]:
    """The parameters that are free: a shift has two."""
    names = [name for motion in motions for name in (("y", "x") if motion == "shift" else (motion,))]
    unknown = [motion for motion in motions if motion not in get_args(Motion)]
    if unknown or not names:
        raise InvalidInputError(f"motions must be some of {', '.join(get_args(Motion))}, got {tuple(motions)}")
    return names


def _simplex(
    misfit: Callable[[NDArray[np.float64]], float], start: NDArray[np.float64], scale: float
) -> tuple[NDArray[np.float64], float]:
    """(place, misfit) of the minimum nearest to ``start``; misfits are of the order of ``scale``."""
    from scipy.optimize import minimize

    found = minimize(
        misfit,
        start,
        method="Nelder-Mead",
        options={
            "initial_simplex": np.vstack([start, start + SIMPLEX * np.eye(len(start))]),
            "xatol": 0.01,
            "fatol": 1e-3 * scale,
            "maxfev": 60 * len(start),
        },
    )
    return np.asarray(found.x), float(found.fun)


def _compass(
    misfit: Callable[[NDArray[np.float64]], float], start: NDArray[np.float64], axes: list[int]
) -> NDArray[np.float64]:
    """The best place that steps along single axes reach, long ones first.

    Far from the minimum the misfit is rough, and a small simplex ends in the next local minimum: two degrees of
    rotation were found as one. Shifts do not change here: moved by a whole bin the array looks the same but for the
    pupil's edge.
    """
    best = start
    for step in STEPS:
        improved = True
        while improved:
            around = [best + sign * step * np.eye(len(start))[axis] for axis in axes for sign in (1, -1)]
            nearest = min(around, key=misfit, default=best)
            improved = misfit(nearest) < misfit(best)
            best = nearest if improved else best
    return best


def as_array(illumination: Illumination) -> LEDArray:
    """The illumination as LEDs in a plane, without what was moved LED by LED; directions without a height are taken to
    come from a plane one metre away."""
    base = illumination.base if isinstance(illumination, Adjusted) else illumination
    if isinstance(base, LEDArray):
        return base
    if isinstance(base, Directions):
        return LEDArray.from_directions(base.na, base.height or 1.0)
    raise InvalidInputError(
        f"only LED arrays and directions can be moved as a whole, with one LED per frame, got {type(base).__name__}"
    )


def with_array(illumination: Illumination, array: LEDArray) -> Illumination:
    """The illumination with ``array`` in place of its LEDs; what was moved LED by LED stays."""
    return Adjusted(array, illumination.shifts) if isinstance(illumination, Adjusted) else array


def moved_array(array: LEDArray, names: list[str], changes: NDArray[np.float64]) -> LEDArray:
    """The array with each parameter of ``names`` changed by so much."""
    by = dict(zip(names, (float(change) for change in changes), strict=True))
    return array.moved(
        shift=(by.get("y", 0.0), by.get("x", 0.0)),
        turn=by.get("rotation", 0.0),
        height=max(0.1, 1 + by.get("height", 0.0)),
        pitch=max(0.1, 1 + by.get("pitch", 0.0)),
    )


def one_bin(trials: Trials, array: LEDArray, name: str) -> float:
    """The change of a parameter that moves the directions by one bin, root mean square."""
    tiny = 1e-6 * (array.height if name in "yx" else 1.0)
    center = trials.patch.patch_center
    moved = moved_array(array, [name], np.array([tiny])).directions(center) - array.directions(center)
    distance = float(np.sqrt(np.mean(np.sum((moved / trials.bin_na) ** 2, axis=1))))
    return tiny / distance if distance > 1e-12 else np.inf
