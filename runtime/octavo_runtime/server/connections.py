"""`Connections`: which clients keep a connection open between two requests, so that a drain can send them elsewhere.

A Service of Kubernetes chooses a pod for a connection, not for a request: whoever keeps one would come back here until
the very end. A client that finds its idle connection closed opens another one.
"""

import asyncio
import time
from collections.abc import Callable
from weakref import WeakKeyDictionary

QUIET_SECONDS = 1.0
"""A connection that was used just now may still be sending the end of its answer."""


class Connections:
    """One per server; the middleware tells it of each request."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._idle_since: WeakKeyDictionary[asyncio.Transport, float] = WeakKeyDictionary()

    def begin(self, transport: asyncio.Transport | None) -> None:
        """A request has come on it."""
        if transport is not None:
            self._idle_since.pop(transport, None)

    def end(self, transport: asyncio.Transport | None) -> None:
        """The request was answered."""
        if transport is not None and not transport.is_closing():
            self._idle_since[transport] = self._clock()

    def close_idle(self) -> None:
        """Close those that have been quiet for `QUIET_SECONDS`; a busy one closes with its answer."""
        latest = self._clock() - QUIET_SECONDS
        for transport, since in list(self._idle_since.items()):
            if since <= latest:
                transport.close()
