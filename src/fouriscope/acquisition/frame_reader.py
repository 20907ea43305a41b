"""Which thread reads which frame, and when: the callers' threads and one in the background share a cache."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriscope.acquisition.frame_cache import NOW, FrameCache
from fouriscope.acquisition.frames import Frames
from fouriscope.acquisition.stored import StoredFrames

# Of frames that are compressed together, at most this part of the budget is read at once.
BLOCK_SHARE = 4


class FrameReader:
    """What the caller's threads and the background thread share: the cache, and which thread reads what."""

    def __init__(self, frames: Frames, shape: tuple[int, int, int], dtype: np.dtype[Any], room: int) -> None:
        self.frames = frames
        self.reads = self.hits = 0
        self._at_once = max(1, room // BLOCK_SHARE)
        # Of the room for this many frames, the ones being read take their part.
        self.cache = FrameCache(shape, dtype, room - max(map(len, map(self._block_of, range(shape[0])))))
        self.renew()
        _readers.add(self)

    def renew(self) -> None:
        """Nobody is reading: at the start, and in a forked child, where the threads of the parent are not."""
        self._changed = threading.Condition()
        self._busy: set[int] = set()
        self._errors: dict[int, Exception] = {}
        self._waiting, self._starved, self._stopped = 0, False, False
        self._thread: threading.Thread | None = None
        self.cache.reserved = 0
        self.cache.clear()

    def frame(self, index: int) -> NDArray[Any]:
        with self._changed:
            while True:
                image = self.cache.take(index)
                if image is not None:
                    self.hits += 1
                    if self._starved:
                        self._changed.notify_all()  # this frame may make room for another now
                    return image
                if index in self._errors:
                    raise self._errors.pop(index)
                block = self._block_of(index)
                self.cache.want_now(index)
                if index not in self._busy and (self.cache.make_room(NOW) or not self._busy):
                    break
                self._waiting += 1
                try:
                    self._changed.wait()
                finally:
                    self._waiting -= 1
            self._begin(block)
        image = self._finish(block)[index]
        with self._changed:
            self.cache.mark_used(index)
        # Alone, without the block it was read with, and the caller's own.
        return np.array(image)

    def prefetch(self, indices: list[int]) -> None:
        with self._changed:
            self.cache.plan(indices)
            self._errors.clear()
            self._stopped = False
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._read_ahead, name="fouriscope-frames", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def stop(self, *, wait: bool = False) -> None:
        """End the thread after the frame it is reading. ``wait`` for that, and free the memory; never while garbage is
        collected, which may happen in the middle of a library that the thread needs."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
            thread = self._thread
        if wait:
            if thread is not None:
                thread.join()
            with self._changed:
                self.cache.clear()

    def _read_ahead(self) -> None:
        """The background thread."""
        while True:
            with self._changed:
                while not self._stopped and (block := self._next_block()) is None:
                    self._changed.wait()
                if self._stopped:
                    return
                assert block is not None
                self._begin(block)
            try:
                self._finish(block)
            except Exception as error:  # noqa: BLE001  (whatever it is, it belongs to whoever asks for the frame)
                with self._changed:
                    self._errors |= dict.fromkeys(block, error)
                    self._changed.notify_all()

    def _next_block(self) -> range | None:
        # While a caller waits, nothing is begun, and the caller that takes its frame must wake this thread again.
        self._starved = self._waiting > 0
        # A caller that waits for a frame reads it itself if there is room: do not take that room away.
        upcoming = None if self._waiting else self.cache.upcoming(self._busy | self._errors.keys())
        if upcoming is None:
            return None
        index, place = upcoming
        if self.cache.make_room(place):
            return self._block_of(index)
        self._starved = True
        return None

    def _block_of(self, index: int) -> range:
        """The frames to read together with ``index``: those that are decompressed with it, as far as memory allows."""
        together = self.frames.together(index) if isinstance(self.frames, StoredFrames) else range(index, index + 1)
        start = together.start + (index - together.start) // self._at_once * self._at_once
        return range(start, min(start + self._at_once, together.stop))

    def _begin(self, block: range) -> None:
        self._busy.update(block)
        self.cache.reserved += 1  # for the frame that was asked for; its companions take what is left

    def _finish(self, block: range) -> dict[int, NDArray[Any]]:
        """Read outside the lock, then keep what is worth it."""
        try:
            if len(block) > 1:
                assert isinstance(self.frames, StoredFrames)
                images = dict(zip(block, self.frames.read_together(block), strict=True))
            else:
                images = {block.start: self.frames.frame(block.start)}
        except BaseException:
            with self._changed:
                self._end(block)
            raise
        with self._changed:
            self.reads += len(block)
            self._end(block)
            for index in [] if self._stopped else self.cache.arrived(block):
                self.cache.put(index, images[index])
        return images

    def _end(self, block: range) -> None:
        self.cache.reserved -= 1
        self._busy.difference_update(block)
        self._changed.notify_all()


_readers: weakref.WeakSet[FrameReader] = weakref.WeakSet()


def _stop_all() -> None:
    """A thread in the middle of a file must not meet the end of the interpreter."""
    for reader in list(_readers):
        reader.stop(wait=True)


def _renew_all() -> None:
    for reader in list(_readers):
        reader.renew()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
