"""How directions change over the field: LEDs are near, and not every objective is telecentric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition, field_scale
from fouriscope.alignment.array import as_array, with_array
from fouriscope.alignment.cross_validation import EDGE, LEAST_FRAMES, in_standard_errors
from fouriscope.alignment.prediction import correlations, measured_amplitudes
from fouriscope.alignment.structure import telling
from fouriscope.alignment.trials import PATCH as TRIAL
from fouriscope.alignment.trials import center_of_patch, most_detailed_patch, most_detailed_place
from fouriscope.calibration import Calibration, PixelPupil, ZernikePupil
from fouriscope.errors import DivergenceError
from fouriscope.fidelity import DataFidelity, make_sampler
from fouriscope.forward import ForwardModel
from fouriscope.optics import automatic_margin
from fouriscope.optics.frame_sources import coarse_sources
from fouriscope.parallel import run_sliced
from fouriscope.priors import NoPrior
from fouriscope.solvers import Iterations, Spectral
from fouriscope.solvers.start import first_sweeps

# Sides of the patch, in frame pixels: a curvature shows at its edge. The more frames there are, the smaller it is, so
# that all of them together have about so many pixels. Frames smaller than SMALLEST show too little.
LEAST, MOST, PIXELS, SMALLEST = 256, 512, 2**25, 96
# A trial is a short reconstruction, pupil included; sweeps of EPRY alone are too far from its end.
ITERATIONS, MODES = 30, tuple(range(4, 16))
# Of the frames, this share is left out and predicted, but no more than so many.
LEFT_OUT, MOST_FRAMES = 0.25, 30
# Curvatures that are tried, in units of one over the height: these, and more beyond them as long as it gets better.
TRIED, FARTHEST = (0.0, 1.0, -1.0), 8.0
# The mean improvement must be this many times its standard error.
EVIDENCE = 1.5


@dataclass(frozen=True, eq=False)
class CurvatureFit:
    """How much directions change over the field.

    Attributes
    ----------
    curvature
        c, in 1/m, as unseen frames tell.
    before, after
        Mean correlation of unseen frames with their predictions: without a curvature, and with the best of those tried.
    evidence
        The improvement in standard errors.
    tried
        The mean correlation with each curvature that was tried.
    """

    curvature: float
    before: float
    after: float
    evidence: float
    tried: dict[float, float]

    @property
    def changed(self) -> bool:
        return self.evidence >= EVIDENCE


def find_curvature(acquisition: Acquisition) -> CurvatureFit | None:
    """Find the curvature c of the LEDs' light as the objective sees it (``Optics.wave_curvature``), from the frames.

    At the distance r from the middle of a patch, LEDs are seen in the directions k − c r. With a telecentric objective,
    c is one over their height; the chief rays of other objectives tilt over the field, too. A large patch is
    reconstructed without a quarter of the frames, which are then predicted, with c = 0, 1/height, −1/height, and
    further multiples as long as that gets better. The top of the parabola through the best three is used if the best
    predicts unseen frames better than 0 by 1.5 standard errors.

    Returns None if c is known already, there are too few frames, frames are too small, or LEDs have no height.

    Parameters
    ----------
    acquisition
        Its LEDs must be in their place.
    """
    height = getattr(acquisition.illumination, "height", None)
    known = acquisition.optics.wave_curvature is not None
    if known or acquisition.periodic or height is None or min(acquisition.frame_shape) < SMALLEST:
        return None
    patch = most_detailed_patch(acquisition, int(np.clip(math.sqrt(PIXELS / len(acquisition)), LEAST, MOST)))
    left_out = _drawn(patch)
    if left_out is None:
        return None
    trials = _Trials(patch, left_out)
    found: dict[float, NDArray[np.float64]] = {}

    def level(place: float) -> float:
        return float(found[place].mean())

    def look(*places: float) -> None:
        found.update(zip(places, trials.likeness([place / height for place in places]), strict=True))

    look(*TRIED)
    best = max(found, key=level)
    while best in (min(found), max(found)) and abs(best) < FARTHEST:
        look(best + math.copysign(1, best))
        best = max(found, key=level)
    return CurvatureFit(
        _top({place: level(place) for place in found}) / height,
        level(0.0),
        level(best),
        in_standard_errors(found[best] - found[0.0]),
        {place / height: level(place) for place in sorted(found)},
    )


def _drawn(patch: Acquisition) -> NDArray[np.int64] | None:
    """Frames to leave out: a quarter of those that tell anything and are not at the pupil's edge; None if few are."""
    optics = patch.optics
    bin_na = optics.wavelength / (min(patch.frame_shape) * optics.pixel)
    radius = patch.illumination_na
    tells = telling(patch, patch.bright_field) & (patch.frame_weights > 0)
    askable = np.flatnonzero(tells & (np.abs(radius - optics.na) > EDGE * bin_na))
    if len(askable) < LEAST_FRAMES:
        return None
    count = min(round(LEFT_OUT * len(askable)), MOST_FRAMES)
    return np.sort(np.random.default_rng(0).choice(askable, count, replace=False))


