"""The pupil as each LED sees it: moved by the fraction of a bin that the whole-bin crop leaves over."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.optics import Geometry, Pupil

# Above this, pupils are computed for each group of LEDs when they are needed instead of being kept.
KEEP_AT_MOST_BYTES = 256 * 2**20


class LEDPupils:
    """P((m − fraction_i) · du) on the support box, for every LED i.

    The disc is evaluated at the exact sub-bin coordinates and its edge is hard, so an LED just outside the pupil
    stays dark.
    """

    def __init__(self, geometry: Geometry, pupil: Pupil, dtype: np.dtype[Any]) -> None:
        self.geometry = geometry
        self.pupil = pupil
        self.dtype = dtype
        box = geometry.support_box
        self.box_shape = (box.height, box.width)
        count = len(geometry.na)
        self._stack: NDArray[Any] | None = None
        if count * box.height * box.width * dtype.itemsize <= KEEP_AT_MOST_BYTES:
            self._stack = self._evaluate(np.arange(count))

    @property
    def nbytes(self) -> int:
        """Bytes that are kept."""
        return 0 if self._stack is None else self._stack.nbytes

    def __call__(self, leds: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """(stack, index) such that ``stack[index[b]]`` is the pupil of ``leds[b]``."""
        if self._stack is not None:
            return self._stack, leds
        return self._evaluate(leds), np.arange(len(leds))

    def _evaluate(self, leds: NDArray[np.int64]) -> NDArray[Any]:
        box = self.geometry.support_box
        step_y, step_x = self.geometry.frequency_step
        rows = np.arange(box.row0, box.row0 + box.height)
        columns = np.arange(box.col0, box.col0 + box.width)
        stack = np.empty((len(leds), box.height, box.width), self.dtype)
        for b, led in enumerate(leds):
            fraction_y, fraction_x = self.geometry.fractions[led]
            stack[b] = self.pupil.evaluate(
                ((rows - fraction_y) * step_y)[:, None],
                ((columns - fraction_x) * step_x)[None, :],
                self.geometry.optics,
                frequency_step=(step_y, step_x),
            )
        return stack
