"""What a reconstruction needs, and whether this machine has it: better one line now than a killed process later."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fouriscope.acquisition import Acquisition
from fouriscope.errors import InsufficientMemoryError
from fouriscope.fidelity.pipeline import GROUP
from fouriscope.forward.pupils import KEEP_AT_MOST_BYTES
from fouriscope.optics import Geometry
from fouriscope.run.sections import ReconstructionConfig

# Images of the object that are alive at once: the iterates of the solver and its safeguard (6), the gradient's
# transmittance, spectrum, derivative and transform (4 complex = 8), the prior's warm dual (8).
OBJECT_IMAGES = 22


def memory_needed(geometry: Geometry, config: ReconstructionConfig) -> int:
    """Bytes that a reconstruction takes beside its input frames, to within some ten percent.

    It grows with the object and with the group of frames in flight, not with the number of frames.
    """
    itemsize = 4 if config.object.precision == "single" else 8
    images = OBJECT_IMAGES * (2 if config.object.model == "complex" else 1)
    box = geometry.support_box
    pupils = min(len(geometry.na) * box.height * box.width * 2 * itemsize, KEEP_AT_MOST_BYTES)
    frames = GROUP * int(np.prod(geometry.frame_shape)) * itemsize
    boxes = GROUP * box.height * box.width * 2 * itemsize
    return int(np.prod(geometry.object_shape)) * images * itemsize + pupils + frames + boxes


def memory_available(meminfo: Path = Path("/proc/meminfo"), group: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes that can be allocated without swapping, where the system tells: the machine's, or what the container or
    batch job (a control group) still allows, whichever is less."""
    limits = [limit for limit in (_of_the_machine(meminfo), _of_the_group(group)) if limit is not None]
    return min(limits, default=None)


def _of_the_machine(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
    except OSError:  # not Linux: nothing to compare with
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _of_the_group(group: Path) -> int | None:
    try:
        limit, used = ((group / name).read_text(encoding="ascii").strip() for name in ("memory.max", "memory.current"))
    except OSError:  # no control groups, or those of an older kernel
        return None
    return max(0, int(limit) - int(used)) if limit.isdecimal() else None


def check_memory(acquisition: Acquisition, config: ReconstructionConfig, margin: int) -> None:
    """Raise if the reconstruction would need more memory than there is."""
    geometry = Geometry.compile(
        acquisition.optics,
        acquisition.illumination,
        acquisition.frame_shape,
        margin=margin,
        object_shape=config.object.shape,
        patch_center=acquisition.patch_center,
    )
    needed, available = memory_needed(geometry, config), memory_available()
    if available is not None and needed > available:
        rows, columns = geometry.object_shape
        raise InsufficientMemoryError(
            f"a {rows} × {columns} object needs about {needed / 2**30:.1f} GiB, {available / 2**30:.1f} GiB are free; "
            "give a smaller object shape, or reconstruct a smaller patch of the frames"
        )