class _Trials:
    """Reconstructions of a patch without some frames, and how much these are like their predictions."""

    def __init__(self, patch: Acquisition, left_out: NDArray[np.int64]) -> None:
        weights = patch.frame_weights
        weights[left_out] = 0
        self.seen, self.left_out = replace(patch, weights=weights), left_out
        self.amplitudes, self.counts = measured_amplitudes(patch, left_out)

    def likeness(self, curvatures: Sequence[float]) -> list[NDArray[np.float64]]:
        """The correlation of each unseen frame with its prediction; all cores share the curvatures."""
        found = [np.zeros(len(self.left_out))] * len(curvatures)

        def work(start: int, stop: int) -> None:
            for index in range(start, stop):
                found[index] = self._with(curvatures[index])

        run_sliced(work, len(curvatures))
        return found

    def _with(self, curvature: float) -> NDArray[np.float64]:
        seen = self.seen
        optics = replace(seen.optics, wave_curvature=curvature)
        model = ForwardModel(
            optics,
            seen.illumination,
            seen.frame_shape,
            pupil=seen.pupil,
            object="wave",
            margin=automatic_margin(seen.frame_shape),
            patch_center=seen.patch_center,
            gains=seen.gains,
            sources=coarse_sources(seen.illumination, optics, seen.patch_center),
        )
        fidelity = DataFidelity.of(seen, model, loss="amplitude")
        used = np.flatnonzero(fidelity.weights > 0)
        sampler = make_sampler(
            "stratified",
            population=used,
            batch=min(len(used), max(20, len(used) // 3)),
            bright_field=model.geometry.bright_field,
            rng=np.random.default_rng(1),
        )
        solver = Spectral(fidelity, sampler, [NoPrior(), NoPrior()], start=partial(first_sweeps, modes=MODES), seed=0)
        solver.calibration = Calibration([ZernikePupil(MODES), PixelPupil()])
        try:
            solver.solve(Iterations(ITERATIONS))
        except DivergenceError:
            return np.zeros(len(self.left_out))
        predicted = np.asarray(solver.model.intensity(solver.x, self.left_out), np.float64)
        return correlations(self.amplitudes, predicted, self.counts)


def with_curvature(acquisition: Acquisition, curvature: float) -> Acquisition:
    """``acquisition`` with this curvature; from the patch of trials, its LEDs are seen as before."""
    trials = most_detailed_place(acquisition, TRIAL)
    scale = field_scale(acquisition.illumination, curvature)
    center = center_of_patch(acquisition, trials)
    moved = as_array(acquisition.illumination).moved(shift=((scale - 1) * center[0], (scale - 1) * center[1]))
    return replace(
        acquisition,
        optics=replace(acquisition.optics, wave_curvature=curvature),
        patch_center=(scale * acquisition.patch_center[0], scale * acquisition.patch_center[1]),
        illumination=with_array(acquisition.illumination, moved),
    )


def _top(levels: dict[float, float]) -> float:
    """The top of the parabola through the best place and its two neighbours; the best place, if it is an end.

    >>> _top({-1.0: 0.0, 0.0: 3.0, 1.0: 4.0})
    1.0
    >>> _top({-1.0: 0.0, 0.0: 4.0, 1.0: 3.0})
    0.3
    """
    places = sorted(levels)
    at = places.index(max(levels, key=levels.__getitem__))
    if at in (0, len(places) - 1):
        return places[at]
    around = places[at - 1 : at + 2]
    curve = np.polyfit(around, [levels[place] for place in around], 2)
    return float(np.round(-curve[1] / (2 * curve[0]), 6)) if curve[0] < 0 else places[at]
