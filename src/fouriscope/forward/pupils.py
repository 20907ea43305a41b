"""The pupil as each LED sees it: moved by the fraction of a bin that the whole-bin crop leaves over."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.optics import Geometry, Pupil
from fouriscope.optics.pupil import disc
from fouriscope.parallel import run_sliced

# Above this, pupils are computed for each group of LEDs when they are needed instead of being kept. A clear pupil is a
# disc, computed in a twentieth of the time that its LED takes; the phase of an aberrated one would take longer than all
# the rest.
KEEP_AT_MOST_BYTES = 256 * 2**20
KEEP_CLEAR_AT_MOST_BYTES = 32 * 2**20
# Those that are not kept are computed for so many LEDs at a time.
AT_ONCE, AT_ONCE_AT_LEAST, AT_ONCE_BYTES = 64, 8, 24 * 2**20


def kept_bytes(geometry: Geometry, pupil: Pupil, dtype: np.dtype[Any]) -> int:
    """Bytes of the pupils that a model keeps: all of them, or none."""
    box = geometry.support_box
    size = len(geometry.na) * box.height * box.width * dtype.itemsize
    return size if size <= (KEEP_CLEAR_AT_MOST_BYTES if pupil.is_clear else KEEP_AT_MOST_BYTES) else 0


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
        self._stack: NDArray[Any] | None = None
        if kept_bytes(geometry, pupil, dtype):
            self._stack = self._evaluate(np.arange(len(geometry.na)))

    @property
    def nbytes(self) -> int:
        """Bytes that are kept."""
        return 0 if self._stack is None else self._stack.nbytes

    @property
    def at_once(self) -> int:
        """LEDs whose pupils should be asked for together: 64, or as many as fit into some bytes, but 8."""
        one = self.box_shape[0] * self.box_shape[1] * self.dtype.itemsize
        return min(AT_ONCE, max(AT_ONCE_AT_LEAST, AT_ONCE_BYTES // one))

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
        optics = self.geometry.optics

        def fill(start: int, stop: int) -> None:
            for b in range(start, stop):
                fraction_y, fraction_x = self.geometry.fractions[leds[b]]
                fy, fx = ((rows - fraction_y) * step_y)[:, None], ((columns - fraction_x) * step_x)[None, :]
                if self.pupil.is_clear:
                    stack[b] = disc(fy, fx, optics)
                else:
                    stack[b] = self.pupil.evaluate(fy, fx, optics, frequency_step=(step_y, step_x))

        run_sliced(fill, len(leds))
        return stack
