"""``fs.reconstruct_field``: from a description to a folder with the stitched image."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

from fouriscope.acquisition.byte_sizes import parse_bytes
from fouriscope.choices import Choices, overlaid
from fouriscope.field.cluster import connected
from fouriscope.field.prepare import Tell
from fouriscope.field.reconstruct import FieldResult, reconstruct_tiles
from fouriscope.loading import description_of


def reconstruct_field(
    description: str | Path,
    out: str | Path,
    *,
    tile: int | None = None,
    overlap: float | None = None,
    workers: int | None = None,
    memory: str | None = None,
    client: Any = None,
    tell: Tell | None = None,
    **choices: Unpack[Choices],
) -> FieldResult:
    """Reconstruct a whole field of view in tiles, on this machine's cores or on a cluster, into the folder ``out``.

    The frames are cut into overlapping tiles. Each is reconstructed by itself, with the directions of the LEDs as seen
    from its centre. Then they are put together into ``out/result/field.ome.zarr``. If ``out`` was begun with the same
    description, it is continued: finished tiles are kept. docs/field.md has more.

    Parameters
    ----------
    description
        What :func:`fouriscope.load` understands: a description (``acquisition.toml``), or a file or folder of frames
        that says everything itself. Workers read the frames from there.
    out
        Folder of the result.
    tile, overlap
        Frame pixels along a side of a tile, and the part that neighbours share: 128 and 0.2.
    workers, memory
        Number of processes on this machine (by default as many as cores), and the memory of each, such as "2GB".
    client
        A ``distributed.Client`` of a cluster that sees the same files, instead of workers here.
    tell
        Called with findings in words, such as ``print``.
    **choices
        As in :func:`fouriscope.reconstruct`; they replace what the description says. Priors must have a name, because
        workers build their own.

    Examples
    --------
    On all cores of this machine::

        import fouriscope as fs

        result = fs.reconstruct_field("acquisition.toml", "field", iterations=100, tell=print)
        print(result.failed or "all tiles are there")
    """
    config, base = description_of(description)
    config = overlaid(config, **choices)
    limit = None if memory is None else parse_bytes(memory)
    options: dict[str, Any] = {"tile": tile, "overlap": overlap, "memory": limit, "tell": tell}
    if client is not None:
        return reconstruct_tiles(config, base, out, client, **options)
    with connected(workers=workers, memory=memory) as own:
        return reconstruct_tiles(config, base, out, own, **options)
