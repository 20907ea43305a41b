"""What a camera adds to the light, found from the frames: noise of variance a + b·I, or more where light is bright."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Frames
from fouriscope.acquisition.masks import mask_of
from fouriscope.checks import door
from fouriscope.errors import InvalidInputError
from fouriscope.fidelity.noise import corner_of_spectrum, only_lattice

# Number of classes of brightness with equal counts, and as many with equal widths. Each class shows one variance …
CLASSES = 16
# … if it has at least this many pixels.
FEWEST = 200
# Squares are clipped at this many variances; and the mean of such squares of a normal variable of variance 1.
CLIPPED, MEAN_CLIPPED = 6.0, 0.9742
# Photon noise counts as found if it is this many standard errors above 0.
EVIDENCE = 3.0
# Noise grows faster than the light if the brightest pixels have so many times the variance of the line a + b·I.
FASTER = 2.0
# At most this many bright-field frames are used, and as many others.
FRAMES_ASKED = 32
TINY = 1e-150


@dataclass(frozen=True)
class CameraNoise:
    """Noise of variance a + b·I + c·I², in units of the bright field.

    Parameters
    ----------
    read
        a, the variance without light: read noise, quantisation, dark current.
    photon
        b, the variance that light adds per unit: one over the number of electrons of the bright field.
    relative
        c, the variance that grows with the square of the light: pixels of different sensitivity, or frames whose noise
        is a share of their own light. 0 unless it is seen clearly.
    """

    read: float
    photon: float
    relative: float = 0.0

    @property
    def background(self) -> float:
        """ε = a/(b + c) + 3b/8, with which the camera loss fits the noise. It is infinite if all noise is read noise.

        With it the darkest pixels and the bright field count as their noise says. The second term is about a third of
        an electron. It keeps the logarithm finite if there is no read noise.
        """
        growing = self.photon + self.relative
        return self.read / growing + 0.375 * self.photon if growing > 0 else math.inf

    def variance(self, intensity: NDArray[Any]) -> NDArray[np.float64]:
        """a + b·I + c·I²."""
        light = np.maximum(intensity, 0.0)
        return np.asarray(self.read + (self.photon + self.relative * light) * light, np.float64)

    def __str__(self) -> str:
        light = f"{1 / self.photon:,.0f} electrons in the bright field" if self.photon > 0 else "no photon noise found"
        share = f", {100 * math.sqrt(self.relative):.2g} % of the light" if self.relative > 0 else ""
        return f"read noise of {math.sqrt(self.read):.2g} of the bright field, {light}{share}"


@door
def camera_noise(
    frames: Sequence[NDArray[Any]] | NDArray[Any], masks: Sequence[NDArray[Any] | None] | None = None
) -> CameraNoise:
    """The noise of a camera, found from its frames alone: how it grows with the light.

    The corners of a frame's spectrum lie beyond the band of the optics and hold only noise. A filter that passes the
    corners leaves a noise n(x) whose variance follows a + b·I(x) locally. The pixels of all frames are sorted into
    classes of brightness. The clipped mean of n² is the variance of each class (structure that reaches a corner changes
    only few pixels). A weighted least-squares line through these variances gives a and b. Photon noise must be certain:
    b is 0 unless it is three standard errors above 0. If the brightest pixels have twice the variance of this line or
    more, noise grows faster than the light, and a parabola takes the place of the line.

    Parameters
    ----------
    frames
        Images in units of the bright field, dark and bright ones.
    masks
        One per frame, True or 1 where a pixel counts. By default, all pixels count.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> light = np.linspace(0.01, 1, 20)[:, None, None] * np.ones((128, 128))
    >>> noise = camera_noise(rng.poisson(light * 500) / 500 + rng.normal(0, 0.01, light.shape))
    >>> bool(abs(noise.photon * 500 - 1) < 0.2), bool(abs(noise.read / 1e-4 - 1) < 0.5)
    (True, True)
    """
    masks = [None] * len(frames) if masks is None else masks
    if not len(frames) or len(masks) != len(frames):
        raise InvalidInputError(
            f"at least one frame is needed, and one mask for each: got {len(frames)} frames and {len(masks)} masks"
        )
    values = [
        _local_noise(np.asarray(frame, np.float64), None if mask is None else np.asarray(mask) != 0)
        for frame, mask in zip(frames, masks, strict=True)
    ]
    light = np.concatenate([v[0] for v in values])
    squares = np.concatenate([v[1] for v in values])
    independent = sum(v[2] for v in values)
    return _line(light, squares, independent / max(len(light), 1))


def noise_of(
    frames: Frames, mask: Frames | NDArray[Any] | None, bright_field: NDArray[np.bool_], leds: NDArray[np.int64]
) -> CameraNoise:
    """The noise of the frames of ``leds``, from at most 32 bright-field and 32 dark-field frames, spread evenly.

    ``bright_field`` has one bool for every frame, also for those that are not among ``leds``.
    """
    bright = bright_field[leds]
    asked = spread_evenly(leds[bright]) + spread_evenly(leds[~bright])
    masks = None if mask is None else [mask_of(mask, led) for led in asked]
    return camera_noise([frames.frame(led) for led in asked], masks)


def spread_evenly(leds: NDArray[np.int64]) -> list[int]:
    """At most 32 of ``leds``, spread evenly."""
    places = np.linspace(0, len(leds) - 1, min(FRAMES_ASKED, len(leds)))
    return [int(led) for led in leds[np.unique(places.round().astype(int))]] if len(leds) else []


def _local_noise(
    frame: NDArray[np.float64], counts: NDArray[np.bool_] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Of pixels away from the borders: their brightness as the filter sees it, n² in units of one pixel's variance, and
    how many independent values these are."""
    lattice = None if counts is None else only_lattice(counts)
    if lattice is not None:
        frame, counts = frame[lattice], None
    weight = np.outer(*(np.hanning(n + 2)[1:-1] for n in frame.shape))
    if counts is not None:
        frame, weight = np.where(counts, frame, 0.0), weight * counts
    total = weight.sum()
    if not total > 0:
        return np.empty(0), np.empty(0), 0.0
    corner = corner_of_spectrum(frame.shape)
    level = float(np.sum(frame * weight) / total)

    def filtered(image: NDArray[np.float64], response: NDArray[Any]) -> NDArray[np.float64]:
        return np.fft.irfft2(np.fft.rfft2(image) * response, s=frame.shape)

    # With the filter's kernel k: Var n(x) = Σ k²(x − x') w²(x') (a + b I(x')), two convolutions with k².
    kernel = np.fft.irfft2(corner.astype(np.float64), s=frame.shape)
    power = np.fft.rfft2(kernel**2)
    noise = filtered((frame - level) * weight, corner)
    share = filtered(weight**2, power)
    light = filtered(weight**2 * frame, power)
    inside = weight**2 > 0.25
    if not inside.any():
        return np.empty(0), np.empty(0), 0.0
    squares = noise[inside] ** 2 / share[inside]
    return light[inside] / share[inside], squares, float(np.count_nonzero(inside) * corner.mean())


