"""Images to train the small denoiser on: photographs from a folder, and images that are drawn at random.

Drawn images are *dead leaves*: opaque shapes thrown on top of each other, their sizes following a power law. Such
images share with photographs what a denoiser lives on (edges of all contrasts, occlusion, details at all scales), and
nobody owns them. Some shapes carry a texture, because flat ones alone teach that every texture is noise.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

Array = npt.NDArray[np.float32]

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff")
HEIGHTS = (320, 480, 720, 1080)
"""Photographs are used at each of these sizes of their shorter side that is at most 0.6 of their own: shrinking removes
what the camera and JPEG left in them."""


def photographs(folder: Path, excluded: tuple[str, ...] = ()) -> dict[str, list[Array]]:
    """Return the images of a folder by name, grey, in [0, 1], at several sizes."""
    found: dict[str, list[Array]] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in SUFFIXES or path.stem in excluded:
            continue
        with Image.open(path) as image:
            grey = image.convert("L")
        shorter = min(grey.size)
        heights = [height for height in HEIGHTS if height <= 0.6 * shorter] or [shorter // 2, round(0.75 * shorter)]
        for height in heights:
            size = tuple(round(length * height / shorter) for length in grey.size)
            # In float, not in bytes: rounding would leave a noise of its own in what shall be without noise.
            shrunk = grey.convert("F").resize((size[0], size[1]), Image.Resampling.LANCZOS)
            found.setdefault(path.stem, []).append(np.clip(np.asarray(shrunk, np.float32) / 255, 0, 1))
    if not found:
        raise SystemExit(f"expected images ({', '.join(SUFFIXES)}) in {folder}, found none")
    return found


def _texture(rng: np.random.Generator, size: int) -> Array:
    """A field of about unit standard deviation: a grating, waves that cross, or noise with a power-law spectrum."""
    y, x = np.mgrid[:size, :size].astype(np.float32)
    kind = rng.integers(3)
    if kind == 2:
        frequency = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size)[None]) + 1 / size
        spectrum = np.fft.rfft2(rng.normal(size=(size, size))) * frequency ** -rng.uniform(0.4, 2.0)
        field = np.fft.irfft2(spectrum, s=(size, size))
    else:
        field = np.zeros((size, size), np.float32)
        for _ in range(kind + 1):
            angle, period = rng.uniform(0, np.pi), 2 * rng.uniform(3, 14)
            bend = rng.uniform(0, 3) * np.sin(2 * np.pi * (x if rng.random() < 0.5 else y) / rng.uniform(60, 300))
            field += np.sin(2 * np.pi * (np.cos(angle) * x + np.sin(angle) * y + bend) / period)
        if rng.random() < 0.3:
            field = np.tanh(4 * field)
    field = (field - field.mean()) / (field.std() + 1e-6)
    return field.astype(np.float32)


def _draw_leaf(rng: np.random.Generator, draw: ImageDraw.ImageDraw, size: int, smallest: float) -> None:
    """One opaque shape: an ellipse, a polygon, or a bar."""
    # The density of radii is r^-3 between the two limits, with which a dead-leaves image looks alike at all scales.
    largest = size / 2
    radius = 1 / np.sqrt(rng.uniform(1 / largest**2, 1 / smallest**2))
    centre = rng.uniform(-0.1 * size, 1.1 * size, 2)
    turn = rng.uniform(0, 2 * np.pi)
    kind = rng.integers(3)
    if kind == 0:
        angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
        stretch = rng.uniform(0.4, 1)
        shape = np.stack([np.cos(angles), stretch * np.sin(angles)])
    elif kind == 1:
        angles = np.sort(rng.uniform(0, 2 * np.pi, rng.integers(3, 8)))
        shape = np.stack([np.cos(angles), np.sin(angles)]) * rng.uniform(0.5, 1.2, len(angles))
    else:
        half = rng.uniform(0.03, 0.4)
        shape = np.array([[-1.5, 1.5, 1.5, -1.5], [-half, -half, half, half]])
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    corners = (rotation @ shape * radius + centre[:, None]).T
    draw.polygon([(float(a), float(b)) for a, b in corners], fill=int(rng.integers(1, 256)))


def dead_leaves(rng: np.random.Generator, size: int = 256) -> Array:
    """Return one drawn image in [0, 1]: leaves on top of each other, a third of them textured, seen through a lens."""
    fine = 2 * size
    canvas = Image.new("L", (fine, fine), 128)
    draw = ImageDraw.Draw(canvas)
    smallest = np.exp(rng.uniform(np.log(4), np.log(fine / 8)))
    for _ in range(min(int(3 * (fine / smallest) ** 2), 2500)):
        _draw_leaf(rng, draw, fine, smallest)
    leaf = np.asarray(canvas)
    # The grey level names the leaf: a table says how bright it is, and which texture it has.
    bright = rng.beta(0.8, 0.8, 256).astype(np.float32)
    image = bright[leaf]
    for _ in range(2):
        contrast = np.where(rng.random(256) < 0.2, rng.uniform(0.01, 0.2, 256), 0).astype(np.float32)
        image = image + contrast[leaf] * _texture(rng, fine)
    y, x = np.mgrid[:fine, :fine].astype(np.float32) / fine
    image = image * (1 + rng.uniform(-0.3, 0.3) * x + rng.uniform(-0.3, 0.3) * y)
    small = image.reshape(size, 2, size, 2).mean(axis=(1, 3))
    if rng.random() < 0.5:
        frequency = np.fft.fftfreq(size)[:, None] ** 2 + np.fft.rfftfreq(size)[None] ** 2
        blur = np.exp(-2 * (np.pi * rng.uniform(0.3, 1.2)) ** 2 * frequency)
        small = np.fft.irfft2(np.fft.rfft2(small) * blur, s=small.shape)
    return np.clip(small, 0, 1).astype(np.float32)
