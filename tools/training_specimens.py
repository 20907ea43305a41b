"""Specimens to train the small denoiser on: phase and absorption of cells, fibres, beads, bars and tissue, drawn here.

They belong to nobody. Each is drawn at twice its size, summed or laid on top of each other as such things are under a
microscope, and seen through a lens. The cells of :mod:`fouriscope.simulation.samples` are drawn otherwise, by other
code, and are never trained on: comparisons hold them out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw

from training_images import Array

FINE = 2
"""Shapes are drawn at so many times their size: their edges are smooth then."""


def _grid(size: int) -> tuple[Array, Array]:
    rows, columns = np.mgrid[:size, :size].astype(np.float32)
    return rows, columns


def _smooth(image: Array, width: float) -> Array:
    """Blurred by a Gaussian of ``width`` pixels."""
    frequency = np.fft.fftfreq(image.shape[0])[:, None] ** 2 + np.fft.rfftfreq(image.shape[1])[None] ** 2
    spectrum = np.fft.rfft2(image) * np.exp(-2 * (np.pi * width) ** 2 * frequency)
    return np.fft.irfft2(spectrum, s=image.shape).astype(np.float32)


def _texture(rng: np.random.Generator, size: int, width: float) -> Array:
    """Random values of standard deviation 1, with structures some ``width`` pixels wide."""
    values = _smooth(rng.normal(size=(size, size)).astype(np.float32), width)
    return values / (values.std() + 1e-6)


def _blob(rng: np.random.Generator, centre: Array, radius: float) -> list[tuple[float, float]]:
    """The outline of something round that is not quite an ellipse."""
    angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    turn, stretch = rng.uniform(0, np.pi), rng.uniform(0.6, 1.0)
    wobble = sum(rng.normal(0, 0.12 / k) * np.cos(k * angles + rng.uniform(0, 2 * np.pi)) for k in range(2, 6))
    along, across = radius * (1 + wobble) * np.cos(angles), stretch * radius * (1 + wobble) * np.sin(angles)
    x = centre[0] + np.cos(turn) * along - np.sin(turn) * across
    y = centre[1] + np.sin(turn) * along + np.cos(turn) * across
    return list(zip(x.tolist(), y.tolist(), strict=True))


def _filled(size: int, outline: list[tuple[float, float]]) -> Array:
    canvas = Image.new("L", (size, size), 0)
    ImageDraw.Draw(canvas).polygon(outline, fill=1)
    return np.asarray(canvas, np.float32)


def cells(rng: np.random.Generator, size: int) -> Array:
    """Bodies that rise from a sharp or a soft edge, with nuclei, vacuoles and granules; they may overlap."""
    image = np.zeros((size, size), np.float32)
    radius = size * np.exp(rng.uniform(np.log(0.03), np.log(0.2)))
    soft, dome = np.exp(rng.uniform(np.log(0.5), np.log(0.1 * radius + 1))), rng.random() < 0.5
    grain = _texture(rng, size, np.exp(rng.uniform(0, 2)))
    for _ in range(int(np.clip(rng.uniform(0.3, 1.2) * (size / (2 * radius)) ** 2, 2, 40))):
        centre, own = rng.uniform(0, size, 2), radius * rng.uniform(0.7, 1.3)
        body = _filled(size, _blob(rng, centre, own))
        body = _smooth(body, 0.4 * own if dome and rng.random() < 0.7 else soft)
        image += rng.uniform(0.4, 1.0) * body * (1 + rng.uniform(0, 0.25) * grain)
        for _ in range(rng.integers(1, 4)):
            inner = _blob(rng, centre + rng.uniform(-0.35, 0.35, 2) * own, own * rng.uniform(0.1, 0.45))
            image += rng.choice([-0.4, 0.3, 0.5, 0.8]) * _smooth(_filled(size, inner), soft)
    return image


def fibres(rng: np.random.Generator, size: int) -> Array:
    """Curved threads of one or several widths."""
    image = np.zeros((size, size), np.float32)
    direction, spread = rng.uniform(0, np.pi), rng.uniform(0.1, 1.5)
    for _ in range(rng.integers(10, 60)):
        canvas = Image.new("L", (size, size), 0)
        angle, place, path = direction + rng.normal(0, spread), rng.uniform(-0.1, 1.1, 2) * size, []
        for _ in range(60):
            path.append((float(place[0]), float(place[1])))
            angle += rng.normal(0, 0.08)
            place = place + size / 40 * np.array([np.cos(angle), np.sin(angle)])
        ImageDraw.Draw(canvas).line(path, fill=1, width=int(FINE * np.exp(rng.uniform(0, 2.2))), joint="curve")
        image += rng.uniform(0.2, 1.0) * np.asarray(canvas, np.float32)
    return _smooth(image, rng.uniform(0.5, 2))


def beads(rng: np.random.Generator, size: int) -> Array:
    """Spheres of one kind: their thickness is a circle's."""
    rows, columns = _grid(size)
    image, radius = np.zeros((size, size), np.float32), FINE * np.exp(rng.uniform(np.log(2), np.log(25)))
    for _ in range(int(np.clip(rng.uniform(0.1, 0.6) * (size / (2 * radius)) ** 2, 3, 150))):
        row, column = rng.uniform(0, size, 2)
        low, high = max(int(row - radius) - 1, 0), int(row + radius) + 2
        left, right = max(int(column - radius) - 1, 0), int(column + radius) + 2
        part = (slice(low, high), slice(left, right))
        distance = (rows[part] - row) ** 2 + (columns[part] - column) ** 2
        image[part] = np.maximum(image[part], np.sqrt(np.maximum(1 - distance / radius**2, 0)))
    return image


