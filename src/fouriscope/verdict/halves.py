"""The resolution that two reconstructions from different dark-field LEDs agree on."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition import Acquisition
from fouriscope.metrics import fourier_ring_correlation, frc_resolution
from fouriscope.optics import Geometry
from fouriscope.verdict.heldout import Reconstruct


@dataclass(frozen=True)
class Resolution:
    """Half-pitches in metres.

    Attributes
    ----------
    half_pitch_m
        The finest that both halves show alike (Fourier ring correlation above 1/7); None if they share nothing.
    limit_m
        λ/(2 NA_syn).
    shared_m
        That of the bright-field LEDs. Down to it, both halves have the same frames, so their agreement says little.
    """

    half_pitch_m: float | None
    limit_m: float
    shared_m: float


def resolution_of_halves(
    patch: Acquisition, reconstruct: Reconstruct, geometry: Geometry, *, seed: int = 0
) -> Resolution:
    """Fourier ring correlation of two reconstructions, each with all bright-field and half of the dark-field LEDs.

    Nothing can be reconstructed without bright field, so both halves keep it. Beyond the bright field's band their
    frames differ, and what they have in common there is the sample. 1/7 is the usual threshold: with it both halves
    *together* have the signal-to-noise ratio 1/3 in a ring (half of that each). Half of the dark field shows less than
    all of it, so the number is cautious. It never goes below the limit.

    Parameters
    ----------
    patch
        The part of the acquisition that is reconstructed.
    reconstruct
        The method of the run.
    geometry
        Where the LEDs are.
    seed
        Draws the halves.
    """
    weights = patch.frame_weights
    first, second = dark_halves(weights > 0, geometry.bright_field, np.random.default_rng(seed))
    fields = []
    for other in (second, first):
        kept = weights.copy()
        kept[other] = 0
        model, x = reconstruct(replace(patch, weights=kept))
        fields.append(model.transmittance(x)[model.geometry.object_window])
    curve = fourier_ring_correlation(fields[0], fields[1], pixel=model.object_pixel, window="hann")
    period = frc_resolution(curve)
    used = weights > 0
    sizes, optics = geometry.outer_na, geometry.optics
    limit, shared = (
        optics.wavelength / (2 * (optics.na + float(sizes[group].max())))
        for group in (used, used & geometry.bright_field)
    )
    return Resolution(max(period / 2, limit) if math.isfinite(period) else None, limit, shared)


def dark_halves(
    used: NDArray[np.bool_], bright_field: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The dark-field LEDs that are used, in two halves that have none in common.

    >>> halves = dark_halves(np.ones(9, bool), np.arange(9) < 4, np.random.default_rng(0))
    >>> [len(half) for half in halves], sorted(np.concatenate(halves).tolist())
    ([3, 2], [4, 5, 6, 7, 8])
    """
    shuffled = rng.permutation(np.flatnonzero(used & ~bright_field))
    return np.sort(shuffled[::2]), np.sort(shuffled[1::2])
