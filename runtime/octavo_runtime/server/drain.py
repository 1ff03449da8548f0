"""`Drain`: taking a server out of service. Asked for, it only looks unready; ended, it lets nothing new in.

`admin.py` asks (POST /drain: whoever routes requests shall stop, those that still come are served); `main.py` ends it on
SIGTERM, and then closes the server.
"""

import asyncio
import time

from octavo_runtime.server.admission import Admission
from octavo_runtime.server.connections import Connections
from octavo_runtime.server.interfaces import Engine

_POLL = 0.02  # seconds
_ABORT_GRACE = 2.0  # seconds for aborted requests to send their last event


class Drain:
    """One per server."""

    def __init__(self, engine: Engine, admission: Admission, connections: Connections) -> None:
        self._engine = engine
        self._admission = admission
        self._connections = connections
        self._asked = False

    @property
    def draining(self) -> bool:
        """Readiness is 503 and every response closes its connection."""
        return self._asked or self._admission.closed

    def ask(self) -> None:
        """Stay away, please: nothing is refused, idle connections are closed."""
        self._asked = True
        self._connections.close_idle()

    def cancel(self) -> None:
        """Takes `ask` back; what has begun stays begun."""
        self._asked = False

    def begin(self) -> None:
        """From now on readiness is 503 and new work is refused with 503."""
        self._admission.closed = True
        self._connections.close_idle()

    async def run(self, seconds: float) -> bool:
        """Begin, wait up to `seconds` for the calls in flight, abort the others. True: none was left."""
        self.begin()
        if await self._idle(seconds):
            return True
        self._engine.abort_all()
        await self._idle(_ABORT_GRACE)
        return False

    async def _idle(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self._admission.num_calls > 0:
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(_POLL)
        return True
