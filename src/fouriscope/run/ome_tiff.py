"""OME-TIFF: one image with its name, its channels and the size of its pixels, for Fiji, napari and everything else.

The pixel size is written twice, for two kinds of readers: in the OME-XML, in micrometres, for Bio-Formats (Fiji),
napari and tifffile; and in the TIFF's own resolution tags, in pixels per centimetre, for readers without OME, such as
plain ImageJ (which shows such small values as micrometres).
"""

from __future__ import annotations

import hashlib
import io
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.run.files import atomic_write

MICROMETRES = 1e6
CENTIMETRES = 1e2


def write_ome_tiff(
    path: Path,
    image: NDArray[Any],
    *,
    pixel: tuple[float, float] | None,
    channels: Sequence[str],
    description: str,
    colours: Sequence[str] = (),
) -> None:
    """Write ``image``, (rows, columns) or (channels, rows, columns), as 32-bit float.

    ``pixel`` is (height, width) in metres. Use None if the axes are not lengths, which OME does not support: the file
    then has no scale, and the ``description`` must say what a pixel is. ``colours`` are those in which viewers lay
    channels over each other, such as "FF0000". The same image gives the same file, byte for byte: its UUID is made from
    the image, not from the clock and the network card.
    """
    import tifffile

    planes = image if image.ndim == 3 else image[np.newaxis]
    if planes.ndim != 3 or len(planes) != len(channels):
        raise InvalidInputError(
            f"{path.name}: {len(channels)} channels ({', '.join(channels)}) need an image (rows, columns) or "
            f"(channels, rows, columns), got shape {image.shape}"
        )
    planes = np.ascontiguousarray(planes, np.float32)
    name = path.name.removesuffix(".ome.tif")
    digest = hashlib.sha256(planes.data).hexdigest()
    metadata: dict[str, Any] = {
        "axes": "CYX",
        "Name": name,
        "Description": description,
        "Creator": "fouriscope",
        "UUID": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{name} {planes.shape} {digest}")),
        "Channel": {"Name": list(channels)},
    }
    if colours:  # as OME wants them: RGBA in 32 bits with a sign
        metadata["Channel"]["Color"] = [int.from_bytes(bytes.fromhex(f"{c}FF"), signed=True) for c in colours]
    scale: dict[str, Any] = {}
    if pixel is not None:
        height, width = pixel
        for axis, size in (("X", width), ("Y", height)):
            metadata |= {f"PhysicalSize{axis}": size * MICROMETRES, f"PhysicalSize{axis}Unit": "µm"}
        scale = {"resolution": (1 / (width * CENTIMETRES), 1 / (height * CENTIMETRES)), "resolutionunit": "CENTIMETER"}
    buffer = io.BytesIO()  # tifffile asks a file for its name, and an atomic one has none yet
    tifffile.imwrite(
        buffer, planes, ome=True, photometric="minisblack", metadata=metadata, software="fouriscope", **scale
    )
    with atomic_write(path) as file:
        file.write(buffer.getbuffer())
