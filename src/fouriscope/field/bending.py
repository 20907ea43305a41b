"""Slow differences between tiles, smoothed away from their seams inwards.

The slowest parts of a tile's phase are uncertain: few frames show them, and uneven light is mistaken for them. Two
neighbours then differ in their overlap by a curve that no constant and no ramp removes, and blending within the narrow
overlap leaves a step that shows as a lattice. So the slow part of the difference is spread over half a tile to either
side. This adds no information: slow errors stay in the middle of tiles, but none ends at a visible edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fouriscope.field.correction import ORDER, SIDES, Correction, edge_surfaces
from fouriscope.field.network import Network
from fouriscope.field.overlaps import Overlap, object_window
from fouriscope.field.tiling import Tiling
from fouriscope.run.phases import wrap

FloatArray = NDArray[np.float64]

PASSES = 4
# Of an overlap's weight, what flatness is worth at least. Where overlaps meet, and where they hold the edges of
# structures, their differences are not slow, and surfaces that followed them exactly would make waves of their own.
FLATNESS = 0.05
# Curvature that a cell keeps however badly it fits; see fouriscope.field.seams.
LEAST_CURVATURE = 0.01


def solve_bends(
    tiling: Tiling, scale: int, overlaps: Sequence[Overlap], corrections: Sequence[Correction]
) -> list[Correction]:
    """``corrections`` with the ``bend`` of each tile that brings neighbours together where they still differ.

    With ρ_c what is left in cell c after ``corrections``, w_c its weight beside an average cell, and S_k the surface of
    tile k with the coefficients b_k (:func:`~fouriscope.field.correction.edge_surfaces`), it minimises

        Σ_c w_c (ρ_c + S_first(r_c) − S_second(r_c))² + λ Σ_k |b_k|²,    λ = max(σ²/τ², ``FLATNESS`` · cells)

    by a few passes of least squares, in which cells count less the worse they fit. σ is how much neighbouring cells of
    an overlap differ, which is noise; τ is the rest of ρ, which is slow. If nothing is slow, nothing is bent. Of
    surfaces that fit equally well the second sum prefers the flattest: each of two neighbours goes half of the way.
    Surfaces end in the middle of a tile and constants do not change, so errors of many seams do not add up.
    """
    used = sorted((o for o in overlaps if o.weight > 0), key=lambda o: (o.first, o.second))
    if not used:
        return list(corrections)
    edges = [_Edge(tiling, scale, overlap, corrections) for overlap in used]
    cell = float(np.mean(np.concatenate([edge.weight.ravel() for edge in edges])))
    noise = np.average([edge.roughness for edge in edges], weights=[edge.weight.sum() for edge in edges])
    found = np.average([edge.spread for edge in edges], weights=[edge.weight.sum() for edge in edges])
    slow = float(found - noise)
    if slow <= noise:
        return list(corrections)
    first, second = (np.array([getattr(overlap, end) for overlap in used]) for end in ("first", "second"))
    network = Network(len(tiling), first, second, np.array([overlap.weight for overlap in used]))
    cells = float(np.mean([edge.weight.size for edge in edges]))
    damping = np.full(SIDES * (ORDER + 1), max(noise / slow, FLATNESS * cells))
    unknowns = len(damping)
    bends = np.zeros((len(tiling), unknowns))
    alike = np.tile(np.eye(2 * unknowns), (len(edges), 1, 1))
    for _ in range(PASSES):
        systems = [edge.system(bends[o.first], bends[o.second], cell) for edge, o in zip(edges, used, strict=True)]
        weights, pulls = (np.array(part) for part in zip(*systems, strict=True))
        bends = bends + network.least_squares(alike, weights, pulls, damping, bends, free=False)
    return [
        replace(correction, bend=tuple(float(value) for value in bend))
        for correction, bend in zip(corrections, bends, strict=True)
    ]


class _Edge:
    """The cells of one overlap: what is left there, and the surfaces of both tiles."""

    def __init__(self, tiling: Tiling, scale: int, overlap: Overlap, corrections: Sequence[Correction]) -> None:
        angle = np.angle(overlap.product).astype(np.float64)
        self.weight = np.abs(overlap.product).astype(np.float64)
        sides = []
        for index, sign in ((overlap.first, 1.0), (overlap.second, -1.0)):
            row, column, height, width = object_window(tiling[index], scale)
            y, x = overlap.rows - row - (height - 1) / 2, overlap.columns - column - (width - 1) / 2
            correction = corrections[index]
            plane = correction.phase + correction.ramp[0] * y[:, None] + correction.ramp[1] * x
            angle = angle + sign * plane
            sides.append(sign * edge_surfaces(2 * y / height, 2 * x / width).reshape(plane.size, -1))
        self.left = wrap(angle)
        self.basis = np.concatenate(sides, axis=1)

    @property
    def spread(self) -> float:
        """Mean square of what is left."""
        return float(np.average(self.left**2, weights=self.weight))

    @property
    def roughness(self) -> float:
        """Mean square of the noise of a cell: half of that of the difference of neighbours."""
        squares = weights = 0.0
        for left, weight in ((self.left, self.weight), (self.left.T, self.weight.T)):
            both = np.minimum(weight[1:], weight[:-1])
            squares += float((both * wrap(np.diff(left, axis=0)) ** 2).sum())
            weights += float(both.sum())
        return squares / weights / 2 if weights else 0.0

    def system(self, first: FloatArray, second: FloatArray, cell: float) -> tuple[FloatArray, FloatArray]:
        """Weights and pulls of one pass, in the unknowns of both tiles."""
        rest = wrap(self.left.ravel() + self.basis @ np.concatenate([first, second]))
        weight = self.weight.ravel() / cell * np.maximum(np.sinc(rest / np.pi), LEAST_CURVATURE)
        return (self.basis.T * weight) @ self.basis, self.basis.T @ (weight * rest)
