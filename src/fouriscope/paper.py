"""The microscope that the paper simulates, and an object to put under it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.forward import ForwardModel
from fouriscope.optics import LEDArray, Optics

PAPER_MICROSCOPE: dict[str, Any] = {"wavelength": 513e-9, "na": 0.2, "magnification": 8.1485, "camera_pixel": 6.5e-6}
PAPER_LEDS = {"pitch": 4e-3, "height": 70e-3}
PAPER_RADIUS = 9.5  # of the disc of LEDs, in pitches
PAPER_BANDWIDTH = 20e-9  # of its LEDs, which its own model leaves out


def paper_optics(bandwidth: float = 0.0) -> Optics:
    """NA 0.2 at 513 nm; :data:`PAPER_BANDWIDTH` is that of the paper's LEDs."""
    return Optics(**PAPER_MICROSCOPE, bandwidth=bandwidth)


def paper_leds(radius: float = PAPER_RADIUS) -> LEDArray:
    """A disc of ``radius`` pitches: 293 LEDs."""
    return LEDArray.disc(PAPER_LEDS["pitch"], PAPER_LEDS["height"], radius)


def paper_model(frame: int = 100, radius: float = PAPER_RADIUS, bandwidth: float = 0.0) -> ForwardModel:
    """The microscope of the paper with frames of ``frame`` × ``frame`` pixels.

    Examples
    --------
    >>> paper_model().object_shape
    (500, 500)
    """
    return ForwardModel(paper_optics(bandwidth), paper_leds(radius), (frame, frame))


def phase_image(shape: tuple[int, int], phase_range: float, path: Path | None = None) -> NDArray[np.float32]:
    """A grey image as a phase in [0, phase_range] rad, resampled to ``shape``."""
    from skimage.transform import resize

    image = _read_grey(path) if path is not None else _camera()
    image = np.asarray(resize(image, shape, anti_aliasing=True), np.float64)
    low, high = float(image.min()), float(image.max())
    if not high > low:
        raise InvalidInputError(f"{path}: the image is constant; a constant phase cannot be observed")
    return ((image - low) / (high - low) * phase_range).astype(np.float32)


def _camera() -> NDArray[np.float64]:
    from skimage.data import camera

    return np.asarray(camera(), np.float64)


def _read_grey(path: Path) -> NDArray[np.float64]:
    if not path.is_file():
        raise InvalidInputError(f"{path}: no such image")
    try:
        image = _read(path)
    except (ValueError, OSError, SyntaxError, EOFError, struct.error) as error:
        raise InvalidInputError(f"{path}: cannot be read as an image ({error})") from error
    if image.ndim == 3 and image.shape[2] in (3, 4):
        image = image[..., :3].mean(axis=2)
    if image.ndim != 2 or min(image.shape) < 2:
        raise InvalidInputError(f"{path}: a grey or colour image was expected, got shape {image.shape}")
    if not np.all(np.isfinite(image)):
        raise InvalidInputError(f"{path}: the image holds NaN or infinite pixels")
    return np.asarray(image, np.float64)


def _read(path: Path) -> NDArray[Any]:
    if path.suffix.lower() == ".npy":
        return np.asarray(np.load(path, allow_pickle=False))
    if path.suffix.lower() in (".tif", ".tiff"):
        import tifffile

        return np.asarray(tifffile.imread(path))
    from PIL import Image

    with Image.open(path) as image:
        colours = image.convert("RGB") if image.mode == "P" else image  # a palette's numbers are not grey levels
        return np.asarray(colours)
