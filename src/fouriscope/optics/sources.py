"""Sources and frames: a frame is the incoherent sum of one or more coherent sources.

A source has a direction, a wavelength and a weight and belongs to one frame. An LED that is a point is one source of
weight 1. An LED with a size or a bandwidth has as many sources as its frame needs (docs/sources.md), and their
weights add up to 1. A pattern of several LEDs has the sources of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError

if TYPE_CHECKING:
    from fouriscope.optics.objective import Optics


class SourceGroup(NamedTuple):
    """Frames that are computed together.

    ``part`` is their slice of the requested frames. ``sources`` has their sources, one frame after the other. The b-th
    of these frames has ``sources[bounds[b] : bounds[b + 1]]``.
    """

    part: slice
    sources: NDArray[np.int64]
    bounds: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sources:
    """The sources of all frames. Those of frame j are at ``offsets[j]`` to ``offsets[j + 1]``.

    Attributes
    ----------
    na
        (M, 2) directions (na_y, na_x).
    weights
        (M,) w > 0 of y_j = Σ_m w_m |H_m o|².
    offsets
        (N + 1,) where the sources of each frame begin, and where the last ones end.
    scales
        (M,) λ/λ_m, the factor between the spatial frequencies of each source and those at λ. By default, all are 1.

    Examples
    --------
    >>> sources = Sources(np.zeros((3, 2)), np.array([1.0, 0.5, 0.5]), np.array([0, 1, 3]))
    >>> sources.frames.tolist(), sources.are_points
    ([0, 1, 1], False)
    >>> [(group.sources.tolist(), group.bounds.tolist()) for group in sources.groups(np.array([1, 0]), 2)]
    [([1, 2], [0, 2]), ([0], [0, 1])]
    """

    na: NDArray[np.float64]
    weights: NDArray[np.float64]
    offsets: NDArray[np.int64]
    scales: NDArray[np.float64] = field(default_factory=lambda: np.ones(0))

    def __post_init__(self) -> None:
        if not len(self.scales):
            object.__setattr__(self, "scales", np.ones(len(self.na)))
        counts = np.diff(self.offsets)
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.na) or len(self.weights) != len(self.na):
            raise InvalidInputError(
                f"offsets must run from 0 to the number of sources, {len(self.na)}, with a weight for each, "
                f"got {self.offsets[0]} to {self.offsets[-1]} and {len(self.weights)} weights"
            )
        if len(counts) and counts.min() < 1:
            raise InvalidInputError(f"every frame needs a source, but frame {int(counts.argmin())} has none")
        if self.scales.shape != self.weights.shape or not (np.isfinite(self.scales) & (self.scales > 0)).all():
            raise InvalidInputError(f"scales must be positive and finite, one for each of {len(self.na)} sources")
        if not (np.isfinite(self.weights).all() and (self.weights > 0).all()):
            raise InvalidInputError("weights of sources must be positive and finite")

    def direct_light(self, optics: Optics) -> NDArray[np.float64]:
        """(N,) the share of each frame's direct light that passes the pupil.

        >>> from fouriscope import Optics
        >>> optics = Optics(wavelength=513e-9, na=0.2, magnification=8, camera_pixel=6.5e-6)
        >>> places = np.array([[0.0, 0.1], [0.0, 0.19], [0.0, 0.21]])
        >>> Sources(places, np.array([1.0, 0.4, 0.6]), np.array([0, 1, 3])).direct_light(optics).tolist()
        [1.0, 0.4]
        """
        passing = optics.passes(np.hypot(self.na[:, 0], self.na[:, 1]))
        shares = np.add.reduceat(np.where(passing, self.weights, 0.0), self.offsets[:-1])
        return np.asarray(shares / np.add.reduceat(self.weights, self.offsets[:-1]))

    @classmethod
    def points(cls, na: NDArray[np.float64]) -> Sources:
        """One source of weight 1 for each frame."""
        return cls(na, np.ones(len(na)), np.arange(len(na) + 1))

    def __len__(self) -> int:
        return len(self.na)

    @cached_property
    def are_points(self) -> bool:
        """Whether every frame has one source, of weight 1."""
        return len(self.na) == len(self.offsets) - 1 and bool((self.weights == 1).all()) and self.have_one_colour

    @cached_property
    def have_one_colour(self) -> bool:
        """Whether all sources have the wavelength λ."""
        return bool((self.scales == 1).all())

    @cached_property
    def frames(self) -> NDArray[np.int64]:
        """(M,) the frame that each source belongs to."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @cached_property
    def most(self) -> int:
        """The largest number of sources that a frame has."""
        return int(np.diff(self.offsets).max())

    def of(self, frames: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(sources, bounds) of ``frames``, as in a :class:`SourceGroup`."""
        bounds = np.concatenate([[0], np.cumsum(self.offsets[frames + 1] - self.offsets[frames])])
        within = np.arange(bounds[-1]) - np.repeat(bounds[:-1], np.diff(bounds))
        return np.repeat(self.offsets[frames], np.diff(bounds)) + within, bounds

    def groups(self, frames: NDArray[np.int64], size: int) -> Iterator[SourceGroup]:
        """``frames`` in their order, in groups of at most ``size`` sources. A frame with more is a group by itself."""
        if self.are_points:
            for first in range(0, len(frames), size):
                part = slice(first, first + size)
                yield SourceGroup(part, frames[part], np.arange(len(frames[part]) + 1))
            return
        ends = np.cumsum(self.offsets[frames + 1] - self.offsets[frames])
        first = 0
        while first < len(frames):
            begun = ends[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(ends, begun + size, side="right")))
            yield SourceGroup(slice(first, last), *self.of(frames[first:last]))
            first = last
