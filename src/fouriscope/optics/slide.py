"""A glass slide between the LEDs and the sample, and the rays through it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError
from fouriscope.optics._points import FloatArray
from fouriscope.optics.objective import require_positive


@door_class
@dataclass(frozen=True)
class GlassSlide:
    """A plane sheet of glass between the LEDs and the sample, which bends their light towards the axis.

    Parameters
    ----------
    thickness
        In metres; 1e-3 is usual.
    index
        Refractive index n ≥ 1, about 1.52.

    Examples
    --------
    >>> from fouriscope.optics import LEDArray
    >>> LEDArray.at([(0.0, 30e-3)], height=40e-3, slide=GlassSlide(1e-3, 1.52)).directions().round(3).tolist()
    [[0.0, 0.604]]
    """

    thickness: float
    index: float

    def __post_init__(self) -> None:
        require_positive("slide thickness", self.thickness)
        if require_positive("slide index", self.index) < 1:
            raise InvalidInputError(f"slide index must be at least 1 (air), got {self.index:g}; glass has about 1.52.")


def tangent_through_slide(distance: FloatArray, height: float, slide: GlassSlide) -> FloatArray:
    """tan θ in air, with u = tan θ, of (h − t)·u + t·u/√(n² + (n² − 1)u²) = ρ.

    The left side rises and is concave in u, and u = ρ/h lies at or below the root because glass bends rays towards
    the axis. From there Newton's steps climb to the root without ever overshooting, so they need no safeguard.
    """
    air, glass, n2 = height - slide.thickness, slide.thickness, slide.index**2
    tangent: FloatArray = distance / height
    for _ in range(60):
        root = np.sqrt(n2 + (n2 - 1) * tangent**2)
        excess = air * tangent + glass * tangent / root - distance
        step = excess / (air + glass * n2 / root**3)
        tangent = tangent - step
        if np.all(np.abs(step) <= 1e-15 * (1 + tangent)):
            break
    return tangent
