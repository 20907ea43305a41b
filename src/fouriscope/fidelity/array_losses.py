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
"""(xp, I, y, ε) → (d, q). I may be overwritten, and is: fresh memory costs as much as a product."""

# Arrays beside I and y that a loss needs at once: three, and one of truths.
MOST_ARRAYS = 3.25


def intensity_pixels(xp: Any, intensity: Any, frame: Any, epsilon: Any) -> tuple[Any, Any]:
    """(I − y)², 2 (I − y)."""
    residual = intensity
    residual -= frame
    squares = residual * residual
    residual *= 2
    return squares, residual


def amplitude_pixels(xp: Any, intensity: Any, frame: Any, epsilon: Any) -> tuple[Any, Any]:
    """(√(I + ε) − √(y + ε))², 1 − √(y + ε) / √(I + ε)."""
    modulus, measured = intensity, frame + epsilon
    modulus += epsilon
    xp.sqrt(modulus, out=modulus)
    modulus += 1e-12
    xp.sqrt(xp.clip(measured, 0, None, out=measured), out=measured)
    residual = xp.subtract(modulus, measured, out=measured)
    squares = residual * residual
    residual /= modulus
    return squares, residual


def poisson_pixels(xp: Any, intensity: Any, frame: Any, epsilon: Any) -> tuple[Any, Any]:
    """I − y + (y + ε) log((y + ε)/(I + ε)), 1 − (y + ε) / (I + ε)."""
    rate, count = intensity, frame + epsilon
    rate += epsilon
    xp.clip(count, 0, None, out=count)
    ratio = count / rate
    logarithm = xp.where(count > 0, ratio, 1.0)
    xp.log(logarithm, out=logarithm)
    logarithm *= count
    rate -= count
    rate += logarithm
    return rate, xp.subtract(1.0, ratio, out=ratio)


def camera_pixels(xp: Any, intensity: Any, frame: Any, epsilon: Any) -> tuple[Any, Any]:
    """2(1 + ε) times that of poisson, 2(1 + ε) (I − y) / (I + ε)."""
    rate, excess, scale = intensity, frame - intensity, 2 * (1 + epsilon)
    rate += epsilon
    excess /= rate
    xp.clip(excess, -1, None, out=excess)
    logarithm = xp.where(excess > -1, excess, 0.0)
    xp.log1p(logarithm, out=logarithm)
    logarithm *= 1 + excess
    logarithm -= excess
    xp.clip(logarithm, 0, None, out=logarithm)
    rate *= scale
    rate *= logarithm
    excess *= -scale
    return rate, excess


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
