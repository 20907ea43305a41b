"""Non-local means: an average over pixels whose surroundings look alike."""

from __future__ import annotations

import math

import numpy as np

from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError
from fouriscope.priors.base import Image, Prior, Strength
from fouriscope.priors.value_range import denoise_in_unit_range


@door_class
class NLM(Prior):
    r"""Non-local means: each pixel becomes the mean of those nearby whose surroundings look alike.

    .. math::
        x_i = \frac{\sum_j w_{ij} z_j}{\sum_j w_{ij}}, \qquad
        w_{ij} = \exp\Bigl(-\frac{\max(\|P_i - P_j\|^2 / p^2 - 2\sigma^2,\, 0)}{h^2}\Bigr),

    where P_i is the patch of p × p pixels around i, j runs over the pixels at most D rows and columns away, and 2σ² is
    what noise alone adds to a distance [1]_. Distances of all patches come from running sums, one for each displacement
    [2]_, so that the cost does not depend on p. It suits images that repeat themselves. There is no objective.

    The work is done by scikit-image's fast mode, which sums the p − 1 rows and columns of a patch that come after its
    first, divides by p², and leaves out weights below e⁻⁵.

    Parameters
    ----------
    strength
        λ; ``"auto"`` is the temperature T itself, which suits a denoiser whose σ is a noise level.
    patch_size
        p, odd.
    patch_distance
        D; the time grows with its square.
    h_factor
        h/σ: larger smooths more. On scikit-image's camera 0.6 is best of 0.4, 0.6, 0.8 at σ = 10/255 and 25/255.

    References
    ----------
    .. [1] A. Buades, B. Coll, J.-M. Morel, "Non-local means denoising", Image Processing On Line 1 (2011) 208-212.
    .. [2] J. Darbon et al., "Fast nonlocal filtering applied to electron cryomicroscopy", ISBI (2008) 1331-1334.

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.repeat([[0.0, 1.0]], 20, axis=1).repeat(40, axis=0)
    >>> noisy = truth + np.random.default_rng(0).normal(0.0, 0.1, truth.shape)
    >>> denoised = NLM().denoise(noisy, sigma=0.1)
    >>> bool(np.std(denoised - truth) < 0.3 * np.std(noisy - truth))
    True
    """

    name = "nlm"

    def __init__(
        self, strength: Strength = "auto", patch_size: int = 5, patch_distance: int = 7, h_factor: float = 0.6
    ) -> None:
        super().__init__(strength)
        if patch_size != int(patch_size) or patch_size < 1 or patch_size % 2 == 0:
            raise InvalidInputError(f"expected an odd patch_size >= 1, such as 5, got {patch_size}")
        if patch_distance != int(patch_distance) or patch_distance < 1:
            raise InvalidInputError(f"expected a whole number patch_distance >= 1, such as 7, got {patch_distance}")
        if not (math.isfinite(h_factor) and h_factor > 0):
            raise InvalidInputError(f"expected h_factor > 0, such as 0.6, got {h_factor}")
        self.patch_size = int(patch_size)
        self.patch_distance = int(patch_distance)
        self.h_factor = float(h_factor)

    def _denoise(self, image: Image, sigma: float) -> Image:
        return denoise_in_unit_range(self._average, image, sigma)

    def _average(self, image: Image, sigma: float) -> Image:
        from skimage.restoration import denoise_nl_means

        # In double precision: the running sums lose small distances in single.
        averaged = denoise_nl_means(
            image.astype(np.float64),
            patch_size=self.patch_size,
            patch_distance=self.patch_distance,
            h=self.h_factor * sigma,
            sigma=sigma,
            fast_mode=True,
            preserve_range=True,
        )
        restored: Image = np.asarray(averaged).reshape(image.shape)  # a single row or column lost its axis
        return restored
