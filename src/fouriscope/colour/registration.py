"""Channels on one grid: find how far one is shifted against another, and shift it back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ComplexArray = NDArray[Any]
Pair = tuple[float, float]

# What is slower than this share of the field is background, which differs from channel to channel.
SLOW = 1 / 16
# A shift is found to one over this many pixels.
STEPS = 100
ROUNDS = 3
# How far an image may be read beyond its edge, in pixels.
OVERHANG = 0.1
# Order of the spline that interpolates between pixels. A cubic spline would damp frequencies near the band's edge.
ORDER = 5


class Shift(NamedTuple):
    """By how many pixels (down, across) an image is shifted against another, and how alike they then are, 0 to 1."""

    down: float
    across: float
    likeness: float


def find_shift(reference: ComplexArray, image: ComplexArray) -> Shift:
    """Where ``image`` shows what ``reference`` shows: the maximum of their correlation, to a hundredth of a pixel.

    Both are complex, of one shape. Their slow parts are subtracted, and the rest fades out towards the edges. The
    correlation is not whitened, because beyond the band of an image there is only noise.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.ndimage import fourier_shift, gaussian_filter
    >>> sample = np.exp(1j * gaussian_filter(np.random.default_rng(0).normal(0, 5, (96, 96)), 2, mode="wrap"))
    >>> moved = np.fft.ifft2(fourier_shift(np.fft.fft2(sample), (2.3, -1.6)))
    >>> shift = find_shift(sample, moved)
    >>> bool(abs(shift.down - 2.3) < 0.02), bool(abs(shift.across + 1.6) < 0.02), bool(shift.likeness > 0.9)
    (True, True, True)
    """
    from skimage.registration import phase_cross_correlation

    first, (rows, columns) = _detail(reference), reference.shape
    down = across = error = 0.0
    for _ in range(ROUNDS):  # what fades out at the edges pulls a shift towards 0, less each time
        second = _detail(resampled(image, (rows, columns), (down, across)))
        rest, error, _ = phase_cross_correlation(first, second, upsample_factor=STEPS, normalization=None)
        down, across = down - float(rest[0]), across - float(rest[1])
    likeness = float(np.sqrt(max(0.0, 1 - float(error) ** 2))) if np.isfinite(error) else 0.0
    return Shift(down, across, likeness)


def resampled(image: ComplexArray, shape: tuple[int, int], shift: Pair) -> ComplexArray:
    """``image`` on a grid of ``shape`` over the same field, shifted by ``shift`` (down, across) of *its* pixels.

    Pixel 0 lies on pixel 0, as in the grids of frames and objects. Beyond the field, its mirror image is used.

    >>> fine = resampled(np.cos(np.arange(64) / 5)[:, None] * np.ones((1, 4)) + 0j, (128, 4), (1.0, 0.0))
    >>> bool(np.allclose(fine[:100, 0], np.cos((np.arange(100) / 2 + 1) / 5), atol=1e-4))
    True
    """
    from scipy.ndimage import affine_transform

    steps = [old / new for old, new in zip(image.shape, shape, strict=True)]
    if image.shape == shape and not any(shift):
        return image
    real, imaginary = (
        affine_transform(part, steps, offset=shift, output_shape=shape, order=ORDER, mode="mirror")
        for part in (image.real.astype(np.float64), image.imag.astype(np.float64))
    )
    return np.asarray(real + 1j * imaginary).astype(image.dtype)


def common_window(shape: tuple[int, int], shifts: list[Pair]) -> tuple[slice, slice]:
    """The pixels of a grid that are measured in every channel, if channels are shifted by ``shifts`` pixels.

    >>> common_window((10, 10), [(0.0, 0.0), (1.5, -0.2)])
    (slice(0, 8, None), slice(1, 10, None))
    """
    rows, columns = (
        slice(
            max(0, *(int(np.ceil(-shift[axis] - OVERHANG)) for shift in shifts)),
            size - max(0, *(int(np.ceil(shift[axis] - OVERHANG)) for shift in shifts)),
        )
        for axis, size in enumerate(shape)
    )
    return rows, columns


def _detail(image: ComplexArray) -> ComplexArray:
    from scipy.ndimage import gaussian_filter

    sigma = [size * SLOW for size in image.shape]
    slow = gaussian_filter(image.real, sigma) + 1j * gaussian_filter(image.imag, sigma)
    taper = np.outer(*(np.hanning(size + 2)[1:-1] for size in image.shape))
    return np.asarray((image - slow) * taper)
