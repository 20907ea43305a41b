"""The losses of :mod:`fouriscope.fidelity.losses` on whole arrays, for the engines that do not compile their rows.

Each gives, pixel by pixel, d and the q of ∂d/∂ψ̄ = q ψ from the intensity I = Σ|ψ|² and the frame y. They are written
once for NumPy and torch: ``xp`` is either module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from fouriscope.errors import InvalidInputError
from fouriscope.fidelity.losses import Loss

Pixels: TypeAlias = Callable[[Any, Any, Any, Any], tuple[Any, Any]]
"""(xp, I, y, ε) → (d, q). I may be overwritten."""


def intensity_pixels(xp: Any, intensity: Any, frame: Any, epsilon: Any) -> tuple[Any, Any]:
    """(I − y)², 2 (I − y)."""
    residual = intensity
    residual -= frame
    squares = residual * residual
    residual *= 2  # in place: fresh memory costs as much as the product
    return squares, residual


def amplitude_pixels(xp: Any, intensity: Any, frame: Any, epsilon: Any) -> tuple[Any, Any]:
    """(√(I + ε) − √(y + ε))², 1 − √(y + ε) / √(I + ε)."""
    modulus = xp.sqrt(intensity + epsilon) + 1e-12
    residual = modulus - xp.sqrt(xp.clip(frame + epsilon, 0, None))
    return residual * residual, residual / modulus


def poisson_pixels(xp: Any, intensity: Any, frame: Any, epsilon: Any) -> tuple[Any, Any]:
    """I − y + (y + ε) log((y + ε)/(I + ε)), 1 − (y + ε) / (I + ε)."""
    rate, count = intensity + epsilon, xp.clip(frame + epsilon, 0, None)
    ratio = count / rate
    logarithm = xp.log(xp.where(count > 0, ratio, xp.ones_like(ratio)))
    return rate - count + count * logarithm, 1 - ratio


def camera_pixels(xp: Any, intensity: Any, frame: Any, epsilon: Any) -> tuple[Any, Any]:
    """2(1 + ε) times that of poisson, 2(1 + ε) (I − y) / (I + ε)."""
    rate, scale = intensity + epsilon, 2 * (1 + epsilon)
    excess = xp.clip((frame - intensity) / rate, -1, None)
    logarithm = xp.log1p(xp.where(excess > -1, excess, xp.zeros_like(excess)))
    return scale * rate * xp.clip((1 + excess) * logarithm - excess, 0, None), -scale * excess


PIXELS: dict[str, Pixels] = {
    "intensity": intensity_pixels,
    "amplitude": amplitude_pixels,
    "poisson": poisson_pixels,
    "camera": camera_pixels,
}


def pixels_of(loss: Loss) -> Pixels:
    """The array form of a loss.

    >>> import numpy as np
    >>> from fouriscope.fidelity import IntensityLoss
    >>> d, q = pixels_of(IntensityLoss())(np, np.array([3.0]), np.array([1.0]), 0.0)
    >>> d.item(), q.item()
    (4.0, 4.0)
    """
    if loss.name not in PIXELS:
        raise InvalidInputError(
            f'the loss {loss.name!r} has a compiled row only: use the engine "numba", or add its array form to '
            "fouriscope.fidelity.array_losses.PIXELS"
        )
    return PIXELS[loss.name]
