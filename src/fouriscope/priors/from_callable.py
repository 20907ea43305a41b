"""Any function ``f(image, sigma)`` as a prior."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fouriscope.errors import InvalidInputError
from fouriscope.priors.base import Image, Prior, SpecValue, Strength

Denoiser = Callable[[Image, float], Any]


class CallablePrior(Prior):
    """Any denoiser, ``function(image, sigma) -> image``, as a prior.

    σ = √(γλ) is passed on as the noise level. The function gets a copy, so it may work in place. Its result
    is checked (same shape, real, finite) and converted to the dtype of the image. There is no objective, and a solver
    with such a prior seeks a fixed point rather than a minimum.

    Parameters
    ----------
    function
        Called as ``function(image, sigma)`` with a 2-D float32 or float64 array.
    name
        What messages and run folders call it; by default the name of the function.
    strength
        λ; ``"auto"`` is the temperature T itself, which suits a denoiser whose σ is a noise level.

    Examples
    --------
    >>> import numpy as np
    >>> halve = CallablePrior(lambda image, sigma: image / 2, name="halve")
    >>> halve.denoise(np.array([[2.0, 4.0]]), sigma=0.1)
    array([[1., 2.]])

    References
    ----------
    S. V. Venkatakrishnan, C. A. Bouman, B. Wohlberg, "Plug-and-play priors for model based reconstruction",
    GlobalSIP (2013) 945-948.
    """

    def __init__(self, function: Denoiser, name: str | None = None, strength: Strength = "auto") -> None:
        if not callable(function):
            raise InvalidInputError(f"expected a function f(image, sigma), got {function!r}")
        super().__init__(strength)
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))

    def _denoise(self, image: Image, sigma: float) -> Image:
        result = np.asarray(self.function(image.copy(), sigma))
        if result.shape != image.shape:
            raise InvalidInputError(
                f"the denoiser {self.name!r} must return an image of shape {image.shape}, got {result.shape}"
            )
        if result.dtype.kind not in "fiu":
            raise InvalidInputError(f"the denoiser {self.name!r} must return real numbers, got {result.dtype}")
        with np.errstate(over="ignore"):
            result = result.astype(image.dtype)  # always a copy: the function may have kept its result
        bad = int(result.size - np.count_nonzero(np.isfinite(result)))
        if bad:
            raise InvalidInputError(
                f"the denoiser {self.name!r} returned {bad} of {result.size} pixels NaN or infinite at sigma={sigma:g}"
            )
        return result

    def spec(self) -> dict[str, SpecValue]:
        """Return what can be written down; a function cannot, so ``prior_from_spec`` asks for it again."""
        return {"name": "callable", "function": self.name, "strength": self.strength}

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Prior:
        raise InvalidInputError(
            f"the prior was the function {parameters.get('function', '?')!r}, which cannot be rebuilt from a "
            "description; pass the function itself: CallablePrior(function)"
        )
