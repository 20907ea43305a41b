"""No prior at all: the measurements decide alone."""

from __future__ import annotations

from typing import ClassVar

from fouriscope.priors.base import Image, Prior


class NoPrior(Prior):
    """r(x) = 0: the proximal operator is the identity, and the solver is plain gradient descent.

    Examples
    --------
    >>> import numpy as np
    >>> NoPrior().denoise(np.array([[1.0, 2.0]]), sigma=3.0)
    array([[1., 2.]])
    """

    name = "none"
    has_objective: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(strength=0.0)

    def _denoise(self, image: Image, sigma: float) -> Image:
        return image.copy()

    def _objective(self, image: Image) -> float:
        return 0.0
