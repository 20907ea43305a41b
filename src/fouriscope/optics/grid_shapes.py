"""How many pixels frame and object have."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Literal

from fouriscope.errors import InvalidInputError
from fouriscope.optics.objective import Optics

Band = Literal["intensity", "field"]


def automatic_object_shape(
    optics: Optics, largest_illumination_na: float, grid_shape: tuple[int, int], band: Band = "intensity"
) -> tuple[int, int]:
    """The object's shape that holds the *intensity* spectrum of everything the illumination reaches, or its *field*.

    On each axis of Np frame pixels, with du = 1/(Np·pixel), the factor is ceil(2·round(2·(NA_ill + NA)/λ/du)/Np) for
    the intensity, and about half of it for the field. The larger factor serves both axes, so that object pixels stay
    square, and the object has factor × Np pixels.

    Parameters
    ----------
    optics
        The objective and the camera.
    largest_illumination_na
        NA of the outermost LED.
    grid_shape
        (rows, columns) of a frame, margins included.
    band
        "intensity", or "field" for the smaller grid that holds only the field.

    Examples
    --------
    >>> optics = Optics(wavelength=513e-9, na=0.2, magnification=8.1485, camera_pixel=6.5e-6)
    >>> automatic_object_shape(optics, 0.4766, (100, 100))
    (500, 500)
    >>> automatic_object_shape(optics, 0.4766, (100, 100), band="field")
    (300, 300)
    """
    reach = (largest_illumination_na + optics.na) / optics.wavelength
    factor = 1
    for size in grid_shape:
        reach_in_bins = reach * size * optics.pixel
        by_rule = math.ceil(2 * round(2 * reach_in_bins) / size)
        # A reach below two bins can round to too little; a crop on whole bins extends up to one bin beyond the reach.
        by_need = math.ceil((2 * reach_in_bins + 3) / size)
        factor = max(factor, by_need, by_rule if band == "intensity" else 1)
    return factor * grid_shape[0], factor * grid_shape[1]


def require_shape(name: str, shape: Sequence[int]) -> tuple[int, int]:
    """(rows, columns) as two integers; raises if they are not integers, or too small."""
    try:
        rows, columns = (operator.index(size) for size in shape)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{name} must be two integers (rows, columns), got {shape!r}.") from None
    if rows < 4 or columns < 4:
        raise InvalidInputError(f"{name} must be at least 4 pixels on each axis, got {shape!r}.")
    return rows, columns


def require_margin(margin: int) -> int:
    """The margin as an integer; raises if it is not one."""
    try:
        border = operator.index(margin)
    except TypeError:
        raise InvalidInputError(f"margin must be a whole number of frame pixels, got {margin!r}.") from None
    if border < 0:
        raise InvalidInputError(f"margin must not be negative, got {border}; 0 is no margin.")
    return border
