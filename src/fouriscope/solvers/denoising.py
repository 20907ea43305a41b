"""The priors at work: one for each image of the object, each with its strength, given or found from the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.fidelity import DataFidelity
from fouriscope.forward.objects import RealArray
from fouriscope.placement import namespace, on_host
from fouriscope.priors import Prior
from fouriscope.solvers.strength import noise_temperature

# Iterations before which the temperature of the noise is measured (again): it depends on the object.
TEMPERATURE_TAKEN_AT = (0, 10, 30, 100)
# The θ of priors is that of images on a grid for the intensity, with twice the pixels of the field's along each axis:
# there n is four times as large, and the same image twice as rough in sum, which counts once more in λr.
OVERSAMPLED = 4.0
TINY = float(np.finfo(np.float64).tiny)


class Denoising:
    """z → denoise_σ(z) for every image of the object, with σ from the step and the strength λ of its prior.

    Automatic strengths are λ = T · natural_strength(z), with T the temperature of the noise (see
    :func:`fouriscope.solvers.strength.noise_temperature`), taken again a few times on the way, until they are frozen.
    """

    def __init__(self, fidelity: DataFidelity, priors: Sequence[Prior]) -> None:
        self.object = fidelity.model.object
        self.fidelity, self.priors = fidelity, list(priors)
        if len(self.priors) != len(self.object.channels):
            raise InvalidInputError(
                f"one prior for each of {', '.join(self.object.channels)} is needed, got {len(self.priors)}"
            )
        if len({id(prior) for prior in self.priors}) != len(self.priors):
            raise InvalidInputError("each image needs its own prior object, because a prior keeps a warm state")
        self.temperature = math.nan
        # What every strength is multiplied with while the loss is not yet the last one.
        self.factor = 1.0
        self.fixed_strength: float | None = None
        self.frozen: list[float] | None = None
        self.strengths = [0.0 for _ in self.priors]

    def reset(self) -> None:
        """Forget what the priors kept from an earlier run or from one that diverged."""
        for prior in self.priors:
            prior.reset()

    def take_temperature(
        self, x: RealArray, iteration: int, population: NDArray[np.int64], rng: np.random.Generator
    ) -> None:
        """How much noise the data term carries, seen from where the iterations have got to.

        At a flat start dark-field frames say nothing to first order, and only bright-field LEDs can be asked.
        """
        if (
            self.fixed_strength is not None
            or self.frozen is not None
            or iteration not in TEMPERATURE_TAKEN_AT
            or all(prior.strength != "auto" for prior in self.priors)
        ):
            return
        bright = population[self.fidelity.model.geometry.bright_field[population]]
        flat_start = not iteration and len(bright)
        temperature = noise_temperature(self.fidelity, on_host(x), bright if flat_start else population, rng) * (
            len(bright) / len(population) if flat_start else 1.0
        )
        if math.isfinite(temperature):
            self.temperature = temperature

    def fix(self, temperature: float, reference: RealArray) -> None:
        """From now on automatic strengths are T · natural_strength of the images of ``reference``, one for them all.

        A strength that follows the estimate it regularises runs away on measured frames: the noisier the image, the
        weaker the prior. So it is found once. Images share one τ: θn/r summed over them.
        """
        if all(prior.strength != "auto" for prior in self.priors):
            return
        self.temperature = temperature
        self.fixed_strength = self._shared(reference)

    def cool(self, temperature: float) -> None:
        """The noise has proved to be less than when strengths were fixed: they fall with T, and never rise."""
        if self.fixed_strength is not None:
            self.fixed_strength *= min(temperature / self.temperature, 1.0)
            self.temperature = temperature

    def freeze(self) -> None:
        """From now on every automatic strength stays as it was last."""
        self.frozen = [strength / self.factor for strength in self.strengths]

    def _shared(self, reference: RealArray) -> float:
        pairs = zip(self.priors, self.object.images(reference), strict=True)
        inverse = [1 / max(self._natural(prior, image), TINY) for prior, image in pairs]
        return self.temperature * len(inverse) / sum(inverse) if sum(inverse) > 0 else 0.0

    def _natural(self, prior: Prior, image: RealArray) -> float:
        if prior.strength != "auto":
            return math.inf
        finer = OVERSAMPLED if self.object.band == "field" and prior.has_objective else 1.0
        return finer * prior.natural_strength(image)

    def __call__(self, z: RealArray, step: float) -> RealArray:
        """Denoise after steps down the data fidelity of length ``step`` in all: σ = √(step · λ).

        Images are first brought within the limits of the object model.
        """
        xp = namespace(z)
        x: RealArray = xp.empty_like(z)
        images = zip(self.object.images(z), self.object.images(x), strict=True)
        for channel, (prior, (before, after)) in enumerate(zip(self.priors, images, strict=True)):
            limits = self.object.limits[channel]
            before = before if limits is None else xp.clip(before, *limits)
            self.strengths[channel] = strength = self._strength(prior, before, channel) * self.factor
            denoise = prior.denoise_next if xp is np else prior.denoise_tensor
            after[...] = denoise(before, math.sqrt(step * strength))
        return x

    def _strength(self, prior: Prior, image: RealArray, channel: int) -> float:
        if prior.strength != "auto":
            return prior.strength
        if self.frozen is not None:
            return self.frozen[channel]
        if self.fixed_strength is not None:
            return self.fixed_strength
        natural = prior.natural_strength if isinstance(image, np.ndarray) else prior.natural_strength_of_tensor
        strength = self.temperature * natural(image) if self.temperature > 0 else 0.0
        return strength if math.isfinite(strength) else 0.0  # a flat image: any strength would do

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        return {
            f"prior{channel}.{name}": array
            for channel, prior in enumerate(self.priors)
            for name, array in prior.state_arrays().items()
        }

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        for channel, prior in enumerate(self.priors):
            prefix = f"prior{channel}."
            prior.load_state_arrays(
                {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            )
