"""Frames of a colour camera: the plane that one colour's pixels saw, with the crosstalk of other colours removed.

A colour camera has three kinds of pixels. Its files are colour images, (rows, columns, 3), or the numbers of the sensor
itself, on which the kinds alternate (a Bayer mosaic).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriscope.acquisition.stored import StoredFrames
from fouriscope.errors import InvalidInputError

Colour = Literal["red", "green", "blue"]
Mosaic = Literal["RGGB", "BGGR", "GRBG", "GBRG"]
COLOURS: tuple[Colour, ...] = get_args(Colour)
MOSAICS: tuple[Mosaic, ...] = get_args(Mosaic)

# Above this condition number, correcting the crosstalk would multiply the noise by as much.
_WORST_CONDITION = 1e3


def mosaic_pixels(mosaic: Mosaic, colour: Colour, rows: slice, columns: slice) -> NDArray[np.bool_]:
    """(rows, columns) of a part of the sensor: True where a pixel is of ``colour``.

    ``mosaic`` names the colours of the sensor's first two rows, from left to right.

    >>> mosaic_pixels("RGGB", "green", slice(0, 2), slice(1, 4)).tolist()
    [[True, False, True], [False, True, False]]
    """
    cell = np.array([letter == colour[0].upper() for letter in mosaic]).reshape(2, 2)
    return np.asarray(cell[np.arange(rows.start, rows.stop)[:, None] % 2, np.arange(columns.start, columns.stop) % 2])


def interpolated(image: NDArray[Any], pixels: NDArray[np.bool_]) -> NDArray[np.float64]:
    """``image`` where ``pixels`` are True, and elsewhere the mean of such neighbours, the nearer ones counting twice.

    >>> interpolated(np.array([[2.0, 9, 4], [9, 9, 9], [6, 9, 8]]), mosaic_pixels("RGGB", "red", *[slice(0, 3)] * 2))
    array([[2., 3., 4.],
           [4., 5., 6.],
           [6., 7., 8.]])
    """
    from scipy.ndimage import convolve

    kernel = np.outer([1.0, 2.0, 1.0], [1.0, 2.0, 1.0])
    # "mirror" does not repeat the edge's own row, so the mosaic continues beyond it as inside.
    total = convolve(np.where(pixels, image, 0).astype(np.float64), kernel, mode="mirror")
    return np.where(pixels, image, total / convolve(pixels.astype(np.float64), kernel, mode="mirror"))


def unmixing(crosstalk: ArrayLike) -> NDArray[np.float64]:
    """The inverse of a crosstalk matrix M; raises if there is none.

    Row c of M says how much a pixel of colour c counts for red, green and blue light: counts = M · light.

    >>> unmixing([[1, 0.5, 0], [0, 1, 0], [0, 0, 2]])
    array([[ 1. , -0.5,  0. ],
           [ 0. ,  1. ,  0. ],
           [ 0. ,  0. ,  0.5]])
    """
    matrix = np.asarray(crosstalk, np.float64)
    if matrix.shape != (3, 3) or not np.isfinite(matrix).all() or (matrix < 0).any():
        raise InvalidInputError(
            "crosstalk must be three rows of three numbers ≥ 0, how much red, green and blue pixels count for red, "
            f"green and blue light, got {np.array2string(matrix, separator=', ')}"
        )
    if not np.linalg.cond(matrix) < _WORST_CONDITION:
        raise InvalidInputError("crosstalk cannot be corrected: two kinds of pixels see nearly the same light")
    return np.asarray(np.linalg.inv(matrix)) + 0.0  # no negative zeros


class ColourPlane(StoredFrames):
    """Frames of a colour camera as the pixels of one colour saw them.

    With a mosaic, frames keep the grid of the sensor. Pixels of other colours are interpolated, so that frames can be
    looked at, but they do not count (:attr:`pixels`). To take every other pixel instead would be simpler, but it would
    undersample the intensity if these pixels are farther apart than λ/(4NA) on the sample. A mask does not, because the
    model knows where each pixel that counts lies.

    Parameters
    ----------
    source
        Colour images, (rows, columns, 3) each, or with a ``mosaic`` the numbers of the sensor.
    colour
        The colour of the pixels to use.
    mosaic
        The colours of the sensor's first two rows: "RGGB", "BGGR", "GRBG" or "GBRG".
    crosstalk
        (3, 3) M of counts = M · light, which is corrected: see :func:`unmixing`. With a mosaic, the other two colours
        are interpolated at a pixel, so what remains is M's small numbers times the error of the interpolation.
    offset
        Counts in the dark, which are not light and stay.
    saturation
        Counts of a full well. A pixel that is full in one colour is unknown in all, and stays full.
    """

    def __init__(
        self,
        source: StoredFrames,
        colour: Colour,
        mosaic: Mosaic | None = None,
        *,
        crosstalk: ArrayLike | None = None,
        offset: float = 0.0,
        saturation: float | None = None,
    ) -> None:
        if colour not in COLOURS:
            raise InvalidInputError(f"plane must be one of {', '.join(COLOURS)}, got {colour!r}")
        if mosaic is not None and mosaic not in MOSAICS:
            raise InvalidInputError(f"mosaic must be one of {', '.join(MOSAICS)}, got {mosaic!r}")
        self.source, self.colour, self.mosaic = source, colour, mosaic
        self._weights = None if crosstalk is None else unmixing(crosstalk)[COLOURS.index(colour)]
        self._offset, self._saturation = offset, saturation
        count, height, width = source.shape
        dtype = source.dtype if self._weights is None else np.dtype(np.float32)
        region = (source.rows.start, source.columns.start, height, width)
        super().__init__(source.path, count, source.stored_shape, dtype, region)
        self._watched, self.states = source._watched, source.states

    @property
    def pixels(self) -> NDArray[np.bool_] | None:
        """(rows, columns) of the region: True where a pixel counts; None if all do."""
        return None if self.mosaic is None else mosaic_pixels(self.mosaic, self.colour, self.rows, self.columns)

    def unmixed(self, crosstalk: ArrayLike, *, offset: float = 0.0, saturation: float | None = None) -> ColourPlane:
        """The same frames with the crosstalk corrected."""
        known: dict[str, Any] = {"crosstalk": crosstalk, "offset": offset, "saturation": saturation}
        return ColourPlane(self.source, self.colour, self.mosaic, **known)

    def together(self, index: int) -> range:
        return self.source.together(index)

    def _files(self, indices: range) -> Sequence[str]:
        return self.source._files(indices)

    def _read(self, index: int, rows: slice, columns: slice) -> NDArray[Any]:
        return self._plane(self.source._read(index, rows, columns), rows, columns)

    def _read_several(self, indices: range, rows: slice, columns: slice) -> NDArray[Any]:
        images = self.source._read_several(indices, rows, columns)
        return np.stack([self._plane(image, rows, columns) for image in images])

    def _plane(self, image: NDArray[Any], rows: slice, columns: slice) -> NDArray[Any]:
        """Light of this colour at every pixel of one image of the source."""
        if self._weights is None:
            return np.ascontiguousarray(self._seen_by(self.colour, image, rows, columns))
        counts = [self._seen_by(colour, image, rows, columns).astype(np.float64) for colour in COLOURS]
        light = sum(
            (weight * (plane - self._offset) for weight, plane in zip(self._weights, counts, strict=True) if weight),
            np.zeros(counts[0].shape),
        )
        plane = light + self._offset
        if self._saturation is not None:
            fullest = np.maximum.reduce(counts)
            plane = np.where(fullest >= self._saturation, np.maximum(plane, fullest), plane)
        return np.asarray(plane, np.float32)

    def _seen_by(self, colour: Colour, image: NDArray[Any], rows: slice, columns: slice) -> NDArray[Any]:
        if self.mosaic is None:
            return image[..., COLOURS.index(colour)]
        plane = interpolated(image, mosaic_pixels(self.mosaic, colour, rows, columns))
        return (np.rint(plane) if image.dtype.kind in "iu" else plane).astype(image.dtype)
