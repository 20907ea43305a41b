"""Telling pages what has changed: one task looks at the folders, and only while somebody listens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from fouriscope.viewer.runs import ViewedRun

POLL_SECONDS = 0.1
KEEP_ALIVE_SECONDS = 15.0
MOST_LISTENERS = 32


class Watcher:
    """Looks at the times of a few files of each run, ten times per second, and tells each listener what changed."""

    def __init__(self, runs: Sequence[ViewedRun]) -> None:
        self._runs = runs
        self._listeners: set[asyncio.Queue[str | None]] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_full(self) -> bool:
        """Whether there are as many listeners as one person can have."""
        return len(self._listeners) >= MOST_LISTENERS

    async def events(self) -> AsyncIterator[str]:
        """Server-sent events for one listener, until it goes."""
        queue: asyncio.Queue[str | None] = asyncio.Queue(maxsize=256)
        self._listeners.add(queue)
        if self._task is None:
            self._task = asyncio.create_task(self._watch())
        try:
            yield "retry: 1000\nevent: hello\ndata: {}\n\n"
            while True:
                try:
                    event = await asyncio.wait_for(queue.get(), KEEP_ALIVE_SECONDS)
                except TimeoutError:
                    event = ": still here\n\n"  # and if the listener is not, writing this finds out
                if event is None:
                    return
                yield event
        finally:
            self._listeners.discard(queue)
            if not self._listeners and self._task is not None:
                self._task.cancel()
                self._task = None

    def end(self) -> None:
        """Let every listener's events end, because the server does."""
        for queue in self._listeners:
            while not queue.empty():
                queue.get_nowait()
            queue.put_nowait(None)

    async def _watch(self) -> None:
        seen = [run.versions() for run in self._runs]
        while True:
            await asyncio.sleep(POLL_SECONDS)
            for index, run in enumerate(self._runs):
                now = run.versions()
                changed = [kind for kind, version in now.items() if version != seen[index][kind]]
                seen[index] = now
                if changed:
                    self._tell(f"event: change\ndata: {json.dumps({'run': index, 'changed': changed})}\n\n")

    def _tell(self, event: str) -> None:
        for queue in self._listeners:
            with suppress(asyncio.QueueFull):  # a page that sleeps; it asks for everything when it wakes
                queue.put_nowait(event)
