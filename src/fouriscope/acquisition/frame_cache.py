"""Which frames are worth their memory: a cache that knows in which order frames are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.errors import InvalidInputError

# Places in the plan count from 0. NOW comes before them all; a frame that the plan does not name is wanted after them
# all, the one that was used last the soonest (iterations like to come back to the frames they just saw).
NOW = -1
UNKNOWN = 2**62


class FrameCache:
    """Frames that fit into a budget, and the order in which they are wanted.

    When room is needed, the frame that is wanted *last* is dropped, but never for one that is wanted even later. If the
    whole future is known, no rule reads fewer frames (Belady, 1966). In repeated passes over a stack, a cache of a
    third of its size keeps a third; the rule "least recently used" would keep nothing.

    All frames lie in one array, with as many slots as fit, and go in and out as copies: memory freed in pieces would
    stay with the process. Not safe from several threads;
    :class:`fouriscope.acquisition.streaming.StreamedFrames` holds a lock around it.

    Parameters
    ----------
    shape, dtype
        (frames, rows, columns) of the stack, and its numbers.
    slots
        Frames that fit into memory; those that are being read count.
    """

    def __init__(self, shape: tuple[int, int, int], dtype: np.dtype[Any], slots: int) -> None:
        count = shape[0]
        self._layout = ((min(slots, count), *shape[1:]), dtype)
        self._slots = np.empty((0, 0, 0), dtype)
        self._free: list[int] = []
        self._slot_of: dict[int, int] = {}
        self.reserved = 0
        self._held = np.zeros(count, bool)
        self._last_use = np.zeros(count, np.int64)
        self._wanted = np.full(count, UNKNOWN, np.int64)
        self._clock, self._latest = 0, -1
        self._plan: list[int] = []
        self._places: dict[int, list[int]] = {}
        self._next = 0

    @property
    def complete(self) -> bool:
        """Whether every frame is here, so that nothing is left to plan."""
        return len(self._slot_of) == len(self._held)

    @property
    def nbytes(self) -> int:
        """Bytes that are taken now."""
        return self._slots.nbytes

    def plan(self, indices: Sequence[int]) -> None:
        """From now on frames are wanted in this order. The plan before is forgotten."""
        wrong = [index for index in indices if not 0 <= index < len(self._held)]
        if wrong:
            raise InvalidInputError(f"frames are 0 to {len(self._held) - 1}, got {wrong[0]} to read ahead")
        self._plan, self._next, self._latest = list(indices), 0, -1
        self._places = {}
        for place in reversed(range(len(self._plan))):  # the soonest at the end, where it is popped
            self._places.setdefault(self._plan[place], []).append(place)
        self._wanted[:] = UNKNOWN - self._last_use
        for index, places in self._places.items():
            self._wanted[index] = places[-1]

    def want_now(self, index: int) -> None:
        """A caller waits for this frame: it comes before all others."""
        self._wanted[index] = NOW

    def take(self, index: int) -> NDArray[Any] | None:
        """The frame if it is here. It counts as used, and is then wanted at its next place in the plan."""
        slot = self._slot_of.get(index)
        if slot is None:
            return None
        self.mark_used(index)
        image: NDArray[Any] = self._slots[slot].copy()
        return image

    def mark_used(self, index: int) -> None:
        """Remove the frame's next place from the plan.

        A mask of saturated pixels looks at the frame that was read just before it. That counts as one use, not two, and
        the frame stays until another one is used.
        """
        if index == self._latest:
            return
        before, self._latest = self._latest, index
        self._clock += 1
        self._last_use[index] = self._clock
        if self._places.get(index):
            self._places[index].pop()
        self._wanted[index] = NOW
        if before >= 0:
            places = self._places.get(before)
            self._wanted[before] = places[-1] if places else UNKNOWN - self._last_use[before]

    def upcoming(self, busy: set[int]) -> tuple[int, int] | None:
        """(frame, place) that the plan wants next and that is neither here nor in ``busy``."""
        first = True
        for place in range(self._next, len(self._plan)):
            index = self._plan[place]
            places = self._places[index]
            done = index in self._slot_of or not places or places[-1] > place
            if not done and index not in busy:
                return index, place
            first = first and done
            if first:
                self._next = place + 1  # never looked at again
        return None

    def make_room(self, place: int) -> bool:
        """Drop frames wanted later than ``place`` until an unreserved slot is free; False if there is none."""
        if not len(self._slots):
            self._slots = np.empty(*self._layout)
            self._free = list(range(len(self._slots)))
        while len(self._free) <= self.reserved:
            victim = int(np.argmax(np.where(self._held, self._wanted, NOW)))
            if not self._held[victim] or self._wanted[victim] <= place:
                return False
            self._free.append(self._slot_of.pop(victim))
            self._held[victim] = False
            if self._wanted[victim] < len(self._plan):
                self._next = min(self._next, int(self._wanted[victim]))
        return True

    def put(self, index: int, image: NDArray[Any]) -> None:
        """Keep a copy of the frame, unless there is no slot for it and all others are wanted sooner."""
        if index in self._slot_of or not self.make_room(int(self._wanted[index])):
            return
        slot = self._slot_of[index] = self._free.pop()
        self._held[index] = True
        self._slots[slot] = image

    def arrived(self, indices: Sequence[int]) -> list[int]:
        """Frames that were read together, in the order in which they are wanted.

        Those that the plan does not name count as just used: neighbours of a frame in its chunk are often wanted next.
        """
        self._clock += 1
        for index in indices:
            if self._wanted[index] >= len(self._plan):
                self._last_use[index] = self._clock
                self._wanted[index] = UNKNOWN - self._clock
        return sorted(indices, key=lambda index: int(self._wanted[index]))

    def clear(self) -> None:
        """Forget every frame and the plan, and give the memory back."""
        self._slots, self._free, self._slot_of = self._slots[:0].copy(), [], {}
        self._held[:] = False
        self.plan([])
