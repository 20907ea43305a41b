"""Where the light comes from: LED arrays, or anything else that knows its directions.

Every illumination answers one question: from which direction does each LED light the patch that is imaged?
The answer is (na_y, na_x) = the sine of the angle in air, along each axis. An LED at +x has +na_x.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, SupportsIndex, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from fouriscope.checks import door, door_class
from fouriscope.errors import InvalidInputError
from fouriscope.optics._points import (
    FloatArray,
    read_only_pairs,
    require_count,
    require_few,
    require_point,
    select,
    sines,
    told_of_directions,
)
from fouriscope.optics.die import DieShape, require_die, require_room
from fouriscope.optics.objective import require_finite, require_positive, require_within
from fouriscope.optics.rings import ring_points
from fouriscope.optics.slide import GlassSlide, tangent_through_slide
from fouriscope.optics.spiral import Start, spiral_steps

_FARTHEST = 1e3  # metres, of heights and distances


def require_height(height: object) -> float:
    """The height of LEDs, which must be plausible for a light source in a building."""
    return require_within("height", require_positive("height", height), 1e-6, _FARTHEST, "metres: 70 mm is 70e-3")


@runtime_checkable
class Illumination(Protocol):
    """What :class:`~fouriscope.optics.geometry.Geometry` needs from a light source."""

    def __len__(self) -> int:
        """Number of LEDs, which is the number of frames."""
        ...

    def directions(self, patch_center: tuple[float, float] = (0.0, 0.0)) -> FloatArray:
        """(N, 2) array of (na_y, na_x) at the patch centred ``patch_center`` = (y, x) metres from the optical axis."""
        ...


@door_class
@dataclass(frozen=True, eq=False, repr=False)
class LEDArray:
    """LEDs in a plane below the sample.

    Seen from the patch, an LED at the lateral distance ρ = R(rotation)·position + offset − patch_center and the
    height h has the numerical aperture ρ/√(ρ² + h²). A glass slide of thickness t and index n within h bends the ray:
    its angle θ in air solves (h − t)·tan θ + t·tan θ_g = ρ with sin θ = n·sin θ_g.

    Parameters
    ----------
    positions
        (N, 2) array of (y, x) in metres, in the array's own frame.
    height
        h, from the plane of the LEDs to the sample, slide included, in metres.
    rotation
        Rotation of the array about its own origin, in radians, from x towards y.
    offset
        (y, x) in metres: lateral displacement of the array, after the rotation.
    slide
        The glass slide, if its refraction matters.
    die
        How large the light-emitting part of an LED is: the side of a square, parallel to the array's axes, or the
        diameter of a disc, in metres. 0 is a point. See docs/sources.md.
    die_shape
        "square" or "round".

    Examples
    --------
    >>> leds = LEDArray.disc(pitch=4e-3, height=70e-3, radius=9.5)
    >>> leds
    LEDArray: 293 LEDs up to NA 0.477, 70 mm below the sample
    >>> LEDArray.at([(0.0, 30e-3)], height=40e-3).directions().tolist()
    [[0.0, 0.6]]
    """

    positions: FloatArray
    height: float
    rotation: float = 0.0
    offset: tuple[float, float] = (0.0, 0.0)
    slide: GlassSlide | None = None
    die: float = 0.0
    die_shape: DieShape = "square"

    def __post_init__(self) -> None:
        object.__setattr__(self, "positions", read_only_pairs("LED positions", "(y, x) in metres", self.positions))
        object.__setattr__(self, "height", require_height(self.height))
        require_within(
            "the distance of an LED from the axis", float(np.abs(self.positions).max()), 0, _FARTHEST, "metres"
        )
        object.__setattr__(self, "rotation", require_finite("rotation", self.rotation))
        object.__setattr__(self, "offset", require_point("offset", self.offset))
        if self.slide is not None and self.slide.thickness >= self.height:
            raise InvalidInputError(
                f"the slide must be thinner than height = {self.height:g} m, got {self.slide.thickness:g} m; "
                "height runs from the LEDs to the sample and contains the slide."
            )
        object.__setattr__(self, "die", require_die(self.die, self.die_shape))
        if self.die and len(self.positions) > 1:
            require_room(self.die, self.positions)

    @classmethod
    @door
    def at(
        cls,
        positions: ArrayLike,
        height: float,
        *,
        rotation: float = 0.0,
        offset: tuple[float, float] = (0.0, 0.0),
        slide: GlassSlide | None = None,
        die: float = 0.0,
        die_shape: DieShape = "square",
    ) -> LEDArray:
        """LEDs anywhere: ``positions`` is (N, 2), (y, x) in metres."""
        pairs = read_only_pairs("LED positions", "(y, x) in metres", positions)
        return cls(pairs, height, rotation, offset, slide, die, die_shape)

    @classmethod
    @door
    def square(
        cls,
        shape: SupportsIndex | tuple[SupportsIndex, SupportsIndex],
        pitch: float,
        height: float,
        *,
        rotation: float = 0.0,
        offset: tuple[float, float] = (0.0, 0.0),
        slide: GlassSlide | None = None,
        die: float = 0.0,
        die_shape: DieShape = "square",
    ) -> LEDArray:
        """A lattice of ``shape`` = (rows, columns), or n for n × n, centred on the origin, in row-major order."""
        sizes = shape if isinstance(shape, Sequence | np.ndarray) else (shape, shape)
        if len(sizes) != 2:
            raise InvalidInputError(f"shape must be n or (rows, columns), got {shape!r}.")
        rows, columns = (require_count("shape", size) for size in sizes)
        if rows < 1 or columns < 1:
            raise InvalidInputError(f"shape must be at least 1 row and 1 column of LEDs, got {shape!r}.")
        require_few(rows * columns)
        step = require_positive("pitch", pitch)
        y = (np.arange(rows, dtype=np.float64) - (rows - 1) / 2) * step
        x = (np.arange(columns, dtype=np.float64) - (columns - 1) / 2) * step
        return cls.at(
            _row_major(y, x), height, rotation=rotation, offset=offset, slide=slide, die=die, die_shape=die_shape
        )

    @classmethod
    @door
    def disc(
        cls,
        pitch: float,
        height: float,
        radius: float,
        *,
        rotation: float = 0.0,
        offset: tuple[float, float] = (0.0, 0.0),
        slide: GlassSlide | None = None,
        die: float = 0.0,
        die_shape: DieShape = "square",
    ) -> LEDArray:
        """The lattice points nearer to the origin than ``radius``, counted in pitches, in row-major order."""
        require_few(math.pi * require_positive("radius", radius) ** 2)
        reach = math.ceil(radius)
        steps = np.arange(-reach, reach + 1, dtype=np.float64)
        lattice = _row_major(steps, steps)
        inside = np.hypot(lattice[:, 0], lattice[:, 1]) < radius
        positions = lattice[inside] * require_positive("pitch", pitch)
        return cls.at(positions, height, rotation=rotation, offset=offset, slide=slide, die=die, die_shape=die_shape)

    @classmethod
    @door
    def spiral(
        cls,
        size: SupportsIndex,
        pitch: float,
        height: float,
        *,
        count: SupportsIndex | None = None,
        start: Start = "right",
        clockwise: bool = True,
        rotation: float = 0.0,
        offset: tuple[float, float] = (0.0, 0.0),
        slide: GlassSlide | None = None,
        die: float = 0.0,
        die_shape: DieShape = "square",
    ) -> LEDArray:
        """``size`` × ``size`` LEDs of a square lattice, lit in a spiral from the centre, or the first ``count``.

        The first step goes to the ``start``, right (+x), down (+y, along the rows of a frame), left or up; then the
        spiral turns ``clockwise`` as a frame is shown, or the other way. If ``size`` is even, it begins at one of the
        four central LEDs (:func:`fouriscope.optics.spiral.spiral_steps`).

        Examples
        --------
        >>> (LEDArray.spiral(4, 2e-3, 70e-3, count=3).positions * 1e3).tolist()
        [[-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]
        """
        side = require_count("size", size)
        lit = side**2 if count is None else require_count("count", count)
        if side < 1 or not 1 <= lit <= side**2:
            raise InvalidInputError(
                f"a spiral must have a size of at least 1 and a count from 1 to size² = {side**2}, got a count of {lit}"
            )
        require_few(lit)
        steps = spiral_steps(lit, even=side % 2 == 0, start=start, clockwise=clockwise)
        return cls.at(
            steps * require_positive("pitch", pitch),
            height,
            rotation=rotation,
            offset=offset,
            slide=slide,
            die=die,
            die_shape=die_shape,
        )

    @classmethod
    @door
    def rings(
        cls,
        radii: Sequence[float],
        counts: Sequence[SupportsIndex],
        height: float,
        *,
        start_angle: float = 0.0,
        rotation: float = 0.0,
        offset: tuple[float, float] = (0.0, 0.0),
        slide: GlassSlide | None = None,
        die: float = 0.0,
        die_shape: DieShape = "square",
    ) -> LEDArray:
        """Concentric rings of ``radii`` metres with ``counts`` LEDs each; radius 0 with count 1 is a centre LED.

        The first LED of each ring lies at ``start_angle`` (radians from x towards y), the others follow in equal steps.
        """
        return cls.at(
            ring_points(radii, counts, start_angle),
            height,
            rotation=rotation,
            offset=offset,
            slide=slide,
            die=die,
            die_shape=die_shape,
        )

    def __len__(self) -> int:
        return len(self.positions)

    def __repr__(self) -> str:
        told = [told_of_directions(self.directions()), f"{self.height * 1e3:.4g} mm below the sample"]
        if self.rotation:
            told.append(f"turned by {math.degrees(self.rotation):.3g}°")
        if any(self.offset):
            told.append("displaced by ({:.3g}, {:.3g}) mm".format(*(1e3 * part for part in self.offset)))
        if self.slide is not None:
            told.append(f"{self.slide.thickness * 1e3:.3g} mm of glass")
        if self.die:
            told.append(f"{'dies' if self.die_shape == 'square' else 'round dies'} of {self.die * 1e3:.3g} mm")
        return f"LEDArray: {', '.join(told)}"

    def directions(self, patch_center: tuple[float, float] = (0.0, 0.0)) -> FloatArray:
        """(N, 2) array of (na_y, na_x) at the patch centred ``patch_center`` = (y, x) metres from the optical axis."""
        return self._directions(self.positions, patch_center)

    def die_directions(self, points: FloatArray, patch_center: tuple[float, float] = (0.0, 0.0)) -> FloatArray:
        """(N, K, 2) directions under which ``points`` (K, 2) of each LED's die are seen, in units of its side."""
        places = self.positions[:, None] + self.die * np.asarray(points)
        return self._directions(places.reshape(-1, 2), patch_center).reshape(places.shape)

    def _directions(self, positions: FloatArray, patch_center: tuple[float, float]) -> FloatArray:
        cos, sin = math.cos(self.rotation), math.sin(self.rotation)
        y, x = positions.T
        rotated = np.stack([x * sin + y * cos, x * cos - y * sin], axis=1)
        lateral = rotated + np.asarray(self.offset) - np.asarray(require_point("patch_center", patch_center))
        if self.slide is None:
            return sines(lateral, self.height)
        distance = np.hypot(lateral[:, 0], lateral[:, 1])
        tangent = tangent_through_slide(distance, self.height, self.slide)
        # The plane of incidence holds the ray, so refraction changes its slope but not its azimuth.
        azimuth = np.divide(lateral, distance[:, None], out=np.zeros_like(lateral), where=distance[:, None] > 0)
        return sines(azimuth * tangent[:, None], 1.0)

    @classmethod
    @door
    def from_directions(cls, na: ArrayLike, height: float = 1.0) -> LEDArray:
        """LEDs at ``height`` that shine from the directions ``na`` = (na_y, na_x) on the optical axis.

        Examples
        --------
        >>> LEDArray.from_directions([(0.0, 0.6)], height=40e-3).positions.round(12).tolist()
        [[0.0, 0.03]]
        """
        pairs = read_only_pairs("directions", "(na_y, na_x)", na)
        return cls(pairs / np.sqrt(1 - np.sum(pairs**2, axis=1, keepdims=True)) * height, height)

    @door
    def moved(
        self, *, shift: tuple[float, float] = (0.0, 0.0), turn: float = 0.0, height: float = 1.0, pitch: float = 1.0
    ) -> LEDArray:
        """The array as a rigid body, displaced by ``shift`` = (y, x) in metres and turned by ``turn`` radians, with
        its height and the distances between its LEDs multiplied by ``height`` and ``pitch``."""
        return replace(
            self,
            positions=self.positions * pitch,
            height=self.height * height,
            rotation=self.rotation + turn,
            offset=(self.offset[0] + shift[0], self.offset[1] + shift[1]),
        )

    def subset(self, indices: ArrayLike) -> LEDArray:
        """The same array with only the LEDs of ``indices`` (integers, or a boolean mask), in that order."""
        return replace(self, positions=select(self.positions, indices))


def _row_major(y: FloatArray, x: FloatArray) -> FloatArray:
    return np.stack(np.meshgrid(y, x, indexing="ij"), axis=-1).reshape(-1, 2)
