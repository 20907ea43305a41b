"""Known bounds of the image, such as non-negativity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from fouriscope.checks import is_number, told
from fouriscope.errors import InvalidInputError
from fouriscope.priors.base import Image, Prior, SpecValue


class Box(Prior):
    """Every pixel lies in [lower, upper]; by default the image is not negative.

    The objective r(x) is 0 inside and ∞ outside. Its proximal operator is the projection min(max(z, lower), upper),
    which does not depend on σ: σ = 0 projects too, and there is no strength to choose. A bound also fixes the constant
    that a measurement of phase cannot see.

    Parameters
    ----------
    lower, upper
        The bounds, in the units of the image; infinite for no bound.

    Examples
    --------
    >>> import numpy as np
    >>> Box(0.0, 1.0).denoise(np.array([[-0.5, 0.5, 1.5]]), sigma=0.1)
    array([[0. , 0.5, 1. ]])
    """

    name = "box"
    has_objective: ClassVar[bool] = True
    _acts_at_zero_sigma: ClassVar[bool] = True

    def __init__(self, lower: float = 0.0, upper: float = math.inf) -> None:
        super().__init__(strength=0.0)
        for name, bound in (("lower", lower), ("upper", upper)):
            if not (is_number(bound) or (isinstance(bound, float) and not abs(bound) < math.inf)):  # or no bound
                raise InvalidInputError(f"{name} must be a number, got {told(bound)}")
        self.lower, self.upper = float(lower), float(upper)
        if not self.lower <= self.upper or self.lower == math.inf or self.upper == -math.inf:
            raise InvalidInputError(f"expected bounds with lower <= upper, got [{lower}, {upper}]; no pixel fits these")

    def _denoise(self, image: Image, sigma: float) -> Image:
        # A bound between two float32 numbers rounds to one of them: objective() rounds it in the same way.
        projected: Image = np.clip(image, *self._bounds(image))
        return projected

    def _objective(self, image: Image) -> float:
        lower, upper = self._bounds(image)
        return 0.0 if bool(np.all((image >= lower) & (image <= upper))) else math.inf

    def _bounds(self, image: Image) -> tuple[Any, Any]:
        with np.errstate(over="ignore"):
            return image.dtype.type(self.lower), image.dtype.type(self.upper)

    def spec(self) -> dict[str, SpecValue]:
        # JSON has no infinity, so an open side is written as text.
        return {
            "name": self.name,
            "lower": self.lower if math.isfinite(self.lower) else str(self.lower),
            "upper": self.upper if math.isfinite(self.upper) else str(self.upper),
        }

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Prior:
        return cls(**{key: float(value) for key, value in parameters.items()})
