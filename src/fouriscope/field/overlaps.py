"""What two neighbouring tiles say about each other where they see the same object.

Two tiles k and l that share a window hold two estimates of one field, o_k and o_l. Each is known up to a constant
phase, perhaps a ramp, and perhaps a constant factor, so on the window

    z = o_k · conj(o_l) = |o_k||o_l| e^{i(φ_k − φ_l)}

would be a constant, or a plane in its phase, if there were no errors. Everything that is needed to bring the tiles
together is in z, and not pixel by pixel: its sums over some 250 cells show a constant and a ramp just as well. So an
:class:`Overlap` has a few kB, whatever the tiles, and can be sent to the process that solves for all tiles at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.field.tiling import Tile
from fouriscope.run.phases import wrap

RealArray = NDArray[Any]
FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complexfloating[Any, Any]]
Window = tuple[int, int, int, int]

# Cells of at least 8 pixels average the noise; if tiles are large, cells grow with them. The ramp of a tile is counted
# in turns per tile, so larger cells of larger tiles see no more of it.
# An overlap narrower than four cells is cut into four even so: one cell across could not tell a ramp across.
SMALLEST_CELL = 8
FEWEST_CELLS = 4
MOST_CELLS = 256
# One pixel may count as much as two ordinary ones. With more, a few bright pixels would dominate.
LARGEST_WEIGHT = 2.0
# The rms of a phase of which nothing is known: uniform in (−π, π].
ANY_PHASE = math.pi / math.sqrt(3)


@dataclass(frozen=True, eq=False)
class TileImages:
    """A tile on its object window: phase φ in rad and, where the object has it, absorption μ; o = e^{−μ+iφ}."""

    phase: RealArray
    absorption: RealArray | None = None

    def cut(self, rows: slice, columns: slice) -> TileImages:
        """The same images in a part of the window."""
        return TileImages(
            self.phase[rows, columns], None if self.absorption is None else self.absorption[rows, columns]
        )


@dataclass(frozen=True, eq=False)
class Overlap:
    """Two tiles compared: numbers and small arrays only.

    ``product`` holds Σ o_first · conj(o_second) of each cell, with weights of about one per pixel, so its size says how
    many pixels agree; ``rows`` and ``columns`` are the cells' centres in object pixels of the whole field.
    ``turn`` is the median of φ_first − φ_second as found: it knows whole turns, which ``product`` does not.
    ``absorption`` is the median of μ_first − μ_second. ``noise`` is the rms of φ_first − φ_second about
    its mean, wrapped, in rad.
    """

    first: int
    second: int
    rows: FloatArray
    columns: FloatArray
    product: NDArray[np.complex64]
    turn: float
    absorption: float
    noise: float

    @property
    def weight(self) -> float:
        """The weight of this overlap, in pixels; 0 if it has no pixel that is finite in both tiles."""
        return float(np.abs(self.product).sum(dtype=np.float64))


def object_window(tile: Tile, scale: int) -> Window:
    """The tile's (row, column, height, width) in object pixels of the field, ``scale`` × ``scale`` per frame pixel."""
    return tile.top * scale, tile.left * scale, tile.height * scale, tile.width * scale


