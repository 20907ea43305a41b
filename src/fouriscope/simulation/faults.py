"""Faults of a hostile microscope: its pupil, its dust, and the ranges from which all of them are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from fouriscope.optics import Geometry, Pupil
from fouriscope.simulation.frames import Camera
from fouriscope.simulation.samples import SampleName, smooth_noise

# Widths in radii of the pupil: of the structures of its roughness, and of the hill.
ROUGH, HILL = 0.35, 0.2


def aberrated_pupil(
    geometry: Geometry,
    zernike: Mapping[int, float],
    defocus: float,
    *,
    roughness: float,
    bump: float,
    vignetting: float,
    rng: np.random.Generator,
) -> Pupil:
    """The pupil of ``geometry`` with these aberrations, and an array for what a few Zernike terms cannot describe."""
    shape = geometry.grid_shape
    if not (roughness or bump or vignetting):
        return Pupil(zernike, defocus)
    y, x = (
        (np.arange(n) - n // 2) * step / geometry.optics.cutoff
        for n, step in zip(shape, geometry.frequency_step, strict=True)
    )
    radius = np.hypot(y[:, None], x[None])
    inside = radius <= 1
    angle, distance = rng.uniform(0, 2 * np.pi), 0.7 * np.sqrt(rng.uniform())
    rough = smooth_noise(shape, ROUGH * inside.sum(axis=0).max() / 2, rng)
    rough = (rough - rough[inside].mean()) / rough[inside].std()
    hill = np.exp(
        -((y[:, None] - distance * np.sin(angle)) ** 2 + (x[None] - distance * np.cos(angle)) ** 2) / (2 * HILL**2)
    )
    modulus = 1 - vignetting * np.minimum(radius, 1) ** 2
    return Pupil(zernike, defocus, modulus * np.exp(1j * (roughness * rough + bump * hill)))


def dusty(shape: tuple[int, int], spots: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """What ``spots`` grains of dust let through: 1 beside them, 0.4 to 0.9 in their middle."""
    clear = np.ones(shape)
    rows, columns = np.indices(shape)
    for _ in range(spots):
        center, radius, depth = rng.uniform(0, shape), rng.uniform(0.7, 2.0), rng.uniform(0.1, 0.6)
        clear *= 1 - depth * np.exp(-((rows - center[0]) ** 2 + (columns - center[1]) ** 2) / (2 * radius**2))
    return clear


def drawn_faults(rng: np.random.Generator) -> dict[str, Any]:
    """The arguments of a hostile microscope, drawn from fixed ranges.

    ================ =================================================================================================
    microscope       λ 0.47, 0.53 or 0.63 µm; NA 0.1, 4 ×, NA 0.15, 5 × or NA 0.2, 8 ×; 9 × 9 or 11 × 11 LEDs, 4 mm
                     apart and so far away that their directions differ by 0.35 to 0.5 NA
    die              0.1 to 0.5 mm
    displacement     up to 0.5 of the pitch along each axis; once in ten a whole pitch more
    rotation, height ± 3°, ± 4 %
    mirrored         once in ten
    exposure         2 to 12 times longer in dark field, three times in five
    gains            log-normal, 2 to 12 %; falling as cosⁿ of the angle, n from 0 to 4
    pupil            Zernike 4 to 11 up to some 0.2 rad RMS each, defocus within a third of the depth λ/NA²; half of
                     them with 0.2 to 0.6 rad of roughness and a hill of up to 1.5 rad; vignetting up to 0.4
    stray light      10⁻⁴ to 3 · 10⁻³ of the bright field, half of the time
    dust             0 to 4 grains
    camera           8 bits half of the time, otherwise 12 or 16; 500 to 20000 electrons in bright field, which fills
                     0.3 to 0.8 of the range; read noise 2 to 8 electrons; offset up to 4 % of the range
    gamma            0.6 to 0.9, once in seven
    ================ =================================================================================================
    """

    def uniform(low: float, high: float) -> float:
        return float(rng.uniform(low, high))

    def chance(share: float) -> bool:
        return bool(rng.uniform() < share)

    wavelength = float(rng.choice([0.47e-6, 0.53e-6, 0.63e-6]))
    na, magnification = ((0.1, 4.0), (0.15, 5.0), (0.2, 8.0))[int(rng.integers(3))]
    pitch = 4e-3
    shift = pitch * rng.uniform(-0.5, 0.5, 2)
    if chance(0.1):
        shift = shift + pitch * rng.permutation([rng.choice([-1, 1]), 0])
    bits = 8 if chance(0.5) else int(rng.choice([12, 16]))
    electrons = float(np.exp(uniform(np.log(500), np.log(20000))))
    odd = chance(0.5)
    return {
        "wavelength": wavelength,
        "na": na,
        "magnification": magnification,
        "leds": int(rng.choice([9, 11])),
        "pitch": pitch,
        "height": pitch / (na * uniform(0.35, 0.5)),
        "sample": get_args(SampleName)[int(rng.integers(5))],
        "die": uniform(0.1e-3, 0.5e-3),
        "displacement": (float(shift[0]), float(shift[1])),
        "rotation": float(np.radians(uniform(-3, 3))),
        "height_error": uniform(-0.04, 0.04),
        "mirrored": (None, "y", "x", "both")[int(rng.integers(1, 4))] if chance(0.1) else None,
        "exposure_ratio": float(np.exp(uniform(np.log(2), np.log(12)))) if chance(0.6) else 1.0,
        "gain_error": uniform(0.02, 0.12),
        "falloff": uniform(0, 4),
        "zernike": tuple((j, float(rng.normal(0, 0.15))) for j in range(5, 12)),
        "defocus": uniform(-1, 1) / 3 * wavelength / na**2,
        "roughness": uniform(0.2, 0.6) if odd else 0.0,
        "bump": uniform(-1.5, 1.5) if odd else 0.0,
        "vignetting": uniform(0, 0.4) if chance(0.5) else 0.0,
        "stray": float(np.exp(uniform(np.log(1e-4), np.log(3e-3)))) if chance(0.5) else 0.0,
        "dust": int(rng.integers(0, 5)),
        "camera": Camera(
            electrons,
            read_noise=uniform(2, 8),
            offset=float(round(uniform(0, 0.04) * 2**bits)),
            bits=bits,
            full_well=electrons / uniform(0.3, 0.8),
        ),
        "gamma": uniform(0.6, 0.9) if chance(1 / 7) else 1.0,
    }