def _line(light: NDArray[np.float64], squares: NDArray[np.float64], independent: float) -> CameraNoise:
    """a and b from n² of pixels and their brightness. A share ``independent`` of these values is independent."""
    if not light.size:
        return CameraNoise(0.0, 0.0)
    # Classes of equal counts and of equal widths: most pixels are dark, and the others must not share one class.
    edges = np.union1d(np.quantile(light, np.linspace(0, 1, CLASSES)), np.linspace(light.min(), light.max(), CLASSES))
    number = np.clip(np.searchsorted(edges, light, side="right") - 1, 0, max(len(edges) - 2, 0))
    classes = [part for part in (np.flatnonzero(number == k) for k in np.unique(number)) if part.size >= FEWEST]
    if not classes:
        return CameraNoise(_variance(squares), 0.0)
    level = np.array([light[part].mean() for part in classes])
    variance = np.array([_variance(squares[part]) for part in classes])
    size = np.array([part.size for part in classes]) * independent
    read, photon = float(np.median(variance)), 0.0
    for _ in range(5):  # the weights follow the line: a variance of N values is good to √(2.1/N) of itself
        expected = np.maximum(read + photon * level, variance / 4)
        weights = np.where(expected > 0, size / np.maximum(expected, TINY) ** 2, 0.0) / 2.1
        if not weights.any():
            return CameraNoise(0.0, 0.0)
        middle = np.average(level, weights=weights)
        spread = np.sum(weights * (level - middle) ** 2)
        slope = float(np.sum(weights * (level - middle) * variance) / spread) if spread > 0 else 0.0
        photon = slope if slope * math.sqrt(spread) > EVIDENCE else 0.0
        read = float(np.average(variance - photon * level, weights=weights))
    if variance[-1] > FASTER * (read + photon * level[-1]):
        return _parabola(level, variance, size)
    # With an offset in the frames, the line crosses zero before there is light. Then the darkest pixels give a.
    return CameraNoise(max(read, 0.0) or float(variance[0]), photon)


def _parabola(level: NDArray[np.float64], variance: NDArray[np.float64], size: NDArray[np.float64]) -> CameraNoise:
    """a, b and c ≥ 0 from the variances of classes of ``size`` independent values each."""
    from scipy.optimize import nnls

    columns = np.stack([np.ones_like(level), np.maximum(level, 0.0), level**2], axis=1)
    expected = variance
    for _ in range(5):
        weights = np.sqrt(size) / np.maximum(expected, TINY)
        found, _ = nnls(columns * weights[:, None], variance * weights)
        expected = np.maximum(columns @ found, variance / 4)
    read, photon, relative = map(float, found)
    return CameraNoise(read or float(variance[0]), photon, relative)


def _variance(squares: NDArray[np.float64]) -> float:
    """The variance of values from their squares. The few that structure makes large are clipped."""
    variance = float(np.median(squares)) / 0.455
    for _ in range(20):
        variance = float(np.mean(np.minimum(squares, CLIPPED * variance))) / MEAN_CLIPPED
    return variance
