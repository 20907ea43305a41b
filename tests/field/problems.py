"""A small field on disk: twelve tiles that take a fraction of a second each."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import tomli_w
from numpy.typing import NDArray

from fouriscope.field import FieldFolder
from fouriscope.field.reconstruct import FieldResult, reconstruct_tiles
from fouriscope.forward import ForwardModel
from fouriscope.run import load_config
from tests.conftest import LEDS, OPTICS
from tests.run.problems import document
from tests.solvers.problems import shapes

FRAME = (88, 64)
TILE = 32
LATTICE = (4, 3)
SECTIONS: dict[str, dict[str, Any]] = {
    "frames": {"truth": None},
    "object": {"margin": 4},
    "prior": {"name": "tv"},
    "stop": {"iterations": 12},
}


def write_field(folder: Path, **sections: dict[str, Any]) -> Path:
    """frames.npy and config.toml; returns the path of the configuration."""
    model = ForwardModel(OPTICS, LEDS, FRAME)
    truth = shapes(model.object_shape, 0.3).astype(np.float32)
    frames = model.intensity(truth)
    frames += np.random.default_rng(0).normal(0.0, 0.01, frames.shape).astype(np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "frames.npy", frames)
    path = folder / "config.toml"
    merged = {key: SECTIONS.get(key, {}) | sections.get(key, {}) for key in {*SECTIONS, *sections}}
    path.write_text(tomli_w.dumps(document(**merged)), encoding="utf-8")
    return path


def run(configuration: Path, folder: Path, client: Any, **options: Any) -> FieldResult:
    options = {"tile": TILE} | options
    return reconstruct_tiles(load_config(configuration), configuration.parent, folder, client, **options)


def stitched(folder: Path) -> NDArray[np.complex64]:
    """The complex result."""
    import zarr

    return np.asarray(zarr.open_array(str(folder / "result" / "object.zarr"), mode="r")[...])


def levels(folder: Path) -> list[NDArray[np.float32]]:
    """All levels of the pyramid."""
    import zarr

    group = zarr.open_group(str(folder / "result" / "field.ome.zarr"), mode="r")
    return [np.asarray(group[name][...]) for name in sorted(group.array_keys())]


def open_sockets(process: psutil.Process) -> list[Any]:
    """Everything by which another process could reach this one; pairs of sockets without a name are its own."""
    sockets = process.net_connections(kind="all")
    return [found for found in sockets if found.family != socket.AF_UNIX or found.laddr]


def assert_same_result(folder: Path, expected: Path) -> None:
    """Bit for bit, on every level."""
    np.testing.assert_array_equal(stitched(folder), stitched(expected))
    for found, wanted in zip(levels(folder), levels(expected), strict=True):
        np.testing.assert_array_equal(found, wanted)
    field = FieldFolder.open(folder)
    assert field.run.status()["state"] == "finished"
    assert len(field.done()) == len(field.plan.tiling)
