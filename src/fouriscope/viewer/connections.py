"""How long a connection may take and how many there may be: programs of other users can connect, token or not."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

# For the head of a request, counted from the connection or from the last answer, and for the next bytes of an answer
# to be taken. Nobody types requests by hand.
PATIENCE_SECONDS = 15.0
# A browser opens six to one host; then there are listeners, and several browsers.
MOST_CONNECTIONS = 100


class LimitedProtocol(H11Protocol):
    """Drops connections on which nothing is asked or taken, and the one that waits longest if there are too many."""

    _unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._moved = self.loop.time()
        self._timer = self.loop.call_later(PATIENCE_SECONDS / 5, self._look)
        others = [
            one for one in self.connections if isinstance(one, LimitedProtocol) and not one.transport.is_closing()
        ]
        if len(others) > MOST_CONNECTIONS:
            min((one for one in others if one.is_waiting), key=lambda one: one._moved).transport.abort()

    def on_response_complete(self) -> None:
        self._moved = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _look(self) -> None:
        """Drop the connection if nothing has moved on it for too long."""
        now, unsent = self.loop.time(), self.transport.get_write_buffer_size()
        if unsent != self._unsent or not (unsent or self.is_waiting):
            self._unsent, self._moved = unsent, now
        if now - self._moved >= PATIENCE_SECONDS:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(PATIENCE_SECONDS / 5, self._look)
