"""Difficult samples: absorbing cells, opaque bars, phase that wraps, phase that hardly shows, and all together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError

SampleName = Literal["cells", "target", "wrapping", "weak", "mixed"]
FloatArray = NDArray[np.float64]

# Amplitude of what is called opaque: chrome lets a little through.
OPAQUE = 0.03


def sample(name: SampleName, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.complex128]:
    """The transmittance of a sample, of ``shape``, with detail up to every border.

    =========== ===========================================================================================
    "cells"     absorbing cells with darker nuclei: amplitude down to 0.2, phase up to 1.5 rad
    "target"    groups of three opaque bars (amplitude 0.03) from a sixteenth of the field down to two pixels
    "wrapping"  thick round bodies of 7 to 10 rad that hardly absorb
    "weak"      phase of 0.1 rad and hardly any absorption
    "mixed"     cells, thick bodies and some bars
    =========== ===========================================================================================

    >>> bars = sample("target", (256, 256), np.random.default_rng(0))
    >>> round(float(abs(bars).min()), 2), round(float(abs(bars).max()), 2)
    (0.03, 1.0)
    """
    if name not in get_args(SampleName):
        raise InvalidInputError(f"sample must be one of {', '.join(get_args(SampleName))}, got {name!r}")
    return np.asarray(_SAMPLES[name](shape, rng), np.complex128)


def smooth_noise(shape: tuple[int, int], size: float, rng: np.random.Generator) -> FloatArray:
    """Periodic random values of mean 0 and standard deviation 1 whose structures are about ``size`` pixels wide."""
    frequency = np.hypot(np.fft.fftfreq(shape[0])[:, None], np.fft.fftfreq(shape[1])[None])
    spectrum = np.fft.fft2(rng.normal(size=shape)) * np.exp(-((2 * size * frequency) ** 2))
    spectrum[0, 0] = 0
    values = np.fft.ifft2(spectrum).real
    return np.asarray(values / values.std())


def _cells(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.complex128]:
    field = min(shape)
    phase, absorption = np.zeros(shape), np.zeros(shape)
    for _ in range(45):
        center, radius = rng.uniform(0, shape), field * rng.uniform(0.03, 0.07)
        angle, squeeze = rng.uniform(0, np.pi), rng.uniform(0.7, 1.0)
        body = _ellipse(shape, center, radius, squeeze, angle)
        nucleus = _ellipse(shape, center + rng.uniform(-0.3, 0.3, 2) * radius, 0.4 * radius, squeeze, angle)
        phase += rng.uniform(0.3, 0.9) * body + rng.uniform(0.2, 0.6) * nucleus
        absorption += rng.uniform(0.05, 0.4) * body + rng.uniform(0.4, 1.0) * nucleus
    inside = 1 - np.exp(-absorption)
    phase += 0.15 * inside * smooth_noise(shape, 3.0, rng)
    absorption = np.maximum(absorption + 0.1 * inside * smooth_noise(shape, 3.0, rng), 0)
    return np.asarray(np.exp(1j * phase - np.minimum(absorption, 1.6)))


def _target(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.complex128]:
    dark = np.zeros(shape)
    cell = min(shape) // 6
    widths = np.geomspace(cell / 5.5, 2.0, 12)
    for row in range(0, shape[0], cell):
        for column in range(0, shape[1], cell):
            width, upright = round(rng.choice(widths)), rng.uniform() < 0.5
            top, left = (start + (cell - 5 * width) // 2 for start in (row, column))
            for first in (0, 2 * width, 4 * width):
                if upright:
                    dark[top : top + 5 * width, left + first : left + first + width] = 1
                else:
                    dark[top + first : top + first + width, left : left + 5 * width] = 1
    edge = np.clip(_blurred(dark, 0.6), 0, 1)
    return np.asarray((1 - (1 - OPAQUE) * edge) * np.exp(0.05j * smooth_noise(shape, 20.0, rng)))


def _wrapping(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.complex128]:
    phase = _domes(shape, 14, rng) + 0.3 * smooth_noise(shape, min(shape) / 8, rng)
    return np.asarray(np.exp(1j * phase - 0.1 * np.abs(smooth_noise(shape, 3.0, rng)) * (phase > 1)))


def _weak(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.complex128]:
    cells = np.angle(_cells(shape, rng))
    phase = 0.1 * cells + 0.03 * smooth_noise(shape, 2.5, rng)
    return np.asarray(np.exp(1j * phase - 0.01 * np.abs(cells)))


def _mixed(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.complex128]:
    domes = np.exp(1j * _domes(shape, 4, rng) + 0.3j * smooth_noise(shape, min(shape) / 8, rng))
    bars = np.where(smooth_noise(shape, min(shape) / 12, rng) > 1, _target(shape, rng), 1)
    return np.asarray(_cells(shape, rng) * domes * bars)


def _domes(shape: tuple[int, int], count: int, rng: np.random.Generator) -> FloatArray:
    """Phase of thick round bodies: hills of 7 to 10 rad that run out smoothly."""
    phase = np.zeros(shape)
    for _ in range(count):
        center, radius, peak = rng.uniform(0, shape), min(shape) * rng.uniform(0.05, 0.08), rng.uniform(7, 10)
        rows, columns = (
            (np.arange(size) - place + size / 2) % size - size / 2 for size, place in zip(shape, center, strict=True)
        )
        phase = np.maximum(phase, peak * np.exp(-(rows[:, None] ** 2 + columns[None] ** 2) / (2 * (0.6 * radius) ** 2)))
    return phase


_SAMPLES: dict[str, Callable[[tuple[int, int], np.random.Generator], NDArray[np.complex128]]] = {
    "cells": _cells,
    "target": _target,
    "wrapping": _wrapping,
    "weak": _weak,
    "mixed": _mixed,
}


def _ellipse(shape: tuple[int, int], center: FloatArray, radius: float, squeeze: float, angle: float) -> FloatArray:
    """1 inside and 0 outside, with an edge of two pixels; it goes round the borders."""
    rows, columns = (
        (np.arange(size) - place + size / 2) % size - size / 2 for size, place in zip(shape, center, strict=True)
    )
    along = np.cos(angle) * columns[None] + np.sin(angle) * rows[:, None]
    across = (np.cos(angle) * rows[:, None] - np.sin(angle) * columns[None]) / squeeze
    return np.asarray(np.clip((radius - np.hypot(along, across)) / 2 + 0.5, 0, 1))


def _blurred(image: FloatArray, sigma: float) -> FloatArray:
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(image, sigma, mode="wrap"))
