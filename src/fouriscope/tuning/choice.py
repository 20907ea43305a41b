"""What a search found, and whether it found anything."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from fouriscope import plots
from fouriscope.acquisition import Acquisition
from fouriscope.errors import InvalidInputError
from fouriscope.tuning.search import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Criterion = Literal["held-out", "truth"]
STRENGTH = "prior.strength"
# Differences below these say nothing, however regular they are: of the misfit, and of the SNR in dB.
LEAST_SHARE = 0.005
LEAST_DECIBELS = 0.05
# How many standard errors two trials must be apart: one, as usual in cross-validation. The few bright frames carry most
# of a mean, so even a clear difference seldom reaches three.
STANDARD_ERRORS = 1.0


def criterion_for(data: Acquisition, asked: Criterion | None) -> Criterion:
    """What is asked, by default the truth if it is known."""
    if asked == "truth" and data.truth is None:
        raise InvalidInputError('there is no truth to compare with; use criterion="held-out"')
    return asked or ("held-out" if data.truth is None else "truth")


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """What a search found.

    Attributes
    ----------
    key, value
        The parameter and its best value, for a reconstruction from all frames. If the search is :attr:`flat`, the value
        is no better than the others.
    criterion
        "truth" (score: SNR in dB) or "held-out" (score: minus the mean misfit of frames that were not used).
    trials
        Every value that was tried, in increasing order.
    held_out
        The LEDs that were set aside; empty with a truth.
    misfits
        One line per trial: the misfit of each held-out frame, as the solver weights it. None with a truth.
    settings
        Everything to write into a configuration: ``{key: value}``, and the strength of ``prior_absorption`` if there is
        one.
    """

    key: str
    value: float
    criterion: Criterion
    trials: tuple[Trial, ...]
    held_out: NDArray[np.int64]
    misfits: NDArray[np.float64] | None = None
    settings: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        by = "the truth" if self.criterion == "truth" else f"{len(self.held_out)} held-out frames"
        values = [trial.value for trial in self.trials]
        tried = f", {len(values)} trials from {min(values):.3g} to {max(values):.3g}" if values else ""
        told = " (all as good)" if values and self.flat else ""
        return f"Tuning: {self.key} = {self.value:.4g} by {by}{tried}{told}"

    @property
    def best(self) -> int:
        """The place of the best trial among :attr:`trials`."""
        return max(range(len(self.trials)), key=lambda place: self.trials[place].score)

    @property
    def as_good(self) -> list[bool]:
        """For each trial, whether it cannot be told from the best: see :func:`indistinguishable`."""
        return indistinguishable([trial.score for trial in self.trials], self.misfits)

    @property
    def flat(self) -> bool:
        """Whether all trials that did not diverge are as good as the best: then nothing was found."""
        finite = [math.isfinite(trial.score) for trial in self.trials]
        return all(good for good, ended in zip(self.as_good, finite, strict=True) if ended)

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest of the values around the best that are as good, scaled to all frames."""
        first = last = self.best
        good = self.as_good
        while first > 0 and good[first - 1]:
            first -= 1
        while last + 1 < len(good) and good[last + 1]:
            last += 1
        scale = self.value / self.trials[self.best].value
        return scale * self.trials[first].value, scale * self.trials[last].value

    def figure(self) -> Figure:
        """The curve that the choice was made on."""
        values = np.array([trial.value for trial in self.trials])
        scores = np.array([trial.score for trial in self.trials])
        scores[~np.isfinite(scores)] = np.nan
        if self.criterion == "held-out":
            scores = 100 * (np.nanmax(scores) - scores) / abs(np.nanmax(scores))
        return plots.tuning_figure(
            values,
            scores,
            self.value,
            xlabel="strength λ" if self.key == STRENGTH else self.key,
            ylabel="SNR (dB)" if self.criterion == "truth" else f"misfit of {len(self.held_out)} held-out frames (+ %)",
        )


def indistinguishable(scores: Sequence[float], misfits: NDArray[np.float64] | None = None) -> list[bool]:
    """For each score, whether it cannot be told from the highest.

    With ``misfits``, one line per trial and one column per held-out frame, two trials differ if the mean of their
    differences, frame by frame, exceeds half a percent of the misfit and its standard error: with other
    frames, the order of closer trials might be different. Without ``misfits``, they differ by 0.05 dB.

    >>> indistinguishable([20.0, 23.0, 22.97])
    [False, True, True]
    >>> misfits = np.array([[1.0, 2.0, 3.0], [1.1, 2.2, 3.3], [0.9, 1.8, 3.4]])
    >>> indistinguishable((-misfits.mean(axis=1)).tolist(), misfits)  # the last: better twice, and worse once
    [True, False, True]
    """
    best = int(np.argmax(scores))
    if misfits is None:
        return [scores[best] - score <= LEAST_DECIBELS for score in scores]
    found = []
    for score, line in zip(scores, misfits, strict=True):
        if not math.isfinite(score):
            found.append(False)
            continue
        worse = line - misfits[best]
        error = float(worse.std(ddof=1)) / math.sqrt(len(worse)) if len(worse) > 1 else 0.0
        least = max(LEAST_SHARE * float(misfits[best].mean()), STANDARD_ERRORS * error)
        found.append(bool(worse.mean() <= least))
    return found
