"""The losses that a run uses on the way to the one that fits the noise: at first, all frames count alike."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fouriscope.fidelity import CameraLoss, DataFidelity, IntensityLoss, Loss
from fouriscope.fidelity.camera_noise import CameraNoise, noise_of, spread_evenly

# Gradient steps at the first ε, and per tenfold growth of ε. The estimate can follow at this rate.
STEPS_AT_START = 10.0
STEPS_PER_DECADE = 35.0
# Beyond this ε, dark and bright field weigh the same within a tenth, and the intensity loss is used.
INTENSITY_FROM = 10.0
# The least last ε, in standard deviations of the noise in the dark. If a frame is mostly noise, |ψ|² ≥ 0 fits the
# positive half of it. With an ε of several times that noise, such frames weigh too little to be fitted.
LEAST_END = 10.0
# That is needed only if dark frames are mostly noise. They are not if their mean is so many times that noise.
CLEAR = 10.0
# Pixels below this brightness count as dark field.
DARK = 0.1
# The least first ε, about the brightness of the dark field. With a smaller one, the darkest frames pull hardest.
LEAST_START = 3e-3
# Number of quantiles that are kept of the brightness of pixels.
QUANTILES = 256
# Where a function of a normal variable is evaluated for its mean, and with which weights.
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(24)


@dataclass(frozen=True)
class Road:
    r"""Losses of the family :class:`~fouriscope.fidelity.CameraLoss`, from a small ε to the one of the noise.

    The loss that fits the noise is slow at the beginning. With additive noise (ε = ∞), a frequency that only dark
    frames of brightness I see has a curvature I times that of bright ones, and takes 1/I times as many steps. With a
    small ε, all frames have similar curvatures. So ε begins at one standard deviation of the noise in the dark, and
    grows tenfold in every 35 gradient steps until it is ε = a/b.

    A prior must keep its balance with the data. For a loss of the family, d exceeds a negative log-likelihood by

        T(ε) = 2(1 + ε)/J · Σ (a + bI) I/(I + ε)² / Σ I/(I + ε)

    (the traces of the covariance of ∇d and of ∇²d, over the pixels of the frames). So along the road, a strength is
    multiplied by T(ε)/T(a/b). At the end of the road, this factor is 1.
    """

    noise: CameraNoise
    start: float
    fitting: float
    brightness: NDArray[np.float64]

    @classmethod
    def of(cls, fidelity: DataFidelity, leds: NDArray[np.int64]) -> Road:
        """The road for the noise and the brightness of the frames of ``leds``."""
        noise = noise_of(fidelity.frames, fidelity.mask, fidelity.model.geometry.bright_field, leds)
        brightness = _brightness(fidelity, leds)
        in_the_dark = brightness[brightness < DARK]
        light = float(in_the_dark.mean()) if in_the_dark.size else 0.0
        dark = math.sqrt(float(noise.variance(np.asarray(light))))
        least = dark if light > CLEAR * dark else LEAST_END * dark
        return cls(noise, max(dark, LEAST_START), max(noise.background, least), brightness)

    def __str__(self) -> str:
        last = "intensity" if math.isinf(self.end) else f"camera, ε = {self.end:.2g}"
        return f"{self.noise}; loss: {last}"

    def values(self) -> dict[str, float]:
        """What :meth:`loaded` needs in addition to the brightness."""
        end = {} if math.isinf(self.fitting) else {"fitting": self.fitting}  # JSON has no infinity
        noise = {"read": self.noise.read, "photon": self.noise.photon, "relative": self.noise.relative}
        return noise | {"start": self.start} | end

    @classmethod
    def loaded(cls, values: dict[str, float], brightness: NDArray[np.float64]) -> Road:
        """The road of a saved state."""
        noise = CameraNoise(values["read"], values["photon"], values.get("relative", 0.0))
        return cls(noise, values["start"], values.get("fitting", math.inf), brightness)

    @property
    def end(self) -> float:
        """The last ε; infinite for the intensity loss."""
        return self.fitting if self.fitting < INTENSITY_FROM else math.inf

    @property
    def last_loss(self) -> Loss:
        """The loss that fits the noise."""
        return self._loss(self.end)

    @property
    def length(self) -> float:
        """Gradient steps until the loss is the last one."""
        return STEPS_AT_START + STEPS_PER_DECADE * abs(self._decades)

    def loss(self, steps: int) -> Loss:
        """The loss after ``steps`` gradient steps."""
        return self._loss(self._epsilon(steps))

    def strength_factor(self, steps: int) -> float:
        """T(ε)/T(a/b): the strength of the prior relative to that at the end."""
        if steps >= self.length:
            return 1.0
        here, end = self._temperature(self._epsilon(steps)), self._temperature(self.end)
        return here / end if end > 0 else 1.0

    def misfit_factor(self, steps: int) -> float:
        """The factor that brings a misfit to units of the last loss. Noise alone then gives the same misfit all along
        the road."""
        if steps >= self.length:
            return 1.0
        here = self._left_by_noise(self._epsilon(steps))
        return self._left_at_end / here if here > 0 else 1.0

    @cached_property
    def _left_at_end(self) -> float:
        return self._left_by_noise(self.end)

    def _left_by_noise(self, epsilon: float) -> float:
        """The mean loss of pixels that are predicted perfectly, by quadrature over normal noise."""
        variance = self.noise.variance(self.brightness)
        light = np.where(self.brightness < 2 * np.sqrt(variance), 0.0, self.brightness)  # the rest is noise itself
        residual = np.sqrt(variance)[:, None] * NODES
        if math.isinf(epsilon):
            return float(np.mean(residual**2 @ NODE_WEIGHTS) / NODE_WEIGHTS.sum())
        rate = (light + epsilon)[:, None]
        excess = np.maximum(residual / rate, -1 + 1e-12)
        deviance = rate * ((1 + excess) * np.log1p(excess) - excess)
        return float(np.mean(2 * (1 + epsilon) * deviance @ NODE_WEIGHTS) / NODE_WEIGHTS.sum())

    def _epsilon(self, steps: int) -> float:
        if steps >= self.length:
            return self.end
        gone = max(steps - STEPS_AT_START, 0.0) / STEPS_PER_DECADE
        return float(self.start * 10 ** math.copysign(gone, self._decades))

    @property
    def _decades(self) -> float:
        """How many times ε grows tenfold; negative if it falls."""
        return math.log10(min(self.end, INTENSITY_FROM) / self.start)

    @staticmethod
    def _loss(epsilon: float) -> Loss:
        return CameraLoss(epsilon) if math.isfinite(epsilon) else IntensityLoss()

    def _temperature(self, epsilon: float) -> float:
        light, variance = self.brightness, self.noise.variance(self.brightness)
        if not math.isfinite(epsilon):
            return float(np.sum(variance * light) / np.sum(light)) if light.any() else 0.0
        pull = light / (light + epsilon)
        if not pull.any():
            return 0.0
        return float((1 + epsilon) * np.sum(variance * pull / (light + epsilon)) / np.sum(pull))


def _brightness(fidelity: DataFidelity, leds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Quantiles of the brightness of all pixels."""
    values = [np.asarray(fidelity.frames.frame(led), np.float64)[fidelity.mask_of(led)] for led in spread_evenly(leds)]
    pixels = np.concatenate(values)
    if not pixels.size:
        return np.zeros(QUANTILES)
    return np.maximum(np.quantile(pixels, (np.arange(QUANTILES) + 0.5) / QUANTILES), 0.0)
