"""How the LED array may be oriented relative to the axes of the camera."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Orientation(NamedTuple):
    """How the LEDs are oriented relative to the camera's axes.

    Attributes
    ----------
    transposed
        Whether (y, x) becomes (x, y), before the signs.
    flip_y, flip_x
        Whether the sign of each axis changes.
    """

    transposed: bool
    flip_y: bool
    flip_x: bool

    def __call__(self, positions: Floats) -> Floats:
        turned = positions[:, ::-1] if self.transposed else positions
        return turned * np.where([self.flip_y, self.flip_x], -1.0, 1.0)

    def __str__(self) -> str:
        words = [
            *(["x and y exchanged"] if self.transposed else []),
            *(["y reversed"] if self.flip_y else []),
            *(["x reversed"] if self.flip_x else []),
        ]
        return ", ".join(words) or "as described"

    @property
    def twin(self) -> Orientation:
        """The one that intensities cannot tell from this one."""
        return Orientation(self.transposed, not self.flip_y, not self.flip_x)


AS_DESCRIBED = Orientation(transposed=False, flip_y=False, flip_x=False)
# One of each pair of twins: those nearest to the description.
ORIENTATIONS = (
    AS_DESCRIBED,
    Orientation(transposed=False, flip_y=True, flip_x=False),
    Orientation(transposed=True, flip_y=False, flip_x=False),
    Orientation(transposed=True, flip_y=True, flip_x=False),
)
