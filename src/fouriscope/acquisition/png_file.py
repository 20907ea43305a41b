"""PNG images. The header is read first, because it may claim any number of pixels."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.input_files import require_file, require_room
from fouriscope.errors import InvalidInputError

_START = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
# Numbers of a pixel by the type of its colours in PNG: grey, and colours that may turn out to be grey.
_CHANNELS = {0: 1, 2: 3, 6: 4}
_DEPTHS = (2, 4, 8, 16)


def png_header(path: Path, *, colour: bool = False) -> tuple[tuple[int, int], np.dtype[Any]]:
    """(rows, columns) and type of a PNG, or an error if it cannot be a grey image, or is too large for its file.

    With ``colour`` it has to be a colour image.
    """
    size = require_file(path)
    with path.open("rb") as file:
        start = file.read(26)
    if len(start) < 26 or not start.startswith(_START):
        raise InvalidInputError(f"{path}: this is not a PNG file, or it is damaged")
    columns, rows, depth, colours = struct.unpack(">IIBB", start[16:])
    if colours not in _CHANNELS or depth not in _DEPTHS or (depth != 8 and colours):
        kind = {0: "grey", 2: "colour", 3: "a palette", 4: "grey and transparent", 6: "colour and transparent"}
        raise InvalidInputError(
            f"{path}: a grey image was expected, got {kind.get(colours, 'something else')} of {depth} bits per number; "
            "convert it to grey of 8 or 16 bits"
        )
    if colour and not colours:
        raise InvalidInputError(f"{path}: a colour image was expected, but this one is grey; leave out plane")
    require_room(path, "the image", rows * columns * _CHANNELS[colours] * depth // 8, size)
    return (rows, columns), np.dtype(np.uint16 if depth == 16 else np.uint8)


def read_png(path: Path, *, colour: bool = False) -> NDArray[Any]:
    """The pixels; of a colour PNG those of one channel, if all are equal, or with ``colour`` all three."""
    from PIL.PngImagePlugin import PngImageFile

    shape, dtype = png_header(path, colour=colour)
    # Not Image.open, which warns about every large image, on the terminal, and refuses what is larger still.
    with PngImageFile(path) as picture:
        image: NDArray[Any] = np.asarray(picture)
    if image.ndim == 3 and not colour:
        if not (np.array_equal(image[..., 0], image[..., 1]) and np.array_equal(image[..., 0], image[..., 2])):
            raise InvalidInputError(
                f"{path}: a grey image was expected, got colour; give the colour of the LED as plane"
            )
        image = image[..., 0]
    if image.shape[:2] != shape:
        raise InvalidInputError(f"{path}: its header says {shape}, but its pixels are {image.shape}")
    return image.astype(dtype, copy=False)  # some versions of Pillow read 16 bits into 32
