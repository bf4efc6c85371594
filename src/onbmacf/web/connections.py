"""Connections: how many there may be, and how long a client may take to send a head or to read its answer.

    connection  ->  BoundedProtocol (a place, deadlines)  ->  uvicorn's own protocol  ->  the app

uvicorn waits for ever for the rest of a head, so clients that send half of one (Slowloris) would take every place.
Here, where all places are taken, a new connection takes that of the one that has waited longest without a request,
first among those that never had one.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from onbmacf.web.settings import Settings

FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 1\r\n"
    b"Connection: close\r\nContent-Length: 22\r\n\r\nToo many connections.\n"
)


class BoundedProtocol(H11Protocol):
    """One connection, which has a place among the others and ends when its client is too slow."""

    def __init__(self, *arguments: Any, settings: Settings, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.limits = settings.limits
        # A proxy asks for all its clients from one address, and it is the one to count them.
        self.most_alike = self.limits.max_connections if settings.behind_proxy else self.limits.max_per_client
        self.waiting_since: float | None = None  # for the head of a request; None while one is answered
        self.deadline: asyncio.TimerHandle | None = None
        self.n_unsent = 0  # bytes of answers, when the deadline was set

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place; without one, say so and close."""
        super().connection_made(transport)
        if self._has_place():
            self._wait_for_head()
        else:
            transport.write(FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        super().connection_lost(exc)
        self._stop_clock()

    def handle_events(self) -> None:
        """Stop the clock where a request has begun."""
        super().handle_events()
        if self.waiting_since is not None and self.cycle is not None and not self.cycle.response_complete:
            self.waiting_since = None
            self._stop_clock()

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it is there already."""
        super().on_response_complete()
        if self.cycle.response_complete:
            self._wait_for_head()

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        super().pause_writing()
        self._set_clock()

    def resume_writing(self) -> None:
        """The client has read enough for more to be sent."""
        super().resume_writing()
        self._stop_clock() if self.waiting_since is None else self._wait_for_head()

    def _has_place(self) -> bool:
        """Say whether there is a place for this connection; one that has no request yet makes room."""
        others = [one for one in self.connections if isinstance(one, BoundedProtocol) and one is not self]
        alike = [one for one in others if (one.client or ("",))[0] == (self.client or ("",))[0]]
        crowd = alike if len(alike) >= self.most_alike else others if len(others) >= self.limits.max_connections else []
        waiting = [one for one in crowd if one.waiting_since is not None]
        if waiting:
            # Whoever has asked something before is less likely to hold a place for its own sake.
            oldest = min(waiting, key=lambda one: (one.cycle is not None, one.waiting_since))
            self.connections.discard(oldest)  # now: it hears that it is lost later
            oldest.transport.abort()
        return bool(waiting) or not crowd

    def _wait_for_head(self) -> None:
        self.waiting_since = self.loop.time()
        self._set_clock()

    def _set_clock(self) -> None:
        self._stop_clock()
        self.n_unsent = self.transport.get_write_buffer_size()
        self.deadline = self.loop.call_later(self.limits.head_timeout, self._ring)

    def _stop_clock(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def _ring(self) -> None:
        """End the connection, unless its client has read some of a long answer meanwhile."""
        if 0 < self.transport.get_write_buffer_size() < self.n_unsent:
            self._set_clock()
        else:
            self.transport.abort()
