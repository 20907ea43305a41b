"""An LED with a size, as the few sources that its frame needs (docs/sources.md)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.optics._points import FloatArray
from fouriscope.optics.objective import Optics
from fouriscope.optics.sources import Sources

if TYPE_CHECKING:
    from fouriscope.optics.illumination import Illumination

DieShape = Literal["square", "round"]

# Number of points along each axis of a die, which tell how much of it lies on either side of the pupil's edge; and the
# width of a point along the edge, in units of their pitch: between a side and a diagonal.
FINE, _RAMP = 32, 1.2
# A die that is at most this large along each axis, in units of NA, is one source. This leaves out the penumbra of the
# pupil's edge, as wide as the die: 8 % of the amplitude of a dark frame.
PART = 0.04
# In bright field near the edge, the penumbra cuts off the lowest frequencies, where samples are strongest, and the
# direct light interferes with them. So a die this near to the edge, in units of NA, is divided sooner.
NEAR, PART_NEAR = 0.15, 0.02
# With half as many parts along an axis, the error is 2.6 times as large; with half the die, it is 0.7 times as large.
# For the same error, the number of parts therefore grows as this power of the die.
GROWTH = 0.4
# A grid of more parts than this along an axis would cost more than it is worth.
MOST_PARTS = 8


@runtime_checkable
class Spread(Protocol):
    """An illumination whose LEDs have a size."""

    @property
    def die(self) -> float:
        """Side of the square or diameter of the disc, in metres; 0 is a point."""
        ...

    @property
    def die_shape(self) -> DieShape: ...

    def die_directions(self, points: FloatArray, patch_center: tuple[float, float] = (0.0, 0.0)) -> FloatArray:
        """(N, K, 2) directions under which ``points`` (K, 2) of each LED's die are seen, in units of its side."""
        ...


def die_points(count: int, shape: DieShape) -> FloatArray:
    """(K, 2) middles of ``count`` × ``count`` equal parts of a die of side 1. If it is round, those within the disc.

    >>> die_points(2, "square").tolist()
    [[-0.25, -0.25], [-0.25, 0.25], [0.25, -0.25], [0.25, 0.25]]
    """
    steps = (np.arange(count) + 0.5) / count - 0.5
    points = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)
    return points if shape == "square" else points[np.hypot(points[:, 0], points[:, 1]) <= 0.5]


def has_die(illumination: Illumination) -> bool:
    """Whether its LEDs have a size."""
    return isinstance(illumination, Spread) and illumination.die > 0


def farthest_na(illumination: Illumination, patch_center: tuple[float, float]) -> FloatArray:
    """|na| of each LED, or of the outermost point of its die."""
    na = illumination.directions(patch_center)[:, None]
    if isinstance(illumination, Spread) and illumination.die:
        na = illumination.die_directions(_rim(illumination.die_shape), patch_center)
    return np.asarray(np.hypot(na[..., 0], na[..., 1]).max(axis=1))


def die_radius(illumination: Illumination, patch_center: tuple[float, float]) -> FloatArray | float:
    """How far each LED's die reaches from its middle, in NA; 0 for points."""
    if not isinstance(illumination, Spread) or not illumination.die:
        return 0.0
    away = illumination.die_directions(_rim(illumination.die_shape), patch_center)
    away = away - illumination.directions(patch_center)[:, None]
    return np.asarray(np.hypot(away[..., 0], away[..., 1]).max(axis=1))


def die_sources(
    illumination: Illumination, optics: Optics, patch_center: tuple[float, float], *, only_near_edge: bool = False
) -> Sources:
    """The sources of each LED: its middle, or parts of its die if one point is not enough.

    A die larger than :data:`PART` is divided by a grid of n × n, and so is one larger than :data:`PART_NEAR` whose
    direct light passes the pupil near its edge; n grows more slowly than the die. A die that lies across the edge is
    also cut along it: the direct light of the part inside passes, that of the rest does not, and no single point does
    both. Each piece is a source in its middle, and its weight is its share of the die.

    With ``only_near_edge``, all other LEDs are points: what their size changes is a few percent of a frame.
    """
    na = illumination.directions(patch_center)
    if not isinstance(illumination, Spread) or not illumination.die:
        return Sources.points(na)
    shape = illumination.die_shape
    extent = np.ptp(illumination.die_directions(_rim(shape), patch_center), axis=1).max(axis=1)
    nearest, farthest = _reach(illumination, optics, patch_center)
    across = (nearest <= 1) & (farthest >= 1)
    near_edge = (nearest <= 1) & (farthest >= 1 - NEAR)
    largest = np.where(near_edge, PART_NEAR, math.inf if only_near_edge else PART) * optics.na
    parts = np.clip(np.ceil((extent / largest) ** GROWTH), 1, MOST_PARTS).astype(int)
    divided = (parts > 1) | across
    points = die_points(FINE, shape)
    fine = illumination.die_directions(points, patch_center)
    pieces = {led: _pieces(points, fine[led], int(parts[led]), optics) for led in np.flatnonzero(divided).tolist()}
    places = [pieces[led][0] if led in pieces else na[led : led + 1] for led in range(len(na))]
    weights = [pieces[led][1] if led in pieces else np.ones(1) for led in range(len(na))]
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in weights])])
    return Sources(np.concatenate(places), np.concatenate(weights), offsets)


