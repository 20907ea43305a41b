"""The six objects: the paper's images from a folder, or six that come with scikit-image."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.paper import phase_image

PAPER_NAMES = ("cameraman", "house", "jet", "lenna", "pepper", "woman_darkhair")
STANDARD_NAMES = ("camera", "cell", "astronaut", "chelsea", "coffee", "rocket")
ENDINGS = (".png", ".tif", ".tiff", ".jpg", ".jpeg", ".npy")


@dataclass(frozen=True, eq=False)
class TestImage:
    """A grey image between 0 and 1, to become a phase."""

    __test__ = False  # not a test case, whatever pytest thinks of the name

    name: str
    grey: NDArray[np.float32]

    @property
    def checksum(self) -> str:
        return hashlib.sha256(np.round(self.grey * 1e4).astype(np.int32).tobytes()).hexdigest()[:16]


def load_images(folder: Path | None, shape: tuple[int, int], count: int) -> list[TestImage]:
    """Up to ``count`` images: the paper's six by name if ``folder`` has them, else all it holds in alphabetical order.

    Without a folder, scikit-image's.
    """
    if folder is None:
        return [_standard(name, shape) for name in STANDARD_NAMES[:count]]
    if not folder.is_dir():
        raise InvalidInputError(f"{folder} is not a folder; --images takes a folder with the paper's images or others")
    files = {path.stem: path for path in sorted(folder.iterdir()) if path.suffix.lower() in ENDINGS}
    if not files:
        raise InvalidInputError(f"{folder} holds no image ({', '.join(ENDINGS)}); leave --images out to use other ones")
    names = PAPER_NAMES if all(name in files for name in PAPER_NAMES) else tuple(files)
    return [TestImage(name, phase_image(shape, 1.0, files[name])) for name in names[:count]]


def _standard(name: str, shape: tuple[int, int]) -> TestImage:
    from skimage import data
    from skimage.transform import resize

    image = np.asarray(getattr(data, name)(), np.float64)
    image = image.mean(axis=2) if image.ndim == 3 else image
    side = min(image.shape)
    top, left = ((extent - side) // 2 for extent in image.shape)
    grey = resize(image[top : top + side, left : left + side], shape, anti_aliasing=True)
    return TestImage(name, ((grey - grey.min()) / np.ptp(grey)).astype(np.float32))
