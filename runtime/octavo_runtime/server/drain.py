"""`Drain`: an orderly end. Nothing new comes in, what runs may finish until a deadline, the rest is aborted.

`main.py` calls it on SIGTERM and then closes the server.
"""

import asyncio
import time

from octavo_runtime.server.admission import Admission
from octavo_runtime.server.interfaces import Engine

_POLL = 0.02  # seconds
_ABORT_GRACE = 2.0  # seconds for aborted requests to send their last event


class Drain:
    """One per server."""

    def __init__(self, engine: Engine, admission: Admission) -> None:
        self._engine = engine
        self._admission = admission

    @property
    def draining(self) -> bool:
        return self._admission.closed

    def begin(self) -> None:
        """From now on readiness is 503 and new work is refused with 503."""
        self._admission.closed = True

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