def across_edge(illumination: Illumination, optics: Optics, patch_center: tuple[float, float]) -> NDArray[np.bool_]:
    """LEDs whose die lies across the pupil's edge, so that a part of their direct light passes. Points never do."""
    if not isinstance(illumination, Spread) or not illumination.die:
        return np.zeros(len(illumination), bool)
    nearest, farthest = _reach(illumination, optics, patch_center)
    return np.asarray((nearest <= 1) & (farthest >= 1))


def die_in_points(
    illumination: Illumination, patch_center: tuple[float, float], counts: int | NDArray[np.int64]
) -> Sources:
    """Sources with ``counts`` points along each axis of every LED, even if its frame needs fewer.

    ``counts`` is one number for all LEDs, or one for each. This is slow. Simulations use it as the truth.
    """
    if not isinstance(illumination, Spread) or not illumination.die:
        return Sources.points(illumination.directions(patch_center))
    along = np.broadcast_to(counts, len(illumination))
    seen = {
        count: illumination.die_directions(die_points(count, illumination.die_shape), patch_center)
        for count in np.unique(along).tolist()
    }
    na = [seen[count][led] for led, count in enumerate(along.tolist())]
    sizes = np.array([len(points) for points in na])
    return Sources(np.concatenate(na), np.repeat(1 / sizes, sizes), np.concatenate([[0], np.cumsum(sizes)]))


def _reach(
    illumination: Spread, optics: Optics, patch_center: tuple[float, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The smallest and the largest |na| of each die, in units of NA."""
    rim = illumination.die_directions(_rim(illumination.die_shape), patch_center)
    radii = np.hypot(rim[..., 0], rim[..., 1]) / optics.na
    return radii.min(axis=1), radii.max(axis=1)


def _pieces(points: FloatArray, na: FloatArray, parts: int, optics: Optics) -> tuple[FloatArray, NDArray[np.float64]]:
    """(directions, weights) of the parts of one die."""
    radii = np.hypot(na[:, 0], na[:, 1])
    inside = optics.passes(radii)
    cells = np.floor((points + 0.5) * parts).astype(int)
    keys, first, piece, counts = np.unique(
        (cells[:, 0] * parts + cells[:, 1]) * 2 + inside,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    middles = np.stack([np.bincount(piece, na[:, axis]) / counts for axis in (0, 1)], axis=1)
    # A disc is convex: the middle of points inside is inside. That of a thin sliver outside may not be outside.
    astray = optics.passes(np.hypot(middles[:, 0], middles[:, 1])) & ~inside[first]
    for index in np.flatnonzero(astray):
        members = na[piece == index]
        middles[index] = members[np.argmax(np.hypot(members[:, 0], members[:, 1]))]
    return middles, _areas(keys, piece, counts, optics.na - radii, np.hypot(*(na[1] - na[0]))) / len(points)


def _areas(
    keys: NDArray[np.int64], piece: NDArray[np.int64], counts: NDArray[np.int64], depth: FloatArray, pitch: float
) -> NDArray[np.float64]:
    """The area of each piece, in points. A point that the edge cuts counts in part for the pieces on both sides.

    ``depth`` is how far inside the edge each point lies. If only whole points counted, the share of direct light, which
    is most of a frame, would change in steps of a row of points.
    """
    part = np.clip(0.5 + depth / (_RAMP * pitch), 0, 1)
    cell = keys // 2
    _, group, pieces = np.unique(cell, return_inverse=True, return_counts=True)
    inner = np.bincount(group[piece], part)[group]
    whole = np.bincount(group, counts)[group]
    return np.where(pieces[group] == 1, counts, np.where(keys % 2 == 1, inner, whole - inner))


def _rim(shape: DieShape) -> FloatArray:
    """Points around the edge of a die of side (or diameter) 1."""
    angles = np.arange(32) * (2 * math.pi / 32) + math.pi / 4
    circle = 0.5 * np.stack([np.sin(angles), np.cos(angles)], axis=1)
    return circle if shape == "round" else circle / np.abs(2 * circle).max(axis=1, keepdims=True)


def require_die(die: object, shape: object) -> float:
    """The size of a die in metres. Raises if the size or the shape is wrong."""
    if shape not in ("square", "round"):
        raise InvalidInputError(f"die_shape must be 'square' or 'round', got {shape!r}")
    try:
        size = float(die)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        size = math.nan
    if not 0 <= size < math.inf:
        raise InvalidInputError(f"die must be a length ≥ 0 in metres (0.5 mm is 0.5e-3), got {die!r}")
    return size


def smallest_distance(positions: FloatArray) -> float:
    """From an LED to the nearest one in another place, in metres; infinite if there is none."""
    from scipy.spatial import KDTree

    distinct = np.unique(positions, axis=0)
    return float(KDTree(distinct).query(distinct, 2)[0][:, 1].min()) if len(distinct) > 1 else math.inf


def require_room(die: float, positions: FloatArray) -> None:
    """Raise if dies overlap. The size was then probably given in millimetres, or with the housing."""
    nearest = smallest_distance(positions)
    if die > nearest * (1 + 1e-9):
        raise InvalidInputError(
            f"die = {die:g} m is larger than the distance from LED to LED, {nearest:g} m; give the part that "
            "shines, in metres: 0.5 mm is 0.5e-3"
        )
