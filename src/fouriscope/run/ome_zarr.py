"""OME-Zarr 0.5: the images of a result as channels of one multiscale image, with its pixel sizes.

The metadata is written with zarr alone; the tests check it against the rules of https://ngff.openmicroscopy.org/0.5/.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fouriscope.run.halving import Levels, level_shapes
from fouriscope.run.phase_background import WORDS

VERSION = "0.5"
CHUNK = 256
SHARD = 4096  # pixels along a side of one file, at most: a file for each chunk would be thousands of them
MICROMETRES = 1e6

Window = dict[str, float]


def create_ome_zarr(path: Path, channels: int, shape: tuple[int, int], *, shard: int = SHARD) -> list[Any]:
    """Create the arrays of all levels, fine to coarse, without a pixel in them and without the metadata of OME.

    A file holds at most ``shard`` × ``shard`` pixels of one channel. Pixels that are never written are NaN.
    """
    import zarr

    group = zarr.create_group(str(path), zarr_format=3)
    return [
        group.create_array(
            str(number),
            shape=(channels, *level),
            dtype=np.float32,
            chunks=(1, CHUNK, CHUNK),
            shards=(1, *shard_shape(level, shard)),
            dimension_names=("c", "y", "x"),
            fill_value=float("nan"),
        )
        for number, level in enumerate(level_shapes(shape))
    ]


def shard_shape(shape: tuple[int, int], shard: int) -> tuple[int, int]:
    """The pixels of one file: ``shard`` a side, or for a smaller image as many whole chunks as it needs.

    >>> shard_shape((3000, 300), 1024)
    (1024, 512)
    """
    rows, columns = (min(shard, -(-size // CHUNK) * CHUNK) for size in shape)
    return rows, columns


def write_metadata(
    path: Path,
    windows: Mapping[str, Window],
    shape: tuple[int, int],
    pixel: tuple[float, float],
    *,
    name: str,
    colours: Mapping[str, str] | None = None,
) -> None:
    """Make the arrays of :func:`create_ome_zarr` an image for viewers; ``windows`` are those of the named channels.

    Every level covers the same field: with n of N pixels a pixel is N/n times as large, and the centre of the first one
    lies (N/n − 1)/2 pixels further from the centre of the first pixel of level 0, which is the origin. Channels that
    have ``colours`` ("FF0000") are shown over each other; without any, the first channel is shown, in grey.
    """
    import zarr

    lights = colours or dict.fromkeys(list(windows)[:1], "FFFFFF")
    zarr.open_group(str(path), mode="r+").attrs["ome"] = {
        "version": VERSION,
        "multiscales": [
            {
                "name": name,
                "axes": [
                    {"name": "c", "type": "channel"},
                    {"name": "y", "type": "space", "unit": "micrometer"},
                    {"name": "x", "type": "space", "unit": "micrometer"},
                ],
                "datasets": [
                    {"path": str(number), "coordinateTransformations": _transformations(shape, level, pixel)}
                    for number, level in enumerate(level_shapes(shape))
                ],
                "type": "local mean",
                "metadata": {"description": "a coarse pixel is the mean of the field that it covers"},
            }
        ],
        "omero": {
            "channels": [
                {"label": label, "color": lights.get(label, "FFFFFF"), "active": label in lights, "window": window}
                for label, window in windows.items()
            ],
            "rdefs": {"model": "color" if colours else "greyscale"},
        },
    }


def write_ome_zarr(
    path: Path,
    channels: Mapping[str, Levels],
    shape: tuple[int, int],
    pixel: tuple[float, float],
    *,
    name: str,
    colours: Mapping[str, str] | None = None,
) -> None:
    """Write ``channels``, by their names, as 32-bit float."""
    arrays = create_ome_zarr(path, len(channels), shape)
    windows: dict[str, Window] = {}
    for place, (label, levels) in enumerate(channels.items()):
        for array, image in zip(arrays, levels(len(arrays)), strict=True):
            array[place] = image.astype(np.float32)
            if array is arrays[0]:
                windows[label] = display_window(image)
    write_metadata(path, windows, shape, pixel, name=name, colours=colours)


def note_background(path: Path, kind: str) -> None:
    """Say in the metadata what the channel "phase_flat" has taken off, beside what OME defines."""
    import zarr

    zarr.open_group(str(path), mode="r+").attrs["fouriscope"] = {"phase_background": kind, "phase_flat": WORDS[kind]}


def create_object(
    path: Path, shape: tuple[int, int], pixel: tuple[float, float], dtype: DTypeLike, *, shard: int | None = None
) -> Any:
    """A plain Zarr array for a complex transmittance, which OME does not support; without ``shard``, a file per chunk.

    Pixels that are never written are NaN.
    """
    import zarr

    return zarr.create_array(
        str(path),
        shape=shape,
        dtype=dtype,
        chunks=(CHUNK, CHUNK),
        shards=None if shard is None else shard_shape(shape, shard),
        fill_value=complex("nan"),
        attributes={"pixel_size_m": list(pixel)},
    )


def _transformations(
    finest: tuple[int, int], level: tuple[int, int], pixel: tuple[float, float]
) -> list[dict[str, Any]]:
    fine = [size * MICROMETRES for size in pixel]
    scale = [size * whole / count for size, whole, count in zip(fine, finest, level, strict=True)]
    translation = [(coarse - size) / 2 for coarse, size in zip(scale, fine, strict=True)]
    return [
        {"type": "scale", "scale": [1.0, *scale]},
        {"type": "translation", "translation": [0.0, *translation]},
    ]


def display_window(image: NDArray[Any]) -> Window:
    """The limits of the values, and of the central 99.8 %, which is what viewers show at first."""
    finite = image[np.isfinite(image)]
    values = np.percentile(finite, [0, 0.1, 99.9, 100]) if finite.size else np.zeros(4)
    lowest, start, end, highest = (float(value) for value in values)
    if end <= start:  # one value everywhere: viewers divide by the difference
        start, end = start - 0.5, start + 0.5
    return {"min": min(lowest, start), "max": max(highest, end), "start": start, "end": end}
