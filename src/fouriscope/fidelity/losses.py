"""Losses d_j between a predicted intensity I = |ψ|² and a measured frame y, summed over the pixels of a frame.

For each, q is the factor with ∂d_j/∂ψ̄ = q ⊙ ψ, which is all that the gradient needs:

=============  =======================================  ==================================
loss           d_j                                      q
=============  =======================================  ==================================
intensity      Σ (I − y)²                               2 (I − y)
amplitude      Σ (√(I + ε) − √(y + ε))²                 1 − √(y + ε) / √(I + ε)
poisson        Σ I − y + (y + ε) log((y + ε)/(I + ε))   1 − (y + ε) / (I + ε)
camera         2(1 + ε) times that of poisson           2(1 + ε) (I − y) / (I + ε)
=============  =======================================  ==================================

The noise of a camera has the variance a + b·I, and "camera" with ε = a/b is the loss that fits it. Near a fit it is
Σ (I − y)² (1 + ε)/(I + ε). Its curvature at I = 1 is the same for every ε. It becomes the loss of photon noise for
ε → 0 and the intensity loss for ε → ∞. ``loss="auto"`` of :func:`fouriscope.reconstruct` measures a and b.

ε of the amplitude loss is 0 unless it is given. Negative y (additive noise, an offset that was subtracted) are used as
they are in the intensity loss. In the others, y + ε is not taken below 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError


@dataclass(frozen=True)
class Loss(ABC):
    """What the rest of the package needs to know about a loss."""

    name: ClassVar[str]
    is_projection: ClassVar[bool] = False
    """Whether d_j is the squared distance of ψ from the nearest field with the modulus √y, and q ψ their difference.
    EPRY makes this step, and :class:`~fouriscope.solvers.Spectral` can bound such a loss by a quadratic."""

    @property
    def epsilon(self) -> float:
        """The one parameter that ``row`` may have."""
        return 0.0

    @staticmethod
    @abstractmethod
    def row(field: NDArray[Any], frame: NDArray[Any], mask: NDArray[Any], epsilon: Any) -> Any:
        """Σ d_j over a row of pixels; replaces ψ in ``field`` by q ψ. Pixels where the mask is 0 add nothing to either.

        It is compiled into kernels (:func:`fouriscope.fidelity.kernels.for_loss`), so it calls nothing but NumPy.
        Constants are in the precision of the data: a plain 2 would make LLVM compute in double.
        """

    @abstractmethod
    def curvature(self, intensity: NDArray[np.float64]) -> NDArray[np.float64]:
        """∂²d/∂a² of a pixel with amplitude a = √I that fits its measurement."""

    @abstractmethod
    def best_gain(self, intensity: NDArray[np.float64], frame: NDArray[np.float64]) -> float:
        """The g > 0 for which g I fits y best; both are 0 where a pixel is masked. 1 if there is no light to tell."""


@dataclass(frozen=True)
class IntensityLoss(Loss):
    """Σ (I − y)² over the pixels of a frame, the paper's loss: right for additive noise of constant variance.

    Examples
    --------
    >>> IntensityLoss().curvature(np.array([0.0, 1.0])).tolist()
    [0.0, 8.0]
    """

    name = "intensity"

    @staticmethod
    def row(field: NDArray[Any], frame: NDArray[Any], mask: NDArray[Any], epsilon: Any) -> Any:
        total, two = frame.dtype.type(0), frame.dtype.type(2)
        for c in range(frame.size):
            psi = field[c]
            residual = (psi.real * psi.real + psi.imag * psi.imag - frame[c]) * mask[c]
            total += residual * residual
            q = two * residual
            field[c] = complex(psi.real * q, psi.imag * q)
        return total

    def curvature(self, intensity: NDArray[np.float64]) -> NDArray[np.float64]:
        return 8 * intensity

    def best_gain(self, intensity: NDArray[np.float64], frame: NDArray[np.float64]) -> float:
        return _ratio(np.sum(frame * intensity), np.sum(intensity**2))


@door_class
@dataclass(frozen=True)
class AmplitudeLoss(Loss):
    """Σ (√(I + ε) − √(y + ε))² over the pixels. Photon noise then has the same variance in bright and dark field.

    ``background`` ε (in units of the bright field) accounts for noise that is there without light. With ε = 0 the mean
    of √max(y, 0) over such noise is positive, and a fit finds light where there is none. With ε of twice the noise or
    more, √(y + ε) is nearly linear over it. ε is a constant intensity added to |ψ|², and the pair (ψ, √ε) is projected.

    Parameters
    ----------
    background
        ε, in units of the bright field.

    Examples
    --------
    >>> AmplitudeLoss().curvature(np.array([0.0, 1.0])).tolist()
    [2.0, 2.0]
    """

    name = "amplitude"
    is_projection = True
    background: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.background < np.inf:
            raise InvalidInputError(f"the background of the amplitude loss must be at least 0, got {self.background}")

    @property
    def epsilon(self) -> float:
        return self.background

    @staticmethod
    def row(field: NDArray[Any], frame: NDArray[Any], mask: NDArray[Any], epsilon: Any) -> Any:
        total, tiny = frame.dtype.type(0), frame.dtype.type(1e-12)
        for c in range(frame.size):
            psi = field[c]
            modulus = np.sqrt(psi.real * psi.real + psi.imag * psi.imag + epsilon) + tiny
            residual = (modulus - np.sqrt(max(frame[c] + epsilon, frame.dtype.type(0)))) * mask[c]
            total += residual * residual
            q = residual / modulus
            field[c] = complex(psi.real * q, psi.imag * q)
        return total

    def curvature(self, intensity: NDArray[np.float64]) -> NDArray[np.float64]:
        if not self.background:
            return np.full(intensity.shape, 2.0)
        return 2 * intensity / (intensity + self.background)

    def best_gain(self, intensity: NDArray[np.float64], frame: NDArray[np.float64]) -> float:
        """In closed form without ε. With ε, the gain of Σ (g I − y)²/(I + ε), which agrees if a frame fits."""
        if self.background:
            weights = intensity / (intensity + self.background)
            return _ratio(np.sum(frame * weights), np.sum(intensity * weights))
        return _ratio(np.sum(np.sqrt(np.maximum(frame, 0) * intensity)), np.sum(intensity)) ** 2


@door_class
@dataclass(frozen=True)
class PoissonLoss(Loss):
    """Σ I − y + (y + ε) log((y + ε)/(I + ε)), the deviance of photon counts.

    ``background`` ε (in units of the bright field) is added to the prediction and to the measurement. It keeps the
    logarithm finite in the dark without moving the minimum, and is a good approximation of a camera's read noise of
    that variance.

    Parameters
    ----------
    background
        ε, in units of the bright field.
    """

    name = "poisson"
    background: float = 0.01

    def __post_init__(self) -> None:
        if not self.background > 0:
            raise InvalidInputError(f"the background of the Poisson loss must be positive, got {self.background}")

    @property
    def epsilon(self) -> float:
        return self.background

    @staticmethod
    def row(field: NDArray[Any], frame: NDArray[Any], mask: NDArray[Any], epsilon: Any) -> Any:
        total, one = frame.dtype.type(0), frame.dtype.type(1)
        for c in range(frame.size):
            psi = field[c]
            rate = psi.real * psi.real + psi.imag * psi.imag + epsilon
            count = max(frame[c] + epsilon, frame.dtype.type(0))
            deviance = rate - count
            if count > 0:
                deviance += count * np.log(count / rate)
            total += deviance * mask[c]
            q = (one - count / rate) * mask[c]
            field[c] = complex(psi.real * q, psi.imag * q)
        return total

    def curvature(self, intensity: NDArray[np.float64]) -> NDArray[np.float64]:
        return 4 * intensity / (intensity + self.background)

    def best_gain(self, intensity: NDArray[np.float64], frame: NDArray[np.float64]) -> float:
        """The gain of the deviance without ε, because with ε there is no closed form. Both agree if a frame fits."""
        return _ratio(np.sum(frame), np.sum(intensity))


@door_class
@dataclass(frozen=True)
class CameraLoss(Loss):
    """2(1 + ε) Σ I − y + (y + ε) log((y + ε)/(I + ε)), for noise of variance a + b·I with ε = a/b (``background``).

    For every ε, the curvature at the brightness of the bright field is that of the intensity loss. So a step and a
    strength that suit one ε also suit the next. ε changes only how much the dark field counts.

    Parameters
    ----------
    background
        ε = a/b, in units of the empty bright field.

    Examples
    --------
    >>> CameraLoss(0.01).curvature(np.array([1.0])).tolist(), IntensityLoss().curvature(np.array([1.0])).tolist()
    ([8.0], [8.0])
    """

    name = "camera"
    background: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.background < np.inf:
            raise InvalidInputError(
                f"the background of the camera loss must be positive and finite, got {self.background}; "
                "IntensityLoss is its limit"
            )

    @property
    def epsilon(self) -> float:
        return self.background

    @staticmethod
    def row(field: NDArray[Any], frame: NDArray[Any], mask: NDArray[Any], epsilon: Any) -> Any:
        real = frame.dtype.type
        total, quarter, one, two = real(0), real(0.25), real(1), real(2)
        third, fifth, seventh, ninth, eleventh = real(1 / 3), real(1 / 5), real(1 / 7), real(1 / 9), real(1 / 11)
        scale = two * (one + epsilon)
        for c in range(frame.size):
            psi = field[c]
            intensity = psi.real * psi.real + psi.imag * psi.imag
            rate = intensity + epsilon
            # (y + ε)/(I + ε) − 1 without the difference of two large numbers that a large ε would leave.
            excess = max((frame[c] - intensity) / rate, -one)
            # (1 + e) log(1 + e) − e. If e is small that is es + 2(1 + e) s (s²/3 + s⁴/5 + …) with s = e/(2 + e), where
            # nothing cancels. Most pixels need no logarithm then: log1p took half of the time of a gradient.
            if abs(excess) < quarter:
                s = excess / (two + excess)
                square = s * s
                series = square * (third + square * (fifth + square * (seventh + square * (ninth + square * eleventh))))
                deviance = s * (excess + two * (one + excess) * series)
            elif excess > -one:
                deviance = (one + excess) * np.log(one + excess) - excess
            else:
                deviance = one
            weight = scale * mask[c]
            total += weight * rate * deviance
            q = -weight * excess
            field[c] = complex(psi.real * q, psi.imag * q)
        return total

    def curvature(self, intensity: NDArray[np.float64]) -> NDArray[np.float64]:
        return 8 * (1 + self.background) * intensity / (intensity + self.background)

    def best_gain(self, intensity: NDArray[np.float64], frame: NDArray[np.float64]) -> float:
        """The gain of Σ (g I − y)²/(I + ε), which agrees if a frame fits."""
        weights = intensity / (intensity + self.background)
        return _ratio(np.sum(frame * weights), np.sum(intensity * weights))


def _ratio(above: np.float64, below: np.float64) -> float:
    return float(above / below) if above > 0 and below > 0 else 1.0


LossName = Literal["intensity", "amplitude", "poisson"]
LOSSES: dict[str, type[Loss]] = {loss.name: loss for loss in (IntensityLoss, AmplitudeLoss, PoissonLoss)}


def as_loss(loss: str | Loss) -> Loss:
    """The loss called ``loss``, one of :data:`LOSSES`.

    Parameters
    ----------
    loss
        A name, or a loss, which is returned as it is.
    """
    if isinstance(loss, Loss):
        return loss
    if loss not in LOSSES:
        raise InvalidInputError(f"loss must be one of {', '.join(LOSSES)}, got {loss!r}")
    return LOSSES[loss]()
