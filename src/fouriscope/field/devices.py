"""Which worker computes on which device: one worker for each, and each knows its own."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

from fouriscope.errors import InvalidInputError
from fouriscope.run.engine import with_engine
from fouriscope.settings import RunConfig

# Tells a worker, by its environment, on which device it computes, whatever the field's configuration says.
DEVICE_VARIABLE = "FOURISCOPE_DEVICE"
# A worker of a Dask cluster that has a device offers one of these: ``dask worker --resources "GPU=1"``.
RESOURCE = "GPU"


def split_devices(devices: str) -> list[str]:
    """Names with commas between them.

    >>> split_devices("cuda:0, cuda:1")
    ['cuda:0', 'cuda:1']
    """
    names = [name.strip() for name in devices.split(",")]
    if not all(names):
        raise InvalidInputError(f"device {devices!r}: a name is missing beside a comma")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidInputError(f"device {twice[0]!r} is named twice; several workers share one with --workers")
    return names


def on_devices(config: RunConfig, engine: str | None, devices: str | None) -> list[RunConfig]:
    """The configuration on each of the devices; on its own, if none is named."""
    return [with_engine(config, engine, device) for device in (split_devices(devices) if devices else [None])]


def least_used(devices: Sequence[str], in_use: Iterable[str]) -> str:
    """The device with the fewest workers, the first of them.

    >>> least_used(["cuda:0", "cuda:1"], ["cuda:0"])
    'cuda:1'
    """
    count = Counter(in_use)
    return min(devices, key=lambda device: count[device])


def on_own_device(config: RunConfig) -> RunConfig:
    """In a worker: the configuration on the device that the worker was given, if it was."""
    device = os.environ.get(DEVICE_VARIABLE)
    return with_engine(config, device=device) if device and config.engine.name == "torch" else config
