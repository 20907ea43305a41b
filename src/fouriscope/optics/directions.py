"""Illumination directions given as numerical apertures, instead of an array of LEDs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fouriscope.checks import door_class
from fouriscope.errors import InvalidInputError
from fouriscope.optics._points import FloatArray, read_only_pairs, require_point, select, sines, told_of_directions
from fouriscope.optics.die import DieShape, Spread
from fouriscope.optics.illumination import Illumination, require_height


@door_class
@dataclass(frozen=True, eq=False, init=False, repr=False)
class Directions:
    """Illumination directions that are known as such, from a calibration or a goniometer.

    Parameters
    ----------
    na
        (N, 2) array of (na_y, na_x) on the optical axis; |na| < 1.
    height
        Distance of the LEDs in metres, needed for patches off the axis, from which each LED is seen at another angle.
        Without it, directions are known only for the patch on the axis.

    Examples
    --------
    >>> Directions([(0.0, 0.6)], height=40e-3).directions(patch_center=(0.0, 30e-3)).round(12).tolist()
    [[0.0, 0.0]]
    """

    na: FloatArray
    height: float | None = None

    def __init__(self, na: ArrayLike, height: float | None = None) -> None:
        pairs = read_only_pairs("directions", "(na_y, na_x)", na)
        sizes = np.hypot(pairs[:, 0], pairs[:, 1])
        if sizes.max() >= 1:
            worst = int(sizes.argmax())
            raise InvalidInputError(
                f"directions must have |na| < 1 in air, got {sizes[worst]:.4g} for LED {worst}; "
                "give sines of angles, not angles or positions."
            )
        object.__setattr__(self, "na", pairs)
        object.__setattr__(self, "height", None if height is None else require_height(height))

    def __len__(self) -> int:
        return len(self.na)

    def __repr__(self) -> str:
        height = "" if self.height is None else f", {self.height * 1e3:.4g} mm below the sample"
        return f"Directions: {told_of_directions(self.na)}{height}"

    def directions(self, patch_center: tuple[float, float] = (0.0, 0.0)) -> FloatArray:
        """(N, 2) array of (na_y, na_x) at the patch centred ``patch_center`` = (y, x) metres from the optical axis."""
        center = require_point("patch_center", patch_center)
        if center == (0.0, 0.0):
            return self.na.copy()
        if self.height is None:
            raise InvalidInputError(
                f"directions are known on the optical axis only, but patch_center is {center} m; "
                "give Directions(na, height=…) or an LEDArray, or use patch_center=(0, 0)."
            )
        cosine = np.sqrt(1 - np.sum(self.na**2, axis=1, keepdims=True))
        return sines(self.height * self.na / cosine - np.asarray(center), self.height)

    def subset(self, indices: ArrayLike) -> Directions:
        """Only the directions of ``indices`` (integers, or a boolean mask), in that order."""
        return Directions(select(self.na, indices), self.height)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Adjusted:
    """Any illumination with each of its directions moved a little: what a calibration found LED by LED.

    Parameters
    ----------
    base
        The illumination as it was believed to be.
    shifts
        (N, 2) array of (na_y, na_x) that are added to its directions, wherever the patch lies.

    Examples
    --------
    >>> Adjusted(Directions([(0.0, 0.1)]), [(0.01, 0.0)]).directions().round(12).tolist()
    [[0.01, 0.1]]
    """

    base: Illumination
    shifts: FloatArray

    def __init__(self, base: Illumination, shifts: ArrayLike) -> None:
        pairs = read_only_pairs("shifts", "(na_y, na_x)", shifts)
        if len(pairs) != len(base):
            raise InvalidInputError(f"one shift for each of {len(base)} LEDs is needed, got {len(pairs)}.")
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "shifts", pairs)

    def __len__(self) -> int:
        return len(self.base)

    def __repr__(self) -> str:
        return f"Adjusted: {self.base!r}, each moved by up to NA {np.hypot(*self.shifts.T).max():.2g}"

    @property
    def height(self) -> float | None:
        """The height of the base, which patches off the axis need."""
        height: float | None = getattr(self.base, "height", None)
        return height

    @property
    def die(self) -> float:
        """The size of the base's LEDs; 0 is a point."""
        return self.base.die if isinstance(self.base, Spread) else 0.0

    @property
    def die_shape(self) -> DieShape:
        return self.base.die_shape if isinstance(self.base, Spread) else "square"

    def die_directions(self, points: FloatArray, patch_center: tuple[float, float] = (0.0, 0.0)) -> FloatArray:
        """(N, K, 2) directions under which ``points`` (K, 2) of each LED's die are seen, in units of its side."""
        if not isinstance(self.base, Spread):
            return np.repeat(self.directions(patch_center)[:, None], len(points), axis=1)
        moved: FloatArray = self.base.die_directions(points, patch_center) + self.shifts[:, None]
        return moved

    def directions(self, patch_center: tuple[float, float] = (0.0, 0.0)) -> FloatArray:
        """(N, 2) array of (na_y, na_x) at the patch centred ``patch_center`` = (y, x) metres from the optical axis."""
        moved: FloatArray = self.base.directions(patch_center) + self.shifts
        return moved
