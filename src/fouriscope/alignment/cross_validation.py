"""Cross-validation: how well a belief about the microscope predicts frames that a reconstruction has not seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.alignment.prediction import Unseen
from fouriscope.alignment.structure import telling
from fouriscope.alignment.trials import LARGE_PATCH, Trials, center_of_patch, most_detailed_place, patch_at
from fouriscope.errors import DivergenceError, InvalidInputError
from fouriscope.optics import Illumination, Pupil
from fouriscope.parallel import run_sliced

Floats = NDArray[np.float64]

# Each reconstruction leaves out one fold of the frames, and predicts it. So many frames are enough to compare guesses;
# of large arrays, some folds hold as many.
FOLDS, ENOUGH = 5, 90
# Frames whose LEDs are nearer to the pupil's edge than this, in bins, are not asked: whether their direct light passes
# outweighs all else. So many frames must remain.
EDGE, LEAST_FRAMES = 1.0, 20
# The likeness of a guess with which nothing can be reconstructed.
HOPELESS = -1.0


@dataclass(frozen=True)
class Guess:
    """What is varied of a microscope."""

    illumination: Illumination
    pupil: Pupil


class CrossValidation:
    """How well the frames of a patch are predicted, each from reconstructions that have not seen it.

    A frame that was used cannot tell where its LED is: the object adapts. A frame that was left out can, and it needs
    no gain or exposure for that, because correlations have none. Most of these frames lie between others that were
    used, so no guess makes the prediction easier than another.

    Parameters
    ----------
    trials
        The short reconstructions.
    askable
        Whether each frame may be asked: :func:`askable` ones.
    seed
        Of the random folds.
    unseen
        What predictions are compared with, if not with the frames of the trials.
    """

    def __init__(self, trials: Trials, askable: NDArray[np.bool_], seed: int, *, unseen: Unseen | None = None) -> None:
        asked = np.random.default_rng(seed).permutation(np.flatnonzero(askable))
        self.trials, self.unseen = trials, Unseen(trials) if unseen is None else unseen
        needed = min(FOLDS, math.ceil(FOLDS * ENOUGH / max(len(asked), 1)))
        self.folds = [asked[fold::FOLDS] for fold in range(needed)]
        self.frames, self.reconstructions = sum(map(len, self.folds)), 0

    def likeness(self, guesses: Sequence[Guess]) -> Floats:
        """The correlation of every frame with its prediction, one row per guess; all cores compute."""
        tasks = [(guess, fold) for guess in guesses for fold in self.folds]
        found: list[Floats] = [np.empty(0)] * len(tasks)

        def work(start: int, stop: int) -> None:
            for task in range(start, stop):
                found[task] = self._of_fold(*tasks[task])

        run_sliced(work, len(tasks))
        self.reconstructions += len(tasks)
        return np.concatenate(found).reshape(len(guesses), self.frames)

    def _of_fold(self, guess: Guess, fold: NDArray[np.int64]) -> Floats:
        weights = self.trials.patch.frame_weights
        weights[fold] = 0
        seen = replace(self.trials.patch, weights=weights)
        try:
            model = self.trials.model(guess.illumination, pupil=guess.pupil)
            solver = self.trials.sweeps(model, seen, free_pupil=True)
        except (InvalidInputError, DivergenceError):
            return np.full(len(fold), HOPELESS)  # an LED beyond the object's spectrum, or a guess that explains nothing
        return self.unseen.correlations(solver.model, solver.x, fold)


def askable(trials: Trials) -> NDArray[np.bool_]:
    """Frames that have a weight and whose LEDs are not at the pupil's edge; of these, those that are not mere noise.

    Noise looks like no prediction, and hides which prediction is better. If too few frames hold more, all are asked.
    """
    patch = trials.patch
    clear: NDArray[np.bool_] = np.abs(patch.illumination_na - patch.optics.na) > EDGE * max(trials.bin_na)
    clear &= patch.frame_weights > 0
    told = clear & telling(patch, patch.bright_field)
    return told if np.count_nonzero(told) >= LEAST_FRAMES else clear


def evidence_for(other: Acquisition, acquisition: Acquisition) -> float:
    """By how many standard errors ``other`` predicts unseen frames better than ``acquisition``; 0 if too few are left.

    Both are beliefs about the microscope of the same frames. They are compared on one patch, with the frames that
    neither of them has at the pupil's edge.
    """
    place = most_detailed_place(acquisition, LARGE_PATCH)
    patch = patch_at(acquisition, place)
    named = {name: getattr(other, name) for name in ("optics", "illumination", "pupil", "gains", "weights")}
    patches = [patch, replace(patch, patch_center=center_of_patch(other, place), **named)]
    beliefs = [Trials.of(one, side=LARGE_PATCH) for one in patches]
    both = askable(beliefs[0]) & askable(beliefs[1])
    if np.count_nonzero(both) < LEAST_FRAMES:
        return 0.0
    known, tried = (
        CrossValidation(trials, both, 0).likeness([Guess(trials.patch.illumination, trials.patch.pupil)])[0]
        for trials in beliefs
    )
    return in_standard_errors(tried - known)


def in_standard_errors(improvements: Floats) -> float:
    """The mean in standard errors; 0 if nothing has changed."""
    error = float(improvements.std(ddof=1)) / np.sqrt(len(improvements))
    return float(improvements.mean()) / error if error > 0 else 0.0