def usable_border(shared: int, border: int) -> int:
    """How much of ``border`` two tiles that share ``shared`` pixels can both drop and still keep a third to compare.

    >>> usable_border(26, 4), usable_border(9, 4)
    (4, 3)
    """
    if border < 0:
        raise InvalidInputError(f"border must be the number of frame pixels to drop at a tile's edge, got {border}")
    return min(border, shared // 3)


def compare(
    first: Tile, second: Tile, images_first: TileImages, images_second: TileImages, scale: int, border: int
) -> Overlap:
    """Compare two tiles where both can be trusted.

    A tile's solver knows nothing of what lies outside, so within ``border`` frame pixels of its edges it is wrong, each
    tile in its own way. That also holds at the edge of the frame: there the pixels are shown because there are no
    others, but they are not needed here. What is shared loses that border on all four sides, as far as a third is left.

    The phase of a cell's sum is the difference at the cell's centre only if the difference is constant within the
    cell. So z is first divided by its own mean ramp, which is added again at the centres. Then a ramp does no harm,
    however unevenly a cell is lit.

    >>> from fouriscope.field.tiling import Tiling
    >>> first, second = Tiling((32, 56), tile=32, overlap=0.25)
    >>> flat = np.zeros((64, 64), np.float32)
    >>> overlap = compare(first, second, TileImages(flat + 7), TileImages(flat), scale=2, border=2)
    >>> overlap.product.shape, overlap.columns.tolist(), overlap.turn, overlap.noise < 1e-6
    ((7, 4), [52.5, 54.5, 56.5, 58.5], 7.0, True)
    >>> round(float(np.angle(overlap.product).mean() + 2 * np.pi), 5)
    7.0
    """
    top, left, height, width = _trusted(first, second, border)
    window = top * scale, left * scale, height * scale, width * scale
    phases, absorptions = _both(first, second, images_first, images_second, window, scale)

    difference = phases[0] - phases[1]
    density = absorptions[0] + absorptions[1]
    known = np.isfinite(difference) & np.isfinite(density)
    row_edges, column_edges = _cell_edges(window[2:])
    rows, columns = ((edges[1:] + edges[:-1] - 1) / 2 for edges in (row_edges, column_edges))
    centres = rows + window[0], columns + window[1]
    nothing = np.zeros((len(rows), len(columns)), np.complex64)
    unknown = Overlap(first.index, second.index, *centres, nothing, turn=0.0, absorption=0.0, noise=ANY_PHASE)
    if not known.any():
        return unknown

    # Relative to the median, so that neither a tile's brightness nor an exponential's range matters.
    exponent = np.minimum(np.median(density[known]) - density[known], math.log(LARGEST_WEIGHT))
    weight = np.zeros(difference.shape)
    weight[known] = np.exp(exponent)
    z: ComplexArray = np.asarray(weight * np.exp(1j * np.where(known, difference, 0)), np.complex128)

    slopes = mean_slopes(z)
    z_level = z * _ramp(slopes, *(-np.arange(size) for size in z.shape))
    sums = np.add.reduceat(np.add.reduceat(z_level, row_edges[:-1], axis=0), column_edges[:-1], axis=1)
    spread = wrap(np.angle(z[known] * np.conj(z.sum())))
    return replace(
        unknown,
        product=(sums * _ramp(slopes, rows, columns)).astype(np.complex64),
        turn=float(np.median(difference[known])),
        absorption=_weighted_median((absorptions[0] - absorptions[1])[known], weight[known]),
        noise=float(np.sqrt(np.average(spread**2, weights=weight[known]))),
    )


def mean_slopes(z: ComplexArray) -> tuple[float, float]:
    """The mean ramp of angle(z) down and across, in rad per step: what neighbours differ by, weighted by brightness.

    >>> y, x = np.mgrid[:5, :6]
    >>> np.round(mean_slopes(np.exp(1j * (0.3 * y - 2.0 * x))), 6).tolist()
    [0.3, -2.0]
    """
    return float(np.angle(np.vdot(z[:-1], z[1:]))), float(np.angle(np.vdot(z[:, :-1], z[:, 1:])))


def _ramp(slopes: tuple[float, float], rows: RealArray, columns: RealArray) -> NDArray[np.complex128]:
    return np.asarray(np.exp(1j * slopes[0] * rows)[:, None] * np.exp(1j * slopes[1] * columns))


def _trusted(first: Tile, second: Tile, border: int) -> Window:
    """What both tiles see, in frame pixels, without the borders of either."""
    window = []
    for start in ("top", "left"):
        size = {"top": "height", "left": "width"}[start]
        low = max(getattr(first, start), getattr(second, start))
        high = min(getattr(tile, start) + getattr(tile, size) for tile in (first, second))
        if high <= low:
            raise InvalidInputError(
                f"tiles {first.index} and {second.index} share no pixels: their windows are {first.window} and "
                f"{second.window}; compare the neighbours that Tiling.pairs() gives"
            )
        drop = usable_border(high - low, border)
        window.append((low + drop, high - low - 2 * drop))
    (top, height), (left, width) = window
    return top, left, height, width


def _both(
    first: Tile, second: Tile, images_first: TileImages, images_second: TileImages, window: Window, scale: int
) -> tuple[list[FloatArray], list[FloatArray]]:
    """The phases and the absorptions (0 where an object has none) of both tiles within ``window``."""
    if (images_first.absorption is None) != (images_second.absorption is None):
        raise InvalidInputError(
            f"tiles {first.index} and {second.index} must both have an absorption or neither, but only one has; "
            "solve all tiles of a field with the same kind of object"
        )
    phases, absorptions = [], []
    for tile, images in ((first, images_first), (second, images_second)):
        part = images.cut(*part_of(tile, images, window, scale))
        phases.append(part.phase.astype(np.float64))
        absorptions.append(
            np.zeros(part.phase.shape) if part.absorption is None else part.absorption.astype(np.float64)
        )
    return phases, absorptions


def part_of(tile: Tile, images: TileImages, window: Window, scale: int) -> tuple[slice, slice]:
    """Where in the tile's images ``window`` of the field lies; images of another shape than the tile's are refused."""
    top, left, height, width = object_window(tile, scale)
    for name, image in (("phase", images.phase), ("absorption", images.absorption)):
        if image is not None and image.shape != (height, width):
            raise InvalidInputError(
                f"the {name} of tile {tile.index} must have {height} × {width} object pixels ({tile.height} × "
                f"{tile.width} frame pixels, scale {scale}), got shape {image.shape}"
            )
    row, column = window[0] - top, window[1] - left
    return slice(row, row + window[2]), slice(column, column + window[3])


def _cell_edges(shape: tuple[int, ...]) -> list[NDArray[np.intp]]:
    """Where cells of nearly one size begin along each axis, and where the last one ends."""
    cell = max(SMALLEST_CELL, math.ceil(math.sqrt(math.prod(shape) / MOST_CELLS)))
    counts = [max(size // cell, min(size, FEWEST_CELLS)) for size in shape]
    return [np.linspace(0, size, count + 1).round().astype(np.intp) for size, count in zip(shape, counts, strict=True)]


def _weighted_median(values: FloatArray, weights: FloatArray) -> float:
    order = np.argsort(values, kind="stable")
    summed = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(summed, summed[-1] / 2)])
