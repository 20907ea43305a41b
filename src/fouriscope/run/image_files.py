"""Images in files beside the frames: dark, flat, mask, truth, a pupil."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError


def mean_image(names: str | tuple[str, ...] | None, folder: Path) -> NDArray[np.float64] | None:
    """One image, or the mean of several or of the pages of one."""
    if names is None:
        return None
    images = [load_image(folder / name) for name in ([names] if isinstance(names, str) else names)]
    pages = np.concatenate([image.reshape(-1, *image.shape[-2:]) for image in images])
    return np.asarray(pages.mean(axis=0, dtype=np.float64))


def load_image(path: Path) -> NDArray[Any]:
    """An array from a .npy or TIFF file."""
    if not path.exists():
        raise InvalidInputError(f"{path}: no such file")
    try:
        if path.suffix.lower() == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        if path.suffix.lower() == ".png":
            from fouriscope.acquisition.images import read_image

            return read_image(path)
        import tifffile

        return np.asarray(tifffile.imread(path))
    except (ValueError, OSError, EOFError, RuntimeError, zlib.error) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(
            f"{path}: cannot be read as an array ({error}); .npy, .tif and .png are understood"
        ) from error
