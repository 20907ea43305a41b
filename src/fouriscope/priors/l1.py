"""Few pixels differ from zero: the ℓ1 norm."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fouriscope.checks import door_class
from fouriscope.priors.base import Image, Prior, scale_likelihood_strength


@door_class
class L1(Prior):
    r"""Sparse pixels, r(x) = ‖x‖₁ = Σ abs(x_i).

    The proximal operator is the soft threshold by σ² (= γλ in a solver),

    .. math:: x_i = \mathrm{sign}(z_i)\, \max(|z_i| - \sigma^2, 0),

    in closed form: there is nothing to iterate. It suits objects that are small and few on an empty background.

    Parameters
    ----------
    strength
        λ, the weight of ‖x‖₁ against the data fidelity; ``"auto"`` is T·θn/‖x‖₁ (:meth:`Prior.natural_strength`).

    Examples
    --------
    >>> import numpy as np
    >>> L1().denoise(np.array([[-3.0, 0.5, 2.0]]), sigma=1.0)
    array([[-2.,  0.,  1.]])

    References
    ----------
    D. L. Donoho, "De-noising by soft-thresholding", IEEE Trans. Inf. Theory 41 (1995) 613-627.
    """

    name = "l1"
    has_objective: ClassVar[bool] = True
    theta: ClassVar[float] = 1.0
    """θ of the normaliser τ^{-θn}: exactly 1 for n independent Laplacian pixels."""

    def _denoise(self, image: Image, sigma: float) -> Image:
        with np.errstate(over="ignore"):
            threshold = image.dtype.type(sigma * sigma)
        # z − clip(z, −t, t) is the soft threshold without a sign and without −0.
        shrunk: Image = image - np.clip(image, -threshold, threshold)
        return shrunk

    def _objective(self, image: Image) -> float:
        return float(np.sum(np.abs(image), dtype=np.float64))

    def natural_strength(self, image: Image) -> float:
        """Return θn/‖x‖₁, or ``inf`` for an image of zeros; see :meth:`Prior.natural_strength`."""
        return scale_likelihood_strength(self.theta, np.size(image), self.objective(image))
