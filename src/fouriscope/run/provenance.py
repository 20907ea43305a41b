"""Where a result comes from: versions, and a checksum of its input."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from fouriscope.acquisition import Acquisition, Frames

LIBRARIES = ("fouriscope", "numpy", "scipy", "numba", "rocket-fft", "scikit-image", "tifffile", "zarr")


def checksum(frames: Frames) -> str:
    """SHA-256 over the frames as the solver sees them, one at a time: the same from memory and from any file."""
    digest = hashlib.sha256(repr(tuple(frames.shape)).encode())
    for index in range(frames.shape[0]):
        digest.update(np.ascontiguousarray(frames.frame(index), np.float32).tobytes())
    return f"sha256:{digest.hexdigest()}"


def provenance(acquisition: Acquisition) -> dict[str, Any]:
    """Versions, machine and input of a run."""
    return {
        "versions": {name: _version(name) for name in LIBRARIES} | {"python": platform.python_version()},
        "machine": platform.platform(),
        "input": {"frames": list(acquisition.frames.shape), "checksum": checksum(acquisition.frames)},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
