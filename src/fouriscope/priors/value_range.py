"""From the units of an image to the [0, 1] that a denoiser was made for, and back: the one place for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fouriscope.errors import InvalidInputError
from fouriscope.priors.base import Image

LARGEST_SIGMA = 1e6
"""σ in units of the range is cut off here: the image is then nothing but noise, and more would only overflow."""


@dataclass(frozen=True)
class ValueRange:
    r"""The affine map that takes ``low`` to 0 and ``high`` to 1.

    .. math:: u = \frac{x - \mathrm{low}}{\mathrm{high} - \mathrm{low}}, \qquad
              \sigma_u = \frac{\sigma}{\mathrm{high} - \mathrm{low}}, \qquad
              x = \mathrm{low} + (\mathrm{high} - \mathrm{low})\, u .

    Nothing is clipped, so that it can be inverted. Because low and high follow the image, a denoiser seen through it is
    equivariant: denoise(a x + b, a σ) = a denoise(x, σ) + b.

    Examples
    --------
    >>> import numpy as np
    >>> image = np.array([[10.0, 20.0, 30.0]])
    >>> units = ValueRange.of(image)
    >>> units.normalise(image), units.normalise_sigma(2.0)
    (array([[0. , 0.5, 1. ]]), 0.1)
    >>> units.restore(units.normalise(image), image.dtype)
    array([[10., 20., 30.]])
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high - self.low) and self.low <= self.high):
            raise InvalidInputError(
                f"expected a range low <= high of finite width, got [{self.low:g}, {self.high:g}]; rescale the image"
            )

    @classmethod
    def of(cls, image: Image) -> ValueRange:
        """Return the plain minimum and maximum of ``image``.

        Not quantiles: with the extremes no pixel lies outside [0, 1], where a trained denoiser is unreliable. One hot
        pixel makes the rest of the image small, which costs some contrast.
        """
        return cls(float(image.min()), float(image.max()))

    @property
    def width(self) -> float:
        return self.high - self.low

    def with_width(self, width: float) -> ValueRange:
        """Return a range of this width around the same centre."""
        centre = self.low + self.width / 2
        return ValueRange(centre - width / 2, centre + width / 2)

    def for_denoiser(
        self, sigma: float, epsilon: float, largest_sigma: float | None, only_sigma: float | None
    ) -> ValueRange | None:
        """Return the range that a denoiser sees (see :func:`denoise_in_unit_range`); None where there is no work:
        without a range, or with a noise below the resolution ``epsilon`` of the dtype."""
        if self.width == 0 or sigma <= epsilon * self.width:
            return None
        if only_sigma is not None:
            return self.with_width(sigma / only_sigma)
        return self if largest_sigma is None else self.with_width(max(self.width, sigma / largest_sigma))

    def normalise(self, image: Image) -> Image:
        """Return u, in the dtype of ``image``."""
        # In double precision: in single, the difference of two finite pixels may overflow.
        scaled: Image = ((image.astype(np.float64) - self.low) / self.width).astype(image.dtype)
        return scaled

    def normalise_sigma(self, sigma: float) -> float:
        """Return σ in units of the range, at most :data:`LARGEST_SIGMA`."""
        return min(sigma / self.width, LARGEST_SIGMA)

    def restore(self, image: Image, dtype: npt.DTypeLike) -> Image:
        """Return x from u, in ``dtype``."""
        restored: Image = (self.low + self.width * image.astype(np.float64)).astype(dtype)
        return restored


def denoise_in_unit_range(
    denoiser: Callable[[Image, float], Image],
    image: Image,
    sigma: float,
    *,
    largest_sigma: float | None = None,
    only_sigma: float | None = None,
) -> Image:
    """Apply ``denoiser(u, sigma_u)``, made for images in [0, 1], to an image in any units.

    A constant image is returned unchanged, because it has no range. So is an image whose noise is below the resolution
    of its dtype.

    Parameters
    ----------
    largest_sigma
        The largest σ_u that the denoiser was trained for. Where the noise of an image is larger beside its range (a
        nearly flat image, as at the start of a solver), the range is widened until it fits.
    only_sigma
        The one σ_u that a denoiser knows which is not told any: the range is chosen such that σ becomes it, whatever
        the image then spans [1]_.

    References
    ----------
    .. [1] X. Xu, J. Liu, Y. Sun, B. Wohlberg, U. S. Kamilov, "Boosting the performance of plug-and-play priors via
       denoiser scaling", Asilomar Conf. Signals Syst. Comput. (2020) 1305-1312.
    """
    units = ValueRange.of(image).for_denoiser(sigma, float(np.finfo(image.dtype).eps), largest_sigma, only_sigma)
    if units is None:
        return image.copy()
    denoised = denoiser(units.normalise(image), units.normalise_sigma(sigma))
    return units.restore(denoised, image.dtype)
