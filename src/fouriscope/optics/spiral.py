"""LEDs that are lit in a square spiral, from the centre outwards."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fouriscope.errors import InvalidInputError
from fouriscope.optics._points import FloatArray

Start = Literal["right", "down", "left", "up"]
_STEPS = {"right": (0, 1), "down": (1, 0), "left": (0, -1), "up": (-1, 0)}  # clockwise, as a frame is shown


def spiral_steps(count: int, *, even: bool = False, start: Start = "right", clockwise: bool = True) -> FloatArray:
    """(row, column) of ``count`` LEDs, in pitches from the centre: 1 step, turn, 1, turn, 2, turn, 2, turn, 3 …

    Rows run down and columns to the right, as in a frame. The spiral of an array with an odd side begins in its middle.
    That of an ``even`` side begins at the one of the four central LEDs from which the first two steps go around the
    middle: to the right and clockwise, the upper left one.

    >>> spiral_steps(5).astype(int).tolist()
    [[0, 0], [0, 1], [1, 1], [1, 0], [1, -1]]
    >>> spiral_steps(4, even=True).tolist()
    [[-0.5, -0.5], [-0.5, 0.5], [0.5, 0.5], [0.5, -0.5]]
    """
    if start not in _STEPS:
        raise InvalidInputError(f"start must be 'right', 'down', 'left' or 'up', got {start!r}")
    names = list(_STEPS)
    turn = 1 if clockwise else -1
    heading = names.index(start)
    place = np.zeros(2)
    if even:
        place = -(np.array(_STEPS[start]) + np.array(_STEPS[names[(heading + turn) % 4]])) / 2
    places, length = [place], 1
    while len(places) < count:
        for _ in range(2):
            for _ in range(length):
                place = place + _STEPS[names[heading]]
                places.append(place)
            heading = (heading + turn) % 4
        length += 1
    return np.array(places[:count])
