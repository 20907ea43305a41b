"""Images in files beside the frames: dark, flat, mask, truth, a pupil."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.images import IMAGES, read_image
from fouriscope.errors import InvalidInputError


def mean_image(names: str | tuple[str, ...] | None, folder: Path) -> NDArray[np.float64] | None:
    """One image, or the mean of several or of the pages of one."""
    if names is None:
        return None
    images = [load_image(folder / name) for name in ([names] if isinstance(names, str) else names)]
    pages = np.concatenate([image.reshape(-1, *image.shape[-2:]) for image in images])
    return np.asarray(pages.mean(axis=0, dtype=np.float64))


def load_image(path: Path) -> NDArray[Any]:
    """An array from a .npy, TIFF or PNG file."""
    if path.suffix.lower() not in IMAGES:
        raise InvalidInputError(f"{path}: must be one of {', '.join(IMAGES)}, got {path.suffix!r}")
    return read_image(path)
