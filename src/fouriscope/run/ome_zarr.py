"""OME-Zarr 0.5: the images of a result as channels of one multiscale image, with its pixel sizes.

The metadata is written with zarr alone; the tests hold it against the rules of https://ngff.openmicroscopy.org/0.5/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.run.phases import nearest_turn

VERSION = "0.5"
COARSEST = 256  # pixels along the longer side of the last level, at most
CHUNK = 256
SHARD = 4096  # pixels along a side of one file, at most: a file for each chunk would be thousands of them
MICROMETRES = 1e6


# From the number of levels to the levels, fine to coarse, one at a time: a channel is never in memory with its pyramid.
Levels = Callable[[int], Iterator[NDArray[Any]]]


def halved(image: NDArray[Any]) -> NDArray[Any]:
    """Means over 2 × 2 pixels, of an image of any size: n pixels become m = ⌈n/2⌉ that cover the same field exactly.

    Where n is even these are the means of pairs. Where it is odd, n = 2m − 1, a coarse pixel is 2 − 1/m fine ones wide,
    so that pixel j holds the last j/m of fine pixel 2j − 1, all of 2j, and the first 1 − (j + 1)/m of 2j + 1. The other
    ways, to drop the last row or to count it twice, would move the image against its physical coordinates.

    >>> halved(np.array([[1.0, 3.0], [5.0, 7.0]])).tolist()
    [[4.0]]
    >>> halved(np.array([[3.0, 3.0, 6.0]])).tolist()
    [[3.0, 5.0]]
    """
    return _halved_rows(_halved_rows(image).T).T


def _halved_rows(image: NDArray[Any]) -> NDArray[Any]:
    rows = len(image)
    if rows % 2 == 0:
        return np.asarray(0.5 * (image[0::2] + image[1::2]), image.dtype)
    half = rows // 2 + 1
    number = np.arange(half, dtype=image.real.dtype)[:, None]
    sums = image[0::2].copy()
    sums[1:] += number[1:] / half * image[1::2]
    sums[:-1] += (1 - (number[:-1] + 1) / half) * image[1::2]
    return np.asarray(sums / (2 - 1 / half), image.dtype)


def mean_levels(image: NDArray[Any], count: int) -> Iterator[NDArray[Any]]:
    """``image`` and its local means, coarser and coarser: right for amplitudes and for a phase without jumps."""
    yield image
    for _ in range(count - 1):
        image = halved(image)
        yield image


def phase_levels(phase: NDArray[Any], field: NDArray[Any], count: int) -> Iterator[NDArray[Any]]:
    """``phase`` and then the phases of the local means of ``field`` = a·e^{i·phase}.

    The mean of two phases at the two sides of a jump, π − ε and −π + ε, is 0, the very opposite of what they mean. The
    phase of the mean *field* is π. Whole turns are then added to come nearest to the mean of the phases, so that a
    phase that goes beyond π without a jump does so on every level.
    """
    yield phase
    for _ in range(count - 1):
        field, phase = halved(field), halved(phase)
        phase = nearest_turn(np.angle(field).astype(phase.dtype), phase)
        yield phase


def level_shapes(shape: tuple[int, int]) -> list[tuple[int, int]]:
    """The shapes of the levels, halved until the longer side is at most 256 pixels.

    >>> level_shapes((1001, 300))
    [(1001, 300), (501, 150), (251, 75)]
    """
    shapes = [shape]
    while max(shapes[-1]) > COARSEST:
        rows, columns = shapes[-1]
        shapes.append(((rows + 1) // 2, (columns + 1) // 2))
    return shapes


def write_ome_zarr(
    path: Path,
    channels: Mapping[str, Levels],
    shape: tuple[int, int],
    pixel: tuple[float, float],
    *,
    name: str,
) -> None:
    """Write ``channels``, by their names, as 32-bit float.

    Every level covers the same field: with n of N pixels a pixel is N/n times as large, and the centre of the first one
    lies (N/n − 1)/2 pixels further from the centre of the first pixel of level 0, which is the origin.
    """
    import zarr

    shapes = level_shapes(shape)
    group = zarr.create_group(str(path), zarr_format=3)
    arrays = [
        group.create_array(
            str(number),
            shape=(len(channels), *level),
            dtype=np.float32,
            chunks=(1, CHUNK, CHUNK),
            shards=(1, *(min(SHARD, -(-size // CHUNK) * CHUNK) for size in level)),
            dimension_names=("c", "y", "x"),
            fill_value=float("nan"),
        )
        for number, level in enumerate(shapes)
    ]
    windows = []
    for place, levels in enumerate(channels.values()):
        for array, image in zip(arrays, levels(len(shapes)), strict=True):
            array[place] = image.astype(np.float32)
            if array is arrays[0]:
                windows.append(_window(image))
    group.attrs["ome"] = {
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
                    for number, level in enumerate(shapes)
                ],
                "type": "local mean",
                "metadata": {"description": "a coarse pixel is the mean of the field that it covers"},
            }
        ],
        "omero": {
            "channels": [
                {"label": label, "color": "FFFFFF", "active": place == 0, "window": window}
                for place, (label, window) in enumerate(zip(channels, windows, strict=True))
            ],
            "rdefs": {"model": "greyscale"},
        },
    }


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


def _window(image: NDArray[Any]) -> dict[str, float]:
    """The limits of the values, and of the central 99.8 %, which is what viewers show at first."""
    finite = image[np.isfinite(image)]
    values = np.percentile(finite, [0, 0.1, 99.9, 100]) if finite.size else np.zeros(4)
    lowest, start, end, highest = (float(value) for value in values)
    if end <= start:  # one value everywhere: viewers divide by the difference
        start, end = start - 0.5, start + 0.5
    return {"min": min(lowest, start), "max": max(highest, end), "start": start, "end": end}
