"""Losses d_j between a predicted intensity I = |ψ|² and a measured frame y, summed over the pixels of a frame.

For each, q is the factor with ∂d_j/∂ψ̄ = q ⊙ ψ, which is all that the gradient needs:

=============  =======================================  ==================================
loss           d_j                                      q
=============  =======================================  ==================================
intensity      Σ (I − y)²                               2 (I − y)
amplitude      Σ (√I − √y)²                             1 − √y / √I
poisson        Σ I − y + (y + ε) log((y + ε)/(I + ε))   1 − (y + ε) / (I + ε)
=============  =======================================  ==================================

Negative y (additive noise, an offset taken off) counts as it is in the intensity loss, as 0 in the amplitude loss, and
y + ε is not taken below 0 in the Poisson loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError


@dataclass(frozen=True)
class Loss:
    """A loss, as the compiled loop knows it: a number, and the one parameter ε that it may have."""

    name: ClassVar[str]
    code: ClassVar[int]

    @property
    def epsilon(self) -> float:
        return 0.0

    def curvature(self, intensity: NDArray[np.float64]) -> NDArray[np.float64]:
        """∂²d/∂a² of a pixel with amplitude a = √I that fits its measurement."""
        raise NotImplementedError


@dataclass(frozen=True)
class IntensityLoss(Loss):
    """Σ (I − y)² over the pixels of a frame, the paper's loss: right for additive noise of one variance.

    >>> IntensityLoss().curvature(np.array([0.0, 1.0])).tolist()
    [0.0, 8.0]
    """

    name = "intensity"
    code = 0

    def curvature(self, intensity: NDArray[np.float64]) -> NDArray[np.float64]:
        return 8 * intensity


@dataclass(frozen=True)
class AmplitudeLoss(Loss):
    """Σ (√I − √y)² over the pixels of a frame: photon noise has one variance in it, and dark field counts as it should.

    >>> AmplitudeLoss().curvature(np.array([0.0, 1.0])).tolist()
    [2.0, 2.0]
    """

    name = "amplitude"
    code = 1

    def curvature(self, intensity: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.full(intensity.shape, 2.0)


@dataclass(frozen=True)
class PoissonLoss(Loss):
    """Σ I − y + (y + ε) log((y + ε)/(I + ε)), the deviance of photon counts.

    ``background`` ε (in units of the bright field) is added to the prediction and to the measurement alike: it keeps
    the logarithm finite in the dark without moving the minimum, and is how a camera's read noise of that variance
    enters to a good approximation.
    """

    name = "poisson"
    code = 2
    background: float = 0.01

    def __post_init__(self) -> None:
        if not self.background > 0:
            raise InvalidInputError(f"the background of the Poisson loss must be positive, got {self.background}")

    @property
    def epsilon(self) -> float:
        return self.background

    def curvature(self, intensity: NDArray[np.float64]) -> NDArray[np.float64]:
        return 4 * intensity / (intensity + self.background)


LOSSES: dict[str, type[Loss]] = {loss.name: loss for loss in (IntensityLoss, AmplitudeLoss, PoissonLoss)}


def as_loss(loss: str | Loss) -> Loss:
    """The loss called ``loss``: "intensity", "amplitude" or "poisson"."""
    if isinstance(loss, Loss):
        return loss
    if loss not in LOSSES:
        raise InvalidInputError(f"loss must be one of {', '.join(LOSSES)}, got {loss!r}")
    return LOSSES[loss]()