def bars(rng: np.random.Generator, size: int) -> Array:
    """Groups of three bars, lying and upright, of many widths, and some discs and wedges between them."""
    canvas = Image.new("L", (size, size), 0)
    draw = ImageDraw.Draw(canvas)
    for _ in range(rng.integers(10, 50)):
        width = FINE * np.exp(rng.uniform(np.log(1.5), np.log(14)))
        top, left = rng.uniform(-0.05, 1, 2) * size
        upright, level = rng.random() < 0.5, int(rng.choice([255, 255, 180, 90]))
        for k in range(3):
            box = [left, top + 2 * k * width, left + 5 * width, top + (2 * k + 1) * width]
            draw.rectangle(
                box if not upright else [box[1] - top + left, top, box[3] - top + left, top + 5 * width], level
            )
    for _ in range(rng.integers(0, 6)):
        radius, (x, y) = size * rng.uniform(0.01, 0.08), rng.uniform(0, size, 2)
        draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=int(rng.integers(0, 256)))
    return np.asarray(canvas, np.float32) / 255


def tissue(rng: np.random.Generator, size: int) -> Array:
    """Textures at several scales, in regions that meet at membranes."""
    regions = _texture(rng, size, size * rng.uniform(0.02, 0.1))
    image = sum(rng.uniform(0, 0.5) * _texture(rng, size, FINE * np.exp(rng.uniform(0, 2.5))) for _ in range(2))
    image = np.where(regions > rng.uniform(-0.5, 0.5), image, rng.uniform(0, 0.5) * image + rng.uniform(-1, 1))
    membranes = np.exp(-((regions / rng.uniform(0.05, 0.3)) ** 2))
    return _smooth((image + rng.uniform(0, 1.5) * membranes).astype(np.float32), 0.7)


KINDS: tuple[Callable[[np.random.Generator, int], Array], ...] = (cells, fibres, beads, bars, tissue)
CHANCES = (0.45, 0.15, 0.15, 0.1, 0.15)


def specimen(rng: np.random.Generator, size: int = 256) -> Array:
    """One drawn specimen in [0, 1]: one of :data:`KINDS`, or two of them together, seen through a lens."""
    image = np.zeros((FINE * size, FINE * size), np.float32)
    for _ in range(1 + (rng.random() < 0.3)):
        kind = KINDS[rng.choice(len(KINDS), p=CHANCES)]
        one = kind(rng, FINE * size)
        image += rng.uniform(0.3, 1) * (one - one.min()) / (np.ptp(one) + 1e-6)
    if rng.random() < 0.5:  # a background that varies slowly
        image += rng.uniform(0, 0.15) * _texture(rng, FINE * size, FINE * size * rng.uniform(0.05, 0.2))
    image = image.reshape(size, FINE, size, FINE).mean(axis=(1, 3))
    if rng.random() < 0.6:
        image = _smooth(image, rng.uniform(0.3, 1.0))
    return ((image - image.min()) / (np.ptp(image) + 1e-6)).astype(np.float32)
