"""What an estimate leaves of the frames is taken for noise: what a frame is worth, and how strong the prior is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.fidelity import DataFidelity
from fouriscope.forward.objects import RealArray
from fouriscope.solvers.denoising import Denoising
from fouriscope.solvers.frame_worth import frame_worth

# Residuals are measured twice, the second time after so many iterations: those of the start hold what it got wrong.
AGAIN = 30
ROUNDS = 2


class Settlement:
    """Weights of frames and the strength of the prior, from the residual variance σ_j² of every frame j.

    With ``balance`` the misfit of a frame counts with 1/σ_j², noise and errors of the model alike, so that d is a
    negative log-likelihood but for a factor T = 2s/J, if the weights are s/σ_j². T and the image at that time say how
    strong an automatic prior is (:meth:`Denoising.fix`).

    The start leaves more of the frames unexplained than the object will: both are measured once more, 30 iterations
    later. The strength then falls with T. It never rises, and the image has no say in it any more: a strength that
    follows the image it regularises runs away.

    Parameters
    ----------
    fidelity
        Whose frames are weighted.
    denoise
        The priors whose strength is fixed.
    balance
        Whether frames are weighted at all.
    """

    def __init__(self, fidelity: DataFidelity, denoise: Denoising, *, balance: bool) -> None:
        self.fidelity, self.denoise, self.balance = fidelity, denoise, balance
        self.begin_again()

    def begin_again(self) -> None:
        """The frames have become others: nothing is known of their residuals. Their weights are as given."""
        self.worth: NDArray[np.float64] | None = None
        self.rounds, self._last = 0, 0

    def is_due(self, iteration: int, first: int) -> bool:
        """Whether residuals are to be measured before ``iteration``; ``first`` is the first time."""
        return iteration >= first if not self.rounds else self.rounds < ROUNDS and iteration >= self._last + AGAIN

    def weigh(self) -> None:
        """Weigh frames that have just got the weights that the user gave."""
        if self.worth is not None:
            self.fidelity.reweigh(self.fidelity.weights * self.worth)

    def settle(self, x: RealArray, leds: NDArray[np.int64], iteration: int) -> float:
        """Measure what ``x`` leaves of the frames of ``leds``, and weigh them by it; T is returned."""
        fidelity = self.fidelity
        pixels = np.array([np.count_nonzero(fidelity.mask_of(int(led))) for led in leds])
        variances = np.full(len(fidelity), np.nan)
        variances[leds] = fidelity.misfits(x, leds) / np.maximum(pixels, 1)
        if self.balance:
            worth = frame_worth(variances, fidelity.model.geometry.bright_field)
            fidelity.reweigh(fidelity.weights * (worth if self.worth is None else worth / self.worth))
            self.worth = worth
        self.rounds, self._last = self.rounds + 1, iteration
        # d = T · (−log p): with w_j = s/σ_j² the mean of w_j σ_j² is s, and T = 2s/J.
        counted = fidelity.weights[leds] > 0
        return 2 * float(np.mean((fidelity.weights[leds] * variances[leds])[counted])) / len(leds)

    def like(self, other: Settlement) -> None:
        """Weigh the frames and fix the strength as ``other`` has, for good."""
        self.fidelity.reweigh(other.fidelity.weights)
        self.denoise.fixed_strength = other.denoise.fixed_strength
        self.rounds = ROUNDS if other.rounds else 0

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        return {"weights": self.fidelity.weights} | ({} if self.worth is None else {"worth": self.worth})

    def state_values(self) -> dict[str, Any]:
        return {"settled": self.rounds, "settled_at": self._last, "strength": self.denoise.fixed_strength}

    def load(self, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        """Take back what the two above gave. A checkpoint of before residuals were measured twice stays as it is."""
        self.fidelity.reweigh(arrays["weights"])
        self.worth = arrays.get("worth")
        self.denoise.fixed_strength = values["strength"]
        self.rounds, self._last = int(values["settled"]), int(values.get("settled_at", 0))
        if "settled_at" not in values and self.rounds:
            self.rounds = ROUNDS
