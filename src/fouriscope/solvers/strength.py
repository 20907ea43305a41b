"""The automatic strength of a prior: from the noise in the frames, carried through the model."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fouriscope.fidelity import DataFidelity, Minibatch
from fouriscope.fidelity.noise import PerturbedFrames, frame_noise
from fouriscope.forward.objects import RealArray
from fouriscope.reductions import dot
from fouriscope.solvers.step_size import hessian_product

LEDS_PROBED = 64
INTENSITIES_AT_ONCE = 8  # so that memory does not grow with the LEDs probed


def noise_temperature(
    fidelity: DataFidelity, x: RealArray, population: NDArray[np.int64], rng: np.random.Generator
) -> float:
    r"""T, the factor by which the data fidelity exceeds a negative log-likelihood: d = T · (−log p(y \| x)).

    Maximum a posteriori estimation, d/T − log p(x) → min, is the same as d + λ r → min for a prior p(x) ∝ e^{−τ r(x)}
    with λ = T τ: T is all that the noise says about λ. For white noise of variance σ² and the intensity loss,
    T = 2σ²/J. For any loss and noise, the covariance of a score equals its Fisher information; d/T has that property
    in the mean over all directions if

        T = tr Cov(∇d) / tr ∇²d.

    Both traces are measured at x: the first by adding noise of each frame's own level
    (:func:`fouriscope.fidelity.noise.frame_noise`) once more, the second by a random probe (Hutchinson), on at most
    ``LEDS_PROBED`` LEDs. The variance of a mean falls with the number of measurements, hence the factor B / J for a
    ``population`` of J. Returns NaN where the fidelity is not convex enough around x to tell.
    """
    leds = np.sort(rng.choice(population, min(LEDS_PROBED, len(population)), replace=False))
    batch = Minibatch(leds, np.ones(len(leds)), len(leds))
    sigmas = _residual_noise(fidelity, x, leds)
    noisier = DataFidelity(
        fidelity.model,
        PerturbedFrames(fidelity.frames, sigmas, int(rng.integers(2**32))),
        loss=fidelity.loss,
        weights=fidelity.weights,
        mask=fidelity.mask,
    )
    noise = noisier.gradient(x, batch).gradient - fidelity.gradient(x, batch).gradient
    probe = rng.choice(np.array([-1.0, 1.0], x.dtype), x.shape)
    trace = dot(probe, hessian_product(fidelity, x, probe, batch))
    covariance = dot(noise, noise)
    if not trace > 0:
        return math.nan
    return covariance / trace * batch.size / len(population)


def _residual_noise(fidelity: DataFidelity, x: RealArray, leds: NDArray[np.int64]) -> dict[int, float]:
    """The noise level of each frame, from what the model leaves of it: where the camera samples so coarsely that the
    intensity aliases, the corners of a frame's own spectrum hold signal too."""
    levels = {}
    for group in np.array_split(leds, range(INTENSITIES_AT_ONCE, len(leds), INTENSITIES_AT_ONCE)):
        for led, prediction in zip(map(int, group), fidelity.model.intensity(x, group), strict=True):
            with np.errstate(invalid="ignore"):  # masked pixels may hold anything
                levels[led] = frame_noise(fidelity.frames.frame(led) - prediction, fidelity.mask_of(led))
    return levels
