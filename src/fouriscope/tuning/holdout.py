"""Measurements to set aside: a few LEDs, spread over the bright field and over all angles of the dark field."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError
from fouriscope.optics import Geometry

SHARE = 0.08
AT_LEAST = 6


def hold_out(
    geometry: Geometry, population: NDArray[np.int64], count: int | None, rng: np.random.Generator
) -> NDArray[np.int64]:
    """``count`` LEDs of ``population`` (8 %, at least 6, by default), stratified by their illumination NA.

    The population is sorted from the axis outwards and cut into ``count`` groups of equal size, and one LED is drawn
    from each. So the bright field is represented by its share, and no part of the dark field is left out.

    Parameters
    ----------
    geometry
        Where the LEDs are.
    population
        Numbers of the LEDs to choose from.
    count
        How many. By default 8 %, but at least 6.
    rng
        Draws them.

    Examples
    --------
    >>> from fouriscope.paper import paper_model
    >>> geometry = paper_model().geometry
    >>> held = hold_out(geometry, np.arange(293), None, np.random.default_rng(0))
    >>> len(held), int(geometry.bright_field[held].sum())
    (23, 3)
    """
    if count is None:
        count = max(AT_LEAST, round(SHARE * len(population)))
    if not 1 <= count <= len(population) // 2:
        raise InvalidInputError(
            f"between 1 and {len(population) // 2} of {len(population)} frames can be held out, got {count}; with so "
            "few frames, give the strength by hand or tune against a truth"
        )
    outwards = population[np.argsort(geometry.illumination_na[population], kind="stable")]
    return np.sort([int(rng.choice(group)) for group in np.array_split(outwards, count)])
