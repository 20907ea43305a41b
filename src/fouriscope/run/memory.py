"""How much memory a reconstruction needs, and whether this machine has it."""

from __future__ import annotations

import os

import numpy as np

from fouriscope.acquisition import Acquisition, stream_below
from fouriscope.acquisition.byte_sizes import format_bytes, parse_bytes
from fouriscope.acquisition.machine_memory import memory_available
from fouriscope.errors import InsufficientMemoryError
from fouriscope.fidelity.pipeline import group_size
from fouriscope.fidelity.torch_memory import torch_memory
from fouriscope.forward.objects import object_model
from fouriscope.forward.pupils import kept_bytes
from fouriscope.freed_memory import handle_freed_memory
from fouriscope.optics import Geometry
from fouriscope.parallel import thread_count
from fouriscope.settings import ReconstructionConfig, RunConfig

__all__ = [
    "check_memory",
    "default_budget",
    "keep_freed_memory",
    "memory_needed",
    "with_memory",
]

# Images of the object that are alive at once: the iterates of the solver and its safeguard (6), the gradient's
# transmittance, spectrum, derivative and transform (4 complex = 8), the prior's warm dual (8).
OBJECT_IMAGES = 22


# What frames from disk may fill if nobody says: a quarter of what is free, but no more than this.
DEFAULT_BUDGET_AT_MOST = 2**30


def default_budget() -> int:
    """Bytes for frames from disk where [frames] has no ``memory``."""
    return min(DEFAULT_BUDGET_AT_MOST, memory_available() // 4)


def memory_needed(geometry: Geometry, config: ReconstructionConfig, *, frames: int = 0) -> int:
    """Bytes that a reconstruction takes, ``frames`` of them for its input, to within some ten percent.

    The rest grows with the object and with the group of frames in flight, not with the number of frames.
    """
    itemsize = 4 if config.object.precision == "single" else 8
    images = OBJECT_IMAGES * len(object_model(config.object.model).channels)
    clear = 2 if geometry.optics.wave_curvature else 0  # a complex wave
    box = geometry.support_box
    group = group_size(geometry, itemsize)
    kept = kept_bytes(geometry, np.dtype(np.complex64 if itemsize == 4 else np.complex128))
    in_flight = group * (2 * int(np.prod(geometry.frame_shape)) + 2 * box.height * box.width * 2) * itemsize
    if not geometry.sources.are_points:  # the fields of a frame's sources wait side by side, in each thread
        in_flight += thread_count() * geometry.sources.most * int(np.prod(geometry.grid_shape)) * 2 * itemsize
    if (
        config.engine.name == "torch" and config.engine.device == "cpu"
    ):  # its groups, and what it computes of the object
        needed = torch_memory(geometry, channels=images // OBJECT_IMAGES, itemsize=itemsize)
        in_flight = needed.total(thread_count() * geometry.sources.most, keeps_frames=False)
    return int(np.prod(geometry.object_shape)) * (images + clear) * itemsize + kept + in_flight + frames


def check_memory(acquisition: Acquisition, config: ReconstructionConfig, margin: int) -> None:
    """Raise if the reconstruction would need more memory than there is."""
    geometry = Geometry.compile(
        acquisition.optics,
        acquisition.illumination,
        acquisition.frame_shape,
        margin=margin,
        object_shape=config.object.shape,
        band=object_model(config.object.model).band,
        patch_center=acquisition.patch_center,
    )
    stream = stream_below(acquisition.frames)
    frames = 0 if stream is None else stream.room_to_grow
    needed, available = memory_needed(geometry, config, frames=frames), memory_available()
    if needed > available:
        rows, columns = geometry.object_shape
        raise InsufficientMemoryError(
            f"a {rows} × {columns} object needs about {needed / 2**30:.1f} GiB, but {available / 2**30:.1f} GiB are "
            "free; give a smaller object shape, or reconstruct a smaller patch of the frames"
            + (f" ({format_bytes(frames)} are for frames: frames.memory can be less)" if frames else "")
        )


def keep_freed_memory() -> None:
    """Undo what Dask's MALLOC_TRIM_THRESHOLD_ does to a worker: memory that is freed and soon wanted again stays here.

    Where that is set, glibc gives every large array back to the system when it is freed, and a solver spends a fifth of
    its time on page faults.
    """
    if "MALLOC_TRIM_THRESHOLD_" in os.environ:
        handle_freed_memory(keep=True)


def with_memory(config: RunConfig, memory: str | None) -> RunConfig:
    """The configuration with another ``frames.memory``, and ``engine.memory`` of torch; None leaves it as it is."""
    if memory is None:
        return config
    parse_bytes(memory)
    sections = {"frames": config.frames.model_copy(update={"memory": memory})}
    if config.engine.name == "torch":
        return config.model_copy(update={**sections, "engine": config.engine.model_copy(update={"memory": memory})})
    return config.model_copy(update=sections)
