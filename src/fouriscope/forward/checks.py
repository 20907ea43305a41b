"""Checks of the two things that everything else depends on: the adjoint and the gradient. They are public, because
people who write a new operator or loss need them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fouriscope.checks import door, numbers, require_at_least
from fouriscope.errors import InvalidInputError
from fouriscope.forward.grids import LEDs
from fouriscope.forward.model import ForwardModel
from fouriscope.forward.objects import ComplexArray, RealArray


class AdjointCheck(NamedTuple):
    """The two sides of ⟨H o, f⟩ = ⟨o, H† f⟩ and their relative difference.

    Attributes
    ----------
    forward, backward
        ⟨H o, f⟩ and ⟨o, H† f⟩.
    error
        Their difference, relative to ‖H o‖ ‖f‖.
    """

    forward: complex
    backward: complex
    error: float


class GradientCheck(NamedTuple):
    """The directional derivative ⟨∇d(x), v⟩, the central difference, and their relative difference.

    Attributes
    ----------
    analytic, numeric
        ⟨∇d(x), v⟩ and the central difference.
    error
        Their relative difference.
    """

    analytic: float
    numeric: float
    error: float


@door
def check_adjoint(model: ForwardModel, leds: LEDs = None, *, seed: int = 0) -> AdjointCheck:
    """Dot test: ⟨H o, f⟩ against ⟨o, H† f⟩ for random complex o and f.

    The error is relative to ‖H o‖ ‖f‖; expect some 1e-7 in single and 1e-16 in double precision.

    Parameters
    ----------
    model
        The forward model to check.
    leds
        Numbers of the LEDs to use, by default all.
    seed
        Seed of o and f.

    Examples
    --------
    >>> import fouriscope as fs
    >>> optics = fs.Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> model = fs.ForwardModel(optics, fs.LEDArray.square(5, pitch=4e-3, height=70e-3), (32, 24))
    >>> fs.check_adjoint(model).error < 1e-5
    True
    """
    require_at_least("seed", seed, 0)
    rng = np.random.default_rng(seed)
    indices = model.led_indices(leds)

    def random(shape: tuple[int, ...]) -> ComplexArray:
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(model.complex_dtype)

    o = random(model.object_shape)
    image = model.apply(o, indices)
    # Purely random f would be nearly orthogonal to H o, and the products too small to show a small error.
    f = (image + random(image.shape) * float(np.std(image))).astype(model.complex_dtype)
    forward = complex(np.vdot(f.astype(complex), image.astype(complex)))
    backward = complex(np.vdot(model.adjoint(f, indices).astype(complex), o.astype(complex)))
    scale = float(np.linalg.norm(image) * np.linalg.norm(f))
    return AdjointCheck(forward, backward, abs(forward - backward) / scale)


@door
def check_gradient(
    value: Callable[[RealArray], float],
    gradient: Callable[[RealArray], RealArray],
    x: RealArray,
    *,
    seed: int = 0,
    epsilon: float = 1e-5,
    directions: int = 3,
) -> GradientCheck:
    """⟨∇d(x), v⟩ against (d(x + εv) − d(x − εv)) / 2ε, for random v; the worst of ``directions`` is returned.

    Use double precision: in single precision the difference quotient itself is only good to a few digits.

    Parameters
    ----------
    value, gradient
        Functions of x: d and its gradient.
    x
        Where to check.
    seed
        Seed of the directions v.
    epsilon
        ε, the length of the step.
    directions
        Number of random directions.

    Examples
    --------
    >>> import numpy as np
    >>> check_gradient(lambda x: float(np.sum(x**3)), lambda x: 3 * x**2, np.linspace(0, 1, 9)).error < 1e-8
    True
    """
    require_at_least("seed", seed, 0)
    require_at_least("directions", directions, 1)
    if not epsilon > 0:
        raise InvalidInputError(f"epsilon must be positive, got {epsilon:g}")
    x = numbers("x", x)
    if not np.isfinite(x).all():
        raise InvalidInputError("x must be finite")
    rng = np.random.default_rng(seed)
    g = gradient(x)
    checks = []
    for _ in range(directions):
        v = rng.standard_normal(x.shape)
        v /= np.sqrt(np.mean(v**2))
        numeric = (value(x + epsilon * v) - value(x - epsilon * v)) / (2 * epsilon)
        analytic = float(np.sum(g * v))
        # Relative to the size of the gradient, not of this one projection, which may be small by chance.
        scale = max(abs(analytic), abs(numeric), float(np.linalg.norm(g)))
        checks.append(GradientCheck(analytic, numeric, abs(analytic - numeric) / scale if scale else 0.0))
    return max(checks, key=lambda check: np.inf if np.isnan(check.error) else check.error)
