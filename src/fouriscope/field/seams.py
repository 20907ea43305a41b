"""The constants and ramps that make all tiles of a field one field, found from all overlaps at once."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.field.correction import Correction
from fouriscope.field.network import Network
from fouriscope.field.overlaps import Overlap, mean_slopes, object_window
from fouriscope.field.tiling import Tiling

FloatArray = NDArray[np.float64]

# Smaller changes of the corrections, in rad, cannot be seen.
TOLERANCE = 1e-7
MOST_PASSES = 30
# What is expected of a ramp before any overlap is seen, in rad over half a tile, one standard deviation: a ramp of a
# turn over a tile (π over half of it) moves a tile's spectrum by a whole bin, and pupils are better than that.
EXPECTED_RAMP = 1.0
# The disagreement in rad that is assumed before it is known, and the least one: products are single precision, and
# without any damping the plane that all tiles may share would be undetermined.
FIRST_NOISE, LEAST_NOISE = 0.1, 1e-5
# Curvature that a cell keeps however badly it fits: more than the true one is safe, none could leave tiles unattached.
LEAST_CURVATURE = 0.01


def solve_seams(tiling: Tiling, scale: int, overlaps: Iterable[Overlap], *, ramps: bool) -> list[Correction]:
    """The correction of each tile of ``tiling`` that brings tiles together wherever ``overlaps`` compare them.

    With z_c the ``product`` of cell c at r_c, and P_k(r) = c_k + g_k · (r − r_k) the correction of tile k, it minimises

        Σ_c |z_c| (1 − cos ρ_c) + (σ²/τ²) Σ_k ½ |h g_k|²,    ρ_c = angle(z_c) + P_first(r_c) − P_second(r_c)

    The first sum is half of Σ |o_first e^{iP_first} − o_second e^{iP_second}|² but for a constant: fields are brought
    together, so whole turns do not matter, and neither does the phase of a cell where the field is zero. Each pass
    replaces 1 − cos ρ by the parabola that touches it from above, ½ (sin ρ / ρ) ρ²: least squares in which cells count
    less the worse they fit. The passes start from the constants along a maximum spanning tree over |Σ z|, never
    raise the sum, and end when nothing moves by more than ``TOLERANCE``. Absorption constants are plain least squares.

    Without ``ramps``, g = 0. With them, a ramp across a narrow overlap is hardly seen, and errors of many of them add
    up to a bend of the field that no single overlap contradicts. The second sum prevents this: with σ the rms of ρ and
    τ = ``EXPECTED_RAMP`` over half a tile h, it weighs a ramp of the expected size against a cell of average weight. So
    it decides where the data say nothing, and vanishes when the overlaps agree exactly.

    Overlaps do not show a constant or a plane that all tiles share. Of all solutions the result has mean c = 0 and
    mean g = 0 over each island of tiles that overlap one another; a tile without any overlap is not changed. Whole
    turns are part of c: along the tree, tiles agree as found (``Overlap.turn``), not only modulo 2π.

    >>> from fouriscope.field.overlaps import TileImages, compare
    >>> tiling = Tiling((32, 56), tile=32, overlap=0.25)
    >>> first, second = tiling
    >>> flat = np.zeros((64, 64), np.float32)
    >>> overlap = compare(first, second, TileImages(flat + 7), TileImages(flat), scale=2, border=2)
    >>> [round(correction.phase, 4) for correction in solve_seams(tiling, 2, [overlap], ramps=False)]
    [-3.5, 3.5]
    """
    used = _checked(tiling, overlaps)
    if not used:
        return [Correction() for _ in tiling]
    seams = _Seams(tiling, scale, used, unknowns=3 if ramps else 1)
    planes = seams.start()
    noise = FIRST_NOISE
    for _ in range(MOST_PASSES):
        step, noise = seams.step(planes, noise)
        planes = planes + step
        if np.abs(step).max() < TOLERANCE:
            break
    planes = seams.without_shared_plane(seams.with_turns(planes))
    absorption = seams.absorptions()
    ramp = planes[:, 1:] / seams.half if ramps else np.zeros((len(tiling), 2))
    return [
        Correction(float(planes[k, 0]), (float(ramp[k, 0]), float(ramp[k, 1])), float(absorption[k]))
        for k in range(len(tiling))
    ]


class _Seams:
    """The least-squares problem. Lengths are in half tiles, so that constants and ramps are both in rad.

    An edge sees tile k's correction as a plane about its own centre, and of two tiles only the difference of their
    planes: ``jacobians`` take the two tiles' unknowns (c, g_y, g_x) to that difference.
    """

    def __init__(self, tiling: Tiling, scale: int, overlaps: list[Overlap], unknowns: int) -> None:
        self.overlaps, self.unknowns = overlaps, unknowns
        windows = np.array([object_window(tile, scale) for tile in tiling], np.float64)
        centres = windows[:, :2] + (windows[:, 2:] - 1) / 2
        self.half = windows[0, 2:].max() / 2
        first, second = (np.array([getattr(o, end) for o in overlaps]) for end in ("first", "second"))
        middles = np.array([(o.rows.mean(), o.columns.mean()) for o in overlaps])
        self.centres = centres / self.half
        # A cell of average weight has the weight 1, so that damping is in units of one such cell.
        cell = np.concatenate([np.abs(o.product).ravel() for o in overlaps]).mean(dtype=np.float64)
        self.products = [o.product.astype(np.complex128) / cell for o in overlaps]
        self.rows = [(o.rows - o.rows.mean()) / self.half for o in overlaps]
        self.columns = [(o.columns - o.columns.mean()) / self.half for o in overlaps]
        strength = np.array([abs(self._turned(e, -self._own_ramp(e)).sum()) for e in range(len(overlaps))])
        self.network = Network(len(tiling), first, second, strength)
        seen = []
        for tiles, sign in ((first, 1.0), (second, -1.0)):
            shift = np.tile(np.eye(3), (len(overlaps), 1, 1))
            shift[:, 0, 1:] = middles / self.half - self.centres[tiles]
            seen.append(sign * shift[:, :unknowns, :unknowns])
        self.jacobians = np.concatenate(seen, axis=2)

    def start(self) -> FloatArray:
        """Ramps from the overlaps' own mean ramps, by least squares; then constants along the spanning tree."""
        planes = np.zeros((self.network.nodes, self.unknowns))
        if self.unknowns > 1:
            weights = np.array([self._moments(e, np.abs(z)) for e, z in enumerate(self.products)])
            # Constants are left alone here: they are known modulo 2π only, and ramps do not need them.
            weights[:, 0, 1:] = weights[:, 1:, 0] = 0
            own = np.array([self._own_ramp(e) for e in range(len(self.products))])
            jacobians = self.jacobians.copy()
            jacobians[:, 0, 1:3] = jacobians[:, 0, 4:] = 0
            pulls = (weights @ own[:, :, None])[:, :, 0]
            planes = self.network.least_squares(jacobians, weights, pulls, self._damping(FIRST_NOISE), planes)
        differences = self._differences(planes)
        angles = [float(np.angle(self._turned(e, d).sum())) for e, d in enumerate(differences)]
        planes[:, 0] += self.network.integrate(np.array(angles))
        return planes

    def step(self, planes: FloatArray, noise: float) -> tuple[FloatArray, float]:
        """One pass of least squares: what to add to ``planes``, and the rms of what did not fit before it."""
        weights, pulls, squares, total = [], [], 0.0, 0.0
        for edge, difference in enumerate(self._differences(planes)):
            z = self._turned(edge, difference)
            size, residual = np.abs(z), np.angle(z)
            curvature = np.sinc(residual / np.pi)
            weights.append(self._moments(edge, size * np.maximum(curvature, LEAST_CURVATURE)))
            pulls.append(self._moments(edge, z.imag)[:, 0])
            squares += float((size * curvature * residual**2).sum())
            total += float(size.sum())
        damping = self._damping(noise)
        step = self.network.least_squares(self.jacobians, np.array(weights), np.array(pulls), damping, planes)
        return step, max(LEAST_NOISE, math.sqrt(squares / total))

    def with_turns(self, planes: FloatArray) -> FloatArray:
        """Constants plus the whole turns that make tiles agree as found."""
        found = np.array([o.turn for o in self.overlaps]) + self._differences(planes)[:, 0]
        turned = planes.copy()
        turned[:, 0] += 2 * np.pi * self.network.integrate(np.rint(found / (2 * np.pi)))
        return turned

    def without_shared_plane(self, planes: FloatArray) -> FloatArray:
        """The same seams with mean constant 0 and mean ramp 0 on each island."""
        level = planes.copy()
        level[:, 1:] = self.network.centred(planes[:, 1:])
        shared = planes[:, 1:] - level[:, 1:]
        level[:, 0] -= (shared * self.centres[:, : self.unknowns - 1]).sum(axis=1)
        level[:, 0] = self.network.centred(level[:, 0])
        return level

    def absorptions(self) -> FloatArray:
        """The constants m that minimise Σ_e w_e (μ_e + m_first − m_second)², mean 0 on each island."""
        weights = np.array([np.abs(z).sum() for z in self.products])
        pulls = weights * np.array([o.absorption for o in self.overlaps])
        jacobians = np.tile(np.array([[[1.0, -1.0]]]), (len(weights), 1, 1))
        zero = np.zeros((self.network.nodes, 1))
        found = self.network.least_squares(jacobians, weights[:, None, None], pulls[:, None], np.zeros(1), zero)
        return self.network.centred(found[:, 0])

    def _damping(self, noise: float) -> FloatArray:
        return np.array([0.0, *[(noise / EXPECTED_RAMP) ** 2] * (self.unknowns - 1)])

    def _differences(self, planes: FloatArray) -> FloatArray:
        """first minus second, as planes about the middle of each edge."""
        both = np.concatenate([planes[self.network.first], planes[self.network.second]], axis=1)
        return np.asarray((self.jacobians @ both[:, :, None])[:, :, 0])

    def _own_ramp(self, edge: int) -> FloatArray:
        """The mean ramp of an overlap as a plane without constant: what tiles differ by before any correction."""
        steps = [np.diff(axis).mean() if len(axis) > 1 else np.inf for axis in (self.rows[edge], self.columns[edge])]
        ramp = np.array([0.0, *(np.array(mean_slopes(self.products[edge])) / steps)])
        return ramp[: self.unknowns]

    def _turned(self, edge: int, plane: FloatArray) -> NDArray[np.complex128]:
        """The edge's cells after the correction ``plane``."""
        angle = np.full((len(self.rows[edge]), 1), plane[0])
        if self.unknowns > 1:
            angle = angle + plane[1] * self.rows[edge][:, None] + plane[2] * self.columns[edge]
        return np.asarray(self.products[edge] * np.exp(1j * angle))

    def _moments(self, edge: int, weight: FloatArray) -> FloatArray:
        """Σ_c weight_c b_c b_cᵀ with b = (1, y, x), or its first entry."""
        if self.unknowns == 1:
            return np.array([[weight.sum()]])
        y, x = self.rows[edge], self.columns[edge]
        by_row, by_column = weight.sum(axis=1), weight.sum(axis=0)
        total, down, across, mixed = by_row.sum(), by_row @ y, by_column @ x, y @ weight @ x
        return np.array([[total, down, across], [down, by_row @ y**2, mixed], [across, mixed, by_column @ x**2]])


def _checked(tiling: Tiling, overlaps: Iterable[Overlap]) -> list[Overlap]:
    """The overlaps that know anything, in one order whatever the order they came in."""
    ordered = sorted(overlaps, key=lambda overlap: (overlap.first, overlap.second))
    seen = set()
    for overlap in ordered:
        ends = frozenset((overlap.first, overlap.second))
        if len(ends) < 2 or not all(0 <= end < len(tiling) for end in ends):
            raise InvalidInputError(
                f"an overlap must join two of the tiles 0 to {len(tiling) - 1}, got {overlap.first} and "
                f"{overlap.second}; solve with the tiling that the tiles were compared with"
            )
        if ends in seen:
            raise InvalidInputError(
                f"tiles {overlap.first} and {overlap.second} are compared twice; give each pair only once"
            )
        seen.add(ends)
    return [overlap for overlap in ordered if overlap.weight > 0]
