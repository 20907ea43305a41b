"""Wavelet shrinkage, averaged over all shifts of the grid."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError
from fouriscope.priors.base import Image, Prior, Strength
from fouriscope.priors.value_range import denoise_in_unit_range

ShrinkageMode = Literal["soft", "hard"]
HARD_THRESHOLD = 3.0
"""In units of the noise of a coefficient: noise alone passes it once in 370 times."""


@door_class
class Wavelet(Prior):
    r"""Wavelet shrinkage: coefficients that noise alone could explain are shrunk or dropped.

    The image is analysed with an orthogonal wavelet at every shift of its grid, each coefficient is shrunk,

    .. math::
        \text{soft: } c \mapsto \mathrm{sign}(c) \max(|c| - t_b, 0), \quad
        t_b = \frac{\sigma_b^2}{\sqrt{\max(\overline{c^2} - \sigma_b^2,\, 0)}};
        \qquad
        \text{hard: } c \mapsto c\,[\,|c| > 3\sigma_b\,],

    and the reconstructions of all shifts are averaged, which removes the artefacts of any one grid ("cycle spinning",
    [1]_). That is one pass through the stationary transform. σ_b = σ/2^j is the noise in a band of level j as the
    transform is scaled here; the soft threshold adapts itself to the energy of each band (BayesShrink, [2]_). There is
    no objective. Beyond the border the image is continued as in a mirror.

    Parameters
    ----------
    strength
        λ; ``"auto"`` is the temperature T itself, which suits a denoiser whose σ is a noise level.
    wavelet
        An orthogonal wavelet of PyWavelets: ``"haar"``, ``"db2"``, ``"sym4"``, ``"coif1"``…
    mode
        ``"soft"`` is continuous, which suits an iteration; ``"hard"`` keeps more contrast.
    levels
        How many scales are shrunk; fewer if the image is smaller than 2^levels. The rest is not changed.

    References
    ----------
    .. [1] R. R. Coifman, D. L. Donoho, "Translation-invariant de-noising", Wavelets and Statistics (1995) 125-150.
    .. [2] S. G. Chang, B. Yu, M. Vetterli, "Adaptive wavelet thresholding for image denoising and compression", IEEE
       Trans. Image Process. 9 (2000) 1532-1546.

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.repeat([[0.0, 1.0]], 20, axis=1).repeat(40, axis=0)
    >>> noisy = truth + np.random.default_rng(0).normal(0.0, 0.1, truth.shape)
    >>> denoised = Wavelet("auto", wavelet="haar").denoise(noisy, sigma=0.1)
    >>> bool(np.std(denoised - truth) < 0.5 * np.std(noisy - truth))
    True
    """

    name = "wavelet"

    def __init__(
        self, strength: Strength = "auto", wavelet: str = "sym4", mode: ShrinkageMode = "soft", levels: int = 4
    ) -> None:
        super().__init__(strength)
        if mode not in get_args(ShrinkageMode):
            raise InvalidInputError(f'expected mode "soft" or "hard", got {mode!r}')
        if levels != int(levels) or not 1 <= levels <= 12:
            raise InvalidInputError(f"expected a whole number of levels from 1 to 12, such as 4, got {levels}")
        self._support = _filter_length(wavelet)
        self.wavelet = wavelet
        self.mode: ShrinkageMode = mode
        self.levels = int(levels)

    def _denoise(self, image: Image, sigma: float) -> Image:
        return denoise_in_unit_range(self._shrink_all, image, sigma)

    def _shrink_all(self, image: Image, sigma: float) -> Image:
        import pywt

        levels = min(self.levels, max(1, min(image.shape).bit_length() - 1))
        # The transform is periodic: the mirror keeps the opposite border out of reach, and makes the size divisible.
        margin = self._support * 2 ** (levels - 1) // 2
        padding = [(margin, margin + -(size + 2 * margin) % 2**levels) for size in image.shape]
        padded = np.pad(image, padding, mode="symmetric")
        smooth, *details = pywt.swt2(padded, self.wavelet, level=levels, norm=True, trim_approx=True)
        shrunk = [smooth]
        for level, bands in zip(range(levels, 0, -1), details, strict=True):
            shrunk.append(tuple(self._shrink(band, sigma / 2**level) for band in bands))
        denoised: Image = pywt.iswt2(shrunk, self.wavelet, norm=True)
        rows, columns = image.shape
        return denoised[margin : margin + rows, margin : margin + columns]

    def _shrink(self, band: Image, sigma: float) -> Image:
        if self.mode == "hard":
            return np.where(np.abs(band) > HARD_THRESHOLD * sigma, band, band.dtype.type(0))
        variance = float(np.mean(np.square(band), dtype=np.float64)) - sigma**2
        if variance <= 0:  # no more energy than noise alone has
            return np.zeros_like(band)
        threshold = band.dtype.type(sigma**2 / np.sqrt(variance))
        shrunk: Image = band - np.clip(band, -threshold, threshold)
        return shrunk


def _filter_length(wavelet: str) -> int:
    """Return the length of the filters of an orthogonal wavelet, or say which there are."""
    import pywt

    try:
        found = pywt.Wavelet(wavelet)
    except (ValueError, TypeError):
        found = None
    if found is None or not found.orthogonal:
        raise InvalidInputError(
            f"expected an orthogonal wavelet of PyWavelets, such as 'haar', 'db2' or 'sym4', got {wavelet!r}; "
            "print(pywt.wavelist(kind='discrete')) lists all: db…, sym… and coif… are orthogonal"
        )
    return int(found.dec_len)
